"""Single files: read one, list a folder, write one whole, replace text in one. The workspace service does the
reading and writing, patching the finding and the diffs."""

import asyncio
import hashlib
import json
import stat
from typing import Annotated, Any, BinaryIO

from msgspec import to_builtins
from msgspec.structs import replace

from codewhale.lib.textform import TextForm, decode, looks_binary
from codewhale.lib.threads import run_to_end
from codewhale.process.isolated import AT_ONCE
from codewhale.protocol.blocks import DiffBlock
from codewhale.protocol.errors import Look, NextCall, ToolError
from codewhale.protocol.files import FileChange
from codewhale.protocol.linebreaks import unescaped
from codewhale.protocol.messages import Image
from codewhale.protocol.tools import CallContext, Effect, PathSubject, Subject, ToolResult
from codewhale.tools.base import Args, Doc, tool
from codewhale.workspace.documents import PdfText, image_facts, pdf_text
from codewhale.workspace.files import READ_LIMIT, FileBytes, FileEdit, OpenFile, Workspace, Workspaces
from codewhale.workspace.files.beside import walked
from codewhale.workspace.patching import Replacement, Replacer, unified_diff
from codewhale.workspace.walk import DirEntry, Walker

WHOLE_LINES, MOST_LINES = 200, 500
WHOLE_BYTES = 16_384
IMAGE_LIMIT = 5 * 1024 * 1024
ENTRY_LIMIT = 1000
_HEAD = 8192


class ReadFile(Args, frozen=True):
    """What to read."""

    path: Annotated[str, Doc("File to read, relative to the workspace.")]
    start_line: Annotated[int, Doc("First line to show, from 1.", ge=1)] | None = None
    max_lines: Annotated[int, Doc("How many lines to show: 200 unless given, at most 500.", ge=1)] | None = None
    pages: Annotated[str, Doc('For a PDF: page "N" or pages "N-M".', pattern=r"^\s*\d+\s*(-\s*\d+\s*)?$")] | None = None


class ListDir(Args, frozen=True):
    """What to list."""

    path: Annotated[str, Doc("Folder to list, relative to the workspace.")] = "."
    include_ignored: Annotated[bool, Doc("Also list what git ignores.")] = False


class WriteFile(Args, frozen=True):
    """What to write."""

    path: Annotated[str, Doc("File to write, relative to the workspace.")]
    content: Annotated[str, Doc("The whole content, written as it is.")]


class EditFile(Args, frozen=True):
    """What to replace."""

    path: Annotated[str, Doc("File to edit, relative to the workspace.")]
    search: Annotated[str, Doc("Text to find, copied from the file; it must stand there once.")]
    replace: Annotated[str, Doc("Text to put in its place; empty to delete it.")]
    replace_all: Annotated[bool, Doc("Replace every exact match.")] = False
    fuzz: Annotated[bool, Doc("Accepted and not used: near matches are always tried.")] | None = None


def _reads(args: ReadFile | ListDir) -> tuple[Subject, ...]:
    return (PathSubject(args.path),)


def _writes(args: WriteFile | EditFile) -> tuple[Subject, ...]:
    return (PathSubject(args.path, write=True),)


