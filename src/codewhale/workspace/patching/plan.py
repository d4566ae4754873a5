"""A patch worked out against the files it names, before anything is written: which files, and their new bytes."""

import hashlib
from collections.abc import Sequence
from typing import Protocol

from msgspec import Struct

from codewhale.protocol.errors import ToolError
from codewhale.workspace.files import FileEdit
from codewhale.workspace.patching.errors import malformed, overlapping
from codewhale.workspace.patching.model import FileContent, FilePatch, Patch, PatchLine, file_content
from codewhale.workspace.patching.place import EXACT, FUZZY, INDENTED, LINE_ENDS, HunkPlacer, Placement


class _Block(Struct, frozen=True):
    """Old lines `begin` to `end` (0-based, half-open) become `lines`; hunk `number` says so."""

    begin: int
    end: int
    lines: tuple[PatchLine, ...]
    number: int
    exact: bool


def build(path: str, content: FileContent, finder: HunkPlacer, placed: Sequence[Placement]) -> bytes:
    """The file with every hunk in place. Raises ToolError where two hunks change the same line."""
    blocks: list[_Block] = []
    for number, place in enumerate(placed, 1):
        blocks += _blocks(content, finder, place, number)
    blocks.sort(key=lambda block: (block.begin, block.end, block.number))
    lines: list[str] = []
    at, ended, previous = 0, True, 0
    for block in blocks:
        if block.begin < at:
            raise overlapping(path, f"hunk {previous}", f"hunk {block.number}", block.begin + 1)
        if block.begin > at:
            lines += content.lines[at : block.begin]
            ended = content.ended or block.begin < len(content.lines)
        lines += [line.text for line in block.lines]
        if block.lines:
            ended = block.lines[-1].ended if block.exact else content.ended
        at, previous = block.end, block.number
    if at < len(content.lines):
        lines += content.lines[at:]
        ended = content.ended
    elif not blocks or (not blocks[-1].lines and lines):
        ended = True
    return _encode(path, content, lines, ended)


def _blocks(content: FileContent, finder: HunkPlacer, place: Placement, number: int) -> list[_Block]:
    hunk = place.hunk
    exact = hunk.strict and place.rung == EXACT and (bool(hunk.old) or not content.lines)
    added = iter(_added(content, finder, place, exact))
    blocks: list[_Block] = []
    at = begin = place.at
    fresh: list[PatchLine] = []
    for line in (*hunk.lines, PatchLine(" ", "")):
        if line.tag == "+":
            fresh.append(next(added))
        elif line.tag == "-":
            at += 1
        else:
            if fresh or at > begin:
                blocks.append(_Block(begin, at, tuple(fresh), number, exact))
            at, fresh = at + 1, []
            begin = at
    return blocks


def _added(content: FileContent, finder: HunkPlacer, place: Placement, exact: bool) -> list[PatchLine]:
    """The new lines of a hunk as they are to be written."""
    hunk = place.hunk
    fresh = [line for line in hunk.lines if line.tag == "+"]
    if exact or not fresh:
        return fresh
    texts = [line.text.rstrip("\r") for line in fresh]
    if place.rung == INDENTED:
        texts = [text.rstrip("\r") for text in finder.indentation(hunk, place.at) or texts]
    present = content.lines[place.at : place.at + len(hunk.old)]
    crlf = sum(line.endswith("\r") for line in present) * 2 > len(present) if present else content.crlf
    if not content.lines:
        texts, crlf = [line.text for line in fresh], False
    return [PatchLine("+", text + "\r" if crlf else text, line.ended) for text, line in zip(texts, fresh, strict=True)]


def _encode(path: str, content: FileContent, lines: list[str], ended: bool) -> bytes:
    try:
        return content.encode(lines, ended)
    except UnicodeEncodeError as error:
        char = error.object[error.start]
        raise ToolError(
            "invalid_input",
            f"{path} is {content.encoding}, which has no {char!r} (U+{ord(char):04X})",
            field="patch",
            expected=f"characters of {content.encoding}",
            received=repr(char),
        )


MAX_FUZZ = 3
_AS_WRITTEN = "path as written, nothing stripped (-p0)"


class PatchOptions(Struct, frozen=True, omit_defaults=True):
    """How to apply: `path` overrides the name in a patch of one file; up to `fuzz` context lines may be left
    out at each side; `create_if_missing` takes a missing file for an empty one."""

    path: str | None = None
    fuzz: int = MAX_FUZZ
    create_if_missing: bool = False
    dry_run: bool = False


class FileSummary(Struct, frozen=True, omit_defaults=True):
    """What happened to one file; `matched` says for each hunk how its place was found, `note` how its path was."""

    path: str
    hunks: int
    hunks_applied: int
    fuzz_used: int
    hunks_with_fuzz: int
    created: bool
    deleted: bool
    moved_from: str
    matched: tuple[str, ...]
    note: str = ""


class PatchPlan(Struct, frozen=True):
    """Every file's outcome, what it was `before`, and what to report of it; `notes` are those of the patch."""

    edits: tuple[FileEdit, ...]
    before: dict[str, bytes | None]
    summaries: tuple[FileSummary, ...]
    notes: tuple[str, ...] = ()


class FileSource(Protocol):
    """What working out a patch needs of a workspace; `load` gives None for a missing file."""

    def relative(self, path: str) -> str: ...
    def load(self, path: str) -> bytes | None: ...
    def missing(self, path: str) -> ToolError: ...
    def check_name(self, path: str) -> None: ...


