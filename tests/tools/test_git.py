"""The git tools: shapes, limits, honest notes, refusals with a way on, and nothing that a repository can start."""

import os
from pathlib import Path
from typing import Any

import msgspec
import pytest

from codewhale.protocol.errors import ToolError
from codewhale.protocol.tools import Effect, PathSubject, ToolResult
from codewhale.tools.base import bound
from codewhale.tools.git import MOST_CHARS, GitTools
from codewhale.tools.search import SearchTools
from support.calls import call, context
from support.repos import TRAPS, Trap, commit, lay, make_repo, raw_git, write

NAMES = ("git_status", "git_diff", "git_log", "git_show", "git_blame")
KEYS = {"command", "working_dir", "pathspec", "truncated", "omitted_chars"}


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    """Two commits: Begin (a.txt, sub/b.txt) and Second (a.txt changed)."""
    made = make_repo(tmp_path / "repo", {"a.txt": "one\ntwo\nthree\n", "sub/b.txt": "b\n"})
    commit(made, {"a.txt": "one\nTWO\nthree\n"}, "Second")
    return made


def run(workspace: Path, name: str, **arguments: Any) -> ToolResult:
    result = call(GitTools(), name, arguments, context(workspace))
    assert result.metadata.keys() >= KEYS
    return result


def good(workspace: Path, name: str, **arguments: Any) -> str:
    result = run(workspace, name, **arguments)
    assert result.ok, result.content
    return result.content


def refuse(workspace: Path, name: str, kind: str, **arguments: Any) -> ToolError:
    """The call is refused, and the call it suggests succeeds."""
    with pytest.raises(ToolError) as raised:
        call(GitTools(), name, arguments, context(workspace))
    error = raised.value
    assert error.kind == kind and error.expected
    if error.fix is not None:
        assert error.fix.name == name
        assert call(GitTools(), error.fix.name, error.fix.arguments, context(workspace)).ok
    if error.look is not None and error.look.name == "file_search":
        assert call(SearchTools(), error.look.name, error.look.arguments, context(workspace)).ok
    return error


def test_all_five_are_declared_as_reads() -> None:
    tools = bound(GitTools())
    assert tuple(tools) == NAMES
    for name, tool in tools.items():
        assert tool.decl.effects == (Effect.READS,) and tool.decl.parallel
        required = {"rev": "HEAD"} if name == "git_show" else {}
        args = msgspec.convert({**required, "path": "x"}, tool.args)
        assert tool.decl.subjects(args) == (PathSubject("x"),)


# ------------------------------------------------------------------ status and diff


def test_status_tells_branch_and_changes(repo: Path) -> None:
    write(repo, {"a.txt": "changed\n", "new.txt": ""})
    raw_git(repo, "mv", "sub/b.txt", "sub/c.txt")
    result = run(repo, "git_status")
    assert result.content.splitlines() == ["## main", " M a.txt", "R  sub/b.txt -> sub/c.txt", "?? new.txt"]
    assert result.metadata["command"] == "git status --porcelain=v1 --branch"
    assert result.metadata["working_dir"] == str(repo) and result.metadata["pathspec"] is None
    assert good(repo, "git_status", path="sub").splitlines() == ["## main", "R  sub/b.txt -> sub/c.txt"]
    assert run(repo, "git_status", path="./sub/").metadata["pathspec"] == "sub"


def test_diff_shows_unstaged_staged_and_names_untracked(repo: Path) -> None:
    write(repo, {"a.txt": "one\ntwo\nthree\n", "new.txt": "n"})
    result = run(repo, "git_diff")
    assert "-TWO\n+two\n" in result.content and "--- a/a.txt\n+++ b/a.txt" in result.content
    assert result.content.endswith("Untracked files, not part of the diff:\n  new.txt\n")
    assert "@@ -2 +2 @@" in good(repo, "git_diff", unified=0)
    assert good(repo, "git_diff", cached=True) == "No staged changes.\n"
    raw_git(repo, "add", "a.txt")
    assert good(repo, "git_diff", path="a.txt") == "No unstaged changes.\n"
    assert "+two" in good(repo, "git_diff", cached=True, path="a.txt")
    assert "new.txt" not in good(repo, "git_diff", cached=True)


