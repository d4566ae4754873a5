"""Globs over POSIX paths: *, ?, [set], {a,b}, ** for any folders. Matching time stays linear whatever the glob."""

import re
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import AnyStr

_MOST_BRANCHES, _MOST_TOGETHER = 64, 512  # of one glob, and of all
_LONGEST = 1000
_WILD = re.compile(r"[*?\[\]{}\\]")


class GlobError(ValueError):
    """A glob that cannot be understood; the text says why."""


class Globs:
    """A set of globs. One without a slash matches the name of the file or of any folder above it; one with a slash
    matches the whole path, or a folder on the way to it. Raises GlobError."""

    def __init__(self, globs: Iterable[str]) -> None:
        self._names: set[str] = set()
        self._steps: list[re.Pattern[str]] = []
        self._paths: list[list[re.Pattern[str] | None]] = []
        branches = list(dict.fromkeys(branch for glob in dict.fromkeys(globs) for branch in _branches(_checked(glob))))
        if len(branches) > _MOST_TOGETHER:
            raise GlobError(f"with their braces they expand to more than {_MOST_TOGETHER} globs")
        for branch in branches:
            self._add(branch)

    def __bool__(self) -> bool:
        return bool(self._names or self._steps or self._paths)

    @property
    def names(self) -> frozenset[str]:
        """The plain names among the globs: a folder so called can be left out without looking into it."""
        return frozenset(self._names)

    def match(self, path: str) -> bool:
        """Whether any glob matches `path`, a relative POSIX path."""
        steps = path.split("/")
        if not self._names.isdisjoint(steps):
            return True
        if any(pattern.match(step) for pattern in self._steps for step in steps):
            return True
        return any(covers(wanted, steps) for wanted in self._paths)

    def _add(self, glob: str) -> None:
        glob = glob.removeprefix("./").rstrip("/")
        anchored = "/" in glob
        parts = [part for part in glob.split("/") if part]
        parts = [part for at, part in enumerate(parts) if part != "**" or parts[at - 1 : at] != ["**"]]
        if not parts:
            return
        if anchored:
            parts += ["*"] if parts[-1] == "**" else []  # all that is in a folder, not the folder
            self._paths.append([None if part == "**" else _step(part) for part in parts])
        elif _WILD.search(glob):
            self._steps.append(_step(glob))
        else:
            self._names.add(glob)


def _checked(glob: str) -> str:
    if not glob.strip():
        raise GlobError("it is empty")
    if len(glob) > _LONGEST:
        raise GlobError(f"it is longer than {_LONGEST} characters")
    return glob


def _branches(glob: str) -> list[str]:
    """Every glob that {a,b} stands for."""
    done: list[str] = []
    todo = [glob]
    while todo:
        if len(done) + len(todo) > _MOST_BRANCHES:
            raise GlobError(f"its braces expand to more than {_MOST_BRANCHES} globs")
        branch = todo.pop()
        found = _first_brace(branch)
        if found is None:
            done.append(branch)
        else:
            start, end, choices = found
            todo.extend(branch[:start] + choice + branch[end:] for choice in choices)
    return done


def _first_brace(glob: str) -> tuple[int, int, list[str]] | None:
    """(start, end, choices) of the first complete {a,b}; a brace never closed is a plain character."""
    begins: list[int] = []
    commas: list[int] = []
    index = 0
    while index < len(glob):
        char = glob[index]
        if char == "\\":
            index += 1
        elif char == "[":
            index = _set_end(glob, index) or index
        elif char == "{":
            begins.append(index)
        elif char == "," and len(begins) == 1:
            commas.append(index)
        elif char == "}" and begins:
            start = begins.pop()
            if not begins:
                cuts = [start, *commas, index]
                return start, index + 1, [glob[a + 1 : b] for a, b in pairwise(cuts)]
        index += 1
    return None


def _step(glob: str) -> re.Pattern[str]:
    """One path component as a regular expression that never tries twice."""
    pieces: list[str] = [""]
    index = 0
    while index < len(glob):
        char = glob[index]
        end = _set_end(glob, index) if char == "[" else None
        if char in "*?":  # ?*?* is ??*: so many characters, then any
            after = len(glob) - len(glob[index:].lstrip("*?"))
            singles = glob.count("?", index, after)
            pieces[-1] += f".{{{singles}}}" if singles else ""
            pieces += [""] if singles < after - index else []
            index = after - 1
        elif end is not None:
            pieces[-1] += _set(glob[index + 1 : end])
            index = end
        else:
            if char == "\\" and index + 1 < len(glob):
                index += 1
            pieces[-1] += re.escape(glob[index])
        index += 1
    first, *rest = pieces
    body = first
    if rest:
        body += "".join(f"(?>.*?{piece})" for piece in rest[:-1] if piece) + ".*" + rest[-1]
    try:
        return re.compile(body + r"\Z", re.DOTALL)
    except re.error as error:
        raise GlobError(f"its set is not valid ({error.msg})")


def _set_end(glob: str, start: int) -> int | None:
    """Where the set that begins at `start` ends, or None when it never does."""
    index = start + 1
    if glob[index : index + 1] in ("!", "^"):
        index += 1
    end = glob.find("]", index + 1)
    return None if end < 0 else end


def _set(inside: str) -> str:
    negated = inside[0] in "!^"
    chars = inside[1:] if negated else inside
    escaped = chars.replace("\\", r"\\").replace("[", r"\[").replace("]", r"\]").replace("^", r"\^")
    for twice in ("--", "&&", "||", "~~"):
        escaped = escaped.replace(twice, twice[0] + "\\" + twice[1])
    return f"[{'^' if negated else ''}{escaped}]"


def covers(wanted: Sequence[re.Pattern[AnyStr] | None], steps: Sequence[AnyStr], *, whole: bool = False) -> bool:
    """Whether a glob, step by step and None for any number of them, matches these steps of a path or the first few of
    them (a folder on the way); with `whole` all of them. The places it can have reached are kept as a set."""
    reached = {0}
    for step in steps:
        ahead = _skips(wanted, reached)
        reached = {at for at in ahead if wanted[at] is None}
        for at in ahead:
            pattern = wanted[at]
            if pattern is not None and pattern.match(step):
                reached.add(at + 1)
        if len(wanted) in reached and not whole:
            return True
        if not reached:
            return False
    return len(wanted) in reached


def _skips(wanted: Sequence[re.Pattern[AnyStr] | None], reached: set[int]) -> set[int]:
    """The places in the glob that can be tried next: ** may stand for no folder at all."""
    ahead = set(reached)
    for at in sorted(reached):
        while at < len(wanted) and wanted[at] is None and at + 1 not in ahead:
            at += 1
            ahead.add(at)
    return {at for at in ahead if at < len(wanted)}
