"""Which regular expressions of strangers may be compiled and run where they cannot be stopped. Others are not wrong:
they belong into a process that can be ended."""

import re

_LONGEST = 1000
_DEEPEST = 30  # groups within one another
_MOST_FOLDED = 20  # letters beyond ASCII whose case is ignored: each may stand for several
# A repeat of what is a group or repeated already multiplies with what stands inside.
_MULTIPLIES = re.compile(r"[)}]\??\{")
_SPECIAL = re.compile(r"\(\?(?![:=!>]|<|P<|i\))|\{\s*(?:\d+\s*<=?\s*)?[eids]\s*[<=},+:]")
_REPEATED_GROUP = re.compile(r"\)[*+?{]")


def compiles_fast(pattern: str, *, ignore_case: bool = False) -> bool:
    """Whether an expression is compiled in no time: no counted groups, no recursion, nothing fuzzy."""
    if len(pattern) > _LONGEST or pattern.count("(") > _DEEPEST * 4 or _nesting(pattern) > _DEEPEST:
        return False
    folds = (ignore_case or "(?i" in pattern) and sum(not char.isascii() for char in pattern) > _MOST_FOLDED
    return not (folds or _MULTIPLIES.search(pattern) or _SPECIAL.search(pattern))


def is_tame(pattern: str, *, ignore_case: bool = False) -> bool:
    """Whether it besides can be tried on any text without much memory: no group is repeated."""
    return compiles_fast(pattern, ignore_case=ignore_case) and not _REPEATED_GROUP.search(pattern)


def _nesting(pattern: str) -> int:
    depth = deepest = 0
    for char in pattern:
        depth += (char == "(") - (char == ")")
        deepest = max(deepest, depth)
    return deepest
