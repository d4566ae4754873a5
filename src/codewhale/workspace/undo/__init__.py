"""Taking back what the agent did to a workspace, and nothing else."""

from codewhale.workspace.undo.history import UndoTurn
from codewhale.workspace.undo.resolve import UndoRefusal
from codewhale.workspace.undo.undo import Undo, UndoneFile, UndoPlan, UndoResult

__all__ = ["Undo", "UndoPlan", "UndoRefusal", "UndoResult", "UndoTurn", "UndoneFile"]
