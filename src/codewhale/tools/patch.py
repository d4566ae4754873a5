"""Several changes at once: a patch, or whole files, all written or none. The patching service does the work."""

from typing import Annotated

from msgspec import Struct

from codewhale.lib.jsontext import pretty
from codewhale.lib.threads import run_to_end
from codewhale.protocol.errors import ToolError
from codewhale.protocol.tools import CallContext, Effect, PathSubject, Subject, ToolResult
from codewhale.tools.base import Args, Doc, tool
from codewhale.workspace.files import Workspace, Workspaces
from codewhale.workspace.patching import (
    MAX_FUZZ,
    PatchOptions,
    PatchResult,
    apply_patch,
    patch_paths,
    replace_files,
)


class WholeFile(Struct, frozen=True, forbid_unknown_fields=True):
    """A file to write whole."""

    path: Annotated[str, Doc("File to write, relative to the workspace.")]
    content: Annotated[str, Doc("Its whole content.")]


class ApplyPatch(Args, frozen=True):
    """A patch, or whole files."""

    patch: Annotated[str, Doc("A unified diff, or *** Begin Patch ... *** End Patch. Give this or changes.")] | None = (
        None
    )
    changes: Annotated[tuple[WholeFile, ...], Doc("Whole files to write instead of a patch.")] | None = None
    path: Annotated[str, Doc("The file to patch, for a patch of one file, whatever its header says.")] | None = None
    fuzz: Annotated[int, Doc("Context lines that may be left out at each side of a hunk.", ge=0, le=MAX_FUZZ)] = (
        MAX_FUZZ
    )
    create_if_missing: Annotated[bool, Doc("Take a missing file for an empty one.")] = False


def _subjects(args: ApplyPatch) -> tuple[Subject, ...]:
    """Every path that would be written; "." stands for a patch that cannot be read, which is then refused."""
    if args.changes is not None:
        return tuple(PathSubject(change.path, write=True) for change in args.changes) or (PathSubject(".", write=True),)
    paths = patch_paths(args.patch or "", args.path) or {".": False}
    return tuple(PathSubject(path, write=True, executable=program) for path, program in paths.items())


class PatchTools:
    """The tool that applies patches."""

    def __init__(self, workspaces: Workspaces) -> None:
        self._workspaces = workspaces

    @tool("apply_patch", effects={Effect.WRITES}, subjects=_subjects)
    async def apply_patch(self, args: ApplyPatch, call: CallContext) -> ToolResult:
        """Change one or more files by a patch, all or nothing: a unified diff (--- a/F, +++ b/F, @@ hunks; /dev/null
        creates or deletes) or the *** Begin Patch format (Add File, Update File, Move to, Delete File). Or give
        changes, whole files. Context lines must be copied from the file as it is now; line numbers may be off, but a
        hunk that fits several places is refused. Returns JSON: files and hunks applied, and how each hunk was found.
        """
        space = self._workspaces.of(call)
        result = await run_to_end(_apply, space, call.session, args)
        return ToolResult(
            pretty(result.report), display=result.diffs, metadata=result.preflight, changes=result.changes
        )  # fmt: skip


def _apply(space: Workspace, session: str, args: ApplyPatch) -> PatchResult:
    if (args.patch is None) == (args.changes is None):
        raise _one_of_two(args.patch is not None)
    if args.changes is not None:
        return replace_files(space, session, [(change.path, change.content) for change in args.changes])
    assert args.patch is not None
    return apply_patch(space, session, args.patch, PatchOptions(args.path, args.fuzz, args.create_if_missing))


def _one_of_two(both: bool) -> ToolError:
    return ToolError(
        "invalid_input",
        "Give exactly one of patch and changes; got " + ("both" if both else "neither"),
        field="patch",
        expected="patch or changes",
        received="both" if both else "neither",
    )
