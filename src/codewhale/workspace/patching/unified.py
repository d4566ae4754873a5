"""Reading unified diffs: git's and plain ones, several files, exact counts, and the slips that models make."""

import re

from codewhale.protocol.errors import ToolError
from codewhale.workspace.patching.errors import cut_off, malformed
from codewhale.workspace.patching.model import FilePatch, Hunk, Kind, PatchLine

_RANGE = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@(.*)")
_NUMBERED = re.compile(r"@@+ *-\S")
_ESCAPE = re.compile(r'\\([0-7]{3}|[abtnvfr"\\])')
_ESCAPED = {"a": "\a", "b": "\b", "t": "\t", "n": "\n", "v": "\v", "f": "\f", "r": "\r", '"': '"', "\\": "\\"}
_OLD_PREFIXES, _NEW_PREFIXES = ("a/", "c/", "i/", "o/", "w/"), ("b/", "w/", "i/", "c/", "o/")
_NO_FILE = "/dev/null"
_EMPTY_BLOB = "e69de29"
_LAST_LINES = ("*** End Patch", "```")
_OTHER_FORMAT = ("*** Begin Patch", "*** Update File: ", "*** Add File: ", "*** Delete File: ")
_EXTRA = ("old mode", "new mode", "new file mode", "deleted file mode", "rename from", "rename to", "copy from",
          "copy to", "similarity index", "index")  # fmt: skip
# A time stamp as git recognises it behind a name: a tab, or blanks, before a date with time and zone.
_STAMP = re.compile(
    r"(?:\t|\s* )((?:\d\d)?\d\d-\d\d-\d\d) (\d\d):(\d\d):(\d\d(?:\.\d+)?) ([-+])(\d\d):?(\d\d)$", re.ASCII
)
_EPOCH_HOURS = {"1969-12-31": 24, "1970-01-01": 0}


