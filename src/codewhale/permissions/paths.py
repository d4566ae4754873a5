"""Paths as policy sees them: where they lie beneath the workspace, which of them make others run things, and whether a
rule's pattern is theirs. Nothing here looks at the disk."""

import posixpath
import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Literal

from msgspec import Struct

from codewhale.lib.patterns import lazy
from codewhale.process.sandbox.profiles import beneath as within
from codewhale.protocol.decisions import DecisionRequest, Opinion
from codewhale.protocol.modes import Authority, Mode
from codewhale.protocol.protected import AT_START, HOME_FOLDERS, PROTECTED_FILES, PROTECTED_FOLDERS, RULE_FILES, STARTED

# Of git and the harness itself (never a tool's to write), of shells and editors, and what the model is told by.
Guard = Literal["", "own", "others", "rules"]

_IGNORED = lazy("[\u200b-\u200f\u202a-\u202e\u2060-\u2064\u206a-\u206f\ufeff\u00ad]")
_FOLDERS = frozenset(name.casefold() for name in PROTECTED_FOLDERS)
_FILES = frozenset(name.casefold() for name in PROTECTED_FILES)
_RULES = frozenset(name.casefold() for name in RULE_FILES)
_GIT = lazy(r"\.git|git~[0-9]+")
_OWN = ".codewhale"
_HOME = frozenset(name.casefold() for name in HOME_FOLDERS)


def beneath(path: str, workspace: str) -> str | None:
    """The normalised path of `path` below the workspace, "." for its root, None for one outside."""
    whole = posixpath.normpath(posixpath.join(workspace, path))
    root = posixpath.normpath(workspace)
    if whole == root:
        return "."
    return whole[len(root) :].lstrip("/") if whole.startswith(root.rstrip("/") + "/") else None


def guard(path: str, extra: tuple[str, ...] = ()) -> Guard:
    """Who guards a path below the workspace, "" for nobody. Case, trailing dots and blanks, and characters that some
    file systems ignore do not matter; `extra` are further folders of git, below the workspace as well."""
    parts = [_folded(part) for part in path.split("/")]
    if any(_GIT().fullmatch(part) for part in parts) or _OWN in parts:
        return "own"
    if any(within(path, folder) for folder in extra):
        return "own"
    if any(part in _FOLDERS for part in parts) or parts[-1] in _FILES:
        return "others"
    return "rules" if parts[-1] in _RULES else ""


def of_home(path: str, home: str) -> bool:
    """Whether a path is configured in the home folder, which lies at `home` below the workspace ("." for all of it):
    what begins with a dot there, and where programs are taken from by name."""
    if home != "." and not path.startswith(f"{home}/"):
        return False
    first = path.removeprefix("" if home == "." else f"{home}/").split("/")[0]
    return (first.startswith(".") and first not in (".", "..")) or _folded(first) in _HOME


def started_by(path: str) -> str:
    """Who acts on a file by itself, in a few words; "" where nobody does."""
    folded = "/".join(map(_folded, path.split("/")))
    return next((who for pattern, who in STARTED if _matcher(pattern).matches(folded)), "")


@lru_cache(maxsize=512)
def _matcher(pattern: str) -> "_Machine":
    return _compiled(f"**/{pattern.casefold()}")


def _folded(part: str) -> str:
    if part.isascii():
        return part.partition(":")[0].rstrip(". ").casefold() if part not in (".", "..") else part
    return _IGNORED().sub("", part).partition(":")[0].rstrip(". ").casefold()


def matches(pattern: str, path: str) -> bool:
    """Whether a path below the workspace is a rule's: `*` stands for any part of a name, `**` for any folders, a
    pattern without a slash for a name anywhere; what a folder matches, all below it matches."""
    return _compiled(pattern).matches(path)


class _Machine:
    """A pattern as a machine whose reached states are the bits of a number, so that no path makes it try twice."""

    def __init__(self, pieces: list[str]) -> None:
        self._takes: dict[str, int] = {}  # character -> states it leads out of, to the next one
        self._names = self._in_names = self._anywhere = self._skips = self._folders = 0
        self._end = 1
        for piece in pieces:
            self._add(piece)

    def _add(self, piece: str) -> None:
        state = self._end
        if piece == "**/":  # no folder, or anything up to a slash
            self._folders |= state
            self._anywhere |= state << 1
            self._takes["/"] = self._takes.get("/", 0) | state << 1
            self._end <<= 2
            return
        if piece == "?":
            self._names |= state
        elif piece == "*":
            self._in_names |= state
            self._skips |= state
        elif piece == "**":
            self._anywhere |= state
            self._skips |= state
        else:
            self._takes[piece] = self._takes.get(piece, 0) | state
        self._end <<= 1

    def matches(self, path: str) -> bool:
        """Whether the whole path matches, or a folder on the way to it."""
        reached = self._skipped(1)
        for char in path:
            if char == "/" and reached & self._end:
                return True
            stay = self._anywhere | (0 if char == "/" else self._in_names)
            go = self._takes.get(char, 0) | (0 if char == "/" else self._names)
            reached = self._skipped((reached & go) << 1 | reached & stay)
            if not reached:
                return False
        return bool(reached & self._end)

    def _skipped(self, reached: int) -> int:
        while True:
            folders = reached & self._folders
            more = reached | (reached & self._skips) << 1 | folders << 1 | folders << 2
            if more == reached:
                return reached
            reached = more


