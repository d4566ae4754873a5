"""Taking back what the agent did to a workspace, and nothing else."""

from codewhale.services.undo.resolving import Refusal
from codewhale.services.undo.turns import Turn
from codewhale.services.undo.undo import Done, Plan, Taking, Undo

__all__ = ["Done", "Plan", "Refusal", "Taking", "Turn", "Undo"]
