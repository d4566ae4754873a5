"""A patch carried out on a workspace: planned whole, then written whole or not at all. The same for the model's
tool and for the command. And the diff of what was changed."""

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from codewhale.lib.text import counted
from codewhale.protocol.blocks import DiffBlock
from codewhale.protocol.errors import ToolError
from codewhale.protocol.files import FileChange
from codewhale.workspace.files import Workspace
from codewhale.workspace.patching.model import FilePatch, Patch
from codewhale.workspace.patching.parse import parse
from codewhale.workspace.patching.plan import FileSummary, PatchFiles, PatchOptions, PatchPlan, make_plan

_CONTEXT = 3
_MOST_LINES = 4000
_MOST_TEXT = 64 * 1024


def unified_diff(path: str, before: bytes | None, after: bytes | None, limit: int = _MOST_TEXT) -> str:
    """The diff of one file with a/ and b/ headers, "" when nothing differs. Above `limit` characters it is cut at
    a line and says so; what is no text is told in one line."""
    if before == after:
        return ""
    old, new = (_text(data) for data in (before, after))
    head = [f"--- a/{path}" if before is not None else "--- /dev/null"]
    head.append(f"+++ b/{path}" if after is not None else "+++ /dev/null")
    if old is None or new is None:
        sizes = [f"{len(data):,} bytes" if data is not None else "nothing" for data in (before, after)]
        return "\n".join([*head, f"Binary content: {sizes[0]} before, {sizes[1]} now", ""])
    out, size = [], 0
    for line in (*head, *_body(_split(old), _split(new))):
        size += len(line) + 1
        if size > limit:
            out.append(f"... (diff cut at {limit:,} characters)")
            break
        out.append(line)
    return "\n".join([*out, ""])


def _text(data: bytes | None) -> str | None:
    if data is None:
        return ""
    if b"\0" in data[:8192]:
        return None
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data.decode("latin-1")


def _split(text: str) -> list[str]:
    """Lines without newlines; the last carries the usual note when its newline is missing."""
    lines = text.split("\n")
    if lines[-1] == "":
        lines.pop()
    else:
        lines[-1] += "\n\\ No newline at end of file"
    return lines


def _body(old: Sequence[str], new: Sequence[str]) -> Iterator[str]:
    """Hunks. What is alike at both ends is left out before comparing; a middle too long to compare is shown as
    removed and added whole."""
    head = 0
    while head < min(len(old), len(new)) and old[head] == new[head]:
        head += 1
    tail = 0
    while tail < min(len(old), len(new)) - head and old[-1 - tail] == new[-1 - tail]:
        tail += 1
    low, after = max(0, head - _CONTEXT), max(0, tail - _CONTEXT)
    left, right = old[low : len(old) - after], new[low : len(new) - after]
    if max(len(left), len(right)) > _MOST_LINES:
        lead, trail = head - low, tail - after
        yield f"@@ -{_span(low, len(left))} +{_span(low, len(right))} @@"
        yield from (" " + line for line in left[:lead])
        yield from ("-" + line for line in left[lead : len(left) - trail])
        yield from ("+" + line for line in right[lead : len(right) - trail])
        yield from (" " + line for line in left[len(left) - trail :])
        return
    import difflib

    groups = difflib.SequenceMatcher(None, left, right, autojunk=False).get_grouped_opcodes(_CONTEXT)
    for group in groups:
        (_, i1, _, j1, _), (_, _, i2, _, j2) = group[0], group[-1]
        yield f"@@ -{_span(low + i1, i2 - i1)} +{_span(low + j1, j2 - j1)} @@"
        for word, a1, a2, b1, b2 in group:
            if word == "equal":
                yield from (" " + line for line in left[a1:a2])
                continue
            yield from ("-" + line for line in left[a1:a2])
            yield from ("+" + line for line in right[b1:b2])


def _span(start: int, count: int) -> str:
    return f"{start if count == 0 else start + 1},{count}" if count != 1 else str(start + 1)


_DEFAULTS = PatchOptions()


class PatchResult(Struct, frozen=True):
    """What was done. `report` is the object told to models and programs, `preflight` what was known before the
    first write, `diffs` one block per changed file."""

    report: dict[str, Any]
    preflight: dict[str, Any]
    changes: tuple[FileChange, ...] = ()
    diffs: tuple[DiffBlock, ...] = ()


def apply_patch(workspace: Workspace, session: str, text: str, options: PatchOptions = _DEFAULTS) -> PatchResult:
    """Apply a patch given as text. Raises ToolError with nothing changed, with the preflight as metadata once the patch
    could be read."""
    patch = parse(text)
    preflight = _preflight(patch, options)
    try:
        files = PatchFiles(workspace)
        plan = make_plan(patch, files, options, text)
        return _carry_out(workspace, session, plan, preflight, options.dry_run)
    except ToolError as error:
        error.metadata.update(preflight)
        if error.field == "path":
            error.field = "path" if options.path is not None else "patch"
        raise


