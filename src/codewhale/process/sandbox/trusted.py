"""Folders that no project and no other user could have put a program into, and the environment that leads programs of
the harness's own choice there alone."""

import os
import re
import stat
import sys
from collections.abc import Mapping

from codewhale.process.sandbox.profiles import beneath, folders_above

# What a program of the harness's choice is given of the environment, beside what leads it to other programs.
_ALLOWED = frozenset(
    "HOME USER LOGNAME LANG LANGUAGE TERM TZ TMPDIR HOSTNAME XDG_CONFIG_HOME XDG_RUNTIME_DIR PATH".split()
)
_PLACES = frozenset({"HOME", "TMPDIR", "XDG_CONFIG_HOME"})
# By these the system's loader finds code for any program that starts.
_LOADER = re.compile(r"(LD|DYLD|NIX_LD)_[A-Z0-9_]+|NIX_LD|GCONV_PATH|LOCPATH|GLIBC_TUNABLES|MALLOC_[A-Z_]+")
_LISTS = frozenset({"LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "DYLD_FALLBACK_LIBRARY_PATH", "NIX_LD_LIBRARY_PATH"})
_SYSTEM = ("/usr", "/bin", "/sbin", "/nix", "/opt", "/snap")
_ADMIN = 80  # the group that may install programs on a Mac


def trusted_folders(folders: str, workspace: str) -> list[str]:
    """Those of a PATH that are neither in the workspace and the repository around it, nor such that others may write
    to them, nor those of a project's own environment."""
    roots = _roots(workspace)
    return [folder for folder in folders.split(os.pathsep) if _is_trusted_folder(folder, roots)]


def trusted_program(name: str, folders: str, workspace: str) -> str | None:
    """The path of executable `name` in a trusted folder of a PATH, where what it leads to is trusted as well."""
    roots = _roots(workspace)
    for folder in folders.split(os.pathsep):
        path = os.path.join(folder, name)
        if os.access(path, os.X_OK) and _is_trusted_folder(folder, roots) and _is_trusted_file(path, roots):
            return path
    return None


def own_env(source: Mapping[str, str], workspace: str) -> dict[str, str]:
    """The environment of a program that the harness chose for itself: nothing in it leads into the workspace."""
    roots = _roots(workspace)
    kept = {name: value for name, value in source.items() if name in _ALLOWED or name.startswith("LC_")}
    kept = {name: value for name, value in kept.items() if name not in _PLACES or not _is_inside(value, roots)}
    kept["PATH"] = os.pathsep.join(trusted_folders(source.get("PATH", os.defpath), workspace)) or os.defpath
    return {**kept, **_trusted_lists(source, roots)}


def split_loader(env: Mapping[str, str], workspace: str) -> tuple[dict[str, str], dict[str, str]]:
    """The environment for what starts a held command, and what only the command itself may be given: the variables by
    which the system's loader would take code from anywhere into what stands outside of the sandbox."""
    moved = {name: value for name, value in env.items() if _LOADER.fullmatch(name)}
    if not moved:
        return dict(env), {}
    kept = _trusted_lists(moved, _roots(workspace))
    outer = {name: value for name, value in env.items() if name not in moved} | kept
    return outer, {name: value for name, value in moved.items() if kept.get(name) != value}


def _trusted_lists(source: Mapping[str, str], roots: tuple[str, ...]) -> dict[str, str]:
    """The loader's lists of folders, without those that are not trusted."""
    lists = {name: source[name].split(os.pathsep) for name in _LISTS.intersection(source)}
    kept = {name: [place for place in places if _is_trusted_folder(place, roots)] for name, places in lists.items()}
    return {name: os.pathsep.join(places) for name, places in kept.items() if places}


def _roots(workspace: str) -> tuple[str, ...]:
    """The workspace and the work tree that it lies in, as named and as they really are."""
    if not workspace:
        return ()
    real = os.path.realpath(workspace)
    root = next((place for place in (real, *folders_above(real)) if os.path.lexists(os.path.join(place, ".git"))), real)
    return tuple({real, os.path.abspath(workspace), root} - {"/"})


def _is_trusted_folder(folder: str, roots: tuple[str, ...]) -> bool:
    if not os.path.isabs(folder) or _is_inside(folder, roots):
        return False
    real = os.path.realpath(folder)
    if "node_modules" in real.split("/") or os.path.exists(os.path.join(os.path.dirname(real), "pyvenv.cfg")):
        return False
    return _is_kept(real) and all(_is_kept(place, above=True) for place in folders_above(real))


def _is_trusted_file(path: str, roots: tuple[str, ...]) -> bool:
    real = os.path.realpath(path)
    if _is_inside(real, roots) or not all(_is_kept(place, above=True) for place in folders_above(real)):
        return False
    try:
        found = os.stat(real)
    except OSError:
        return False
    shared = found.st_nlink > 1 and not any(beneath(real, place) for place in _SYSTEM)
    return stat.S_ISREG(found.st_mode) and not shared and _is_kept(real)


def _is_kept(path: str, above: bool = False) -> bool:
    """Whether nobody but its owner, who is this user or the system, may write there; of a folder `above`, whether
    nobody else may replace what lies in it."""
    try:
        found = os.stat(path)
    except OSError:
        return False
    if found.st_uid not in (0, os.geteuid(), os.stat("/").st_uid):
        return False
    if above and found.st_mode & stat.S_ISVTX:
        return True
    others = found.st_mode & stat.S_IWOTH
    group = found.st_mode & stat.S_IWGRP and not (sys.platform == "darwin" and found.st_gid == _ADMIN)
    return not others and (above or not group)


def _is_inside(path: str, roots: tuple[str, ...]) -> bool:
    """Whether a path leads into one of the roots, by its name or by its links."""
    return any(beneath(one, root) for one in (os.path.abspath(path), os.path.realpath(path)) for root in roots)
