"""Reading the `*** Begin Patch` format: files added, deleted, updated and moved, places named by the lines
that stand there instead of by numbers."""

import re

from codewhale.services.patching.model import FilePatch, Hunk, Line
from codewhale.services.patching.refusal import malformed

OPENERS = ("*** Begin Patch", "*** Add File: ", "*** Update File: ", "*** Delete File: ")
_RANGE = re.compile(r"@@ -(\d+)(?:,\d+)? \+\d+(?:,\d+)? @@(.*)")
_FORMS = "*** Add File: PATH, *** Update File: PATH, *** Delete File: PATH or *** End Patch"


class Reader:
    """A patch in this format being read line by line."""

    def __init__(self, lines: list[str]) -> None:
        self._lines = [line.rstrip("\r") for line in lines]
        self._at = 0

    def files(self) -> list[FilePatch]:
        """Every file, in order. Raises ToolError for anything else."""
        found: list[FilePatch] = []
        if self._lines[0].startswith("*** Begin Patch"):
            self._at = 1
        while self._at < len(self._lines):
            line = self._lines[self._at]
            verb, _, path = line.partition(": ")
            path = path.strip()
            self._at += 1
            if line.startswith("*** End Patch"):
                break
            if not line.strip():
                continue
            if verb == "*** Add File" and path:
                found.append(self._added(path))
            elif verb == "*** Delete File" and path:
                found.append(FilePatch("delete", (path,), whole=True))
            elif verb == "*** Update File" and path:
                found.append(self._updated(path))
            else:
                raise malformed(f"line {self._at}: not a file header", _FORMS, line)
        return found

    def _added(self, path: str) -> FilePatch:
        lines: list[Line] = []
        number = self._at
        while self._at < len(self._lines) and not self._lines[self._at].startswith("*** "):
            text = self._lines[self._at]
            if not text.startswith("+"):
                if not text.strip():
                    self._at += 1
                    continue
                raise malformed(f"line {self._at + 1}: a line of a new file lacks its +", "+ before each line", text)
            lines.append(Line("+", text[1:]))
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

    def _body(self, path: str) -> tuple[list[Line], bool]:
        lines: list[Line] = []
        bare = 0
        while self._at < len(self._lines):
            text = self._lines[self._at]
            if text.startswith("*** End of File"):
                self._at += 1
                return lines, True
            if text.startswith(("@@", "*** ")):
                break
            if text and text[0] not in " +-":
                if text.startswith("\\"):
                    self._at += 1
                    continue
                raise malformed(
                    f"line {self._at + 1}: a hunk line begins with {text[0]!r}", "a space, + or - before each line",
                    text, path,
                )  # fmt: skip
            lines.append(Line(text[:1] or " ", text[1:]))
            bare = 0 if text else bare + 1
            self._at += 1
        return lines[: len(lines) - bare], False
