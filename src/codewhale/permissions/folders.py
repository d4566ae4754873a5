"""Paths beside the workspace: where one really leads, what of them no tool may touch, which folder can be added to a
session, and what can be attached to be read."""

import os
import stat

from msgspec import Struct

from codewhale.permissions.paths import guard
from codewhale.permissions.shell.paths import ShellPaths, secret
from codewhale.process.itself import own_places
from codewhale.process.sandbox.profiles import READ, WRITE, beneath
from codewhale.protocol.decisions import DecisionRequest
from codewhale.protocol.errors import ConfigError
from codewhale.protocol.events import FolderAdded
from codewhale.protocol.tools import PathSubject

_KERNEL = ("/proc", "/sys", "/dev", "/run", "/var/run")
HOW_TO_ADD = (
    "the user can add its folder: --add-dir FOLDER at the start, /add-dir FOLDER in a session, or sandbox.writable "
    "in config.toml"
)
HOW_TO_DETACH = "Write elsewhere; the user can detach it (/context detach NAME)"


class Outside(Struct, frozen=True):
    """A path that lies outside the workspace: where it really leads, the added folder that it lies in ("" for none),
    why no tool may touch it ("" where one may), and the folder that can be added so that it lies in one."""

    path: str
    folder: str = ""
    refused: str = ""
    offer: str = ""


def real_outside(path: str, workspace: str) -> str:
    """Where a path that is spelled as one outside the workspace really leads, "" for one inside, and for what is no
    path of this system."""
    if not path or path.startswith(("//", "\\")) or (path.startswith("~") and path[1:2] not in ("", "/")):
        return ""
    whole = os.path.normpath(os.path.join(workspace, os.path.expanduser(path)))
    try:
        if beneath(whole, workspace) or beneath(whole, os.path.realpath(workspace)):
            return ""
        real = os.path.realpath(whole)
        os.fsencode(real)
    except (OSError, ValueError):
        return ""
    return "" if beneath(real, os.path.realpath(workspace)) else real


def granted(allowances: tuple[str, ...]) -> tuple[str, ...]:
    """The places outside the workspace that a call may use, by its allowances."""
    return tuple(one.partition(":")[2] for one in allowances if one.startswith((READ, WRITE)))


def outside(subject: PathSubject, request: DecisionRequest, state: str) -> Outside | None:
    """What is known of a path outside the workspace, None for one inside, or that leads nowhere and so may have been
    meant for one inside; `state` is the harness's own folder."""
    real = real_outside(subject.path, request.workspace)
    if not real:
        return None
    folder = next((one for one in sorted(request.folders, key=len, reverse=True) if beneath(real, one)), "")
    source = next((one for one in request.sources if beneath(real, one)), "")
    added, folder = bool(folder), folder or source
    if not folder and not _plausible(real, subject.write):
        return None
    refused = _untouched(real, state, subject.write)
    if not refused and source and subject.write:
        refused = f"is in an attached source, which is read only ({source}). {HOW_TO_DETACH}"
    if not refused and not added and secret(real):
        refused = "may hold keys or passwords, and no tool reads such files outside the workspace"
    if not refused and not folder and subject.write and guard(real.lstrip("/")) in ("own", "others"):
        refused = "can make other programs run things, and no tool writes such files outside the workspace"
    near = real if os.path.isdir(real) else os.path.dirname(real)
    offer = near if not (folder or refused or _unfit(near, request.workspace, state)) else ""
    return Outside(real, folder, refused, offer)


def _plausible(path: str, write: bool) -> bool:
    """Whether something stands there, or a new file could be meant to: not below folders that another machine has."""
    if os.path.lexists(path) or not write:
        return os.path.lexists(path)
    near = parent = os.path.dirname(path)
    while not os.path.isdir(near):
        near = os.path.dirname(near)
    return near.count("/") > 1 or (near == parent and near != "/")


def _untouched(path: str, state: str, write: bool) -> str:
    if beneath(path, state):
        return "belongs to CodeWhale itself: its settings, keys and sessions"
    if any(beneath(path, place) for place in _KERNEL):
        return "is a file of the system, not of a disk"
    if write and any(beneath(path, place) for place in own_places("/")):
        return "is part of what CodeWhale itself runs from"
    return ""


