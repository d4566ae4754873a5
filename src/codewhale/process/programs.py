"""The programs of the machine: where those of the harness are, never in a folder a project could have put there, and
for each that a tool needs what goes without it and how to install it here."""

import os
from collections.abc import Mapping

from msgspec import Struct

from codewhale.process.sandbox.trusted import trusted_program


class Program(Struct, frozen=True):
    """A program that need not be there. `without` says what goes without it; `packages` the package that holds it, by
    the manager whose own name differs, "" for all others; `site` is where it comes from when no manager has it."""

    name: str
    without: str
    packages: Mapping[str, str] = {}
    site: str = ""


PROGRAMS: tuple[Program, ...] = (
    Program("git", "no git tools, and files are listed without .gitignore of the repository", site="git-scm.com"),
    Program("rg", "searches run in Python, slower", {"": "ripgrep"}, "github.com/BurntSushi/ripgrep"),
    Program(
        "pdftotext",
        "PDF files are read by the built-in reader, with a plainer layout",
        {"": "poppler-utils", "brew": "poppler", "pacman": "poppler", "zypper": "poppler-tools"},
        "poppler.freedesktop.org",
    ),
    Program(
        "gh",
        "GitHub is out of reach for commands that a session runs",
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
    Program("make", "no tests of a Makefile run", site="gnu.org/software/make"),
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


def here() -> str:
    """The current folder, "" where it is gone."""
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
    return f"{name} is not installed (not on PATH). Ask the person to install it: {how_to_install(name)}."