def test_a_file_touched_but_not_changed_is_no_difference(repo: Path) -> None:
    os.utime(repo / "a.txt", (1, 1))
    index = (repo / ".git" / "index").read_bytes()
    assert good(repo, "git_diff") == "No unstaged changes.\n"
    write(repo, {"sub/b.txt": "changed\n"})
    assert good(repo, "git_diff").startswith("diff --git a/sub/b.txt b/sub/b.txt\nindex ")
    assert good(repo, "git_status").splitlines() == ["## main", " M sub/b.txt"]
    assert (repo / ".git" / "index").read_bytes() == index


def test_a_deleted_file_can_still_be_asked_about(repo: Path) -> None:
    (repo / "a.txt").unlink()
    assert "deleted file" in good(repo, "git_diff", path="a.txt")
    assert good(repo, "git_status", path="a.txt").splitlines()[1] == " D a.txt"
    commit(repo, {}, "Gone")
    assert "Gone" in good(repo, "git_log", path="a.txt")
    assert "Second" in good(repo, "git_show", rev="HEAD~1", path="a.txt")
    assert "TWO" in good(repo, "git_blame", path="a.txt", rev="HEAD~1")


def test_configured_prefixes_and_colours_change_nothing(repo: Path) -> None:
    write(repo, {"a.txt": "x\n"})
    for key, value in (
        ("diff.noprefix", "true"),
        ("diff.mnemonicPrefix", "true"),
        ("color.ui", "always"),
        ("color.diff", "always"),
        ("color.status", "always"),
        ("blame.coloring", "repeatedLines"),
        ("status.showUntrackedFiles", "no"),
        ("log.date", "relative"),
        ("log.showSignature", "true"),
        ("core.quotePath", "true"),
    ):
        raw_git(repo, "config", key, value)
    write(repo, {"é.txt": ""})
    assert "--- a/a.txt\n+++ b/a.txt" in good(repo, "git_diff")
    assert "?? é.txt" in good(repo, "git_status")
    outputs = [good(repo, "git_log"), good(repo, "git_show", rev="HEAD"), good(repo, "git_blame", path="a.txt")]
    assert not any("\x1b" in text or "\\x1b" in text for text in outputs)


# ------------------------------------------------------------------ log and show


def test_log_lists_commits(repo: Path) -> None:
    lines = good(repo, "git_log").splitlines()
    head = raw_git(repo, "rev-parse", "HEAD").decode().strip()
    assert lines[0] == f"commit {head}" and lines[1] == "Author: Test <test@localhost>"
    assert lines[2].startswith("Date: 20") and "T" in lines[2] and lines[3:5] == ["Subject: Second", ""]
    assert good(repo, "git_log", max_count=1).count("commit ") == 1
    assert good(repo, "git_log", path="sub").count("commit ") == 1
    assert good(repo, "git_log", author="TEST@local").count("commit ") == 2
    assert good(repo, "git_log", author="[") == good(repo, "git_log", author="nobody") == "No commits match.\n"
    assert good(repo, "git_log", since="2 weeks ago", until="now").count("commit ") == 2
    assert good(repo, "git_log", until="2001-01-01") == "No commits match.\n"


@pytest.mark.parametrize("field", ["since", "until"])
def test_a_date_that_is_none_is_refused(repo: Path, field: str) -> None:
    assert refuse(repo, "git_log", "invalid_input", **{field: "garbage"}).field == field


