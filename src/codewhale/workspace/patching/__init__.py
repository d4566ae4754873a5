"""Patches: unified diffs and the `*** Begin Patch` format, read, placed and worked out as pure functions, then
carried out on a workspace."""

from codewhale.workspace.patching.apply import PatchResult, apply_patch, patch_paths, replace_files, unified_diff
from codewhale.workspace.patching.plan import MAX_FUZZ, PatchOptions
from codewhale.workspace.patching.replace import Replacement, Replacer

__all__ = [
    "MAX_FUZZ",
    "PatchOptions",
    "PatchResult",
    "Replacement",
    "Replacer",
    "apply_patch",
    "patch_paths",
    "replace_files",
    "unified_diff",
]
