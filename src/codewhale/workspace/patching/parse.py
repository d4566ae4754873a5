"""Patch text to Patch, the format told by its first line: unified diffs, and the `*** Begin Patch` format, in which the
lines that stand at a place name it instead of numbers."""

import re

from codewhale.workspace.patching.errors import cut_off, malformed
from codewhale.workspace.patching.model import FilePatch, Hunk, Patch, PatchLine
from codewhale.workspace.patching.unified import DiffReader

_BEGIN, _END = "*** Begin Patch", "*** End Patch"
_OPENERS = (_BEGIN, "*** Add File: ", "*** Update File: ", "*** Delete File: ")
_RANGE = re.compile(r"@@ -(\d+)(?:,\d+)? \+\d+(?:,\d+)? @@(.*)")
_FORMS = "*** Add File: PATH, *** Update File: PATH, *** Delete File: PATH or *** End Patch"


class _EnvelopeReader:
    """A patch in this format being read line by line, from line `begin` on. Markers may be indented where nothing
    but a marker can stand, and a patch that is indented as a whole is read without that indentation."""

    def __init__(self, lines: list[str], begin: int = 0) -> None:
        margin = lines[begin][: len(lines[begin]) - len(lines[begin].lstrip())]
        whole = margin and all(line.startswith(margin) or not line.strip() for line in lines[begin:])
        self._lines = [(line.removeprefix(margin) if whole else line).rstrip("\r") for line in lines]
        self._at = begin
        self._open = True

    def files(self) -> list[FilePatch]:
        """Every file, in order. Raises ToolError for anything else, and where no end of the patch stands."""
        patches: list[FilePatch] = []
        while self._at < len(self._lines):
            line = self._lines[self._at].strip()
            verb, _, path = line.partition(": ")
            path = path.strip()
            self._at += 1
            self._open = self._open or line.startswith(_OPENERS)
            if line.startswith(_BEGIN):
                continue
            if line.startswith(_END):
                self._open = False
            elif not line or not self._open:
                continue
            elif verb == "*** Add File" and path:
                patches.append(self._added(path))
            elif verb == "*** Delete File" and path:
                patches.append(FilePatch("delete", (path,), whole=True))
            elif verb == "*** Update File" and path:
                patches.append(self._updated(path))
            else:
                raise malformed(f"line {self._at}: not a file header", _FORMS, line)
        if self._open:
            where = f"; it ends in {patches[-1].names[0]}" if patches else ""
            raise cut_off(f"no line {_END!r} ends it{where}")
        return patches

    def _ends(self, text: str) -> bool:
        """Whether an indented line is the end of the patch: that marker with nothing of the patch behind it."""
        return text.strip() == _END and not any(
            line.startswith(("+", "-", "@@", "*** ")) for line in self._lines[self._at + 1 :]
        )

    def _added(self, path: str) -> FilePatch:
        lines: list[PatchLine] = []
        number = self._at
        while self._at < len(self._lines) and not self._lines[self._at].startswith("*** "):
            text = self._lines[self._at]
            if not text.startswith("+"):
                if not text.strip():
                    self._at += 1
                    continue
                if text.strip().startswith((*_OPENERS, _END)):
                    break
                raise malformed(f"line {self._at + 1}: a line of a new file lacks its +", "+ before each line", text)
            lines.append(PatchLine("+", text[1:]))
            self._at += 1
        hunks = (Hunk(tuple(lines), 0, True, number=number),) if lines else ()
        return FilePatch("create", (path,), hunks, replaces=True)

    def _updated(self, path: str) -> FilePatch:
        move = ""
        if self._at < len(self._lines) and self._lines[self._at].startswith("*** Move to: "):
            move = self._lines[self._at].removeprefix("*** Move to: ").strip()
            self._at += 1
        hunks = []
        while self._at < len(self._lines):
            if not self._lines[self._at].strip():
                self._at += 1
                continue
            if self._lines[self._at].startswith("*** ") and not self._lines[self._at].startswith("*** End of File"):
                break
            if self._ends(self._lines[self._at]):
                break
            hunks.append(self._hunk(path))
        if not hunks and not move:
            raise malformed(f"line {self._at}: {path} is updated without a change", "lines with + and -", "", path)
        return FilePatch("update", (path,), tuple(hunks), move, replaces=bool(move))

    def _hunk(self, path: str) -> Hunk:
        number = self._at + 1
        anchors, start, heading = self._places()
        lines, at_end = self._body(path)
        if all(line.tag == " " for line in lines):
            raise malformed(f"line {number}: the hunk changes nothing", "lines that begin with + or -", "", path)
        return Hunk(tuple(lines), start, False, anchors, heading, at_end, strict=False, number=number)

    def _places(self) -> tuple[tuple[str, ...], int | None, str]:
        """The `@@` lines before a hunk: anchors, or the line number and heading of a numbered one."""
        anchors: list[str] = []
        start, heading = None, ""
        while self._at < len(self._lines) and self._lines[self._at].startswith("@@"):
            line = self._lines[self._at]
            match = _RANGE.match(line)
            if match:
                start, heading = int(match[1]), match[2].strip()
            elif line.strip("@").strip():
                anchors.append(line.removeprefix("@@").removesuffix("@@").strip())
            self._at += 1
        return tuple(anchors), start, heading

    def _body(self, path: str) -> tuple[list[PatchLine], bool]:
        lines: list[PatchLine] = []
        bare = 0
        while self._at < len(self._lines):
            text = self._lines[self._at]
            if text.startswith("*** End of File"):
                self._at += 1
                return lines, True
            if text.startswith(("@@", "*** ")) or self._ends(text):
                break
            if text and text[0] not in " +-":
                if text.startswith("\\"):
                    self._at += 1
                    continue
                raise malformed(
                    f"line {self._at + 1}: a hunk line begins with {text[0]!r}", "a space, + or - before each line",
                    text, path,
                )  # fmt: skip
            lines.append(PatchLine(text[:1] or " ", text[1:]))
            bare = 0 if text else bare + 1
            self._at += 1
        return lines[: len(lines) - bare], False