class DiffReader:
    """A unified diff being read line by line. `fenced` says that a closing Markdown fence ended it, so that it
    cannot have been cut off."""

    def __init__(self, lines: list[str], fenced: bool = False) -> None:
        self._lines = lines
        self._at = 0
        self._fenced = fenced

    def files(self) -> list[FilePatch]:
        """Every file of the diff, in order. Raises ToolError for what is no diff."""
        patches: list[FilePatch] = []
        while self._at < len(self._lines):
            line = self._lines[self._at]
            if line.startswith("diff --git "):
                patches.append(self._git_file())
            elif self._at_header():
                patches.append(self._plain_file())
            elif line.startswith(_OTHER_FORMAT):
                raise malformed(f"line {self._at + 1}: another patch format begins inside a diff", "one format", line)
            elif line.startswith("@@"):
                patches.append(FilePatch("update", (), tuple(self._hunks())))
            else:
                self._refuse_line(line.rstrip())
                self._at += 1
        return patches

    def _at_header(self) -> bool:
        """Whether a file's two header lines stand here."""
        lines, at = self._lines, self._at
        return lines[at].startswith("--- ") and at + 1 < len(lines) and lines[at + 1].startswith("+++ ")

    def _last(self) -> bool:
        return not any(line.strip() for line in self._lines[self._at + 1 :])

    def _refuse_line(self, line: str) -> None:
        if line.startswith("Binary files ") or line == "GIT binary patch":
            raise malformed(f"line {self._at + 1}: binary patches are not supported", "a text diff", line)
        if line.startswith("--- ") and self._last():
            raise cut_off(f"line {self._at + 1}: {line} begins a file, and nothing follows")

    def _plain_file(self, extra: dict[str, str] | None = None) -> FilePatch:
        """The file of a `---` and a `+++` line, with its hunks; `extra` are the lines of git's header above."""
        lines, at = self._lines, self._at
        old, new = _header_name(lines[at]), _header_name(lines[at + 1])
        self._at += 2
        hunks = self._hunks()
        if not hunks:
            raise self._incomplete(f"{new if new != _NO_FILE else old} has a header and no hunks", lines[at + 1])
        return _file(extra or {}, old, new, hunks, _absent_side(lines[at], lines[at + 1], hunks))

    def _incomplete(self, text: str, received: str) -> ToolError:
        """The error for a file section that lacks something: cut off where it is the end of the patch."""
        if not any(line.strip() for line in self._lines[self._at :]):
            return cut_off(text)
        return malformed(f"line {self._at}: {text}", "@@ hunks below its header", received)

    def _git_file(self) -> FilePatch:
        extra = {"diff": self._lines[self._at].removeprefix("diff --git ").rstrip("\r")}
        self._at += 1
        while self._at < len(self._lines):
            line = self._lines[self._at].rstrip("\r")
            if self._at_header():
                return self._plain_file(extra)
            if line.startswith(("diff --git ", "@@")):
                break
            self._refuse_line(line)
            for word in _EXTRA:
                if line.startswith(word + " "):
                    extra[word] = line[len(word) + 1 :]
            self._at += 1
        self._whole(extra)
        old, new = _split_names(extra["diff"])
        if "new file mode" in extra:
            old = _NO_FILE
        elif "deleted file mode" in extra:
            new = _NO_FILE
        return _file(extra, old, new, self._hunks())

    def _whole(self, extra: dict[str, str]) -> None:
        """Refuse a section without hunks whose header says that there were some: git names both contents
        wherever they differ, and a section that ends the patch may lack the line that would say so."""
        if self._at < len(self._lines) and self._lines[self._at].startswith("@@"):
            return
        name, ends = extra["diff"], not any(line.strip() for line in self._lines[self._at :])
        before, _, after = extra.get("index", "").partition(" ")[0].partition("..")
        created = "new file mode" in extra
        differs = before != after and not (created and after.startswith(_EMPTY_BLOB))
        emptied = "deleted file mode" in extra and before.startswith(_EMPTY_BLOB)
        moved = extra.get("similarity index", "100%") != "100%"
        half = ("rename from" in extra) != ("rename to" in extra) or ("copy from" in extra) != ("copy to" in extra)
        half = half or ("similarity index" in extra and not {"rename to", "copy to"} & extra.keys())
        modes = ("old mode" in extra) != ("new mode" in extra)
        unnamed = "index" not in extra and (created or "deleted file mode" in extra)
        nothing = len(extra) == 1 or (unnamed and ends)
        if (differs and not emptied) or moved or half or modes or nothing:
            raise self._incomplete(f"the section of {name} ends before its changes", f"diff --git {name}")

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
        if counted is None:
            self._refuse_short(lines, header, (old, new))
        after = old == 0 and counted is not None
        hunk = Hunk(lines, int(match[1]), after, heading=match[5].strip(), recounted=counted is None, number=number)
        return _checked(hunk, header)

    def _refuse_short(self, lines: tuple[PatchLine, ...], header: str, declared: tuple[int, int]) -> None:
        """Refuse the last hunk of a patch when it has fewer lines than it declares: the rest was cut off."""
        if self._fenced or any(line.strip() for line in self._lines[self._at :]):
            return
        old, new = sum(line.tag != "+" for line in lines), sum(line.tag != "-" for line in lines)
        if old <= declared[0] and new <= declared[1]:
            raise cut_off(
                f"its last hunk, {header}, declares {declared[0]} old and {declared[1]} new lines, and {old} and {new} "
                "were sent. If that is the whole hunk, correct the counts in its header"
            )

    def _counted(self, old: int, new: int) -> tuple[PatchLine, ...] | None:
        """Exactly the declared lines, or None when the counts are not what stands there."""
        lines: list[PatchLine] = []
        while old > 0 or new > 0:
            if self._at >= len(self._lines):
                return None
            text = self._lines[self._at]
            tag = text[:1] if text not in ("", "\r") else " "
            if tag == "\\" and lines:
                lines[-1] = PatchLine(lines[-1].tag, lines[-1].text, False)
                self._at += 1
                continue
            old -= tag in " -"
            new -= tag in " +"
            if tag not in " -+" or old < 0 or new < 0:
                return None
            lines.append(PatchLine(tag, text[1:] if text not in ("", "\r") else text))
            self._at += 1
        if self._at < len(self._lines) and self._lines[self._at].startswith("\\"):
            lines[-1] = PatchLine(lines[-1].tag, lines[-1].text, False)
            self._at += 1
        return tuple(lines) if self._ends_here() else None

    def _ends_here(self) -> bool:
        """Whether no line of a hunk follows; a mail's signature, a blank line and prose are none."""
        if self._at >= len(self._lines) or self._lines[self._at].rstrip("\r") == "-- ":
            return True
        if self._at_header() or (self._lines[self._at].startswith("--- ") and self._last()):
            return True
        return self._lines[self._at][:1] not in ("+", "-", " ")

    def _uncounted(self) -> tuple[PatchLine, ...]:
        """Lines up to the next header, whatever the counts say."""
        lines: list[PatchLine] = []
        bare = 0
        while self._at < len(self._lines):
            text = self._lines[self._at]
            if text.startswith(("@@", "diff --git ", *_LAST_LINES)) or self._at_header() or text == "-- ":
                break
            if text.startswith("\\") and lines:
                lines[-1] = PatchLine(lines[-1].tag, lines[-1].text, False)
            elif text in ("", "\r"):
                lines.append(PatchLine(" ", text))
            elif text[0] in " +-":
                lines.append(PatchLine(text[0], text[1:]))
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


