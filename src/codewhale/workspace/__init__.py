"""The files of a workspace: as git sees them, read and written, searched, patched and restored."""
