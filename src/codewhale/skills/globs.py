"""Which skills and rules apply to paths: the globs of each, read as its program reads them."""

import os
import re
from collections.abc import Iterable, Sequence
from functools import lru_cache

from msgspec import Struct

from codewhale.lib.globs import GlobError, Globs, covers
from codewhale.skills.model import Activation, Skill

MOST_PATHS, MOST_EXPANDED = 1_000, 4_000  # paths of one question; globs of a workspace with their braces expanded
_LONGEST = 1_024
_MOST_STARS = 16  # of one glob: each multiplies the work for a long path
# Programs whose globs start from their folder even where they hold no slash; elsewhere such a glob is a file's name.
_ROOTED = frozenset(("claude", "cline", "copilot"))
_SPECIAL = re.compile(r"[*?\[\]{}\\]")
_ONE_OF, _BRACES = re.compile(r"\\.|\[!?\^?[^\]]+\]"), re.compile(r"\{[^{}]*\}")


class _WholePath(Globs):
    """Globs that a whole path matches, not a folder on the way to it."""

    def match(self, path: str) -> bool:
        steps = path.split("/")
        return any(covers(wanted, steps, whole=True) for wanted in self._paths)

    def __len__(self) -> int:
        return len(self._paths)


class _Pattern(Struct, frozen=True):
    """A glob as it was written, what a path of its must begin with, end with and hold, and what decides."""

    glob: str
    begins: str
    ends: str
    holds: tuple[str, ...]
    whole: _WholePath

    def match(self, path: str) -> bool:
        may = path.startswith(self.begins) and path.endswith(self.ends) and all(part in path for part in self.holds)
        return may and self.whole.match(path)

    def may_match(self, text: str) -> bool:
        """Whether it may match one of the paths of a text, between zeros."""
        ends = f"\0{self.begins}" in text and f"{self.ends}\0" in text
        return ends and all(part in text for part in self.holds)


class _Paths(Struct, frozen=True):
    """Paths below a folder, and all of them in one text, in which a glob that fits none of them is soon ruled out."""

    each: tuple[str, ...]
    text: str

    def first(self, wanted: Sequence[_Pattern], unwanted: Sequence[_Pattern]) -> str:
        """The first of the wanted globs that one of the paths matches, which no unwanted one does."""
        for pattern in wanted:
            if pattern.may_match(self.text):
                for path in self.each:
                    if pattern.match(path) and not any(one.match(path) for one in unwanted):
                        return pattern.glob
        return ""


def matching(skills: Iterable[Skill], workspace: str, paths: Sequence[str]) -> tuple[Skill, ...]:
    """Those that apply by glob to one of these paths, absolute or below the workspace."""
    below: dict[str, _Paths] = {}
    return tuple(
        skill for skill in skills if skill.activation is Activation.GLOB and _glob(skill, workspace, paths, below)
    )


def matching_glob(skill: Skill, workspace: str, path: str) -> str:
    """The glob by which a skill applies to a path, "" for none."""
    return _glob(skill, workspace, (path,), {})


def expanded(globs: tuple[str, ...], program: str) -> int:
    """How many globs these are with their braces expanded. Raises ValueError for one that cannot be understood."""
    try:
        wanted, unwanted = _patterns(globs, program in _ROOTED)
    except GlobError as error:
        raise ValueError(f"its globs cannot be used: {error}") from None
    return sum(len(pattern.whole) for pattern in (*wanted, *unwanted))


def _glob(skill: Skill, workspace: str, paths: Sequence[str], below: dict[str, _Paths]) -> str:
    folder = skill.folder or os.path.realpath(workspace)
    if folder not in below:
        below[folder] = _below(folder, workspace, paths)
    try:
        return below[folder].first(*_patterns(skill.globs, skill.program in _ROOTED))
    except GlobError:
        return ""


def _below(folder: str, workspace: str, paths: Sequence[str]) -> _Paths:
    root, start = os.path.realpath(workspace), folder.rstrip("/") + "/"
    each = []
    for path in paths[:MOST_PATHS]:
        if path.startswith(workspace.rstrip("/") + "/"):
            path = path[len(workspace.rstrip("/")) + 1 :]
        whole = os.path.normpath(os.path.join(root, path))
        inner = whole[len(start) :] if whole.startswith(start) else ""
        if inner and "\0" not in inner and len(inner) <= _LONGEST:
            each.append(inner)
    return _Paths(tuple(each), "\0" + "\0".join(each) + "\0")


@lru_cache(maxsize=1_024)
def _patterns(globs: tuple[str, ...], rooted: bool) -> tuple[tuple[_Pattern, ...], tuple[_Pattern, ...]]:
    """The globs of a rule, and those with a mark before them, which take away. Raises GlobError."""
    wanted = [_pattern(glob, glob, rooted) for glob in globs if not glob.startswith("!")]
    unwanted = [_pattern(glob, glob[1:], rooted) for glob in globs if glob.startswith("!")]
    if unwanted and not wanted:
        wanted = [_pattern("**", "**", rooted)]
    return tuple(wanted), tuple(unwanted)


def _pattern(written: str, glob: str, rooted: bool) -> _Pattern:
    body = glob.strip().removeprefix("./")
    if body.count("**") > _MOST_STARS:
        raise GlobError(f"one of them holds ** more than {_MOST_STARS} times")
    if not body.strip("/"):
        raise GlobError("one of them is empty")
    if not rooted and "/" not in body.rstrip("/"):
        body = f"**/{body}"
    body = body.lstrip("/")
    # A name without wildcards may be that of a folder, and then stands for what is in it.
    plain = not _SPECIAL.search(body.rpartition("/")[2])
    whole = _WholePath([f"/{body}", f"/{body}/**"] if plain else [f"/{body}"])
    begins, *holds, ends = _literals(body)
    return _Pattern(written, begins, "" if plain else ends, tuple(holds), whole)


def _literals(glob: str) -> list[str]:
    """What stands in each path of a glob: first what it begins with, last what it ends with."""
    text, count = _ONE_OF.sub("*", glob), 1
    while count:
        text, count = _BRACES.subn("*", text)
    first, *more = _SPECIAL.split(text)
    if not more:
        return [first, first]
    return [first, *(part for one in more[:-1] if (part := one.lstrip("/"))), more[-1]]
