"""grep_files, file_search and project_map: honest counts, workspace-relative paths, no way out and no hang."""

import os
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
import pytest

from codewhale.protocol.errors import ToolError
from codewhale.tools.search import SearchTools
from support.calls import call, context, refused
from support.patience import Moment
from support.repos import TRAPS, lay, make_repo, write


def run(workspace: Path, name: str, arguments: dict[str, Any]) -> Any:
    result = call(SearchTools(), name, arguments, context(workspace))
    assert result.ok
    return msgspec.json.decode(result.content)


def grep(workspace: Path, pattern: str, **more: Any) -> Any:
    return run(workspace, "grep_files", {"pattern": pattern, **more})


def places(found: Any) -> list[tuple[str, int]]:
    return [(match["file"], match["line_number"]) for match in found["matches"]]


def fix(workspace: Path, name: str, arguments: dict[str, Any], kind: str = "invalid_input") -> Any:
    """The call is refused, and the call it suggests succeeds."""
    error = refused(SearchTools(), name, arguments, context(workspace))
    assert error.kind == kind
    for suggested in filter(None, (error.fix, error.look)):
        assert call(SearchTools(), suggested.name, suggested.arguments, context(workspace)).ok
    return error


# ------------------------------------------------------------------ grep_files


def test_matches_come_with_their_surroundings(workspace: Path) -> None:
    write(workspace, {"a.py": "one\ntwo\nthree\nfour\nfive\n", "sub/b.py": "three"})
    assert grep(workspace, "thr.e", context_lines=1) == {
        "matches": [
            {
                "file": "a.py",
                "line_number": 3,
                "line": "three",
                "context_before": ["two"],
                "context_after": ["four"],
            },
            {"file": "sub/b.py", "line_number": 1, "line": "three", "context_before": [], "context_after": []},
        ],
        "total_matches": 2,
        "files_searched": 2,
        "truncated": False,
    }
    first = grep(workspace, "three")["matches"][0]
    assert (first["context_before"], first["context_after"]) == (["one", "two"], ["four", "five"])
    assert grep(workspace, "three", context_lines=0)["matches"][0]["context_before"] == []


def test_nothing_found_is_a_result(workspace: Path) -> None:
    found = grep(workspace, "x")
    assert found.pop("hint").startswith("There is no text file here; look")
    assert found == {"matches": [], "total_matches": 0, "files_searched": 0, "truncated": False}


def test_nothing_found_says_what_to_try(workspace: Path) -> None:
    write(workspace, {"a.py": "Walrus\n", "b.py": "x\n"})
    assert "Try case_insensitive, a shorter pattern, or codebase_search" in grep(workspace, "walrus")["hint"]
    assert "Try a shorter pattern, or" in grep(workspace, "seal", case_insensitive=True)["hint"]
    assert grep(workspace, "walrus", include=["*.rs"])["hint"].startswith("include leaves none of 2 files")
    assert "hint" not in grep(workspace, "Walrus")


def test_the_total_goes_beyond_what_is_returned(workspace: Path) -> None:
    write(workspace, {"b.txt": "x\n" * 300, "a.txt": "x\ny\n" * 3})
    found = grep(workspace, "x", max_results=5, context_lines=0)
    assert places(found) == [("a.txt", 1), ("a.txt", 3), ("a.txt", 5), ("b.txt", 1), ("b.txt", 2)]
    assert (found["total_matches"], found["truncated"]) == (303, True)
    assert grep(workspace, "x", max_results=303)["truncated"] is False
    assert len(grep(workspace, "x")["matches"]) == 100


def test_lines_are_cut_around_the_match(workspace: Path) -> None:
    write(workspace, {"long.txt": "a" * 3000 + "NEEDLE" + "b" * 3000 + "\n" + "c" * 700 + "\n"})
    match = grep(workspace, "NEEDLE")["matches"][0]
    assert "NEEDLE" in match["line"] and len(match["line"]) < 600
    assert "characters left out" in match["line"]
    assert len(match["context_after"][0]) < 600 and match["context_after"][0].startswith("c" * 500)


def test_binary_large_and_special_files_are_passed_over(workspace: Path) -> None:
    write(workspace, {"ok.txt": "needle\n", "huge.txt": "needle\n" + "x" * (10 << 20)})
    (workspace / "binary").write_bytes(b"needle\n\0\n")
    (workspace / "utf16.txt").write_bytes("needle\n".encode("utf-16"))
    (workspace / "link.txt").symlink_to("ok.txt")
    os.mkfifo(workspace / "pipe")
    (workspace / "locked.txt").write_text("needle\n")
    (workspace / "empty").write_text("")
    found = grep(workspace, "needle")
    assert places(found) == [("locked.txt", 1), ("ok.txt", 1)]
    assert found["files_searched"] == 3 and found["total_matches"] == 2
    assert places(grep(workspace, "^$")) == []