def test_a_repository_without_commits(tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    write(empty, {"a.txt": ""})
    raw_git(empty, "init", "-q")
    assert good(empty, "git_log") == "There are no commits yet.\n"
    assert "?? a.txt" in good(empty, "git_status")
    assert "a.txt" in good(empty, "git_diff")
    result = run(empty, "git_show", rev="HEAD")
    assert not result.ok and result.metadata["exit_code"] == 128 and "git_log" in result.content
    assert not run(empty, "git_blame", path="a.txt").ok


def test_show_tells_message_stat_and_patch(repo: Path) -> None:
    shown = good(repo, "git_show", rev="HEAD")
    assert "Second" in shown and " a.txt | 2 +-" in shown and "-two\n+TWO" in shown
    assert "-two" not in good(repo, "git_show", rev="HEAD", patch=False)
    assert "| 2" not in good(repo, "git_show", rev="HEAD", stat=False)
    bare = good(repo, "git_show", rev="HEAD", patch=False, stat=False)
    assert "Second" in bare and "a.txt" not in bare
    assert good(repo, "git_show", rev="HEAD~1:a.txt") == "one\ntwo\nthree\n"
    assert good(repo, "git_show", rev="HEAD", path="sub") == "HEAD changes nothing in sub.\n"
    assert "@@ -2 +2 @@" in good(repo, "git_show", rev="main", unified=0)


def test_a_revision_that_is_not_there_fails_softly(repo: Path) -> None:
    write(repo, {"nope": ""})
    result = run(repo, "git_show", rev="nope")
    assert not result.ok and result.metadata["exit_code"] == 128
    assert "nope" in result.metadata["stderr"] and "git show" in result.content and "exit code 128" in result.content


@pytest.mark.parametrize(
    "rev", ["--output=x", "-p", "a b", "a\tb", "a\nb", "a\0b", "HEAD\x1b", "\u2003HEAD", "@{u}\u202e"]
)
@pytest.mark.parametrize("name", ["git_show", "git_blame"])
def test_a_revision_that_could_be_anything_else_is_refused(repo: Path, rev: str, name: str) -> None:
    more = {"path": "a.txt"} if name == "git_blame" else {}
    assert refuse(repo, name, "invalid_input", rev=rev, **more).field == "rev"
    assert sorted(path.name for path in repo.iterdir()) == [".git", "a.txt", "sub"]


def test_binary_content_is_told_not_shown(repo: Path) -> None:
    (repo / "x.bin").write_bytes(b"\0\1\2")
    commit(repo, {}, "Binary")
    assert good(repo, "git_show", rev="HEAD:x.bin") == "HEAD:x.bin is binary, 3 bytes.\n"
    assert "Binary files" in good(repo, "git_show", rev="HEAD")


# ------------------------------------------------------------------ blame


def test_blame_tells_commits_and_what_is_not_committed(repo: Path) -> None:
    write(repo, {"a.txt": "one\nTWO\nthree\nfour\n"})
    lines = good(repo, "git_blame", path="a.txt").splitlines()
    assert [line.rpartition(") ")[2] for line in lines[:4]] == ["one", "TWO", "three", "four"]
    assert lines[3].startswith("00000000 (Not Committed Yet") and "1 of these lines" in lines[4]
    at_head = good(repo, "git_blame", path="a.txt", rev="HEAD")
    assert "four" not in at_head and "not committed" not in at_head
    assert good(repo, "git_blame", path="a.txt", porcelain=True).count("author Test") >= 1


def test_blame_stays_within_the_file(repo: Path) -> None:
    assert good(repo, "git_blame", path="a.txt", start_line=2, max_lines=1).splitlines()[0].endswith("TWO")
    assert "start_line 3 shows more" in good(repo, "git_blame", path="a.txt", start_line=2, max_lines=1)
    assert good(repo, "git_blame", path="a.txt", start_line=3, max_lines=2000).splitlines()[-1].endswith("three")
    past = good(repo, "git_blame", path="a.txt", start_line=99)
    assert past.splitlines()[0].endswith("three") and "has 3 lines" in past
    commit(repo, {"empty.txt": ""}, "Empty")
    assert good(repo, "git_blame", path="empty.txt") == "empty.txt is empty.\n"


def test_blame_of_what_has_no_history(repo: Path) -> None:
    write(repo, {"new.txt": "x\n"})
    result = run(repo, "git_blame", path="new.txt")
    assert not result.ok and "in no commit" in result.content
    assert refuse(repo, "git_blame", "invalid_input", path="sub").field == "path"


# ------------------------------------------------------------------ limits and refusals


def test_long_output_is_cut_and_counted(repo: Path) -> None:
    write(repo, {"a.txt": "".join(f"line {n}\n" for n in range(20_000))})
    result = run(repo, "git_diff")
    body, _, note = result.content.partition("[Cut: ")
    assert result.metadata["truncated"] and MOST_CHARS - 2000 <= len(body) <= MOST_CHARS
    assert note.startswith(f"{result.metadata['omitted_chars']} characters more") and "path" in note
    whole = raw_git(repo, "diff").decode()
    assert len(body) + result.metadata["omitted_chars"] == len(whole) and whole.startswith(body)
    write(repo, {"a.txt": "x" * 100_000})
    assert run(repo, "git_diff").metadata["truncated"]
    assert not run(repo, "git_status").metadata["truncated"]


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("../x", "path_escape"),
        ("/etc/passwd", "path_escape"),
        ("out/passwd", "path_escape"),
        ("a\0", "path_escape"),
        ("absent.txt", "invalid_input"),
        (":/", "invalid_input"),
        (":(exclude)a.txt", "invalid_input"),
        ("*.txt", "invalid_input"),
        ("--output=x", "invalid_input"),
        ("pipe", "invalid_input"),
    ],
)
@pytest.mark.parametrize("name", NAMES)
def test_paths_that_lead_nowhere_or_out_are_refused(repo: Path, name: str, path: str, kind: str) -> None:
    (repo / "out").symlink_to("/etc")
    os.mkfifo(repo / "pipe")
    more = {"rev": "HEAD"} if name == "git_show" else {}
    assert refuse(repo, name, kind, path=path, **more).field == "path"


