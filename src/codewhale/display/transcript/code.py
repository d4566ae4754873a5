"""Code and diffs as coloured lines. Bounded: known languages, short lines, small pieces; a language whose lexer turns
out to be slow is drawn plain from then on."""

import re
import time
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from codewhale.display.text import Span, StyledLine, ends, fit, fold_hard, one_row

MOST_CHARS = 16_384
MOST_LINE = 1_000
MOST_REMEMBERED = 2_000
SLOW_SECONDS = 0.25
PLAIN = "code"
# Languages that are coloured, by the words that fences and file endings name them with.
_LANGUAGES = {
    "python": "py pyi python3 pycon", "javascript": "js mjs cjs jsx", "typescript": "ts tsx mts",
    "bash": "sh zsh shell", "console": "shell-session", "json": "jsonc json5", "yaml": "yml", "toml": "",
    "ini": "cfg", "html": "htm", "xml": "svg", "css": "", "scss": "", "sql": "", "c": "h",
    "cpp": "c++ cc hpp cxx hh", "csharp": "cs c#", "java": "", "kotlin": "kt", "go": "golang", "rust": "rs",
    "ruby": "rb", "php": "", "swift": "", "scala": "", "lua": "", "perl": "pl", "r": "", "haskell": "hs",
    "elixir": "ex exs", "erlang": "erl", "clojure": "clj", "docker": "dockerfile", "make": "makefile mk",
    "cmake": "", "diff": "patch", "markdown": "md", "nix": "", "zig": "", "dart": "", "julia": "jl",
    "graphql": "gql", "protobuf": "proto", "terraform": "tf", "powershell": "ps1", "vue": "", "latex": "tex",
}  # fmt: skip
_NAMES = {word: name for name, words in _LANGUAGES.items() for word in (name, *words.split())}
# The first of these that a token's type begins with says how it looks.
_STYLES = (
    ("Token.Comment", "comment"),
    ("Token.Literal.String", "string"),
    ("Token.Literal.Number", "number"),
    ("Token.Keyword.Type", "type_"),
    ("Token.Keyword", "keyword"),
    ("Token.Operator.Word", "keyword"),
    ("Token.Name.Function", "function"),
    ("Token.Name.Class", "type_"),
    ("Token.Name.Decorator", "function"),
    ("Token.Name.Builtin", "type_"),
    ("Token.Name.Tag", "keyword"),
    ("Token.Name.Attribute", "function"),
    ("Token.Name.Exception", "type_"),
    ("Token.Generic.Deleted", "removed"),
    ("Token.Generic.Inserted", "added"),
    ("Token.Generic.Heading", "keyword"),
    ("Token.Generic.Subheading", "keyword"),
    ("Token.Generic.Prompt", "comment"),
)
Coloured = tuple[Span, ...]
GROUND = "on:code_background"
_HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@ ?(.*)")
_MOST_ROW = 2_000
_SIGNS = {"+": ("added", "on:added_background"), "-": ("removed", "on:removed_background")}


def language_of(path: str) -> str:
    """The word for the language of a file by its name, "" when it is not known."""
    name = path.rpartition("/")[2].lower()
    word = name.rpartition(".")[2] if "." in name else name
    return word if word in _NAMES else ""


def grounded(spans: Sequence[Span]) -> list[Span]:
    """Spans on the ground of code."""
    return [(text, f"{style} {GROUND}") for text, style in spans]


class Highlighter:
    """Colours code. Lexers are loaded when their language first comes up."""

    def __init__(self) -> None:
        self._lexers: dict[str, Any] = {}
        self._styles: dict[Any, str] = {}
        self._single: dict[tuple[str, str], Coloured] = {}

    def piece(self, lines: list[str], word: str) -> list[Coloured]:
        """The lines of a piece of code, each as spans."""
        lexer = self._lexer(word)
        if lexer is None or sum(map(len, lines)) > MOST_CHARS or max(map(len, lines), default=0) > MOST_LINE:
            return [((line, PLAIN),) for line in lines]
        began = time.thread_time()  # a machine that stalls is not a slow lexer
        coloured = self._coloured(lexer, lines)
        if time.thread_time() - began > SLOW_SECONDS:
            self._lexers[_NAMES.get(word.lower(), "")] = None
        return coloured

    def single(self, line: str, word: str) -> Coloured:
        """One line for itself; what was coloured lately is remembered."""
        key = (word, line)
        found = self._single.get(key)
        if found is None:
            if len(self._single) >= MOST_REMEMBERED:
                self._single.clear()
            found = self._single[key] = self.piece([line], word)[0]
        return found

    def _lexer(self, word: str) -> Any:
        name = _NAMES.get(word.lower(), "")
        if name and name not in self._lexers:
            from pygments.lexers import get_lexer_by_name

            self._lexers[name] = get_lexer_by_name(name, stripnl=False, ensurenl=True)
        return self._lexers.get(name)

    def _coloured(self, lexer: Any, lines: list[str]) -> list[Coloured]:
        found: list[Coloured] = []
        spans: list[Span] = []
        for kind, text in lexer.get_tokens("\n".join(lines)):
            style = self._styles.get(kind)
            if style is None:
                style = self._styles[kind] = _style(str(kind))
            first, *others = text.split("\n")
            if first:
                spans.append((first, style))
            for part in others:
                found.append(tuple(spans))
                spans = [(part, style)] if part else []
        if len(found) < len(lines):
            found.append(tuple(spans))
        same = len(found) >= len(lines) and all(
            "".join(text for text, _ in spans) == line for spans, line in zip(found, lines, strict=False)
        )
        return found[: len(lines)] if same else [((line, PLAIN),) for line in lines]


