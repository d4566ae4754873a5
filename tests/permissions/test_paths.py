"""Paths as policy sees them: beneath the workspace, guarded, and matched by patterns."""

import re

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from codewhale.permissions.paths import beneath, guard, matches
from support.patience import Moment


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("a.py", "a.py"), ("./a//b/../c", "a/c"), (".", "."), ("", "."), ("/w/x", "x"), ("/w", "."), ("/w/", "."),
        ("../x", None), ("/w-evil/x", None), ("/etc/passwd", None), ("a/../../w/x", "x"),
    ],
)  # fmt: skip
def test_a_path_is_named_from_the_workspace(path: str, expected: str | None) -> None:
    assert beneath(path, "/w") == expected


def test_all_is_beneath_the_root_folder() -> None:
    assert beneath("/etc/x", "/") == "etc/x" and beneath("/", "/") == "."


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        (".git/config", "own"), (".git", "own"), (".GIT/hooks/pre-commit", "own"), ("sub/.git/config", "own"),
        (".git./config", "own"), (".git /config", "own"), ("git~1/config", "own"), (".g\u200cit/config", "own"),
        (".git::$INDEX_ALLOCATION/config", "own"), (".codewhale/config.toml", "own"), (".CodeWhale/x", "own"),
        ("a/.codewhale/permissions.toml", "own"), (".vscode/tasks.json", "others"), (".VSCODE/x", "others"),
        ("sub/.vscode/settings.json", "others"), (".mcp.json", "others"), ("sub/.MCP.json", "others"),
        (".gitmodules", "others"), (".bashrc", "others"), (".envrc", "others"), (".husky/pre-commit", "others"),
        (".ripgreprc", "others"), ("AGENTS.md", "rules"), ("sub/agents.md", "rules"), ("CLAUDE.md", "rules"),
        ("a.py", ""), (".gitignore", ""), (".github/workflows/x.yml", ""), ("git/config", ""), ("x.git.md", ""),
        ("docs/.gitkeep", ""), (".", ""),
    ],
)  # fmt: skip
def test_files_that_make_others_run_things_are_guarded(path: str, kind: str) -> None:
    assert guard(path) == kind


def test_a_folder_of_git_under_another_name_is_guarded_too() -> None:
    assert guard("real/hooks/x", ("real",)) == "own" and guard("really/x", ("real",)) == ""


@pytest.mark.parametrize(
    ("pattern", "path", "expected"),
    [
        ("secrets/**", "secrets/a/b", True),
        ("secrets", "secrets/a/b", True),
        ("secrets/", "x/secrets/a", True),
        ("/secrets", "x/secrets/a", False),
        ("*.pem", "deep/down/key.pem", True),
        ("*.pem", "key.pem.txt", False),
        ("src/*.py", "src/a.py", True),
        ("src/*.py", "src/deep/a.py", False),
        ("src/**/a.py", "src/a.py", True),
        ("src/**/a.py", "src/x/y/a.py", True),
        ("a?c", "abc", True),
        ("a?c", "a/c", False),
        ("a.c", "abc", False),
        ("./docs/x", "docs/x", True),
    ],
)
def test_patterns(pattern: str, path: str, expected: bool) -> None:
    assert matches(pattern, path) is expected


@pytest.mark.parametrize("pattern", ["", "/", "./"])
def test_an_empty_pattern_is_refused(pattern: str) -> None:
    with pytest.raises(ValueError):
        matches(pattern, "a")


@pytest.mark.parametrize(
    "pattern", ["*a" * 40 + "*b", "**a" * 30 + "b", "**/*a/" * 60 + "b", "*" * 5000 + "b", "?*" * 200]
)
def test_no_pattern_of_a_rule_takes_long(pattern: str) -> None:
    began = Moment()
    for path in ("a" * 3000, "/".join(["a" * 40] * 60), "a/" * 900 + "a"):
        matches(pattern, path)
    assert not began.laboured


@settings(max_examples=300, deadline=None)
@given(
    st.lists(st.sampled_from("a b . / * ** **/ ? [a] +".split(" ")), min_size=1, max_size=8).map("".join),
    st.lists(st.sampled_from("a b ab . .a [a] +".split(" ")), min_size=1, max_size=4).map("/".join),
)
def test_patterns_match_as_the_expression_they_stand_for(pattern: str, path: str) -> None:
    body = pattern.strip("/").removeprefix("./")
    assume(body not in ("", "."))
    anywhere = "/" not in pattern.strip("/") and not pattern.startswith("/")
    meant = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    pieces = re.findall(r"\*\*/|\*\*|\*|\?|[^*?]+", body)
    whole = ("(?:.*/)?" if anywhere else "") + "".join(meant.get(piece, re.escape(piece)) for piece in pieces)
    assert matches(pattern, path) is bool(re.fullmatch(f"{whole}(?:/.*)?", path, re.DOTALL))
