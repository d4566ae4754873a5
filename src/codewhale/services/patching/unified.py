"""Reading unified diffs: git's and plain ones, several files, exact counts, and the slips that models make."""

import re

from codewhale.services.patching.model import FilePatch, Hunk, Kind, Line
from codewhale.services.patching.refusal import malformed

_RANGE = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@(.*)")
_NUMBERED = re.compile(r"@@+ *-\S")
_ESCAPE = re.compile(r'\\([0-7]{3}|[abtnvfr"\\])')
_ESCAPED = {"a": "\a", "b": "\b", "t": "\t", "n": "\n", "v": "\v", "f": "\f", "r": "\r", '"': '"', "\\": "\\"}
_OLD_PREFIXES, _NEW_PREFIXES = ("a/", "c/", "i/", "o/", "w/"), ("b/", "w/", "i/", "c/", "o/")
_NO_FILE = "/dev/null"
_LAST_LINES = ("*** End Patch", "```")


class Reader:
    """A unified diff being read line by line."""

    def __init__(self, lines: list[str]) -> None:
        self._lines = lines
        self._at = 0

    def files(self) -> list[FilePatch]:
        """Every file of the diff, in order. Raises ToolError for what is no diff."""
        found: list[FilePatch] = []
        while self._at < len(self._lines):
            line = self._lines[self._at]
            if line.startswith("diff --git "):
                found.append(self._git_file())
            elif self._at_header():
                old, new = self._names()
                found.append(_file({}, old, new, self._hunks()))
            elif line.startswith("@@"):
                found.append(FilePatch("update", (), tuple(self._hunks())))
            elif line.startswith("Binary files ") or line == "GIT binary patch":
                raise malformed(f"line {self._at + 1}: binary patches are not supported", "a text diff", line)
            else:
                self._at += 1
        return found

    def _at_header(self) -> bool:
        """Whether a file's two header lines stand here."""
        lines, at = self._lines, self._at
        return lines[at].startswith("--- ") and at + 1 < len(lines) and lines[at + 1].startswith("+++ ")

    def _names(self) -> tuple[str, str]:
        old, new = _header_name(self._lines[self._at]), _header_name(self._lines[self._at + 1])
        self._at += 2
        return old, new

    def _git_file(self) -> FilePatch:
        said = {"diff": self._lines[self._at].removeprefix("diff --git ").rstrip("\r")}
        self._at += 1
        while self._at < len(self._lines):
            line = self._lines[self._at].rstrip("\r")
            if self._at_header():
                old, new = self._names()
                return _file(said, old, new, self._hunks())
            if line.startswith(("diff --git ", "@@")):
                break
            if line.startswith("Binary files ") or line == "GIT binary patch":
                raise malformed(f"line {self._at + 1}: binary patches are not supported", "a text diff", line)
            for word in ("old mode", "new mode", "new file mode", "deleted file mode",
                         "rename from", "rename to", "copy from", "copy to"):  # fmt: skip
                if line.startswith(word + " "):
                    said[word] = line[len(word) + 1 :]
            self._at += 1
        old, new = _split_names(said["diff"])
        if "new file mode" in said:
            old = _NO_FILE
        elif "deleted file mode" in said:
            new = _NO_FILE
        return _file(said, old, new, self._hunks())

    def _hunks(self) -> list[Hunk]:
        hunks = []
        while self._at < len(self._lines) and self._lines[self._at].startswith("@@"):
            hunks.append(self._hunk())
            while self._at < len(self._lines) and not self._lines[self._at].strip():
                self._at += 1
        return hunks

    def _hunk(self) -> Hunk:
        number, header = self._at + 1, self._lines[self._at].rstrip("\r")
        match = _RANGE.match(header)
        if match is None and _NUMBERED.match(header):
            raise malformed(f"line {number}: bad hunk header", "@@ -START,COUNT +START,COUNT @@", header)
        self._at += 1
        begin = self._at
        if match is None:
            lines = self._uncounted()
            anchor = header.strip("@").strip()
            return _checked(Hunk(lines, anchors=(anchor,) if anchor.strip(". ") else (), number=number), header)
        old, new = int(match[2] or 1), int(match[4] or 1)
        counted = self._counted(old, new)
        if counted is None:
            self._at = begin
        lines = self._uncounted() if counted is None else counted
        after = old == 0 and counted is not None
        hunk = Hunk(lines, int(match[1]), after, heading=match[5].strip(), recounted=counted is None, number=number)
        return _checked(hunk, header)

    def _counted(self, old: int, new: int) -> tuple[Line, ...] | None:
        """Exactly the declared lines, or None when the counts are not what stands there."""
        lines: list[Line] = []
        while old > 0 or new > 0:
            if self._at >= len(self._lines):
                return None
            text = self._lines[self._at]
            tag = text[:1] if text not in ("", "\r") else " "
            if tag == "\\" and lines:
                lines[-1] = Line(lines[-1].tag, lines[-1].text, False)
                self._at += 1
                continue
            old -= tag in " -"
            new -= tag in " +"
            if tag not in " -+" or old < 0 or new < 0:
                return None
            lines.append(Line(tag, text[1:] if text not in ("", "\r") else text))
            self._at += 1
        if self._at < len(self._lines) and self._lines[self._at].startswith("\\"):
            lines[-1] = Line(lines[-1].tag, lines[-1].text, False)
            self._at += 1
        return tuple(lines) if self._ends_here() else None

    def _ends_here(self) -> bool:
        """Whether no line of a hunk follows; a mail's signature, a blank line and prose are none."""
        if self._at >= len(self._lines) or self._lines[self._at].rstrip("\r") == "-- ":
            return True
        return self._at_header() or self._lines[self._at][:1] not in ("+", "-", " ")

    def _uncounted(self) -> tuple[Line, ...]:
        """Lines up to the next header, whatever the counts say."""
        lines: list[Line] = []
        bare = 0
        while self._at < len(self._lines):
            text = self._lines[self._at]
            if text.startswith(("@@", "diff --git ", *_LAST_LINES)) or self._at_header() or text == "-- ":
                break
            if text.startswith("\\") and lines:
                lines[-1] = Line(lines[-1].tag, lines[-1].text, False)
            elif text in ("", "\r"):
                lines.append(Line(" ", text))
            elif text[0] in " +-":
                lines.append(Line(text[0], text[1:]))
            else:
                raise malformed(
                    f"line {self._at + 1}: a hunk line begins with {text[0]!r}",
                    "a space, + or - before each line",
                    text,
                )
            bare = bare + 1 if text in ("", "\r") else 0
            self._at += 1
        return tuple(lines[: len(lines) - bare])


