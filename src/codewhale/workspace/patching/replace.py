"""One text in a file replaced by another.

The text searched for is found exactly, or but for line ends, trailing blanks, indentation that is off evenly, or
typographic punctuation; what is less than exact must stand once. A miss shows the nearest lines."""

from bisect import bisect_left
from collections.abc import Callable, Sequence
from re import MULTILINE
from re import compile as pattern

from msgspec import Struct

from codewhale.lib.textform import line_end, with_line_end
from codewhale.protocol.errors import Look, NextCall, ToolError
from codewhale.workspace.patching.errors import clip, closest
from codewhale.workspace.patching.model import Hunk, PatchLine
from codewhale.workspace.patching.place import indent_map, reindent

_GUTTER = pattern(r"^ *\d+│ ?", MULTILINE)
_PLAIN = str.maketrans(
    "\u2018\u2019\u201a\u201b\u201c\u201d\u201e\u201f\u2032\u2033\u2010\u2011\u2012\u2013\u2014\u2015\u2212"
    "\u00a0\u2002\u2003\u2009\u202f\u3000",
    "''''\"\"\"\"'\"" + "-" * 7 + " " * 6,
)
_WORD = pattern(r"\w{2,}")
_LONGEST = 2000
_SHOWN = 12
_MOST_SIMILAR = 4000


class Replacement(Struct, frozen=True):
    """The new text, how the old was found, and the lines (from 1) where it stood."""

    text: str
    how: str
    lines: tuple[int, ...]


class _Span(Struct, frozen=True):
    """A match: flat-text offsets, and the text to put there."""

    start: int
    end: int
    put: str


class Replacer:
    def __init__(self, path: str, text: str, search: str, put: str) -> None:
        self._path = path
        self._text = text
        self._flat = with_line_end(text, "\n")
        self._returns = _returns(text) if len(self._flat) != len(text) else []
        self._search, self._put = _without_gutter(with_line_end(search, "\n"), with_line_end(put, "\n"))
        self._raw = (search, put)

    def replace(self, every: bool) -> Replacement:
        """Replace the one match, or `every` one. Raises ToolError for none, and for several unless `every`."""
        search, put = self._raw
        if "\r" in search and search in self._text:
            at = _all(self._text, search)
            self._refuse_many(len(at), [self._text.count("\n", 0, i) + 1 for i in at], every, "exact")
            lines = tuple(self._text.count("\n", 0, i) + 1 for i in at)
            return Replacement(self._text.replace(search, put), "exact", lines)
        ladder: tuple[tuple[str, Callable[[], list[_Span]]], ...] = (
            ("exact", self._exact),
            ("trailing whitespace", lambda: self._by_lines(str.rstrip)),
            ("indentation", lambda: self._by_lines(str.strip)),
            ("punctuation", self._plain),
        )
        for how, find in ladder:
            spans = find()
            if spans:
                lines = tuple(self._flat.count("\n", 0, span.start) + 1 for span in spans)
                self._refuse_many(len(spans), lines, every and how == "exact", how)
                return Replacement(self._with(spans), self._named(how, spans), lines)
        raise self._miss()

    def _exact(self) -> list[_Span]:
        return [_Span(i, i + len(self._search), self._put) for i in _all(self._flat, self._search)]

    def _plain(self) -> list[_Span]:
        starts = _all(self._flat.translate(_PLAIN), self._search.translate(_PLAIN))
        return [_Span(i, i + len(self._search), self._put) for i in starts]

    def _by_lines(self, form: Callable[[str], str]) -> list[_Span]:
        """Whole lines that agree under `form`."""
        wanted = self._search.split("\n")
        whole = wanted[-1] == "" and len(wanted) > 1
        if whole:
            wanted.pop()
        formed = [form(line) for line in wanted]
        if not any(formed):
            return []
        lines = self._flat.split("\n")
        formed_lines = [form(line) for line in lines]
        anchor = max(range(len(formed)), key=lambda i: len(formed[i]))
        starts = _starts(lines)
        spans = []
        for at in (i - anchor for i, line in enumerate(formed_lines) if line == formed[anchor]):
            if at < 0 or formed_lines[at : at + len(formed)] != formed:
                continue
            put = self._put if form is str.rstrip else self._indented(wanted, lines[at : at + len(wanted)])
            if put is not None:
                last = at + len(formed) - 1
                end = starts[last] + len(lines[last])
                if whole and end == len(self._flat):
                    put = put.removesuffix("\n")
                spans.append(_Span(starts[at], min(end + whole, len(self._flat)), put))
        return spans

    def _indented(self, wanted: Sequence[str], present: Sequence[str]) -> str | None:
        mapping = indent_map(wanted, present)
        moved = None if mapping is None else reindent(mapping, self._put.split("\n"))
        return None if moved is None else "\n".join(moved)

    def _with(self, spans: Sequence[_Span]) -> str:
        """The text with every span replaced, each in the line ends that stand there."""
        out, at = [], 0
        for span in spans:
            start, end = self._place(span.start), self._place(span.end)
            near = self._text[start:end]
            if "\n" not in near:
                near = self._text[end : self._text.find("\n", end) + 1]
            out += [self._text[at:start], with_line_end(span.put, line_end(near or self._text))]
            at = end
        return "".join([*out, self._text[at:]])

    def _named(self, how: str, spans: Sequence[_Span]) -> str:
        if how == "exact" and any(
            "\r\n" in self._text[self._place(span.start) : self._place(span.end)] for span in spans
        ):
            return "line ends"
        return how

    def _place(self, flat: int) -> int:
        """An offset in the flat text as one in the text."""
        return flat + bisect_left(self._returns, flat)

    def _refuse_many(self, count: int, lines: Sequence[int], every: bool, how: str) -> None:
        if count < 2 or every:
            return
        shown = ", ".join(map(str, lines[:20])) + (f" and {count - 20} more" if count > 20 else "")
        raise ToolError(
            "execution_failed",
            f"search fits {count} places in {self._path} ({how}): lines {shown}. Nothing was changed. Add lines "
            "around it until it fits one" + (", or set replace_all" if how == "exact" else ""),
            field="search",
            expected="text that occurs once in the file",
            received=f"{count} matches",
            fix=Look("read_file", {"path": self._path, "start_line": max(1, lines[0] - 5), "max_lines": 40}),
        )

    def _miss(self) -> ToolError:
        wanted = self._search.strip("\n").split("\n")
        lines = self._flat.split("\n")
        start, hits = self._nearest(wanted, lines)
        window = lines[start : start + len(wanted)]
        text = f"The search text is not in {self._path}."
        if hits:
            text += f" The nearest lines are (· is a space, → a tab):\n{_shown(window, start)}"
            differs = [i for i, (a, b) in enumerate(zip(wanted, window, strict=False)) if a != b]
            if differs:
                text += f"\nLine {start + differs[0] + 1} differs; search has: {_visible(wanted[differs[0]])}"
        else:
            text += f" No line of it is like one of the file's. It begins: {_visible(wanted[0])}"
        return ToolError(
            "execution_failed",
            text,
            field="search",
            expected=f"text copied from {self._path} as it is now",
            received=clip(wanted[0]),
            fix=self._retry(wanted, window, start),
        )

    def _nearest(self, wanted: Sequence[str], lines: Sequence[str]) -> tuple[int, int]:
        start, hits = closest(Hunk(tuple(PatchLine(" ", line) for line in wanted)), lines)
        if hits:
            return start, hits
        import difflib

        longest = max(wanted, key=len)
        near = difflib.get_close_matches(longest.strip(), [line.strip() for line in lines[:_MOST_SIMILAR]], 1, 0.6)
        at = next((i for i, line in enumerate(lines) if near and line.strip() == near[0]), _kindred(longest, lines))
        return (0, 0) if at is None else (max(0, at - wanted.index(longest)), 1)

    def _retry(self, wanted: Sequence[str], window: Sequence[str], start: int) -> NextCall | Look:
        """The same edit with the file's own lines where nothing but blanks differs, else a look at the place."""
        present = "\n".join(window)
        same = "".join("".join(wanted).split()) == "".join(present.split())
        if same and present != self._put and present.strip() and self._flat.count(present) == 1 and len(present) < 4096:
            return NextCall("edit_file", {"path": self._path, "search": present, "replace": self._put})
        return Look(
            "read_file", {"path": self._path, "start_line": max(1, start - 4), "max_lines": min(len(wanted) + 20, 200)}
        )


