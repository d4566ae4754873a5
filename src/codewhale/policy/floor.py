"""What holds in every mode: files that make others run things, whatever tool writes them. What no command line may do
is found by the shell analysis; both are lifted only by a row of the person's own permissions."""

from collections.abc import Iterable, Sequence

from msgspec import Struct

from codewhale.policy.paths import guard, of_home, within
from codewhale.protocol.decisions import DecisionRequest, Opinion
from codewhale.protocol.modes import Authority, Mode

# The files of their own that harness tools write; no tool that is given a path may.
_KEPT = frozenset({("note", ".codewhale/notes.md")})
_OWN = "belongs to git or to CodeWhale itself, and no tool writes it, in any mode"
_OTHERS = "makes a shell, an editor or a server run things when the project is opened"
_RULES = "tells later sessions what to do"
_HOOK = "is run by git as a hook"
_HOME = "lies in the home folder, where programs act on such files by themselves"


class Special(Struct, frozen=True):
    """What is special below a workspace: `git`, folders and files of git that have another name; `hooks`, folders that
    it takes hooks from; and `home`, where the home folder lies in it ("." for all of it, "" outside)."""

    git: tuple[str, ...] = ()
    hooks: tuple[str, ...] = ()
    home: str = ""


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
            elif special.home and of_home(name, special.home):
                asked = Opinion("ask", "floor.home", f"{name} {_HOME}.")
            elif kind == "rules" and asked is None and _minded(request):
                asked = Opinion("ask", "floor.instructions", f"{name} {_RULES}.")
    return asked


def _minded(request: DecisionRequest) -> bool:
    """Instructions are a person's to see where nobody looks on, and where the text may be a stranger's."""
    return request.mode is not Mode.YOLO and (request.authority is not Authority.PERSON or request.tainted)