def _checked(hunk: Hunk, header: str) -> Hunk:
    if all(line.tag == " " for line in hunk.lines):
        raise malformed(f"line {hunk.number}: the hunk changes nothing", "lines that begin with + or -", header)
    return hunk


def _file(said: dict[str, str], old: str, new: str, hunks: list[Hunk]) -> FilePatch:
    """The file of a header. `said` are git's extra lines, `old` and `new` the names as written."""
    mode = said.get("new file mode") or said.get("new mode") or said.get("deleted file mode") or ""
    if mode.startswith(("12", "16")):
        raise malformed(f"{new}: links and submodules are not patched", "a regular file", f"mode {mode}")
    executable = None if not mode or "deleted file mode" in said else mode.endswith("755")
    for verb, kind in (("rename", "update"), ("copy", "copy")):
        if f"{verb} from" in said and f"{verb} to" in said:
            source, target = unquote(said[f"{verb} from"]), unquote(said[f"{verb} to"])
            return FilePatch(kind, (source,), tuple(hunks), target, executable=executable)  # type: ignore[arg-type]
    kind = "create" if old == _NO_FILE else "delete" if new == _NO_FILE else "update"
    checked: Kind = kind  # type: ignore[assignment]
    return FilePatch(checked, file_names(old, new), tuple(hunks), executable=executable)


def file_names(old: str, new: str) -> tuple[str, ...]:
    """The paths a file may be known by, likeliest first, from its two header names."""
    if _NO_FILE in (old, new):
        name = new if old == _NO_FILE else old
        return _distinct(name[2:] if name.startswith(("a/", "b/")) else name, name)
    if old == new:
        return (new,)
    if old.startswith(_OLD_PREFIXES) and new.startswith(_NEW_PREFIXES) and old[:2] != new[:2]:
        return _distinct(new[2:], old[2:])
    return _distinct(new, old, new.partition("/")[2])


def _distinct(*names: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for name in names if name))


def _header_name(line: str) -> str:
    text = line[4:].rstrip("\r")
    if text.startswith('"'):
        return unquote(text)
    return text.partition("\t")[0].rstrip()


def _split_names(text: str) -> tuple[str, str]:
    """The two names of a `diff --git` line without other headers: the same path under two prefixes."""
    if text.startswith('"'):
        end = text.find('" ', 1)
        return unquote(text[: end + 1]), unquote(text[end + 2 :])
    for at, char in enumerate(text):
        if char == " " and text[:at].partition("/")[2] == text[at + 1 :].partition("/")[2] != "":
            return text[:at], text[at + 1 :]
    old, _, new = text.partition(" ")
    return old, new or old


def unquote(text: str) -> str:
    """A name as git quotes it, or as it is when it is not quoted."""
    if not (text.startswith('"') and '"' in text[1:]):
        return text
    body = text[1 : text.rindex('"')]
    raw = _ESCAPE.sub(lambda m: _ESCAPED.get(m[1]) or chr(int(m[1], 8) & 0xFF), body)
    try:
        return raw.encode("latin-1").decode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return raw