def test_line_ends_marks_and_broken_bytes(workspace: Path) -> None:
    (workspace / "crlf.txt").write_bytes(b"one\r\ntwo\r\n\r\nthree")
    (workspace / "bom.txt").write_bytes(b"\xef\xbb\xbffirst\n")
    (workspace / "latin.txt").write_bytes(b"caf\xe9\n")
    assert places(grep(workspace, "(one|two|three)$")) == [("crlf.txt", 1), ("crlf.txt", 2), ("crlf.txt", 4)]
    assert places(grep(workspace, "^$")) == [("crlf.txt", 3)]
    assert places(grep(workspace, "^first$")) == [("bom.txt", 1)]
    assert grep(workspace, "caf.")["matches"][0]["line"] == "caf�"


def test_globs_choose_files(workspace: Path) -> None:
    write(
        workspace,
        dict.fromkeys(("a.py", "b.ts", "src/c.py", "src/deep/d.tsx", "node_modules/e.py", "x.min.js"), "x"),
    )
    write(workspace, {"dist/f.py": "x"})
    assert places(grep(workspace, "x")) == [("a.py", 1), ("b.ts", 1), ("src/c.py", 1), ("src/deep/d.tsx", 1)]
    for include, files in (
        (["*.py"], ["a.py", "src/c.py"]),
        (["src/*.py"], ["src/c.py"]),
        (["src/**"], ["src/c.py", "src/deep/d.tsx"]),
        (["*.{ts,tsx}"], ["b.ts", "src/deep/d.tsx"]),
        (["src"], ["src/c.py", "src/deep/d.tsx"]),
        ([], ["a.py", "b.ts", "src/c.py", "src/deep/d.tsx"]),
    ):
        assert [file for file, _ in places(grep(workspace, "x", include=include))] == files, include
    assert places(grep(workspace, "x", exclude=["src/**"])) == [("a.py", 1), ("b.ts", 1)], "node_modules still left out"
    assert places(grep(workspace, "x", path="src", include=["deep/*"])) == [("src/deep/d.tsx", 1)]
    assert places(grep(workspace, "x", path="node_modules")) == [("node_modules/e.py", 1)]
    assert places(grep(workspace, "x", path="dist/f.py")) == [("dist/f.py", 1)]
    assert places(grep(workspace, "x", path=str(workspace / "src" / "c.py"))) == [("src/c.py", 1)]


def test_what_git_ignores_is_left_out(tmp_path: Path) -> None:
    repo = make_repo(tmp_path / "repo", {".gitignore": "*.log\n", "a.py": "x"})
    write(repo, {"b.log": "x", "new.py": "x"})
    assert places(grep(repo, "x")) == [("a.py", 1), ("new.py", 1)]


def test_case_can_be_ignored(workspace: Path) -> None:
    write(workspace, {"a.txt": "Straße\nSTRASSE\nnothing\n"})
    assert places(grep(workspace, "straße")) == []
    assert places(grep(workspace, "straße", case_insensitive=True)) == [("a.txt", 1)]
    assert places(grep(workspace, "NoThing", case_insensitive=False)) == []


@pytest.mark.parametrize(
    ("pattern", "position"),
    [("foo(bar", 7), ("[a", 2), ("*x", 0), ("a)b", 1), ("x{2,1}", 2), ("(?P<n", 5), ("trail\\", 6), ("(" * 9000, 0)],
)
def test_a_pattern_that_is_none_is_explained_and_its_text_searched(
    workspace: Path, pattern: str, position: int
) -> None:
    write(workspace, {"a.txt": pattern[:100] + "\n"})
    error = fix(workspace, "grep_files", {"pattern": pattern, "context_lines": 0})
    assert error.field == "pattern" and f"position {position}" in error.message
    suggested = call(SearchTools(), error.fix.name, error.fix.arguments, context(workspace))
    assert len(pattern) > 100 or msgspec.json.decode(suggested.content)["total_matches"] == 1
    assert error.fix.arguments["context_lines"] == 0


