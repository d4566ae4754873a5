"""The programs of the machine: where those of the harness are, never in a folder that a project or another user could
have put one into; and for each that a tool needs what goes without it and how to install it here."""

import os
import stat
import sys
from collections.abc import Mapping

from msgspec import Struct

from codewhale.lib.patterns import lazy
from codewhale.process.sandbox.profiles import beneath, folders_above

# What a program of the harness's choice is given of the environment, beside what leads it to other programs.
_ALLOWED = frozenset(
    "HOME USER LOGNAME LANG LANGUAGE TERM TZ TMPDIR HOSTNAME XDG_CONFIG_HOME XDG_RUNTIME_DIR PATH".split()
)
_PLACES = frozenset({"HOME", "TMPDIR", "XDG_CONFIG_HOME"})
# By these the system's loader finds code for any program that starts.
_LOADER = lazy(r"(LD|DYLD|NIX_LD)_[A-Z0-9_]+|NIX_LD|GCONV_PATH|LOCPATH|GLIBC_TUNABLES|MALLOC_[A-Z_]+")
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
    moved = {name: value for name, value in env.items() if _LOADER().fullmatch(name)}
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
        status = os.stat(real)
    except OSError:
        return False
    shared = status.st_nlink > 1 and not any(beneath(real, place) for place in _SYSTEM)
    return stat.S_ISREG(status.st_mode) and not shared and _is_kept(real)


def _is_kept(path: str, above: bool = False) -> bool:
    """Whether nobody but its owner, who is this user or the system, may write there; of a folder `above`, whether
    nobody else may replace what lies in it."""
    try:
        status = os.stat(path)
    except OSError:
        return False
    if status.st_uid not in (0, os.geteuid(), os.stat("/").st_uid):
        return False
    if above and status.st_mode & stat.S_ISVTX:
        return True
    others = status.st_mode & stat.S_IWOTH
    group = status.st_mode & stat.S_IWGRP and not (sys.platform == "darwin" and status.st_gid == _ADMIN)
    return not others and (above or not group)


def _is_inside(path: str, roots: tuple[str, ...]) -> bool:
    """Whether a path leads into one of the roots, by its name or by its links."""
    return any(beneath(one, root) for one in (os.path.abspath(path), os.path.realpath(path)) for root in roots)


class Program(Struct, frozen=True):
    """A program that need not be there. `without` says what goes without it; `packages` the package that holds it, by
    the manager whose own name differs, "" for all others; `site` is where it comes from when no manager has it."""

    name: str
    without: str
    packages: Mapping[str, str] = {}
    site: str = ""


PROGRAMS: tuple[Program, ...] = (
    Program("git", "no git tools, and file lists ignore .gitignore", site="git-scm.com"),
    Program("rg", "searches run in Python, slower", {"": "ripgrep"}, "github.com/BurntSushi/ripgrep"),
    Program(
        "pdftotext",
        "PDF files are read by the built-in reader, with a plainer layout",
        {"": "poppler-utils", "brew": "poppler", "pacman": "poppler", "zypper": "poppler-tools"},
        "poppler.freedesktop.org",
    ),
    Program(
        "gh",
        "commands of a session cannot use GitHub",
        {"pacman": "github-cli", "apk": "github-cli"},
        "cli.github.com",
    ),
    Program("python3", "no Python tests run", {"pacman": "python", "brew": "python"}, "python.org"),
    Program("cargo", "no Rust tests run", {"pacman": "rust", "brew": "rust"}, "rustup.rs"),
    Program("go", "no Go tests run", {"apt-get": "golang-go", "dnf": "golang"}, "go.dev/dl"),
    Program("npm", "no Node tests run", {"brew": "node", "zypper": "npm-default"}, "nodejs.org"),
    Program("pnpm", "npm runs the tests", {"apt-get": "", "dnf": "", "zypper": "", "apk": ""}, "pnpm.io"),
    Program("yarn", "npm runs the tests", {"apt-get": "", "dnf": "yarnpkg", "zypper": ""}, "yarnpkg.com"),
    Program("bun", "npm runs the tests", {"": "", "apt-get": "", "dnf": "", "zypper": "", "apk": ""}, "bun.sh"),
    Program("espeak-ng", "nothing is read aloud, unless say or a speech service does it", site="espeak.net"),
    Program("make", "Makefile tests do not run", site="gnu.org/software/make"),
)
_MANAGERS = {
    "brew": "brew install",
    "apt-get": "apt-get install",
    "dnf": "dnf install",
    "pacman": "pacman -S",
    "apk": "apk add",
    "zypper": "zypper install",
}


def find_program(name: str, workspace: str = "", places: str | None = None) -> str | None:
    """The absolute path of executable `name` that the harness may run for itself, or None. Folders of PATH (or of
    `places`) that lie in the workspace, or where others could have put a program, are passed over."""
    places = os.environ.get("PATH", os.defpath) if places is None else places
    return trusted_program(name, places, workspace)


def current_folder() -> str:
    try:
        return os.getcwd()
    except OSError:
        return ""


def _find(name: str, places: str) -> str | None:
    for folder in places.split(os.pathsep):
        path = os.path.join(folder, name)
        if os.path.isabs(folder) and os.path.isfile(path) and os.access(path, os.X_OK):
            return path
    return None


def how_to_install(name: str, places: str | None = None) -> str:
    """The command that installs a program here (`places` is a PATH), else where it comes from: a few words."""
    places = os.environ.get("PATH", os.defpath) if places is None else places
    program = next((row for row in PROGRAMS if row.name == name), Program(name, ""))
    manager = next((manager for manager in _MANAGERS if _find(manager, places)), "")
    package = program.packages.get(manager, program.packages.get("", name))
    if manager and package:
        root = "" if manager == "brew" or os.geteuid() == 0 else "sudo "
        return f"{root}{_MANAGERS[manager]} {package}"
    return f"install {name}" + (f" ({program.site})" if program.site else "")


def not_installed(name: str) -> str:
    """That a program is missing, and what the person can do: two sentences for a refusal."""
    return f"{name} is not installed (not on PATH). Ask the user to install it: {how_to_install(name)}."
