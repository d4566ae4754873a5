"""Where the programs of the harness (git, rg) are: found on PATH, never in a folder a project could have put there."""

import os


def find_program(name: str) -> str | None:
    """The absolute path of executable `name`, or None. Entries of PATH that are not absolute are passed over."""
    for folder in os.environ.get("PATH", os.defpath).split(os.pathsep):
        path = os.path.join(folder, name)
        if os.path.isabs(folder) and os.path.isfile(path) and os.access(path, os.X_OK):
            return path
    return None