@pytest.mark.parametrize("name", NAMES)
def test_outside_a_repository_there_is_a_way_on(workspace: Path, name: str) -> None:
    write(workspace, {"a.txt": ""})
    more = {"git_show": {"rev": "HEAD"}, "git_blame": {"path": "a.txt"}, "git_log": {"since": "garbage"}}.get(name, {})
    assert "git repository" in refuse(workspace, name, "not_available", **more).message


def test_without_git_it_is_not_available(repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "git is not installed" in refuse(repo, "git_status", "not_available").message


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("git_status", {"path": ""}),
        ("git_status", {"x": 1}),
        ("git_diff", {"unified": 51}),
        ("git_diff", {"cached": "yes"}),
        ("git_log", {"max_count": 0}),
        ("git_log", {"max_count": 201}),
        ("git_log", {"author": 5}),
        ("git_show", {}),
        ("git_show", {"rev": ""}),
        ("git_blame", {}),
        ("git_blame", {"path": "a", "start_line": 0}),
        ("git_blame", {"path": "a", "max_lines": 2001}),
    ],
)
def test_the_schema_refuses_wrong_types_and_bounds(repo: Path, name: str, arguments: dict[str, Any]) -> None:
    with pytest.raises(msgspec.ValidationError):
        call(GitTools(), name, arguments, context(repo))


def test_a_workspace_within_a_repository_sees_its_part(repo: Path) -> None:
    write(repo, {"a.txt": "changed\n", "sub/b.txt": "changed\n", "sub/new.txt": ""})
    part = repo / "sub"
    assert good(part, "git_status").splitlines() == ["## main", " M b.txt", "?? new.txt"]
    diff = good(part, "git_diff")
    assert "--- a/b.txt" in diff and "a.txt" not in diff and "new.txt" in diff
    assert good(part, "git_log").count("commit ") == 1
    assert "Second" in good(part, "git_show", rev="HEAD") and "TWO" not in good(part, "git_show", rev="HEAD")
    assert "+b" in good(part, "git_show", rev="HEAD~1")
    assert "Not Committed" in good(part, "git_blame", path="b.txt")
    refuse(part, "git_diff", "path_escape", path="../a.txt")


def test_names_of_all_kinds_are_shown_escaped(tmp_path: Path) -> None:
    repo = make_repo(tmp_path / "repo", {"a\x1b[31m.txt": "x\n", "$(touch PWNED)": "y\n"})
    raw_git(repo, "checkout", "-q", "-b", "$(touch${IFS}PWNED)")
    raw_git(repo, "-c", "user.name=\u202eevil\x1b]0;t\x07", "commit", "-q", "--allow-empty", "-m", "subject\x1b[2J")
    write(repo, {"a\x1b[31m.txt": "\x1b[31mred\n", "new\x1b[0m\n.txt": ""})
    for name in NAMES:
        more = {"git_show": {"rev": "HEAD"}, "git_blame": {"path": "a\x1b[31m.txt"}}.get(name, {})
        result = run(repo, name, **more)
        assert "\x1b" not in result.content and "\x07" not in result.content
        assert "\x1b" not in str(result.metadata)
    assert not (repo / "PWNED").exists()


@pytest.mark.parametrize("trap", TRAPS, ids=lambda trap: trap.name)
def test_no_git_tool_runs_what_a_repository_names(trap: Trap, tmp_path: Path) -> None:
    repo = lay(trap, tmp_path / "repo", tmp_path / "PWNED")
    for name, arguments in (
        ("git_status", {}),
        ("git_diff", {}),
        ("git_diff", {"cached": True}),
        ("git_diff", {"path": "a.txt"}),
        ("git_log", {"since": "2 weeks ago", "path": "a.txt"}),
        ("git_show", {"rev": "HEAD"}),
        ("git_show", {"rev": "HEAD:a.txt"}),
        ("git_blame", {"path": "a.txt"}),
        ("git_blame", {"path": "a.txt", "rev": "HEAD"}),
    ):
        (repo / "a.txt").touch()
        run(repo, name, **arguments)
        assert not (tmp_path / "PWNED").exists(), name