def _file(extra: dict[str, str], old: str, new: str, hunks: list[Hunk], absent: str = "") -> FilePatch:
    """The file of a header. `extra` are git's lines, `old` and `new` the names as written; `absent` says which
    side a time stamp declares not to exist."""
    mode = extra.get("new file mode") or extra.get("new mode") or extra.get("deleted file mode") or ""
    if mode.startswith(("12", "16")):
        raise malformed(f"{new}: links and submodules are not patched", "a regular file", f"mode {mode}")
    executable = None if not mode or "deleted file mode" in extra else mode.endswith("755")
    for verb, kind in (("rename", "update"), ("copy", "copy")):
        if f"{verb} from" in extra and f"{verb} to" in extra:
            source, target = unquote(extra[f"{verb} from"]), unquote(extra[f"{verb} to"])
            return FilePatch(kind, (source,), tuple(hunks), target, executable=executable)  # type: ignore[arg-type]
    kind = "create" if old == _NO_FILE or absent == "old" else "delete" if new == _NO_FILE or absent == "new" else ""
    checked: Kind = kind or "update"  # type: ignore[assignment]
    names = file_names(old, new)
    bare = tuple(name for name in names if name in (old, new))
    note = f"{kind}d by its time stamp" if absent else ""
    return FilePatch(checked, names, tuple(hunks), executable=executable, bare=bare, note=note)


def _absent_side(old: str, new: str, hunks: list[Hunk]) -> str:
    """ "old" or "new" where that header line's time stamp is the epoch and its hunk has no lines on that side:
    `diff -N` writes so of a file that does not exist."""
    if _is_epoch(old) and not any(hunk.old for hunk in hunks):
        return "old"
    return "new" if _is_epoch(new) and not any(hunk.new for hunk in hunks) else ""


def _is_epoch(line: str) -> bool:
    stamp = _STAMP.search(line.rstrip("\r"))
    if stamp is None or stamp[1] not in _EPOCH_HOURS or float(stamp[4]) != 0:
        return False
    zone = (int(stamp[6]) * 60 + int(stamp[7])) * (-1 if stamp[5] == "-" else 1)
    return int(stamp[2]) * 60 + int(stamp[3]) - zone == _EPOCH_HOURS[stamp[1]] * 60


def file_names(old: str, new: str) -> tuple[str, ...]:
    """The paths a file may be known by, likeliest first, from its two header names."""
    if _NO_FILE in (old, new):
        name = new if old == _NO_FILE else old
        return _distinct(name[2:] if name.startswith(("a/", "b/")) else name, name)
    if old == new:
        return (new,)
    inner = new.partition("/")[2]
    if old.startswith(_OLD_PREFIXES) and new.startswith(_NEW_PREFIXES) and old[:2] != new[:2]:
        return _distinct(new[2:], old[2:])
    if inner and inner == old.partition("/")[2]:
        return _distinct(inner, new, old)
    return _distinct(new, old, inner)


def _distinct(*names: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for name in names if name))


def _header_name(line: str) -> str:
    text = line[4:].rstrip("\r")
    if text.startswith('"'):
        return unquote(text)
    stamp = _STAMP.search(text)
    return text[: stamp.start()] if stamp else text.partition("\t")[0].rstrip()


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
