"""Hooks: commands of the person's, and of a trusted project, that run at named moments of a session."""

from codewhale.services.hooks.service import Hooks

__all__ = ["Hooks"]