def _kindred(wanted: str, lines: Sequence[str]) -> int | None:
    words = set(_WORD.findall(wanted.casefold()))
    best, at = 0.0, None
    for number, line in enumerate(lines):
        others = set(_WORD.findall(line[:_LONGEST].casefold()))
        shared = len(words & others)
        alike = shared / min(len(words), len(others)) if shared else 0.0
        if alike >= 0.5 and shared + alike > best:
            best, at = shared + alike, number
    return at


def _all(text: str, search: str) -> list[int]:
    offsets, at = [], text.find(search)
    while at >= 0:
        offsets.append(at)
        at = text.find(search, at + len(search))
    return offsets


def _starts(lines: Sequence[str]) -> list[int]:
    starts, at = [], 0
    for line in lines:
        starts.append(at)
        at += len(line) + 1
    return starts


def _returns(text: str) -> list[int]:
    """Where, in the flat text, the newlines stand that had a carriage return."""
    return [at - i for i, at in enumerate(_all(text, "\r\n"))]


def _without_gutter(search: str, put: str) -> tuple[str, str]:
    """Both texts without the line numbers that reading a file shows, when every searched line carries one."""
    lines = search.removesuffix("\n").split("\n")
    if not all(_GUTTER.match(line) for line in lines):
        return search, put
    return _GUTTER.sub("", search), _GUTTER.sub("", put)


def _shown(window: Sequence[str], start: int) -> str:
    rows = [f"{start + i + 1:>6}│ {_visible(line)}" for i, line in enumerate(window[:_SHOWN])]
    return "\n".join(rows + ([f"       ... {len(window) - _SHOWN} more"] if len(window) > _SHOWN else []))


def _visible(line: str) -> str:
    """A line with the blanks at its ends made visible."""
    bare = line.strip(" \t")
    if not bare:
        return clip(line).replace(" ", "·").replace("\t", "→")
    at = line.index(bare)
    ends = [part.replace(" ", "·").replace("\t", "→") for part in (line[:at], line[at + len(bare) :])]
    return clip(ends[0] + bare + ends[1])
