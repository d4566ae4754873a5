"""Ignore rules held to git itself: with a repository and without, the same paths are left out."""

import json
import os
import shutil
from pathlib import Path

import pytest

from codewhale.workspace.ignore import IgnoreRules
from codewhale.workspace.walk import Walker
from support.ignoretrees import Verdicts, judge
from support.patience import Moment
from support.repos import raw_git, write
from support.suites import suites

SUITE = suites() / "gitignore"
needs_suite = pytest.mark.skipif(not SUITE.is_dir(), reason=f"no gitignore suite at {SUITE}; set CODEWHALE_SUITES")


def cases(name: str) -> list[dict[str, object]]:
    return [json.loads(line) for line in (SUITE / name).read_text().splitlines()]


def lay_out(folder: Path, path: str, is_dir: bool) -> None:
    target = folder / path
    target.parent.mkdir(parents=True, exist_ok=True)
    if is_dir:
        target.mkdir(exist_ok=True)
    elif not target.exists():
        target.write_text("x")


async def is_ignored(walker: Walker, path: str, is_dir: bool) -> bool:
    """Whether the walker leaves `path` out, by one folder at a time and for a file by a whole walk as well."""
    here, hidden = ".", False
    for step in path.split("/"):
        hidden = hidden or step not in {entry.name for entry in await walker.entries(here)}
        here = step if here == "." else f"{here}/{step}"
    if not is_dir:
        assert (path in (await walker.files()).files) is not hidden, path
    return hidden


def git_ignores(repo: Path, paths: list[str]) -> set[str]:
    """Those of `paths` that git itself ignores, by their patterns alone."""
    data = "".join(f"./{path}\0" for path in paths).encode()
    told = raw_git(repo, "check-ignore", "--no-index", "-z", "--stdin", stdin=data, check=False)
    return {path.removeprefix("./") for path in told.decode().split("\0") if path}


@pytest.mark.parametrize("in_git", [True, False], ids=["git", "plain"])
@needs_suite
async def test_single_rules_ignore_what_git_ignores(tmp_path: Path, in_git: bool) -> None:
    subjects = []
    for number, case in enumerate(cases("ripgrep_ignore_cases.jsonl")):
        top, path = os.path.normpath(str(case["root"])), os.path.normpath(str(case["path"]))
        path = path.removeprefix(top + "/")
        folder = tmp_path / f"c{number}"
        lay_out(folder, path, bool(case["is_dir"]))
        (folder / ".gitignore").write_text(str(case["gitignore"]))
        subjects.append((folder, path, case))
    raw_git(tmp_path, "init", "-q")
    truth = git_ignores(tmp_path, [f"{folder.name}/{path}" for folder, path, _ in subjects])
    if not in_git:
        shutil.rmtree(tmp_path / ".git")
    for folder, path, case in subjects:
        ignored = await is_ignored(Walker(str(folder)), path, bool(case["is_dir"]))
        assert ignored is case["ignored"] is (f"{folder.name}/{path}" in truth), case


@pytest.mark.parametrize("in_git", [True, False], ids=["git", "plain"])
@needs_suite
async def test_rules_reach_into_folders_as_in_git(tmp_path: Path, in_git: bool) -> None:
    (tmp_path / ".gitignore").write_bytes(
        (SUITE / "gitignore_matched_path_or_any_parents_tests.gitignore").read_bytes()
    )
    rows = [(str(row["path"]).removeprefix("ROOT/"), row) for row in cases("ripgrep_parents_cases.jsonl")]
    for path, row in sorted(rows, key=lambda pair: not pair[1]["is_dir"]):
        lay_out(tmp_path, path, bool(row["is_dir"]))
    if in_git:
        raw_git(tmp_path, "init", "-q")
        truth = git_ignores(tmp_path, [path for path, _ in rows])
        assert truth == {path for path, row in rows if row["expect"] == "is_ignore"}
    walker = Walker(str(tmp_path))
    listed = set((await walker.files()).files)
    for path, row in rows:
        if row["is_dir"]:
            assert await is_ignored(walker, path, True) is (row["expect"] == "is_ignore"), path
        else:
            assert (path not in listed) is (row["expect"] == "is_ignore"), path


async def test_random_trees_and_rules_are_judged_as_by_git(tmp_path: Path) -> None:
    verdicts = Verdicts()
    await judge(tmp_path, range(40), verdicts)
    assert verdicts.differing == []
    assert verdicts.judged > 500 and 0.05 < verdicts.ignored / verdicts.judged < 0.95


async def test_a_hostile_rule_file_ends_a_walk_in_its_time(workspace: Path) -> None:
    hostile = "".join(f"[!{chr(97 + number % 26)}]*{'*?' * 30}{number}*z\n" for number in range(15_000))
    write(workspace, {".gitignore": hostile, **{f"{'a' * 200}{number}": "" for number in range(300)}})
    began = Moment()
    assert (await Walker(str(workspace), seconds=0.5).files()).truncated
    with pytest.raises(TimeoutError):
        await Walker(str(workspace), seconds=0.5).entries()
    assert not began.hung


async def test_a_rule_file_counts_up_to_its_first_mebibyte(workspace: Path) -> None:
    write(workspace, {".gitignore": "*.tmp\n" + "# note\n" * 160_000 + "*.py\n", "a.py": "", "b.tmp": ""})
    assert (await Walker(str(workspace)).files()).files == (".gitignore", "a.py")


async def test_a_rule_file_that_is_no_file_does_not_hang(workspace: Path) -> None:
    os.mkfifo(workspace / ".gitignore")
    write(workspace, {"a.py": "", "sub/.ignore": "*.txt\n[\n", "sub/b.txt": "", "sub/c.py": ""})
    assert (await Walker(str(workspace)).files()).files == ("a.py", "sub/.ignore", "sub/c.py")


async def test_rules_of_the_person_apply_outside_a_repository(
    workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "xdg"))
    write(tmp_path / "xdg", {"git/ignore": "*.swp\n"})
    write(workspace, {"a.swp": "", "b.py": ""})
    assert (await Walker(str(workspace)).files()).files == ("b.py",)


def test_lines_that_are_no_rules_are_passed_over() -> None:
    rules = IgnoreRules().adding("", b"\xef\xbb\xbf*.log\r\n\n# note\n[\n!keep.log\n\xff\nspace\\ \n")
    assert rules.ignores("a.log", False) and not rules.ignores("keep.log", False)
    assert rules.ignores("space ", False) and not rules.ignores("note", False)
    assert IgnoreRules().adding("", b"# only\n").ignores("only", False) is False


def test_rules_of_a_folder_hold_beneath_it() -> None:
    rules = IgnoreRules().adding("", b"*.log\n").adding("sub", b"!*.log\n/top\n")
    assert rules.ignores("a.log", False) and not rules.ignores("sub/a.log", False)
    assert rules.ignores("sub/top", True) and not rules.ignores("sub/x/top", True)
