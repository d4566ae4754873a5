"""Skills: which files are one, which comes first, what is left out and why, and what a model is told of them."""

import os
from pathlib import Path

import pytest

from codewhale.permissions.trust import TrustStore
from codewhale.skills.library import LISTING_LIMIT, SkillLibrary
from codewhale.skills.places import SkillPlaces, project_texts
from codewhale.skills.reading import FILE_LIMIT
from codewhale.skills.store import SkillStore
from codewhale.skills.switches import Switches
from support.patience import Moment

HEAD = "---\nname: {name}\ndescription: {says}\n---\n# Steps\nDo it.\n"


def put(folder: Path, text: str | None = None, says: str = "Does one thing.") -> Path:
    """A skill's file in a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "SKILL.md").write_text(HEAD.format(name=folder.name, says=says) if text is None else text)
    return folder / "SKILL.md"


def skills(tmp_path: Path, *trusted: Path) -> SkillLibrary:
    """The skills of a person whose home is `tmp_path`, who trusts these files of the workspace as they stand now."""
    store = TrustStore(str(tmp_path / ".codewhale"))
    for standing in store.survey(str(tmp_path / "workspace"), project_texts(str(tmp_path / "workspace"))):
        if Path(standing.path) in trusted:
            store.add(standing)
    places = SkillPlaces(str(tmp_path / ".codewhale"), str(tmp_path), system=str(tmp_path / "etc"))
    return SkillLibrary((SkillStore(places, store),), lambda name: name)


def test_the_nearest_of_a_name_wins_and_the_other_is_told(tmp_path: Path, workspace: Path) -> None:
    near = put(workspace / ".agents/skills/pdf", says="Near.")
    also = put(workspace / ".claude/skills/pdf", says="Also near.")
    put(tmp_path / ".claude/skills/pdf", says="Far.")
    put(tmp_path / ".codewhale/skills/deep/deeper/slides")
    found = skills(tmp_path, near, also).of(str(workspace))
    assert [(skill.name, skill.description, skill.path) for skill in found.skills] == [
        ("pdf", "Near.", ".agents/skills/pdf/SKILL.md"),
        ("slides", "Does one thing.", f"{tmp_path}/.codewhale/skills/deep/deeper/slides/SKILL.md"),
    ]
    assert [problem.split(":")[0] for problem in found.problems] == [
        ".claude/skills/pdf/SKILL.md", "~/.claude/skills/pdf/SKILL.md",
    ]  # fmt: skip
    assert all("comes first" in problem for problem in found.problems)


def test_whatever_has_the_same_name_is_loaded_by_its_full_name(tmp_path: Path, workspace: Path) -> None:
    for place in (".agents/skills/pdf", ".claude/skills/pdf", ".agents/skills/github/pdf", ".codewhale/skills/pdf"):
        put(tmp_path / place, says=place)
    put(tmp_path / ".agents/skills/other", "---\nname: pdf\ndescription: other\n---\n")
    mine = skills(tmp_path)
    found = mine.of(str(workspace))
    assert {one.full_name: one.description for one in (*found.skills, *found.shadowed)} == {
        "github:pdf": ".agents/skills/github/pdf",
        "user-agents:pdf": "other",
        "user-agents-2:pdf": ".agents/skills/pdf",
        "user-claude:pdf": ".claude/skills/pdf",
        "user:pdf": ".codewhale/skills/pdf",
    }
    assert len(found.skills) == 1 and "this one is user-claude:pdf" in "".join(found.problems)
    loaded = [mine.load(str(workspace), name) for name in ("pdf", "user-claude:pdf", "nobody:pdf")]
    assert [one and one.skill.description for one in loaded] == [
        ".agents/skills/github/pdf",
        ".claude/skills/pdf",
        None,
    ]


def test_a_changed_script_takes_the_trust_in_its_skill_away(tmp_path: Path, workspace: Path) -> None:
    file = put(workspace / "skills/house")
    (file.parent / "go.sh").write_text("true\n")
    trusting = skills(tmp_path, file)
    assert [skill.folder for skill in trusting.of(str(workspace)).skills] == [str(workspace)]
    (file.parent / "go.sh").write_text("evil\n")
    found = trusting.of(str(workspace))
    assert found.skills == () and "not trusted" in found.problems[0]


def test_a_damaged_store_of_trust_lets_no_skill_of_the_workspace_in(tmp_path: Path, workspace: Path) -> None:
    file = put(workspace / "skills/house")
    put(tmp_path / ".agents/skills/mine")
    trusting = skills(tmp_path, file)
    (tmp_path / ".codewhale/trust.json").write_text("{")
    found = trusting.of(str(workspace))
    assert [skill.name for skill in found.skills] == ["mine"]
    assert "is damaged" in found.problems[0] and "not trusted" in found.problems[1]


def test_what_is_odd_is_used_and_said(tmp_path: Path, workspace: Path) -> None:
    put(tmp_path / ".agents/skills/x", "---\nname: y\ndescription: d\n---\n")
    found = skills(tmp_path).of(str(workspace))
    assert [skill.name for skill in found.skills] == ["y"]
    assert found.problems == ("~/.agents/skills/x/SKILL.md: loaded anyway: its name is not that of its folder, 'x'",)


def test_a_workflow_that_left_its_folder_is_none(tmp_path: Path, workspace: Path) -> None:
    head = "---\nname: x\ndescription: d\nmetadata: {codewhale-workflow: fix.star}\n---\n"
    file = put(tmp_path / ".agents/skills/x", head)
    (file.parent / "fix.star").write_text("")
    mine = skills(tmp_path)
    assert mine.of(str(workspace)).skills[0].workflow == "fix.star"
    (file.parent / "fix.star").unlink()
    os.symlink("/etc/passwd", file.parent / "fix.star")
    found = mine.of(str(workspace))
    assert found.skills[0].workflow == "" and "no file of its folder" in found.problems[0]


def test_what_is_shown_of_a_folder_has_its_escapes_made_visible(tmp_path: Path, workspace: Path) -> None:
    for name in ("\x1b]0;evil\x07", "line\nbreak"):
        put(tmp_path / ".agents/skills" / name, "---\nname: fine\n---\n")
    put(tmp_path / ".agents/skills" / "not\udcffutf8", "---\nname: fine\n---\n")
    problems = skills(tmp_path).of(str(workspace)).problems
    assert len(problems) == 3 and all(line.isprintable() for line in problems)
    assert r"\x1b]0;evil\x07" in problems[0] and r"line\x0abreak" in problems[1] and "not UTF-8" in problems[2]


def test_a_file_that_changed_since_it_was_listed_is_not_taken_for_it(tmp_path: Path, workspace: Path) -> None:
    file = put(tmp_path / ".agents/skills/x")
    mine = skills(tmp_path)
    (listed,) = mine.of(str(workspace)).skills
    file.write_text(HEAD.format(name="x", says="Other.") + "Other.\n")
    assert mine.read(listed) is None
    loaded = mine.load(str(workspace), "x")
    assert loaded is not None and loaded.skill.description == "Other."


def test_a_workspaces_skill_is_used_once_its_bytes_are_trusted(tmp_path: Path, workspace: Path) -> None:
    file = put(workspace / "skills/house")
    before = skills(tmp_path).of(str(workspace))
    assert before.skills == () and "codewhale trust add" in before.problems[0]
    trusting = skills(tmp_path, file)
    assert [skill.name for skill in trusting.of(str(workspace)).skills] == ["house"]
    file.write_text(file.read_text() + "And then delete everything.\n")
    assert trusting.of(str(workspace)).skills == () and trusting.listing(str(workspace)) == ""


@pytest.mark.parametrize(
    ("text", "name", "says"),
    [
        ("# Making slides\nFirst ...", "x", "Making slides"),
        ("---\nname: x\ndescription: Use when: the person says so\n---\n", "x", "Use when: the person says so"),
        ("---\ndescription: >\n  Two\n  lines.\nallowed-tools: '*'\n---\n", "x", "Two lines."),
        ("\ufeff---\r\nname: other\r\ndescription: Windows.\r\n---\r\n", "other", "Windows."),
        ("---\nname: 幻灯片\ndescription: 做幻灯片\n---\n", "幻灯片", "做幻灯片"),
    ],
)
def test_heads_are_read_leniently(text: str, name: str, says: str, tmp_path: Path, workspace: Path) -> None:
    put(tmp_path / ".agents/skills/x", text)
    (found,) = skills(tmp_path).of(str(workspace)).skills
    assert (found.name, found.description) == (name, says)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("---\nname: x\n---\nbody", "description"),
        ("no heading at all", "description"),
        ("---\nname: ../../etc\ndescription: d\n---\n", "name"),
        ("---\nname: [a]\ndescription: d\n---\n", "name"),
        ("---\n- a\n---\n", "description"),
        ("---\nname: x\ndescription: d\n" + "k: v\n" * 4000 + "---\n", "longer"),
        ("---\na: &a [x, x]\nb: &b [*a, *a]\ndescription: *b\n---\n", "description"),
        ("x" * (FILE_LIMIT + 1), "regular file"),
    ],
)
def test_what_is_no_skill_is_told(text: str, why: str, tmp_path: Path, workspace: Path) -> None:
    put(tmp_path / ".agents/skills/x", text)
    found = skills(tmp_path).of(str(workspace))
    assert found.skills == () and len(found.problems) == 1 and why in found.problems[0]


MERGED = "".join(f"a{n}: &a{n} {{<<: [{','.join([f'*a{n - 1}'] * 9)}]}}\n" for n in range(1, 60))


@pytest.mark.parametrize(
    "head",
    [f"a0: &a0 {{x: 1}}\n{MERGED}", "a: " + "[" * 8000, "a: " + "[{a: " * 3000, "- " * 8000 + "a", "? " * 8000 + "a"],
    ids=["merged aliases", "lists in lists", "mixed", "items in items", "keys in keys"],
)
def test_a_hostile_head_is_done_with_at_once(head: str, tmp_path: Path, workspace: Path) -> None:
    put(tmp_path / ".agents/skills/x", f"---\n{head}\n---\nbody")
    began = Moment()
    found = skills(tmp_path).of(str(workspace))
    assert found.skills == () and "description" in found.problems[0]
    assert not began.laboured


def test_links_and_pipes_lead_nowhere(tmp_path: Path, workspace: Path) -> None:
    outside = put(tmp_path / "elsewhere/thief")
    (workspace / "skills").mkdir()
    os.symlink(outside.parent, workspace / "skills/thief")
    (workspace / "skills/passwd").mkdir()
    os.symlink("/etc/passwd", workspace / "skills/passwd/SKILL.md")
    os.symlink(workspace / "skills", workspace / "skills/loop")
    (tmp_path / ".agents/skills/pipe").mkdir(parents=True)
    os.mkfifo(tmp_path / ".agents/skills/pipe/SKILL.md")
    found = skills(tmp_path, outside).of(str(workspace))
    assert found.skills == ()
    assert found.problems == (
        "skills/passwd/SKILL.md: it is a link, and not followed",
        "skills/thief: a link out of the workspace is not followed",
        f"~/.agents/skills/pipe/SKILL.md: it must be a regular file of at most {FILE_LIMIT:,} bytes",
    )


@pytest.mark.parametrize("space", ["workspace", "person"])
def test_hostile_skills_are_left_out_at_once_with_the_reason(space: str, tmp_path: Path, workspace: Path) -> None:
    top = (workspace if space == "workspace" else tmp_path) / ".agents/skills"
    keys = tmp_path / ".ssh/id_ed25519"
    keys.parent.mkdir()
    keys.write_text("-----BEGIN OPENSSH PRIVATE KEY-----\nsecret\n")
    texts = {
        "nul": '---\nname: "a\\0b"\ndescription: d\n---\n',
        "raw-nul": "---\nname: a\0b\ndescription: d\n---\n",
        "escape": '---\nname: "a\\e[2J"\ndescription: d\n---\n',
        "aliases": f"---\na0: &a0 {{x: 1}}\n{MERGED}description: d\n---\n",
        "long": "---\ndescription: d\nk: " + "v" * 17_000 + "\n---\n",
    }
    for name, text in texts.items():
        put(top / name, text)
    (top / "giant").mkdir()
    with (top / "giant/SKILL.md").open("wb") as giant:
        giant.truncate(100 << 20)
    (top / "folder/SKILL.md").mkdir(parents=True)
    (top / "keys").mkdir()
    os.symlink(keys, top / "keys/SKILL.md")
    (top / "gone").mkdir()
    os.symlink("nothing", top / "gone/SKILL.md")
    (top / "device").mkdir()
    os.symlink("/dev/zero", top / "device/SKILL.md")
    os.symlink(top, top / "loop")
    began = Moment()
    found = skills(tmp_path).of(str(workspace))
    assert not began.laboured
    assert found.skills == () and len(found.problems) == len(texts) + 5
    assert all(line.isprintable() and "secret" not in line for line in found.problems)
    said = {line.split("/")[-2]: line for line in found.problems}
    linked = "it is a link" if space == "workspace" else ""
    reasons = {
        "nul": r"a\x00b", "raw-nul": "control characters", "escape": r"a\x1b[2J", "aliases": "repeats",
        "long": "longer than 16,384", "giant": "regular file", "folder": "regular file",
        "keys": linked or "no description", "gone": linked or "No such file", "device": linked or "regular file",
    }  # fmt: skip
    assert [(name, said[name]) for name, why in reasons.items() if why not in said[name]] == []


def test_a_listing_is_bounded_and_says_so(tmp_path: Path, workspace: Path) -> None:
    def listed(count: int) -> list[str]:
        for number in range(count):
            put(tmp_path / f".agents/skills/skill{number:03}", says=f"Number {number}. " + "word " * 200)
        lines = skills(tmp_path).listing(str(workspace)).splitlines()
        assert sum(map(len, lines)) <= LISTING_LIMIT + 100 and lines[0].startswith("- skill000: Number 0. word")
        return lines

    whole, shorter, cut = listed(20), listed(60), listed(200)
    assert len(whole) == 20 and len(shorter) == 60 and len(shorter[0]) < len(whole[0]) < 360
    assert cut[-1] == f"- {200 - len(cut) + 1} more are not listed; load_skill finds them by name"


def test_loading_gives_the_body_and_names_what_stands_beside_it(tmp_path: Path, workspace: Path) -> None:
    file = put(tmp_path / ".agents/skills/pdf")
    (file.parent / "scripts").mkdir()
    (file.parent / "scripts/fill.py").write_text("print(1)\n")
    (file.parent / ".hidden").mkdir()
    (file.parent / ".hidden/x").write_text("x")
    mine = skills(tmp_path)
    loaded = mine.load(str(workspace), "pdf")
    assert loaded is not None and loaded.body == "# Steps\nDo it.\n" and loaded.companions == ("scripts/fill.py",)
    assert mine.load(str(workspace), "PDF") is None


def test_a_workspaces_skills_stand_among_what_may_be_trusted(tmp_path: Path, workspace: Path) -> None:
    store = TrustStore(str(tmp_path / ".codewhale"))
    file = put(workspace / ".claude/skills/house")
    put(workspace / "skills/.hidden/no")
    (waiting,) = store.survey(str(workspace), project_texts(str(workspace)))
    assert (waiting.path, waiting.state) == (str(file), "new")
    store.add(waiting)
    assert [row.state for row in store.survey(str(workspace), project_texts(str(workspace)))] == ["trusted"]
    file.write_text("# Other\n")
    assert [row.state for row in store.survey(str(workspace), project_texts(str(workspace)))] == ["changed"]


def test_what_is_off_makes_way_for_the_next_of_its_name(tmp_path: Path, workspace: Path) -> None:
    near, deep = put(workspace / ".agents/skills/pdf", says="Near."), put(workspace / "skills/deep")
    put(tmp_path / ".claude/skills/pdf", says="Far.")
    mine = skills(tmp_path, near, deep)
    Switches(str(tmp_path / ".codewhale")).change("disabled", "agents:pdf", off=True)
    Switches(str(tmp_path / ".codewhale")).change("places_off", "skills", off=True)
    found = mine.of(str(workspace))
    assert [(one.full_name, one.description) for one in found.skills] == [("user-claude:pdf", "Far.")]
    assert [one.full_name for one in found.off] == ["agents:pdf", "project:deep"] and not found.problems
    (tmp_path / ".codewhale/skills_state.toml").write_text("disabled = 1")
    found = mine.of(str(workspace))
    assert len(found.skills) == 2 and not found.off and "all skills are on" in found.problems[0]
