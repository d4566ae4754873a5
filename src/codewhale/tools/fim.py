"""Filling in the middle: the model writes what belongs between two anchors of a file, the person sees the diff, and
what was seen is what is written. The workspace service does the reading and writing, the completer the asking."""

import asyncio
from functools import partial
from typing import Annotated

from msgspec import Struct

from codewhale.lib.jsontext import pretty
from codewhale.lib.textform import TextForm, decode, line_end, with_line_end
from codewhale.lib.threads import run_to_end
from codewhale.protocol.blocks import Block, DiffBlock, MarkdownBlock
from codewhale.protocol.errors import Look, ToolError
from codewhale.protocol.ports import Completer, Infilled
from codewhale.protocol.tools import CallContext, Effect, PathSubject, Preview, Subject, ToolResult
from codewhale.tools.base import Args, Doc, gated, tool
from codewhale.workspace.files import FileBytes, FileEdit, Workspace, Workspaces
from codewhale.workspace.patching import unified_diff


class FimEdit(Args, frozen=True):
    """Where to fill in."""

    path: Annotated[str, Doc("File to edit, relative to the workspace.")]
    prefix_anchor: Annotated[str, Doc("Text that stands right before the gap; its first occurrence counts.")]
    suffix_anchor: Annotated[str, Doc("Text that stands right behind the gap; its first one after the prefix counts.")]
    max_tokens: Annotated[int, Doc("How long the new text may be.", ge=1, le=4096)] = 1024


class _Gap(Struct, frozen=True):
    """A gap in a file: it begins and ends at these characters of the text."""

    file: FileBytes
    form: TextForm
    begin: int
    end: int

    @property
    def prefix_end(self) -> int:
        """The byte of the file where the gap begins."""
        return len(self.form.encode(self.form.text[: self.begin]))

    @property
    def suffix_start(self) -> int:
        """The byte of the file where it ends."""
        return len(self.form.encode(self.form.text[: self.end]))


def _writes(args: FimEdit) -> tuple[Subject, ...]:
    return (PathSubject(args.path, write=True),)


class FimTools:
    """The tool that fills in the middle."""

    def __init__(self, workspaces: Workspaces, completer: Completer) -> None:
        self._workspaces = workspaces
        self._completer = completer

    @gated("fim")
    @tool("fim_edit", effects={Effect.WRITES}, subjects=_writes)
    async def fim_edit(self, args: FimEdit, call: CallContext) -> Preview:
        """Let a fill-in-the-middle model write what belongs between two texts of a file. The gap begins behind the
        first prefix_anchor and ends before the first suffix_anchor after it; whatever stands there is replaced. Both
        anchors stay. Use it for code that follows from its surroundings; to write a text you know use edit_file.
        Returns JSON: generated_text and the byte offsets of the gap.
        """
        space = self._workspaces.of(call)
        gap = await asyncio.to_thread(_gap, space, args, call.session)
        text = gap.form.text
        try:
            filled = await self._completer.infill(
                call.session, text[: gap.begin], text[gap.end :], max_tokens=args.max_tokens
            )
        except ToolError as error:
            error.look = error.look or Look("read_file", {"path": args.path})
            raise
        return _preview(space, args, call.session, gap, filled)


def _gap(space: Workspace, args: FimEdit, session: str) -> _Gap:
    """The gap. Raises ToolError for a file that may not be written and for anchors that do not enclose one."""
    for field in ("prefix_anchor", "suffix_anchor"):
        if not getattr(args, field):
            raise _refused(args, field, f"{field} is empty", "text of the file")
    file = space.read(args.path)
    space.check(session, (FileEdit(args.path, file.data, base=file.sha256),))
    form = decode(file.data)
    if form is None:
        raise ToolError(
            "execution_failed",
            f"{file.path} is a binary file of {len(file.data):,} bytes, which has no text to fill in",
            field="path",
            expected="a text file",
            received=args.path,
        )
    prefix, suffix = _as_in(form.text, args.prefix_anchor), _as_in(form.text, args.suffix_anchor)
    start = form.text.find(prefix)
    if start < 0:
        raise _refused(args, "prefix_anchor", f"prefix_anchor is not in {file.path}", "text copied from it")
    begin = start + len(prefix)
    end = form.text.find(suffix, begin)
    if end < 0:
        raise _refused(args, "suffix_anchor", *_no_suffix(file.path, form.text, start, suffix))
    return _Gap(file, form, begin, end)


