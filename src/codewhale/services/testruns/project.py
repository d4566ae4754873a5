"""What a workspace says of itself: its files, its Python, the programs at hand."""

import os
import shutil
from typing import Any

import msgspec

from codewhale.lib.bounded import check_nesting
from codewhale.process.command import child_env

READ_LIMIT = 1 << 20


def interpreter(root: str) -> str | None:
    """The project's Python: its virtual environment's, else the one on PATH."""
    for folder in (".venv", "venv"):
        path = os.path.join(root, folder, "bin", "python")
        if os.access(path, os.X_OK):
            return path
    return which("python3") or which("python")


def which(program: str) -> str | None:
    """The absolute path of a program that a child process would find, or None."""
    return shutil.which(program, path=child_env()["PATH"])


def has(root: str, *names: str) -> bool:
    """Whether any of these files is there."""
    return any(os.path.isfile(os.path.join(root, name)) for name in names)


def read_text(root: str, name: str) -> str:
    """The first MiB of a regular file, "" when there is none."""
    path = os.path.join(root, name)
    if not os.path.isfile(path):
        return ""
    try:
        with open(path, "rb") as file:
            return file.read(READ_LIMIT).decode("utf-8", "replace")
    except OSError:
        return ""


def scripts(root: str) -> dict[str, str]:
    """The scripts of package.json that can be run, by name."""
    found = package(root).get("scripts")
    rows = found.items() if isinstance(found, dict) else ()
    return {name: text for name, text in rows if isinstance(text, str) and text}


def package(root: str) -> dict[str, Any]:
    """What package.json says, empty where there is none that can be read."""
    text = read_text(root, "package.json").encode("utf-8", "replace")
    try:
        check_nesting(text)
        found = msgspec.json.decode(text or b"{}")
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
