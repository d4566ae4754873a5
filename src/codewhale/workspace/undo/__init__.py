"""Taking back what the agent did to a workspace, and nothing else."""

from codewhale.workspace.undo.history import Turn
from codewhale.workspace.undo.resolve import Refusal
from codewhale.workspace.undo.undo import Done, Plan, Taking, Undo

__all__ = ["Done", "Plan", "Refusal", "Taking", "Turn", "Undo"]