class FileTools:
    """The tools that work on single files and folders."""

    def __init__(self, workspaces: Workspaces) -> None:
        self._workspaces = workspaces
        self._documents = asyncio.Semaphore(AT_ONCE)

    @tool("read_file", effects={Effect.READS}, subjects=_reads, parallel=True)
    async def read_file(self, args: ReadFile, call: CallContext) -> ToolResult:
        """Read a text file, a PDF (its text, by page) or an image (PNG, JPEG, GIF, WebP: shown). A text file of at
        most 200 lines and 16 KiB comes as it is; otherwise, or with start_line or max_lines, a window of numbered
        lines comes with the call that continues it. Read a file before you edit it.
        """
        space = self._workspaces.of(call)
        found = await asyncio.to_thread(self._read, space, args, call.session)
        return await self._pdf(found, args, call.workspace) if isinstance(found, FileBytes) else found

    @tool("list_dir", effects={Effect.READS}, subjects=_reads, parallel=True)
    async def list_dir(self, args: ListDir, call: CallContext) -> ToolResult:
        """List a folder: a JSON array of {name, is_dir}, folders first, then by name. What git ignores is left out
        unless include_ignored; at most 1000 entries. Use file_search to find files deeper down.
        """
        space = self._workspaces.of(call)
        resolved = await asyncio.to_thread(_folder, space, args.path)
        try:
            top, below = walked(space.root, resolved, call.allowances)
            found = await Walker(top).entries(below or ".", include_ignored=args.include_ignored)
        except (OSError, ValueError) as error:
            raise _unlisted(args, error)
        rows = await asyncio.to_thread(_rows, space, resolved, found)
        shown = [
            json.dumps({"name": name, "is_dir": not plain}, ensure_ascii=False) for plain, name in rows[:ENTRY_LIMIT]
        ]
        content = "[\n" + ",\n".join(shown) + "\n]" if shown else "[]"
        if len(rows) > ENTRY_LIMIT:
            content += f"\n[{ENTRY_LIMIT:,} of {len(rows):,} entries are shown; use file_search to narrow]"
        return ToolResult(content, metadata={"entries": len(rows), "truncated": len(rows) > ENTRY_LIMIT})

    @tool("write_file", effects={Effect.WRITES}, subjects=_writes)
    async def write_file(self, args: WriteFile, call: CallContext) -> ToolResult:
        """Create a file or replace it whole; folders on the way are made. To change part of a file use edit_file
        or apply_patch. Returns the diff and a summary.
        """
        return await run_to_end(_write, self._workspaces.of(call), args, call.session)

    @tool("edit_file", effects={Effect.WRITES}, subjects=_writes)
    async def edit_file(self, args: EditFile, call: CallContext) -> ToolResult:
        """Replace one text in a file by another. search must stand there exactly once (or set replace_all); copy it
        from read_file without the line numbers, and take in enough lines to make it unique. Line ends and encoding
        stay as they are. For several places or files use apply_patch. Returns the diff and a summary.
        """
        return await run_to_end(_edit, self._workspaces.of(call), args, call.session)

    def _read(self, space: Workspace, args: ReadFile, session: str) -> ToolResult | FileBytes:
        """The result, or the bytes of a PDF."""
        with space.open(args.path) as file:
            head = space.begin(file, _HEAD)
            if head.startswith(b"%PDF") or (args.path.lower().endswith(".pdf") and looks_binary(head)):
                _page_range(args)
                return space.take(file, session)
            if args.pages is not None:
                raise _no_pages(args)
            return self._image(space.take(file, session)) if image_facts(head) else _text(space, file, args, session)

    def _image(self, file: FileBytes) -> ToolResult:
        facts = image_facts(file.data)
        if facts is None or len(file.data) > IMAGE_LIMIT:
            raise _unreadable(file.path, f"an image of more than {IMAGE_LIMIT:,} bytes")
        sha = self._workspaces.artifacts.put(file.data)
        size = f"{facts.width}x{facts.height} pixels, " if facts.width else ""
        text = f"{file.path}: {facts.media_type}, {size}{len(file.data):,} bytes. The image is attached."
        return ToolResult(text, images=(Image(facts.media_type, sha, len(file.data)),))

    async def _pdf(self, file: FileBytes, args: ReadFile, workspace: str) -> ToolResult:
        first, last = _page_range(args)
        async with self._documents:
            found = await pdf_text(file.path, file.data, first, last, workspace)
        return ToolResult(_pages(file.path, found, last))


# ------------------------------------------------------------------ reading


def _text(space: Workspace, file: OpenFile, args: ReadFile, session: str) -> ToolResult:
    name = file.name
    if looks_binary(file.head):
        raise _unreadable(name, f"a binary file of {file.size:,} bytes")
    if file.size > READ_LIMIT:
        file.stream.seek(0)
        return _streamed(name, file.stream, args)
    data = space.take(file, session).data
    form = decode(data)
    if form is None:
        raise _unreadable(name, f"a binary file of {len(data):,} bytes")
    lines = _lines(form.text)
    ranged = args.start_line is not None or args.max_lines is not None
    if lines and not ranged and len(lines) <= WHOLE_LINES and len(data) <= WHOLE_BYTES:
        return ToolResult(form.bom.decode(form.encoding) + form.text, metadata={"lines": len(lines)})
    start, count = args.start_line or 1, min(args.max_lines or WHOLE_LINES, MOST_LINES)
    return _window(name, lines[start - 1 : start - 1 + count], start, count, len(lines))


