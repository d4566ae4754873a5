"""What holds in every mode: files that make others run things, whatever tool writes them. What no command line may do
is found by the shell analysis; both are lifted only by a row of the person's own permissions."""

from collections.abc import Iterable, Sequence

from msgspec import Struct

from codewhale.permissions.paths import guard, of_home, within
from codewhale.protocol.decisions import DecisionRequest, Opinion
from codewhale.protocol.modes import Authority, Mode
from codewhale.protocol.protected import AT_START

# The files of their own that harness tools write; no tool that is given a path may.
_KEPT = frozenset({("note", ".codewhale/notes.md")})
_OWN = "belongs to git or to CodeWhale itself, and no tool writes it, in any mode"
_OTHERS = "makes a shell, an editor or a server run things when the project is opened"
_RULES = "tells later sessions what to do"
_HOOK = "is run by git as a hook"
_ITSELF = "is part of what CodeWhale itself runs from, outside of any sandbox"
_PROGRAM = "lies in a folder of PATH, so that it runs when somebody means the program of that name"
_AT_START = "is run by every start of Python"
_HOME = "lies in the home folder, where programs act on such files by themselves"


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
                return Opinion("deny", "floor.protected", f"{name} {_OWN}.")
            if kind == "others":
                asked = Opinion("ask", "floor.protected", f"{name} {_OTHERS}.")
            elif any(within(name, folder) for folder in special.hooks):
                asked = Opinion("ask", "floor.protected", f"{name} {_HOOK}.")
            elif why := _run_by_name(name, special):
                asked = Opinion("ask", "floor.itself", f"{name} {why}.")
            elif special.home and of_home(name, special.home):
                asked = Opinion("ask", "floor.home", f"{name} {_HOME}.")
            elif kind == "rules" and asked is None and _minded(request):
                asked = Opinion("ask", "floor.instructions", f"{name} {_RULES}.")
    return asked


def _run_by_name(name: str, special: Special) -> str:
    """Why a path is code that the harness, the person's shell or each Python would run, "" where it is not. Case does
    not matter: it does not on every file system."""
    folded = name.casefold()
    if any(place == "." or within(folded, place.casefold()) for place in special.itself):
        return _ITSELF
    if any(within(folded, folder.casefold()) for folder in special.programs):
        return _PROGRAM
    starts = {"" if folder == "." else f"{folder.casefold()}/" for folder in special.starts}
    below = (folded.removeprefix(folder) for folder in starts if folded.startswith(folder))
    return _AT_START if any(path.split("/")[0].split(".")[0] in AT_START for path in below) else ""


def _minded(request: DecisionRequest) -> bool:
    """Instructions are a person's to see where nobody looks on, and where the text may be a stranger's."""
    return request.mode is not Mode.YOLO and (request.authority is not Authority.PERSON or request.tainted)