_WANTED = "a unified diff with @@ hunks, or *** Begin Patch ... *** End Patch"


def parse(text: str) -> Patch:
    """Read a patch. Raises ToolError invalid_input naming the line at fault, that nothing is changed, or that the
    patch was cut off."""
    lines, fenced, notes = _lines(text)
    if not lines:
        raise malformed("the patch is empty", _WANTED, "")
    files: list[FilePatch]
    begin = _envelope_begin(lines)
    if begin is not None:
        files, notes = _EnvelopeReader(lines, begin).files(), ()
    elif lines[0].startswith("*** "):
        raise malformed("this patch format is not known", _WANTED, lines[0])
    else:
        files = DiffReader(lines, fenced).files()
    if not files or not any(_changes(file) for file in files):
        raise malformed("the patch has no hunks", _WANTED, lines[0])
    return Patch(tuple(file for file in files if _changes(file)), notes)


def _envelope_begin(lines: list[str]) -> int | None:
    """The line at which a `*** Begin Patch` patch begins, None for a diff. Prose may stand above it."""
    if lines[0].strip().startswith(_OPENERS):
        return 0
    for number, line in enumerate(lines):
        if line.startswith(("--- ", "diff --git ", "@@")):
            return None
        if line.strip() == _OPENERS[0]:
            return number
    return None


def _changes(file: FilePatch) -> bool:
    return bool(file.hunks or file.move_to or file.kind != "update" or file.executable is not None)


def _lines(text: str) -> tuple[list[str], bool, tuple[str, ...]]:
    """The lines of a patch without a Markdown fence around it, whether a closing fence stood there, and notes: a
    patch whose every line ends in a carriage return was converted as a whole, so those go."""
    lines = text.removeprefix("\ufeff").split("\n")
    notes: list[str] = []
    if lines[-1] == "":
        lines.pop()
    else:
        notes.append("the patch's last line lacks a newline")
    while lines and not lines[0].strip():
        del lines[0]
    fenced = False
    if lines and lines[0].startswith("```"):
        del lines[0]
        while lines and not lines[-1].strip():
            lines.pop()
        fenced = bool(lines) and lines[-1].startswith("```")
        if fenced:
            lines.pop()
            notes = []
    if lines and all(line.endswith("\r") for line in lines):
        lines = [line[:-1] for line in lines]
        notes.append("carriage returns removed from the patch")
    return lines, fenced, tuple(notes)