def _lines(text: str) -> list[str]:
    lines = text.split("\n")
    if lines[-1] == "":
        lines.pop()
    return [line.removesuffix("\r") for line in lines]


def _streamed(name: str, stream: BinaryIO, args: ReadFile) -> ToolResult:
    """A window of a file too large to hold: lines are counted while reading on, and nothing else is kept."""
    start, count = args.start_line or 1, min(args.max_lines or WHOLE_LINES, MOST_LINES)
    at, kept, line = 1, [], b""
    while at < start + count and (chunk := stream.read(1 << 20)):
        pieces = chunk.split(b"\n")
        for number, piece in enumerate(pieces):
            if number:
                if start <= at < start + count:
                    kept.append(line)
                at, line = at + 1, b""
            if len(line) < WHOLE_BYTES:
                line += piece[: WHOLE_BYTES - len(line)]
    if line and start <= at < start + count:
        kept.append(line)
    texts = [line.decode("utf-8", "replace").removesuffix("\r") for line in kept]
    return _window(name, texts, start, count, None)


def _window(name: str, lines: list[str], start: int, count: int, total: int | None) -> ToolResult:
    """Numbered lines in a `<file>` element that fits the inline limit; `lines` begin at `start`. A line that does
    not fit is left for the next call, or cut when it is the first. `total` is None when it was not counted."""
    body: list[str] = []
    room = WHOLE_BYTES - 500 - 3 * len(name.encode("utf-8", "replace"))
    cut = ""
    for number, text in enumerate(lines, start):
        row = f"{number:>6}│ {text}"
        size = len(row.encode("utf-8", "replace")) + 1
        if size > room:
            if not body:
                body.append(row.encode("utf-8", "replace")[:room].decode("utf-8", "ignore"))
                cut = f"\n[line {number} is cut: it has {len(text):,} characters]"
            break
        body.append(row)
        room -= size
    if not body:
        known = "" if total is None else f' total_lines="{total}"'
        said = "the file is empty" if total == 0 else "no content: the file ends before this line"
        text = f'<file path="{name}"{known} shown_lines="none" truncated="false">\n({said})\n</file>'
        return ToolResult(text, metadata={"lines": 0})
    after = start + len(body)
    more = len(body) < len(lines) or (len(lines) == count if total is None else after <= total)
    attributes = f'path="{name}" total_lines="{"unknown" if total is None else total}"'
    attributes += f' shown_lines="{start}-{after - 1}" truncated="{"true" if more or cut else "false"}"'
    note = cut
    if more:
        attributes += f' next_start_line="{after}"'
        going_on = json.dumps({"path": name, "start_line": after, "max_lines": count}, ensure_ascii=False)
        note += f"\n[more lines follow: read_file {going_on}]"
    text = f"<file {attributes}>\n" + "\n".join(body) + note + "\n</file>"
    return ToolResult(text, metadata={"lines": len(body)})


def _page_range(args: ReadFile) -> tuple[int, int]:
    """First and last page wanted, 0 for the last one there is."""
    if args.pages is None:
        return 1, 0
    first, _, last = args.pages.partition("-")
    try:
        span = int(first), int(last or first)
    except ValueError:
        span = 0, 0
    if not 1 <= span[0] <= span[1]:
        raise ToolError(
            "invalid_input",
            f"pages is {args.pages!r}",
            field="pages",
            expected='"N" or "N-M", from 1',
            received=args.pages,
            fix=NextCall("read_file", {"path": args.path, "pages": "1"}),
        )
    return span


def _pages(name: str, found: PdfText, last: int) -> str:
    through = found.first + len(found.pages) - 1
    parts = [f"[page {found.first + i}]\n{text or '(no text)'}" for i, text in enumerate(found.pages)]
    known = f' total_pages="{found.total}"' if found.total else ""
    more = bool(found.total) and through < min(last or found.total, found.total)
    note = ""
    if more:
        going_on = json.dumps({"path": name, "pages": f"{through + 1}-{found.total}"}, ensure_ascii=False)
        note = f"\n[more pages follow: read_file {going_on}]"
    return f'<file path="{name}" pages="{found.first}-{through}"{known}>\n' + "\n\n".join(parts) + note + "\n</file>"


