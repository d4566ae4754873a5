"""Globs, held to outside cases; where ours are meant to differ, it is said."""

import json

import pytest

from codewhale.lib.globs import GlobError, Globs
from support.patience import Moment
from support.suites import suites

CASES = suites() / "gitignore" / "ripgrep_globset_cases.jsonl"
DIFFERENT = {
    "CASEI": "case always counts",
    "NOBSESC": "a backslash always escapes",
    "matchalt9": "no path is empty",
    "matchalt10": "no path is empty",
    "matchalt15": "an empty choice in braces is one",
    "matchslash2": "only / parts a path",
    "matchslash4": "a set never matches a slash",
    "matchslash5": "only / parts a path",
    "matchnot5": "/ at the front is the root searched",
    "matchnot20": "a glob without a slash matches at any depth",
    "matchnot21": "./ at the front means nothing",
    "matchnot25": "a glob without a slash matches at any depth",
    "matchrec33": "a folder's name may have any depth below it; a file .abc is not told from a folder",
}


@pytest.mark.skipif(not CASES.is_file(), reason=f"no glob cases at {CASES}; set CODEWHALE_SUITES")
def test_globs_match_as_elsewhere() -> None:
    for line in CASES.read_text().splitlines():
        case = json.loads(line)
        if case["name"] in DIFFERENT or case["opt"] in DIFFERENT:
            continue
        assert Globs([case["pattern"]]).match(case["path"]) is case["match"], case


@pytest.mark.parametrize(
    ("glob", "matching", "other"),
    [
        ("*.py", ["a.py", "x/a.py"], ["a.pyc", "a.py.txt"]),
        ("src", ["src/a", "x/src/b", "src"], ["srcx/a", "xsrc"]),
        ("src/", ["src/a"], ["srcs/a"]),
        ("src/*.py", ["src/a.py"], ["a.py", "src/x/a.py", "x/src/a.py"]),
        ("/src", ["src/a"], ["x/src/a"]),
        ("**/test_*.py", ["test_a.py", "x/y/test_b.py"], ["x/atest_b.py"]),
        ("a/**/b", ["a/b", "a/x/y/b", "a/b/c"], ["a/x", "b"]),
        ("a/**", ["a/b", "a/b/c"], ["a", "b/a"]),
        ("*.{ts,tsx}", ["a.ts", "x/b.tsx"], ["a.t", "a.ts,tsx"]),
        ("[!a]?", ["bc", "x/bc"], ["ab", "b"]),
        ("[", ["["], ["a"]),
        ("{a", ["{a"], ["a"]),
        ("a\\*b", ["a*b"], ["axb"]),
        ("**", ["a", "a/b"], []),
        ("a/**/**/**/b", ["a/b", "a/x/y/b"], ["a/x", "b"]),
        ("**/**", ["a", "a/b"], []),
        ("a?*?*?c", ["axyzc", "axyzzzc"], ["axyc", "ac"]),
        ("*?*", ["a", "ab"], []),
        ("*??", ["ab", "abc"], ["a"]),
    ],
)
def test_globs_mean_what_is_expected(glob: str, matching: list[str], other: list[str]) -> None:
    globs = Globs([glob])
    assert [path for path in matching if not globs.match(path)] == []
    assert [path for path in other if globs.match(path)] == []


def test_matching_time_does_not_explode() -> None:
    globs = Globs(["*a" * 30 + "b", "/".join(["**", "a"] * 30) + "/b"])
    started = Moment()
    assert not globs.match("a" * 2000)
    assert not globs.match("/".join("a" * 500))
    assert not started.hung


def test_many_globs_with_long_runs_cost_little() -> None:
    started = Moment()
    globs = Globs([*(f"{'**/' * 300}x{n}" for n in range(8)), *(f"{'{a,b}' * 5}{'?*' * 400}{n}" for n in range(8))])
    assert not any(globs.match(f"many/f{number}.txt") for number in range(2000))
    assert not started.laboured


def test_bad_globs_are_refused() -> None:
    for glob in ("", "  ", "[z-a]", "{a,b}" * 7, "x" * 1001):
        with pytest.raises(GlobError):
            Globs([glob])
    assert not Globs(())
    assert Globs(["node_modules", "*.py"]).names == {"node_modules"}


def test_globs_are_bounded_together_and_repeats_count_once() -> None:
    wide = "{a,b}" * 6
    assert Globs([wide + "*"] * 50).match("aaaaaa.py")
    with pytest.raises(GlobError, match="more than 512 globs"):
        Globs([f"{wide}{number}*" for number in range(9)])
