"""Ignore patterns match what git's do, byte for byte, and none takes long."""

import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from codewhale.workspace.ignore import IgnoreRules, WildPattern, literal_length
from support.patience import Moment
from support.repos import raw_git

SLOW = [
    b"*a" * 60 + b"*b",
    b"?*" * 100 + b"b",
    b"*" * 100_000 + b"b",
    b"[a-z]*" * 120 + b"!",
    b"**/*a*a*a*a*a*a*a*a*a*a*a*a*b/**/x",
    b"/".join([b"**/*a*"] * 60),
    b"**/" * 2000 + b"b",
    b"**/a" * 90 + b"/b",
    b"[" + b"a" * 500_000 + b"]b",
    b"[[:alpha:]" * 50_000,
    b"\\a" * 300_000,
    b"[a-z]" * 200_000,
    b"*[!b]" * 100_000,
]
TEXT = st.text(alphabet="aab-/]![^*?\\:é\t .\x0b", max_size=12)
PIECES = st.lists(
    st.sampled_from(
        "a|b|/|*|**|***|?|[|]|!|^|-|\\|[a-b]|[!a]|[[:space:]]|é|**/|/**|[]a]|[a/]|\\/|:|[:|:]| |[[:alpha:]-b]".split(
            "|"
        )
    ),
    max_size=9,
).map("".join)


@pytest.mark.parametrize("pattern", SLOW, ids=lambda pattern: f"{pattern[:12]!r}x{len(pattern)}")
def test_no_pattern_takes_long(pattern: bytes) -> None:
    began = Moment()
    rules = IgnoreRules().adding("", pattern + b"\n")
    for path in ("a" * 250, "/".join(["a" * 200] * 18), "/".join("a" * 100)):
        rules.ignores(path, False)
    assert not began.laboured


def test_thousands_of_rules_are_asked_quickly() -> None:
    lines = [b"/out/gen%d/" % number for number in range(9_000)] + [b"*.e%d" % number for number in range(9_000)]
    began = Moment()
    rules = IgnoreRules().adding("", b"\n".join(lines))
    assert [rules.ignores(f"src/a{number}.e{number}", False) for number in range(10_000)] == [True] * 9_000 + [
        False
    ] * 1_000
    assert rules.ignores("out/gen7", True) and not rules.ignores("out/gen7", False)
    assert not began.laboured


def test_rules_give_up_when_the_time_is_spent() -> None:
    clock = iter([False] * 7)
    rules = IgnoreRules(spent=lambda: next(clock, True)).adding("", b"".join(b"[a-c]%d\n" % n for n in range(500)))
    with pytest.raises(TimeoutError):
        rules.ignores("x", False)
    with pytest.raises(TimeoutError):
        rules.adding("", b"a\n" * 100)


def test_more_rules_than_may_be_in_force_are_passed_over() -> None:
    rules = IgnoreRules().adding("", b"".join(b"n%d\n" % number for number in range(30_000)))
    assert rules.ignores("n19999", False) and not rules.ignores("n20000", False)


@pytest.mark.parametrize("pattern", [b"[a", b"[[:bogus:]]", b"a\\", b"[a-\\", b"[[:alpha:", b"[/]"])
def test_a_pattern_that_matches_nothing_is_refused(pattern: bytes) -> None:
    with pytest.raises(ValueError):
        WildPattern(pattern)


def test_what_stands_before_the_first_star_is_compared_as_it_is() -> None:
    assert literal_length(b"src/gen*") == 7 and literal_length(b"plain") == 5
    assert WildPattern(b"foo**/bar", 3).matches(b"foobar")  # git tries what follows the plain part by itself
    assert WildPattern(b"foo**/bar", 3).matches(b"foox/bar") and not WildPattern(b"foo**/bar", 3).matches(b"fo/bar")


@pytest.fixture(scope="module")
def repo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An empty repository: git judges names that need not be there, all as files."""
    folder = tmp_path_factory.mktemp("judge")
    raw_git(folder, "init", "-q", "--template=")
    return folder


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(PIECES, min_size=1, max_size=4), st.lists(TEXT, min_size=4, max_size=12))
def test_random_patterns_match_as_git_has_it(repo: Path, lines: list[str], texts: list[str]) -> None:
    data = "\n".join(lines).encode()
    paths = [path for text in texts if (path := _plain(text))]
    (repo / ".gitignore").write_bytes(data)
    judged = raw_git(
        repo,
        "check-ignore",
        "--no-index",
        "-z",
        "--stdin",
        stdin="".join(f"./{p}\0" for p in paths).encode(),
        check=False,
    )
    ignored = {path.removeprefix("./") for path in judged.decode().split("\0")}
    rules = IgnoreRules().adding("", data)
    for path in paths:
        assert _hides(rules, path) is (path in ignored), (data, path)


def _plain(text: str) -> str:
    """A path with no empty step, and none that leads elsewhere."""
    return "/".join(step for step in text.split("/") if step not in ("", ".", ".."))


def _hides(rules: IgnoreRules, path: str) -> bool:
    steps = path.split("/")
    above = ("/".join(steps[:count]) for count in range(1, len(steps)))
    return any(rules.ignores(folder, True) for folder in above) or rules.ignores(path, False)


def test_names_that_are_not_utf8_are_judged_by_their_bytes(tmp_path: Path) -> None:
    raw_git(tmp_path, "init", "-q", "--template=")
    rule = b"?\xff*\n[\xe0-\xf0]x\n"
    (tmp_path / ".gitignore").write_bytes(rule)
    names = [b"a\xffb", b"\xffb", b"\xe9x", b"\xd0x"]
    told = subprocess.run(
        ["git", "check-ignore", "--no-index", "-z", "--stdin"],
        cwd=tmp_path,
        input=b"\0".join(names),
        capture_output=True,
    ).stdout.split(b"\0")
    rules = IgnoreRules().adding("", rule)
    assert [rules.ignores(name.decode("utf-8", "surrogateescape"), False) for name in names] == [
        name in told for name in names
    ]
    assert told[:2] == [b"a\xffb", b"\xe9x"]
