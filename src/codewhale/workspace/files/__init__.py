"""The files of a workspace: everything a tool reads or writes there goes through here."""

from codewhale.workspace.files.workspace import READ_LIMIT, FileBytes, FileEdit, OpenFile, Workspace, Workspaces

__all__ = ["READ_LIMIT", "FileBytes", "FileEdit", "OpenFile", "Workspace", "Workspaces"]
