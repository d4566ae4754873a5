"""Regular expressions: ours, compiled when they are first used, and which of strangers may be compiled and run where
they cannot be stopped. Others are not wrong: they belong into a process that can be ended."""

import functools
import re
from collections.abc import Callable
from typing import AnyStr


def lazy(pattern: AnyStr, flags: int = 0) -> Callable[[], re.Pattern[AnyStr]]:
    """A pattern that is compiled when it is first called for. Compiling all that a start loads is a tenth of it."""
    return functools.cache(lambda: re.compile(pattern, flags))


_LONGEST = 1000
_DEEPEST = 30  # groups within one another
_MOST_FOLDED = 20  # letters beyond ASCII whose case is ignored: each may stand for several
# A repeat of what is a group or repeated already multiplies with what stands inside.
_MULTIPLIES = re.compile(r"[)}]\??\{")
_SPECIAL = re.compile(r"\(\?(?![:=!>]|<|P<|i\))|\{\s*(?:\d+\s*<=?\s*)?[eids]\s*[<=},+:]")


def compiles_fast(pattern: str, *, ignore_case: bool = False) -> bool:
    """Whether an expression is compiled in no time: no counted groups, no recursion, nothing fuzzy."""
    if len(pattern) > _LONGEST or pattern.count("(") > _DEEPEST * 4 or _nesting(pattern) > _DEEPEST:
        return False
    folds = (ignore_case or "(?i" in pattern) and sum(not char.isascii() for char in pattern) > _MOST_FOLDED
    return not (folds or _MULTIPLIES.search(pattern) or _SPECIAL.search(pattern))


def is_tame(pattern: str, *, ignore_case: bool = False) -> bool:
    """Whether it besides can be tried on any text without much memory: no group is repeated."""
    return compiles_fast(pattern, ignore_case=ignore_case) and not re.search(r"\)[*+?{]", pattern)


def _nesting(pattern: str) -> int:
    depth = deepest = 0
    for char in pattern:
        depth += (char == "(") - (char == ")")
        deepest = max(deepest, depth)
    return deepest