def _style(kind: str) -> str:
    return next((style for begin, style in _STYLES if kind.startswith(begin)), PLAIN)


class DiffRow(NamedTuple):
    """A line of a diff: `sign` is "+", "-", " ", "@" for what stands between hunks, "f" for a file. `changed` is the
    part of the text, from and to, that differs from its counterpart."""

    sign: str
    number: int
    text: str
    changed: tuple[int, int] = (0, 0)


def diff_rows(diff: str, most: int = 100_000) -> list[DiffRow]:
    """The rows of a diff, at most `most` of them."""
    found: list[DiffRow] = []
    for row in _rows(diff, most):
        found.append(row)
        if len(found) >= most:
            break
    return _paired(found)


def _rows(diff: str, most: int) -> Iterator[DiffRow]:
    old = new = old_left = new_left = 0
    first = True
    for text in diff.split("\n", most * 2 + 50)[: most * 2 + 50]:
        hunk = _HUNK.match(text) if old_left <= 0 and new_left <= 0 else None
        if hunk is not None:
            old, new = int(hunk[1]), int(hunk[3])
            old_left, new_left = int(hunk[2] or 1), int(hunk[4] or 1)
            if not first or hunk[5]:
                yield DiffRow("@", 0, hunk[5])
            first = False
        elif old_left > 0 or new_left > 0:
            sign, rest = text[:1] or " ", ends(text[1:], _MOST_ROW)
            if sign == "+":
                yield DiffRow("+", new, rest)
                new, new_left = new + 1, new_left - 1
            elif sign == "-":
                yield DiffRow("-", old, rest)
                old, old_left = old + 1, old_left - 1
            elif sign == " ":
                yield DiffRow(" ", new, rest)
                old, new, old_left, new_left = old + 1, new + 1, old_left - 1, new_left - 1
        elif text.startswith("+++ ") and not text.startswith("+++ /dev/null"):
            first = True
            yield DiffRow("f", 0, text[4:].removeprefix("b/").partition("\t")[0])


def _paired(rows: list[DiffRow]) -> list[DiffRow]:
    """Rows with what changed in each where as many lines come as go."""
    at = 0
    while at < len(rows):
        gone = at
        while gone < len(rows) and rows[gone].sign == "-":
            gone += 1
        come = gone
        while come < len(rows) and rows[come].sign == "+":
            come += 1
        if gone > at and come - gone == gone - at:
            for one, other in zip(range(at, gone), range(gone, come), strict=True):
                rows[one], rows[other] = _compared(rows[one], rows[other])
        at = max(come, at + 1)
    return rows


def _compared(one: DiffRow, other: DiffRow) -> tuple[DiffRow, DiffRow]:
    most = min(len(one.text), len(other.text))
    head = next((at for at in range(most) if one.text[at] != other.text[at]), most)
    tail = next((at for at in range(most - head) if one.text[-1 - at] != other.text[-1 - at]), most - head)
    if head + tail < most // 3:
        return one, other
    return (
        one._replace(changed=(head, len(one.text) - tail)),
        other._replace(changed=(head, len(other.text) - tail)),
    )


def diff_lines(
    rows: Sequence[DiffRow], path: str, width: int, colours: Highlighter, named: bool = True
) -> list[StyledLine]:
    """Rows as lines of at most `width` cells. `path` tells the language; the names of files are left out where the one
    file is named already."""
    word = language_of(path)
    digits = len(str(max((row.number for row in rows), default=0)))
    lines: list[StyledLine] = []
    for row in rows:
        if row.sign == "f":
            word = language_of(row.text)
            lines += [StyledLine(((fit(one_row(row.text), width), "accent bold"),))] if named else []
        elif row.sign == "@":
            lines.append(StyledLine(((fit(f"{'⋯':>{digits}} {one_row(row.text)}".rstrip(), width), "muted"),)))
        else:
            lines += _row(row, word, (width, digits), colours)
    return lines


def _row(row: DiffRow, word: str, sizes: tuple[int, int], colours: Highlighter) -> list[StyledLine]:
    width, digits = sizes
    mark, ground = _SIGNS.get(row.sign, ("muted", ""))
    before = ((f"{row.number:>{digits}} ", f"muted {ground}".strip()), (f"{row.sign} ", f"{mark} {ground}".strip()))
    text = one_row(row.text)
    spans: Sequence[Span] = colours.single(text, word)
    if row.changed[1] > row.changed[0] and text == row.text:
        spans = _marked(spans, *row.changed)
    return fold_hard([(part, f"{style} {ground}".strip()) for part, style in spans], width, before, ground)


def _marked(spans: Sequence[Span], start: int, end: int) -> list[Span]:
    """Spans with the part from `start` to `end` set off."""
    found: list[Span] = []
    place = 0
    for text, style in spans:
        low, high = max(0, min(len(text), start - place)), max(0, min(len(text), end - place))
        pieces = ((text[:low], style), (text[low:high], f"{style} bold underline"), (text[high:], style))
        found += [piece for piece in pieces if piece[0]]
        place += len(text)
    return found