@lru_cache(maxsize=512)
def _compiled(pattern: str) -> _Machine:
    """Raises ValueError for an empty pattern."""
    body = pattern.strip("/").removeprefix("./")
    if body in ("", "."):
        raise ValueError("a path pattern cannot be empty")
    anywhere = "/" not in pattern.strip("/") and not pattern.startswith("/")
    pieces = (["**/"] if anywhere else []) + re.findall(r"\*\*/|\*\*|[\s\S]", body)
    return _Machine([piece for at, piece in enumerate(pieces) if piece[0] != "*" or piece not in pieces[:at][-1:]])


# The files of their own that harness tools write; no tool that is given a path may.
_KEPT = frozenset({("note", ".codewhale/notes.md")})
_OWN_WHY = "belongs to git or to CodeWhale, and no tool writes it in any mode"
_OTHERS_WHY = "can make a shell, an editor or a server run things when the project is opened"
_RULES_WHY = "gives instructions to later sessions"
_HOOK_WHY = "is run by git as a hook"
_ITSELF_WHY = "is part of what CodeWhale itself runs from, outside of any sandbox"
_PROGRAM_WHY = "is in a folder of PATH, so it can run in place of another program"
_AT_START_WHY = "runs every time Python starts"
_HOME_WHY = "is in the home folder, where programs use such files automatically"


class Special(Struct, frozen=True):
    """What is special below a workspace: `git`, folders and files of git that have another name; `hooks`, folders that
    it takes hooks from; `home`, where the home folder lies in it ("." for all of it, "" outside); `itself`, what
    CodeWhale runs from, `programs`, folders of PATH, and `starts`, folders on Python's path ("." for all of it)."""

    git: tuple[str, ...] = ()
    hooks: tuple[str, ...] = ()
    home: str = ""
    itself: tuple[str, ...] = ()
    programs: tuple[str, ...] = ()
    starts: tuple[str, ...] = ()


NOTHING_SPECIAL = Special()


def by_path(
    request: DecisionRequest, paths: Iterable[Sequence[str]], special: Special = NOTHING_SPECIAL
) -> Opinion | None:
    """What the floor says of the paths that a call would write: each as it is named and as it really is, below the
    workspace."""
    asked = None
    for names in paths:
        for name in names:
            kind = guard(name, special.git) if (request.tool, name) not in _KEPT else ""
            if kind == "own":
                return Opinion("deny", "floor.protected", f"{name} {_OWN_WHY}.")
            if kind == "others":
                asked = Opinion("ask", "floor.protected", f"{name} {_OTHERS_WHY}.")
            elif any(within(name, folder) for folder in special.hooks):
                asked = Opinion("ask", "floor.protected", f"{name} {_HOOK_WHY}.")
            elif why := _run_by_name(name, special):
                asked = Opinion("ask", "floor.itself", f"{name} {why}.")
            elif special.home and of_home(name, special.home):
                asked = Opinion("ask", "floor.home", f"{name} {_HOME_WHY}.")
            elif kind == "rules" and asked is None and _minded(request):
                asked = Opinion("ask", "floor.instructions", f"{name} {_RULES_WHY}.")
    return asked


def _run_by_name(name: str, special: Special) -> str:
    """Why a path is code that the harness, the person's shell or each Python would run, "" where it is not. Case does
    not matter: it does not on every file system."""
    folded = name.casefold()
    if any(place == "." or within(folded, place.casefold()) for place in special.itself):
        return _ITSELF_WHY
    if any(within(folded, folder.casefold()) for folder in special.programs):
        return _PROGRAM_WHY
    starts = {"" if folder == "." else f"{folder.casefold()}/" for folder in special.starts}
    below = (folded.removeprefix(folder) for folder in starts if folded.startswith(folder))
    return _AT_START_WHY if any(path.split("/")[0].split(".")[0] in AT_START for path in below) else ""


def _minded(request: DecisionRequest) -> bool:
    """Instructions are a person's to see where nobody looks on, and where the text may be a stranger's."""
    return request.mode is not Mode.YOLO and (request.authority is not Authority.PERSON or request.tainted)