def _unfit(folder: str, workspace: str, state: str) -> str:
    """Why a folder, real and absolute, cannot be added; "" where it can."""
    home = os.path.realpath(os.path.expanduser("~"))
    if folder == home:
        return "it is the home folder itself. Name the one folder in it that is needed"
    if os.path.dirname(folder) == "/" or folder == "/" or beneath(home, folder):
        return "it is a top folder of this machine, which is too much. Name the one folder in it that is needed"
    if beneath(folder, state) or beneath(state, folder):
        return f"CodeWhale keeps its state there ({state})"
    if ShellPaths("/", "").system(folder, "/") or any(beneath(folder, place) for place in _KERNEL):
        return "it belongs to the system"
    if secret(folder) or secret(f"{folder}/_"):
        return "it contains keys and passwords"
    if guard(folder.lstrip("/")):
        return "programs such as git, editors or CodeWhale use its files automatically"
    if beneath(folder, workspace):
        return f"it is already in the workspace ({workspace})"
    return f"it contains the workspace ({workspace})" if beneath(workspace, folder) else ""


def folder_to_add(path: str, workspace: str, state: str) -> FolderAdded:
    """The folder that a person names, as it is now. Raises ConfigError, with the reason and what to do."""
    real, status = _named(path, workspace, "added")
    if not stat.S_ISDIR(status.st_mode):
        raise ConfigError(f"{path.strip()} cannot be added: it is not a folder. Add the folder that contains it.")
    if why := _unfit(real, os.path.realpath(workspace), os.path.realpath(state)):
        raise ConfigError(f"{path.strip()} cannot be added: {why}.")
    return FolderAdded(real, status.st_uid, status.st_dev, status.st_ino)


def path_to_attach(path: str, workspace: str, state: str) -> str:
    """Where the folder or file really is that a person names to be read. Raises ConfigError, with the reason and what
    to do."""
    real, status = _named(path, workspace, "attached")
    places = (os.path.realpath(workspace), os.path.realpath(state))
    if stat.S_ISDIR(status.st_mode):
        why = _unfit(real, *places)
    elif not stat.S_ISREG(status.st_mode):
        why = "it is neither a folder nor a regular file"
    elif beneath(real, places[0]):
        why = f"it is already in the workspace ({places[0]})"
    else:
        why = _unread(real, places[1])
    if why:
        raise ConfigError(f"{path.strip()} cannot be attached: {why}.")
    return real


def folder_to_fill(path: str, workspace: str, state: str) -> str:
    """Where the folder really is, or would be made, that a person names to put copies in. Raises ConfigError."""
    real = os.path.realpath(os.path.join(workspace, os.path.expanduser(path.strip())))
    why = _unread(real, os.path.realpath(state)) or _untouched(real, os.path.realpath(state), True)
    if why or not path.strip():
        raise ConfigError(f"Nothing is put into {path.strip() or 'an empty path'}: {why or 'name a folder'}.")
    return real


def _unread(path: str, state: str) -> str:
    """Why a path, real and absolute, is none that a person can name for what tools read or copies are put in."""
    if why := _untouched(path, state, False):
        return f"it {why}"
    if secret(path) or secret(f"{path}/_"):
        return "it may hold keys or passwords"
    if ShellPaths("/", "").system(path, "/"):
        return "it belongs to the system"
    used = guard(path.lstrip("/")) in ("own", "others")
    return "programs such as git, editors or CodeWhale use it automatically" if used else ""


def _named(path: str, workspace: str, done: str) -> tuple[str, os.stat_result]:
    """Where the path really leads that a person names, and what is there, which can be read. Raises ConfigError."""
    name = path.strip() or "an empty path"
    try:
        real = os.path.realpath(os.path.join(workspace, os.path.expanduser(path.strip())), strict=True)
        status = os.stat(real)
    except (OSError, ValueError) as error:
        raise ConfigError(f"{name} cannot be {done}: {getattr(error, 'strerror', None) or error}.") from None
    if not os.access(real, os.R_OK | (os.X_OK if stat.S_ISDIR(status.st_mode) else 0)):
        what = "folder" if stat.S_ISDIR(status.st_mode) else "file"
        raise ConfigError(f"{name} cannot be {done}: this {what} cannot be read.")
    return real, status


def stands(folder: FolderAdded) -> bool:
    """Whether an added folder is still the one that was added: the same place, of the same owner."""
    try:
        status = os.lstat(folder.path)
    except (OSError, ValueError):
        return False
    same = (status.st_uid, status.st_dev, status.st_ino) == (folder.owner, folder.device, folder.inode)
    return same and os.path.realpath(folder.path) == folder.path