def _no_pages(args: ReadFile) -> ToolError:
    return ToolError(
        "invalid_input",
        f"{args.path} is not a PDF; pages is for PDFs, start_line and max_lines are for text",
        field="pages",
        expected="no pages",
        received=str(args.pages),
        fix=NextCall("read_file", {"path": args.path}),
    )


def _unreadable(name: str, kind: str) -> ToolError:
    return ToolError(
        "execution_failed",
        f"{name} is {kind}, which cannot be shown as text",
        field="path",
        expected="a text file, a PDF or an image of up to 5 MiB",
        received=kind,
    )


# ------------------------------------------------------------------ listing


def _folder(space: Workspace, path: str) -> str:
    """The resolved folder. Raises ToolError for anything else."""
    resolved, there = space.folder(path)
    if not stat.S_ISDIR(there.st_mode):
        readable = stat.S_ISREG(there.st_mode) and _is_text(space, path)
        raise ToolError(
            "invalid_input",
            f"{path} is a file, not a folder",
            field="path",
            expected="a folder",
            received=path,
            fix=Look("read_file", {"path": resolved}) if readable else None,
        )
    return resolved


def _is_text(space: Workspace, path: str) -> bool:
    with space.open(path) as file:
        return not looks_binary(space.begin(file, _HEAD))


def _rows(space: Workspace, folder: str, found: tuple[DirEntry, ...]) -> list[tuple[bool, str]]:
    return sorted((not _is_dir(space, folder, entry), entry.name) for entry in found)


def _is_dir(space: Workspace, folder: str, entry: DirEntry) -> bool:
    if not entry.is_link:
        return entry.is_dir
    try:
        return stat.S_ISDIR(space.stat(entry.name if folder == "." else f"{folder}/{entry.name}").st_mode)
    except ToolError:
        return False


def _unlisted(args: ListDir, error: Exception) -> ToolError:
    slow = isinstance(error, TimeoutError) and not args.include_ignored
    return ToolError(
        "timeout" if slow else "execution_failed",
        f"cannot list {args.path}: {error}",
        field="path",
        expected="a folder that can be read",
        received=args.path,
        fix=NextCall("list_dir", {"path": args.path, "include_ignored": True}) if slow else None,
    )


# ------------------------------------------------------------------ writing


def _write(space: Workspace, args: WriteFile, session: str) -> ToolResult:
    try:
        data = args.content.encode()
    except UnicodeEncodeError as error:
        clean = args.content.encode("utf-8", "replace").decode()
        raise ToolError(
            "invalid_input",
            f"content contains half a character (a lone surrogate) at offset {error.start}",
            field="content",
            expected="text that encodes as UTF-8",
            received=f"U+{ord(args.content[error.start]):04X}",
            fix=NextCall("write_file", {"path": args.path, "content": clean}),
        )
    if args.path.endswith("/"):
        raise ToolError(
            "invalid_input",
            f"{args.path} names a folder; folders are made when a file is written in them",
            field="path",
            expected="the path of a file",
            received=args.path,
        )
    _refuse_escapes("content", args.content, {"path": args.path, "content": unescaped(args.content)}, "write_file")
    try:
        change = space.write(session, args.path, data)
    except ToolError as error:
        if error.correction is not None:
            error.fix = NextCall("write_file", {"path": error.correction.arguments["path"], "content": args.content})
        raise
    before = _former(space, change)
    word = "Created" if before is None else "Wrote"
    return _changed(change, before, data, f"{word} {change.path}: {len(data):,} bytes.", {"created": before is None})


