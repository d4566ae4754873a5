"""Patches: unified diffs and the `*** Begin Patch` format, read, placed and worked out as pure functions, then
carried out on a workspace."""

from codewhale.services.patching.apply import (
    PatchResult,
    apply_patch,
    apply_patch_text,
    patch_paths,
    replace_files,
)
from codewhale.services.patching.plan import MAX_FUZZ, Options
from codewhale.services.patching.render import unified_diff
from codewhale.services.patching.replacing import Replaced, Replacer

__all__ = [
    "MAX_FUZZ",
    "Options",
    "PatchResult",
    "Replaced",
    "Replacer",
    "apply_patch",
    "apply_patch_text",
    "patch_paths",
    "replace_files",
    "unified_diff",
]