@pytest.mark.slow
def test_a_pattern_without_end_ends(workspace: Path) -> None:
    write(workspace, {"a.txt": "a" * 60 + "b\n"})
    started = Moment()
    error = fix(workspace, "grep_files", {"pattern": "(a|aa)+$"}, kind="timeout")
    assert error.field == "pattern" and "a.txt" in error.message and not started.hung


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("../x", "path_escape"),
        ("/etc", "path_escape"),
        ("a/../../x", "path_escape"),
        ("out", "path_escape"),
        ("out/passwd", "path_escape"),
        ("C:\\x", "path_escape"),
        ("~", "path_escape"),
        ("nul\0", "path_escape"),
        ("absent", "invalid_input"),
        ("a.txt/b", "invalid_input"),
        ("pipe", "invalid_input"),
        ("loop", "invalid_input"),
    ],
)
@pytest.mark.parametrize("name", ["grep_files", "file_search"])
def test_paths_that_lead_nowhere_or_out_are_refused(workspace: Path, path: str, kind: str, name: str) -> None:
    write(workspace, {"a.txt": "x"})
    (workspace / "out").symlink_to("/etc")
    (workspace / "loop").symlink_to("loop")
    os.mkfifo(workspace / "pipe")
    wanted = {"pattern": "x"} if name == "grep_files" else {"query": "x"}
    error = fix(workspace, name, {**wanted, "path": path}, kind)
    assert error.field == "path"


@pytest.mark.parametrize("glob", ["", " ", "[z-a]", "{a,b}" * 10, "x" * 2000])
@pytest.mark.parametrize("field", ["include", "exclude"])
def test_globs_that_are_none_are_refused(workspace: Path, glob: str, field: str) -> None:
    assert fix(workspace, "grep_files", {"pattern": "x", field: [glob]}).field == field
    if field == "exclude":
        assert fix(workspace, "file_search", {"query": "x", field: [glob]}).field == field


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"pattern": ""},
        {"pattern": 5},
        {"pattern": "x", "max_results": 0},
        {"pattern": "x", "max_results": 1001},
        {"pattern": "x", "max_results": "5"},
        {"pattern": "x", "context_lines": -1},
        {"pattern": "x", "include": "*.py"},
        {"pattern": "x", "path": ""},
        {"pattern": "x", "unknown": 1},
    ],
)
def test_the_schema_refuses_wrong_types_and_bounds(workspace: Path, arguments: dict[str, Any]) -> None:
    with pytest.raises(msgspec.ValidationError):
        call(SearchTools(), "grep_files", arguments, context(workspace))


def test_null_is_absent(workspace: Path) -> None:
    write(workspace, {"a.txt": "x"})
    nulls = dict.fromkeys(("path", "include", "exclude", "context_lines", "case_insensitive", "max_results"))
    assert grep(workspace, "x", **nulls)["total_matches"] == 1


def test_hostile_names_and_text_stay_data(workspace: Path) -> None:
    write(workspace, {"$(touch PWNED)\n\x1b[2J.txt": "x \x1b]0;title\x07 \u202e\n", "-rf": "x"})
    found = call(SearchTools(), "grep_files", {"pattern": "x"}, context(workspace))
    assert "\x1b" not in found.content and not (workspace / "PWNED").exists()
    assert len(msgspec.json.decode(found.content)["matches"]) == 2


@pytest.mark.parametrize("trap", TRAPS[:8], ids=lambda trap: trap.name)
def test_searching_a_hostile_repository_runs_nothing(trap: Any, tmp_path: Path) -> None:
    repo = lay(trap, tmp_path / "repo", tmp_path / "PWNED")
    assert grep(repo, "TWO")["total_matches"] == 1
    run(repo, "file_search", {"query": "a"})
    run(repo, "project_map", {})
    assert not (tmp_path / "PWNED").exists()


# ------------------------------------------------------------------ one engine, with ripgrep and without


# ------------------------------------------------------------------ file_search


def names(rows: Any) -> list[str]:
    return [row["path"] for row in rows]


def test_files_are_found_by_name_best_first(workspace: Path) -> None:
    write(
        workspace,
        dict.fromkeys(("main.py", "src/main.py", "src/main_loop.py", "src/domain.py", "m/a/i/n", "z.txt"), ""),
    )
    rows = run(workspace, "file_search", {"query": "main.py"})
    assert rows[:2] == [
        {"path": "main.py", "name": "main.py", "score": 1.0},
        {"path": "src/main.py", "name": "main.py", "score": 1.0},
    ]
    found = run(workspace, "file_search", {"query": "MAIN"})
    assert names(found)[:3] == ["main.py", "src/main.py", "src/main_loop.py"] and "z.txt" not in names(found)
    assert all(first["score"] >= second["score"] for first, second in pairwise(found))


