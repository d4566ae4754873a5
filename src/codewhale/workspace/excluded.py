"""What nobody looking for source wants to be shown: dependencies, build output and generated files, by name.

The one list: searching for names, and the code index, leave out the same.
"""

FOLDERS = ("target", "node_modules", ".git", "DerivedData", "dist", "build")
ENDINGS = (".lock", ".plist")
EXCLUDES = (*FOLDERS, *(f"*{ending}" for ending in ENDINGS))
# Left out of the index besides, as grep_files does: they hold text, but nobody's.
UNREAD_FOLDERS = ("__pycache__", ".venv", "venv")
UNREAD_ENDINGS = (".min.js", ".min.css", ".map")


def is_unread(path: str) -> bool:
    """Whether the index leaves out a file by its name. Folders are the walker's affair (`unread_folders`)."""
    return path.endswith(ENDINGS + UNREAD_ENDINGS)


def unread_folders() -> frozenset[str]:
    """The folders the index does not enter, by name."""
    return frozenset(FOLDERS + UNREAD_FOLDERS)