def patch_paths(text: str, path: str | None = None) -> dict[str, bool]:
    """Every path a patch may write, as spelled in it, and whether it becomes executable; none for a patch that cannot
    be read."""
    try:
        files = parse(text).files
    except ToolError:
        return {path: False} if path is not None else {}
    touched = [(name, bool(file.executable)) for file in files for name in _touched(file, PatchOptions(path), True)]
    return {name: any(program for one, program in touched if one == name) for name, _ in touched}


def replace_files(workspace: Workspace, session: str, contents: Sequence[tuple[str, str]]) -> PatchResult:
    """Write whole files as (path, content), all or none."""
    files = PatchFiles(workspace)
    summaries = []
    for path, content in contents:
        name = workspace.relative(path)
        workspace.check_name(path)
        created = files.get(name) is None
        files.now[name] = _encode(name, content)
        summaries.append(FileSummary(name, 0, 0, 0, 0, created, False, "", ()))
    plan = PatchPlan(files.edits(), files.original, tuple(summaries))
    preflight = {
        "event": "apply_patch.preflight",
        "touched_files": [summary.path for summary in summaries],
        "files_total": len(summaries),
        "hunks_total": 0,
        "creates": sum(summary.created for summary in summaries),
        "deletes": 0,
        "path_override": None,
        "header_path_mismatch": False,
    }
    try:
        return _carry_out(workspace, session, plan, preflight, False)
    except ToolError as error:
        error.metadata.update(preflight)
        raise


def _encode(path: str, content: str) -> bytes:
    try:
        return content.encode()
    except UnicodeEncodeError as error:
        raise ToolError(
            "invalid_input",
            f"the content for {path} contains half a character (a lone surrogate) at offset {error.start}",
            field="changes",
            expected="text that encodes as UTF-8",
            received=f"U+{ord(content[error.start]):04X}",
        )


def _carry_out(
    workspace: Workspace, session: str, plan: PatchPlan, preflight: dict[str, Any], dry_run: bool
) -> PatchResult:
    changes: tuple[FileChange, ...] = ()
    if dry_run:
        workspace.check(session, plan.edits)
    else:
        changes = tuple(change for change in workspace.apply(session, plan.edits) if change.before != change.after)
    pairs = [(edit, plan.before[edit.path]) for edit in plan.edits]
    diffs = tuple(DiffBlock(e.path, unified_diff(e.path, before, e.data)) for e, before in pairs if before != e.data)
    return PatchResult(_report(plan.summaries, plan.notes, dry_run), preflight, changes, diffs)


def _preflight(patch: Patch, options: PatchOptions) -> dict[str, Any]:
    touched = [name for file in patch.files for name in _touched(file, options)]
    override = options.path
    return {
        "event": "apply_patch.preflight",
        "touched_files": list(dict.fromkeys(touched)),
        "files_total": len(patch.files),
        "hunks_total": sum(len(file.hunks) for file in patch.files),
        "creates": sum(file.kind in ("create", "copy") for file in patch.files),
        "deletes": sum(file.kind == "delete" for file in patch.files),
        "path_override": override,
        "header_path_mismatch": override is not None
        and any(file.names and override not in file.names for file in patch.files),
    }


def _touched(file: FilePatch, options: PatchOptions, every: bool = False) -> list[str]:
    names = (options.path,) if options.path is not None else file.names if every else file.names[:1]
    return [*names, *([file.move_to] if file.move_to else [])]


def _report(summaries: Sequence[FileSummary], notes: Sequence[str], dry_run: bool) -> dict[str, Any]:
    hunks = sum(summary.hunks for summary in summaries)
    report: dict[str, Any] = {
        "success": True,
        "files_applied": len(summaries),
        "files_total": len(summaries),
        "hunks_applied": sum(summary.hunks_applied for summary in summaries),
        "hunks_total": hunks,
        "fuzz_used": sum(summary.fuzz_used for summary in summaries),
        "hunks_with_fuzz": sum(summary.hunks_with_fuzz for summary in summaries),
        "touched_files": list(dict.fromkeys(summary.path for summary in summaries)),
        "file_summaries": [msgspec.to_builtins(summary) for summary in summaries],
        "message": _message(summaries, notes, dry_run),
    }
    if dry_run:
        report["dry_run"] = True
    return report


def _message(summaries: Sequence[FileSummary], notes: Sequence[str], dry_run: bool) -> str:
    """How many files and hunks the patch held, what became of each file, and what was less than exact."""
    parts = []
    for summary in summaries:
        word = "deleted" if summary.deleted else "created" if summary.created else "changed"
        if summary.moved_from:
            word = f"moved from {summary.moved_from}"
        odd = [f"hunk {i}: {how}" for i, how in enumerate(summary.matched, 1) if how != "exact"]
        odd = [summary.note, *odd] if summary.note else odd
        parts.append(f"{summary.path} {word}" + (f" ({'; '.join(odd)})" if odd else ""))
    counts = f"{counted(len(summaries), 'file')}, {counted(sum(summary.hunks for summary in summaries), 'hunk')}"
    note = f". Note: {'; '.join(notes)}" if notes else ""
    return f"{'Would apply' if dry_run else 'Applied'} {counts}: {', '.join(parts)}{note}"