def _no_suffix(path: str, text: str, start: int, suffix: str) -> tuple[str, str]:
    """Why no suffix follows the prefix that stands at `start`, and what is wanted."""
    if text.find(suffix, start) >= 0:
        return "the anchors overlap: suffix_anchor begins inside prefix_anchor", "text that begins behind prefix_anchor"
    if suffix in text:
        where = f"line {text.count(chr(10), 0, start) + 1}"
        return f"suffix_anchor is in {path} only before prefix_anchor ({where})", "text behind prefix_anchor"
    return f"suffix_anchor is not in {path}", "text copied from the file, behind prefix_anchor"


def _as_in(text: str, anchor: str) -> str:
    """The anchor with the line ends of the file, where it is found that way alone."""
    other = with_line_end(anchor, line_end(text))
    return anchor if anchor in text or other not in text else other


def _refused(args: FimEdit, field: str, text: str, expected: str) -> ToolError:
    received = str(getattr(args, field))[:80]
    fix = Look("read_file", {"path": args.path})
    return ToolError("invalid_input", text, field=field, expected=expected, received=received, fix=fix)


def _preview(space: Workspace, args: FimEdit, session: str, gap: _Gap, filled: Infilled) -> Preview:
    """The diff, and the write of exactly that. Raises ToolError for an answer that is no text of this file."""
    form, path = gap.form, gap.file.path
    if not filled.text:
        raise ToolError(
            "execution_failed",
            f"the model found nothing to put into {path} between the anchors; nothing was changed. Write the text "
            "yourself with edit_file",
            fix=Look("read_file", {"path": args.path}),
        )
    text = with_line_end(filled.text, line_end(form.text))
    try:
        data = form.encode(form.text[: gap.begin] + text + form.text[gap.end :])
    except UnicodeEncodeError as error:
        raise ToolError(
            "execution_failed",
            f"the model wrote U+{ord(error.object[error.start]):04X}, which {path} cannot hold: it is {form.encoding}. "
            "Nothing was changed",
            fix=Look("read_file", {"path": args.path}),
        ) from None
    diff = unified_diff(path, gap.file.data, data)
    display: tuple[Block, ...] = (DiffBlock(path, diff),) if data != gap.file.data else ()
    notes = _notes(args, filled)
    if notes:
        display += (MarkdownBlock(" ".join(notes)),)
    edit = FileEdit(args.path, data, base=gap.file.sha256)
    done = _Done(gap, text, filled.cut, tuple(notes), display)
    return Preview(display, partial(run_to_end, _write, space, session, edit, done))


def _notes(args: FimEdit, filled: Infilled) -> list[str]:
    notes = []
    if filled.cut:
        notes.append(f"The new text hit its limit of {args.max_tokens} tokens and may end too early: check its end.")
    if filled.left_out:
        notes.append(f"The model did not see the {filled.left_out:,} bytes of the file that are farthest away.")
    return notes


class _Done(Struct, frozen=True):
    """What a write is to be told as."""

    gap: _Gap
    text: str
    cut: bool
    notes: tuple[str, ...]
    display: tuple[Block, ...]


def _write(space: Workspace, session: str, edit: FileEdit, done: _Done) -> ToolResult:
    (change, *_) = space.apply(session, (edit,))
    gap = done.gap
    line = gap.form.text.count("\n", 0, gap.begin) + 1
    size, before = len(gap.form.encode(done.text)) - len(gap.form.bom), gap.suffix_start - gap.prefix_end
    replaced = f" in place of {before:,}" if before else ""
    same = " (no changes)" if change.before == change.after else ""
    message = f"Filled in {change.path} from line {line}: {size:,} bytes{replaced}{same}."
    facts = {
        "success": True,
        "path": change.path,
        "generated_text": done.text,
        "prefix_end": gap.prefix_end,
        "suffix_start": gap.suffix_start,
        "message": " ".join((message, *done.notes)),
    }
    metadata = {key: value for key, value in facts.items() if key not in ("generated_text", "message")}
    metadata |= {"bytes": size, "sha256": change.after, "cut": done.cut}
    changes = () if same else (change,)
    return ToolResult(pretty(facts), display=done.display, metadata=metadata, changes=changes)
