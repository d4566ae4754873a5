"""Where skills stand, in which order, and under which namespaces."""

import os
import subprocess
from pathlib import Path

import pytest

from codewhale.skills.places import SkillPlaces, skill_files


def places(tmp_path: Path, configured: str = "") -> SkillPlaces:
    """Those of a person whose home is the folder `p`."""
    return SkillPlaces(str(tmp_path / "h"), str(tmp_path / "p"), configured, str(tmp_path / "etc"))


def put(folder: Path) -> None:
    """A skill in a folder."""
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text(f"# {folder.name}\n")


def test_the_workspace_comes_before_the_person_and_others_folders_last(tmp_path: Path) -> None:
    (tmp_path / "w").mkdir()
    shown = [(place.shown, place.space) for place in places(tmp_path, "/opt/skills").of(str(tmp_path / "w"))]
    assert shown == [
        (".agents/skills", "agents"), ("skills", "project"), (".opencode/skills", "opencode"),
        (".claude/skills", "claude"), (".cursor/skills", "cursor"), (".codewhale/skills", "codewhale"),
        ("~/.agents/skills", "user-agents"), ("~/.claude/skills", "user-claude"), (f"{tmp_path}/h/skills", "user"),
        ("~/.deepseek/skills", "user-deepseek"), (f"{tmp_path}/etc", "system"), (".codex/skills", "codex"),
        (".kimi/skills", "kimi"), ("~/.codex/skills", "user-codex"), ("~/.kimi/skills", "user-kimi"),
        ("/opt/skills", "configured"),
    ]  # fmt: skip


@pytest.mark.parametrize("where", ["w/.codex/skills", "p/.kimi/skills", "etc", "h/skills", "p/.deepseek/skills"])
def test_one_such_folder_is_enough(where: str, tmp_path: Path) -> None:
    (tmp_path / "w").mkdir()
    assert not places(tmp_path).any_there(str(tmp_path / "w"))
    (tmp_path / where).mkdir(parents=True)
    assert places(tmp_path).any_there(str(tmp_path / "w"))


def test_the_folders_above_count_up_to_the_top_of_the_repository(tmp_path: Path) -> None:
    inner = tmp_path / "above/repo/packages/one"
    inner.mkdir(parents=True)
    subprocess.run(["git", "init", "-q", tmp_path / "above/repo"], check=True)
    for folder in ("above", "above/repo", "above/repo/packages", "above/repo/packages/one"):
        put(tmp_path / folder / ".agents/skills/pdf")
    put(inner / ".claude/skills/near")
    files = skill_files(places(tmp_path).of(str(inner)))
    assert [(file.shown, file.place.workspace.removeprefix(f"{tmp_path}/above/")) for file in files] == [
        (".agents/skills/pdf/SKILL.md", "repo/packages/one"),
        (".claude/skills/near/SKILL.md", "repo/packages/one"),
        ("../.agents/skills/pdf/SKILL.md", "repo/packages"),
        ("../../.agents/skills/pdf/SKILL.md", "repo"),
    ]


def test_the_persons_own_folder_needs_no_trust_where_it_is_the_workspace(tmp_path: Path) -> None:
    put(tmp_path / "p/.agents/skills/mine")
    put(tmp_path / "p/skills/theirs")
    files = {file.shown: file.place.workspace for file in skill_files(places(tmp_path).of(str(tmp_path / "p")))}
    assert files == {"skills/theirs/SKILL.md": f"{tmp_path}/p", "~/.agents/skills/mine/SKILL.md": ""}


def test_a_folder_between_place_and_skill_is_its_namespace(tmp_path: Path) -> None:
    for name in ("plain", "github/fix-ci", "github/deep/review", "odd name/x"):
        put(tmp_path / "w/skills" / name)
    files = skill_files(places(tmp_path).of(str(tmp_path / "w")))
    assert {file.shown.split("/")[-2]: file.space for file in files} == {
        "plain": "project", "fix-ci": "github", "review": "github", "x": "project",
    }  # fmt: skip


def test_a_file_that_two_places_lead_to_is_one(tmp_path: Path) -> None:
    put(tmp_path / "w/.agents/skills/pdf")
    (tmp_path / "w/.claude").mkdir()
    os.symlink("../.agents/skills", tmp_path / "w/.claude/skills")
    os.symlink("..", tmp_path / "w/.agents/skills/loop")
    problems: list[str] = []
    files = [file.shown for file in skill_files(places(tmp_path).of(str(tmp_path / "w")), problems)]
    assert files == [".agents/skills/pdf/SKILL.md"] and not problems


def test_ten_thousand_folders_are_not_all_looked_at(tmp_path: Path) -> None:
    for number in range(10_000):
        (tmp_path / f"w/skills/{number}").mkdir(parents=True)
    problems: list[str] = []
    assert not list(skill_files(places(tmp_path).of(str(tmp_path / "w")), problems))
    assert problems == ["skills: only the first 2,000 of its folders are looked at"]
