"""Paths as policy sees them: where they lie beneath the workspace, which of them make others run things, and whether a
rule's pattern is theirs. Nothing here looks at the disk."""

import posixpath
import re
from functools import lru_cache
from typing import Literal

from codewhale.protocol.protected import HOME_FOLDERS, PROTECTED_FILES, PROTECTED_FOLDERS, RULE_FILES, STARTED

# Of git and the harness itself (never a tool's to write), of shells and editors, and what the model is told by.
Guard = Literal["", "own", "others", "rules"]

_IGNORED = re.compile("[\u200b-\u200f\u202a-\u202e\u2060-\u2064\u206a-\u206f\ufeff\u00ad]")
_FOLDERS = frozenset(name.casefold() for name in PROTECTED_FOLDERS)
_FILES = frozenset(name.casefold() for name in PROTECTED_FILES)
_RULES = frozenset(name.casefold() for name in RULE_FILES)
_GIT = re.compile(r"\.git|git~[0-9]+")
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
    if any(_GIT.fullmatch(part) for part in parts) or _OWN in parts:
        return "own"
    if any(within(path, folder) for folder in extra):
        return "own"
    if any(part in _FOLDERS for part in parts) or parts[-1] in _FILES:
        return "others"
    return "rules" if parts[-1] in _RULES else ""


def within(path: str, folder: str) -> bool:
    """Whether a path is a folder or lies in it, both below the workspace."""
    return path == folder or path.startswith(folder.rstrip("/") + "/")


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
    return next((who for pattern, who in STARTED if _matcher(pattern).fullmatch(folded)), "")


@lru_cache(maxsize=512)
def _matcher(pattern: str) -> re.Pattern[str]:
    return _compiled(f"**/{pattern.casefold()}")


def _folded(part: str) -> str:
    if part.isascii():
        return part.partition(":")[0].rstrip(". ").casefold() if part not in (".", "..") else part
    return _IGNORED.sub("", part).partition(":")[0].rstrip(". ").casefold()


def matches(pattern: str, path: str) -> bool:
    """Whether a path below the workspace is a rule's: `*` stands for any part of a name, `**` for any folders, a
    pattern without a slash for a name anywhere; what a folder matches, all below it matches."""
    return _compiled(pattern).fullmatch(path) is not None


@lru_cache(maxsize=512)
def _compiled(pattern: str) -> re.Pattern[str]:
    """Raises ValueError for an empty pattern."""
    body = pattern.strip("/").removeprefix("./")
    if body in ("", "."):
        raise ValueError("a path pattern cannot be empty")
    anywhere = "/" not in pattern.strip("/") and not pattern.startswith("/")
    out = "(?:.*/)?" if anywhere else ""
    for piece in re.findall(r"\*\*/|\*\*|\*|\?|[^*?]+", body):
        out += {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}.get(piece, re.escape(piece))
    return re.compile(f"{out}(?:/.*)?", re.DOTALL)
