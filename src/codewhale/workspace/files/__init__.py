"""The files of a workspace: everything a tool reads or writes there goes through here."""

from codewhale.workspace.files.edits import Edit, FileBytes, FileEdit, OpenFile
from codewhale.workspace.files.space import READ_LIMIT, Workspace, Workspaces

__all__ = ["READ_LIMIT", "Edit", "FileBytes", "FileEdit", "OpenFile", "Workspace", "Workspaces"]
