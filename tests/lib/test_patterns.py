"""Expressions that are let through cost little; what everyday searches use is among them."""

import pytest
import regex

from codewhale.lib.patterns import compiles_fast, is_tame
from support.patience import Moment

EVERYDAY = [
    "def main", r"^\s*class \w+\(.*\):", r"foo|bar|baz", r"(?i)todo", r"\bself\.\w+\(", r"import (os|sys)", r"x{2,5}$",
    r"[A-Z]\w+Error", r"\(\)", "日本", r"(?:get|set)_\w+", r"a.*b.*c", r"(?<=x)alpha", r"(?=.*a)b", r"(?>[a-z ]+)s$",
    r"(?P<n>x)y", r"f\(\) \{", r"\{e",
]  # fmt: skip
MODEST = [r"(get|set)*_x", r"(?=(a))+b", r"(?P<n>foo)?bar", r"(?:ab)+"]
WILD = [
    r"(?:(?:(?:a{1000}){1000}){1000}){1000}", r"(a{9}){9}", r"(a{9})?{9}", r"a{9}{9}", "(?i)" + "ſ" * 3000, "a" * 5000,
    r"(?R)?a(?R)?b", r"(?P<x>a(?&x)?)+$", r"(?e)(?:abc){e<=5}", "(" * 40 + ")" * 40, r"(?|(a)|(b))", "()" * 500,
]  # fmt: skip


@pytest.mark.parametrize("pattern", EVERYDAY)
def test_everyday_expressions_are_tame(pattern: str) -> None:
    assert is_tame(pattern) and compiles_fast(pattern)


@pytest.mark.parametrize("pattern", MODEST)
def test_what_compiles_fast_may_still_take_long(pattern: str) -> None:
    assert compiles_fast(pattern) and not is_tame(pattern)


@pytest.mark.parametrize("pattern", WILD, ids=lambda pattern: pattern[:20])
def test_what_may_explode_is_neither(pattern: str) -> None:
    assert not compiles_fast(pattern, ignore_case=True) and not is_tame(pattern, ignore_case=True)


@pytest.mark.parametrize("pattern", [*EVERYDAY, *MODEST, "[a-z]{1,9999}" * 60, "(a|" * 29 + ")" * 29])
def test_what_is_let_through_compiles_at_once(pattern: str) -> None:
    assert compiles_fast(pattern)
    began = Moment()
    regex.compile(pattern, regex.MULTILINE | regex.IGNORECASE)
    assert not began.laboured