def test_file_search_narrows_and_leaves_out(workspace: Path) -> None:
    write(
        workspace,
        dict.fromkeys(("a.py", "b.ts", "sub/a.PY", "target/a.py", "x/node_modules/a.py", "a.lock", ".hid/a.py"), ""),
    )
    (workspace / "a_link").symlink_to("b.ts")
    assert names(run(workspace, "file_search", {"query": "a.py"})) == [".hid/a.py", "a.py", "sub/a.PY"]
    assert names(run(workspace, "file_search", {"query": "a", "extensions": ["py"], "path": "sub"})) == ["sub/a.PY"]
    assert names(run(workspace, "file_search", {"query": "b", "extensions": [".ts"]})) == ["b.ts"]
    assert names(run(workspace, "file_search", {"query": "a.py", "exclude": ["sub/**"]})) == [".hid/a.py", "a.py"]
    assert names(run(workspace, "file_search", {"query": "a.lock"})) == ["a.lock"], "asked for by name"
    assert names(run(workspace, "file_search", {"query": "a_link"})) == ["a_link"]
    assert run(workspace, "file_search", {"query": "a", "limit": 1}) != []
    assert len(run(workspace, "file_search", {"query": "a", "limit": 2})) == 2
    assert run(workspace, "file_search", {"query": "zzz"}) == []


def test_file_search_tells_when_there_is_more(workspace: Path) -> None:
    write(workspace, {f"file{n}.py": "" for n in range(30)})
    result = call(SearchTools(), "file_search", {"query": "file"}, context(workspace))
    assert len(msgspec.json.decode(result.content)) == 20
    assert result.metadata == {"total": 30, "truncated": True}


def test_a_blank_query_is_refused(workspace: Path) -> None:
    assert fix(workspace, "file_search", {"query": "  "}).field == "query"
    for arguments in ({"query": ""}, {"query": "a", "limit": 0}, {"query": "a", "limit": 201}, {"query": None}):
        with pytest.raises(msgspec.ValidationError):
            call(SearchTools(), "file_search", arguments, context(workspace))


# ------------------------------------------------------------------ project_map


def test_a_project_is_drawn(tmp_path: Path) -> None:
    repo = make_repo(
        tmp_path / "repo",
        {
            ".gitignore": "*.log\n",
            "README.md": "",
            "pyproject.toml": "",
            "src/pkg/main.py": "",
            "src/main.py": "",
            "src/pkg/deep/er/x.py": "",
        },
    )
    write(repo, {"x.log": "", "node_modules/y.js": ""})
    shown = run(repo, "project_map", {"max_depth": 2})
    assert set(shown) == {"tree", "summary", "key_files"}
    assert shown["tree"].splitlines() == [
        "src/",
        "  pkg/ (2 files)",
        "  main.py",
        ".gitignore",
        "README.md",
        "pyproject.toml",
    ]
    assert shown["key_files"] == ["README.md", "pyproject.toml", "src/main.py"]
    assert shown["summary"].startswith("6 files in 3 folders; by kind: .py 3")
    assert "er/ (1 file)" not in run(repo, "project_map", {})["tree"]
    assert "x.py" in run(repo, "project_map", {"max_depth": 5})["tree"]


def test_a_map_is_bounded_and_empty_folders_have_one(workspace: Path) -> None:
    assert run(workspace, "project_map", {}) == {"tree": "", "summary": "No files.", "key_files": []}
    write(workspace, {f"d{n}/e{m}/f{k}.py": "" for n in range(30) for m in range(8) for k in range(4)})
    write(workspace, {f"many/{n}.txt": "" for n in range(100)})
    shown = run(workspace, "project_map", {"max_depth": 10})
    assert len(shown["tree"].splitlines()) <= 301 and "more" in shown["tree"]
    assert shown["summary"].startswith("1060 files")
    for arguments in ({"max_depth": 0}, {"max_depth": 11}, {"depth": 1}):
        with pytest.raises(msgspec.ValidationError):
            call(SearchTools(), "project_map", arguments, context(workspace))


@pytest.mark.parametrize(
    "pattern",
    ["(?:(?:(?:a{1000}){1000}){1000}){1000}", "(?i)" + "ſ" * 3000, "(?R)?a(?R)?b", "(a*)*$", "(a|b|ab)*c"],
    ids=["counts", "folds", "recursion", "stars", "choices"],
)
def test_no_pattern_holds_up_a_search(workspace: Path, pattern: str) -> None:
    write(workspace, {"a.txt": "a" * 200_000 + "!\nfine\n"})
    began = Moment()
    try:
        result = call(SearchTools(), "grep_files", {"pattern": pattern}, context(workspace))
        assert result.ok
    except ToolError as error:
        assert error.kind in ("timeout", "invalid_input") and "pattern" in str(error)
    assert not began.hung


def test_a_pattern_of_another_process_finds_the_same(workspace: Path) -> None:
    write(workspace, {"a.txt": "foofoobar\nbar\n", "b/c.txt": "xfoobar\n"})
    assert places(grep(workspace, "(foo)+bar")) == [("a.txt", 1), ("b/c.txt", 1)]
    assert places(grep(workspace, "(?<=x)foo", context_lines=0)) == [("b/c.txt", 1)]
    error = fix(workspace, "grep_files", {"pattern": "(foo)+["})
    assert "position" in str(error)
