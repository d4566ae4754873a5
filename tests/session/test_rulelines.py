"""Which lines state a rule."""

import pytest

from codewhale.session.rulelines import is_strict, rule_lines, within


@pytest.mark.parametrize(
    "line",
    [
        "You must not push.", "Never touch gen/", "Don't rename it", "ALWAYS run make", "NOTE: port 80 is taken",
        "12: warning: stop here", "Das darf nicht sein", "C'est interdit.", "Está prohibido.", "禁止修改", "必ず実行",
        "금지", "Никогда", "(3) Rule: one file each",
    ],
)  # fmt: skip
def test_strict_lines(line: str) -> None:
    assert is_strict(line)
    assert rule_lines(f"x\n  {line}  \ny") == [line]


@pytest.mark.parametrize(
    "line", ["Only use tabs", "We prefer short names", "Deploys are frozen until May", "at most 3"]
)
def test_weaker_lines_count_too(line: str) -> None:
    assert rule_lines(line) == [line] and not is_strict(line)


@pytest.mark.parametrize("line", ["x = 4", "The house is blue.", "must " * 90, "", "def f(a):"])
def test_other_lines_do_not(line: str) -> None:
    assert rule_lines(line) == []


def test_lines_are_kept_once_and_within_their_room() -> None:
    assert within(["aa", "bb", "aa", "c" * 90, "dd"], 9) == ["aa", "bb", "dd"]
