"""A patch applied to a folder by a person or a script, with no session and no model."""

import os
from typing import Any

from codewhale.protocol.errors import ToolError
from codewhale.session.artifacts import ArtifactStore
from codewhale.workspace.files import Workspaces
from codewhale.workspace.patching import PatchOptions, apply_patch


def apply_text(home: str, folder: str, text: str, dry_run: bool) -> dict[str, Any]:
    """Apply a patch of either format, all or nothing. Returns what apply_patch reports; when it is refused
    `success` is False and `error` says why, and nothing has changed."""
    workspace = Workspaces(ArtifactStore(os.path.join(home, "artifacts"))).at(folder)
    try:
        return apply_patch(workspace, "", text, PatchOptions(dry_run=dry_run)).report
    except ToolError as error:
        told = {
            "kind": error.kind,
            "message": error.message,
            "field": error.field,
            "expected": error.expected,
            "received": error.received,
        }
        return {"success": False, "error": told, "message": error.message}