def _edit(space: Workspace, args: EditFile, session: str) -> ToolResult:
    if not args.search:
        raise _bad_search(args, "search is empty; to write a whole file use write_file", "the text to replace")
    if args.search == args.replace:
        raise _bad_search(args, "search and replace are the same; nothing would change", "a different replace")
    try:
        file = space.read(args.path)
    except ToolError as error:
        if error.correction is not None:
            error.fix = _proven(space, args, error.correction.arguments)
        raise
    space.check_fresh(session, file)
    form = decode(file.data)
    if form is None:
        raise _unreadable(file.path, f"a binary file of {len(file.data):,} bytes")
    if "\\n" not in form.text and "\n" in form.text.strip():
        fixed = {"search": unescaped(args.search) or args.search, "replace": unescaped(args.replace)}
        proven = _proven(space, args, fixed)
        _refuse_escapes("replace", args.replace, {} if proven is None else proven.arguments, "edit_file")
    try:
        done = _replaced(file.path, form, args)
    except ToolError as error:
        search = unescaped(args.search)
        if search:
            error.fix = _proven(space, args, {"search": search, "replace": unescaped(args.replace) or args.replace})
        raise
    data = _encoded(file.path, form, done.text)
    (change, *_) = space.apply(session, (FileEdit(args.path, data, base=file.sha256),))
    times = "1 place" if len(done.lines) == 1 else f"{len(done.lines)} places"
    at = ", ".join(map(str, done.lines[:20])) + (", ..." if len(done.lines) > 20 else "")
    how = "" if done.how == "exact" else f" Found by ignoring {done.how}; check the diff."
    summary = f"Edited {change.path}: replaced {times} (line {at}).{how}"
    return _changed(change, file.data, data, summary, {"replacements": len(done.lines), "matched": done.how})


def _replaced(path: str, form: TextForm, args: EditFile) -> Replacement:
    marked = form.bom and args.search.startswith("\ufeff")
    search, put = (args.search[1:], args.replace.removeprefix("\ufeff")) if marked else (args.search, args.replace)
    return Replacer(path, form.text, search, put).replace(args.replace_all)


def _proven(space: Workspace, args: EditFile, changes: dict[str, Any]) -> NextCall | None:
    """The same edit with other arguments, where that was seen to work."""
    other = replace(args, **changes)
    try:
        file = space.read(other.path)
        form = decode(file.data)
        if form is None or _replaced(file.path, form, other).text == form.text:
            return None
    except ToolError:
        return None
    given = {key: value for key, value in to_builtins(other).items() if value not in (None, False)}
    return NextCall("edit_file", given)


def _refuse_escapes(field: str, text: str, arguments: dict[str, Any], tool: str) -> None:
    """Raise ToolError for a text of one line that holds the escapes of line breaks outside of any quotes."""
    if not unescaped(text):
        return
    raise ToolError(
        "invalid_input",
        f"{field} holds \\n as two characters where line breaks stand in a file, and not one line break: its escapes "
        "were doubled. Nothing was changed. Send line breaks as \\n in the JSON string; where the two characters are "
        "meant, end the text with a line break",
        field=field,
        expected="text with real line breaks",
        received=text[:80],
        fix=NextCall(tool, arguments) if arguments else None,
    )


def _bad_search(args: EditFile, text: str, expected: str) -> ToolError:
    return ToolError(
        "invalid_input",
        text,
        field="search",
        expected=expected,
        received=args.search[:80],
        fix=Look("read_file", {"path": args.path}),
    )


def _encoded(name: str, form: TextForm, text: str) -> bytes:
    try:
        return form.encode(text)
    except UnicodeEncodeError as error:
        char = text[error.start]
        raise ToolError(
            "invalid_input",
            f"{name} is {form.encoding}, which cannot hold U+{ord(char):04X}",
            field="replace",
            expected=f"characters of {form.encoding}",
            received=f"U+{ord(char):04X}",
            fix=Look("read_file", {"path": name}),
        )


def _former(space: Workspace, change: FileChange) -> bytes | None:
    return None if change.before_artifact is None else space.artifacts.get(change.before_artifact)


def _changed(change: FileChange, before: bytes | None, after: bytes, summary: str, facts: dict[str, Any]) -> ToolResult:
    """The result of a write: the diff and a summary for the model, the diff for people, the change for programs."""
    facts = {"path": change.path, "bytes": len(after), "sha256": hashlib.sha256(after).hexdigest(), **facts}
    if change.before == change.after:
        return ToolResult(f"{summary} (no changes)", metadata=facts)
    diff = unified_diff(change.path, before, after)
    return ToolResult(
        f"{diff}\n{summary}", display=(DiffBlock(change.path, diff),), metadata=facts, changes=(change,)
    )  # fmt: skip