class PatchFiles:
    """The files as the patch has left them so far, over those on disk."""

    def __init__(self, source: FileSource) -> None:
        self.source = source
        self.original: dict[str, bytes | None] = {}
        self.now: dict[str, bytes | None] = {}
        self.moved: dict[str, str] = {}
        self.executable: dict[str, bool] = {}

    def get(self, path: str) -> bytes | None:
        if path not in self.now:
            self.now[path] = self.original[path] = self.source.load(path)
        return self.now[path]

    def edits(self) -> tuple[FileEdit, ...]:
        """The files that differ from those on disk, in the order they were first named."""
        return tuple(
            FileEdit(path, data, self.moved.get(path, ""), self.executable.get(path), _sha256(self.original[path]))
            for path, data in self.now.items()
            if data != self.original[path] or path in self.executable
        )


def _sha256(data: bytes | None) -> str:
    return "" if data is None else hashlib.sha256(data).hexdigest()


def make_plan(patch: Patch, files: PatchFiles, options: PatchOptions, text: str) -> PatchPlan:
    """Work out every file. Raises ToolError at the first that cannot be done."""
    if not 0 <= options.fuzz <= MAX_FUZZ:
        raise _bad_fuzz(options.fuzz)
    if options.path is not None and len(patch.files) > 1:
        names = ", ".join(file.names[0] if file.names else "?" for file in patch.files)
        raise malformed(f"path is given, and the patch has {len(patch.files)} files ({names})", "no path", options.path)
    summaries = [_File(file, files, options, text).apply() for file in patch.files]
    return PatchPlan(files.edits(), files.original, tuple(summaries), patch.notes)


class _File:
    def __init__(self, patch: FilePatch, files: PatchFiles, options: PatchOptions, text: str) -> None:
        self._patch = patch
        self._files = files
        self._options = options
        self._text = text
        self._target = files.source.relative(patch.move_to) if patch.move_to else ""
        self._path = self._named()

    def apply(self) -> FileSummary:
        patch, path, target = self._patch, self._path, self._target
        before = self._files.get(path)
        if patch.kind == "create":
            self._refuse_existing(path, before)
            before = None if patch.replaces else before
        elif before is None and not (self._options.create_if_missing and patch.kind == "update" and not target):
            raise self._files.source.missing(path)
        if before is None and (patch.replaces or patch.kind == "update"):  # named as it is, with no prefix to strip
            self._files.source.check_name(target or path)
        content = file_content(before or b"", self._text)
        finder = HunkPlacer(path, content, self._options.fuzz)
        placed = finder.place(patch.hunks)
        data = build(path, content, finder, placed) if placed or before is None else before
        if patch.kind == "delete":
            self._delete(data)
        elif target:
            self._move(data)
        else:
            self._files.now[path] = data
        if patch.executable is not None and patch.kind != "delete":
            self._files.executable[target or path] = patch.executable
        return self._summary(placed, before is None)

    def _named(self) -> str:
        """The path meant: the override, or the first of the names that exists, or the first."""
        if self._options.path is not None:
            return self._files.source.relative(self._options.path)
        if not self._patch.names:
            raise malformed("the hunks have no file header and no path is given", "--- a/PATH and +++ b/PATH", "@@")
        names = [self._files.source.relative(name) for name in self._patch.names]
        if self._patch.kind == "create" or len(names) == 1:
            return names[0]
        return next((name for name in names if self._files.get(name) is not None), names[0])

    def _move(self, data: bytes) -> None:
        path, target = self._path, self._target
        existing = self._files.get(target)
        self._refuse_existing(target, existing if target != path else None)
        self._files.now[target] = data
        if self._patch.kind != "copy" and target != path:
            self._files.now[path] = None
            self._files.moved[target] = self._files.moved.get(path, path)

    def _delete(self, data: bytes) -> None:
        if data and not self._patch.whole:
            raise ToolError(
                "execution_failed",
                f"{self._path}: the patch deletes the file but leaves {len(data):,} bytes of it",
                field="patch",
                expected="every line of the file as removed",
                received=f"{len(data):,} bytes left",
            )
        self._files.now[self._path] = None

    def _refuse_existing(self, path: str, before: bytes | None) -> None:
        if before is None or self._patch.replaces:
            return
        raise ToolError(
            "execution_failed",
            f"{path} exists already, and the patch creates it",
            field="patch",
            expected="a path that does not exist, or an update of the file",
            received=path,
        )

    def _summary(self, placed: list[Placement], new: bool) -> FileSummary:
        deleted = self._patch.kind == "delete"
        patch = self._patch
        loosened = [place for place in placed if place.rung > LINE_ENDS]
        return FileSummary(
            self._target or self._path,
            len(self._patch.hunks),
            len(placed),
            sum(place.dropped for place in loosened if place.rung == FUZZY),
            len(loosened),
            (new or self._patch.kind == "copy") and not deleted,
            deleted,
            self._path if self._target and self._patch.kind != "copy" else "",
            tuple(place.how for place in placed),
            "; ".join(filter(None, (patch.note, _AS_WRITTEN if self._path in patch.bare else ""))),
        )


def _bad_fuzz(fuzz: int) -> ToolError:
    return ToolError(
        "invalid_input",
        f"fuzz is {fuzz}; it counts context lines that may be left out",
        field="fuzz",
        expected=f"0 to {MAX_FUZZ}",
        received=str(fuzz),
    )
