"""One file as the index sees it: what it is, what it defines, calls and imports, and the words of its chunks."""

import hashlib
import re
from bisect import bisect_right
from collections.abc import Iterable
from typing import TYPE_CHECKING

from msgspec import Struct

from codewhale.codesearch.chunks import Lines, cut
from codewhale.codesearch.grammars import Grammars
from codewhale.codesearch.languages import Languages
from codewhale.codesearch.model import (
    BODY,
    CALL,
    COMMENT,
    DEFINED,
    PATH,
    SYMBOL,
    Chunk,
    Outline,
    Symbol,
    folded,
)
from codewhale.codesearch.segment import Gathering
from codewhale.codesearch.symbols import Found, outline
from codewhale.codesearch.terms import Terms
from codewhale.codesearch.vocabulary import Vocabulary

if TYPE_CHECKING:
    from tree_sitter import Node

LARGEST = 2 << 20  # bytes: of a larger file only its path is indexed
PARSED = 512 << 10  # bytes: a larger one is cut into windows
_LINE = 2000  # bytes a line on average: more is no source a person wrote
PEEKED = 8192  # bytes in which a NUL tells that a file is no text
_MOST_IMPORTS = 2000
_MOST_CALLS = 200_000
_LONGEST_NAME = 80
_QUOTES = b" \t\r\n\"'`<>;"
_SPACE = re.compile(r"\s+")


class Source(Struct):
    """What a file is, apart from its words. `state` is "" when its text is in, else why it is not ("large", "binary",
    "minified", "empty", "unreadable"; whoever reads by worker processes adds "failed"); then it has one chunk without
    text, or none at all for a binary one."""

    lang: str
    sha: bytes
    lines: int
    state: str
    outline: Outline


def digest(data: bytes) -> bytes:
    """What a content is known by: 16 bytes of BLAKE2b."""
    return hashlib.blake2b(data, digest_size=16).digest()


class Sources:
    """Reads one file after another. Holds the grammars and the words met so far: one a process."""

    def __init__(self, grammar_folder: str) -> None:
        self.vocabulary = Vocabulary(Terms())
        self._languages = Languages()
        self.grammars = Grammars(grammar_folder, self._languages)

    def prepare(self, languages: Iterable[str]) -> None:
        """Load the grammars of languages ahead of their first file: each takes some hundredths of a second."""
        for language in languages:
            self.grammars.of(language)

    def read(self, path: str, data: bytes | None, gathering: Gathering, *, plain: bool = False) -> Source:
        """Put the chunks of the file at `path` into `gathering` and say what it is. `data` None: its content cannot be
        had. `plain`: without a grammar, for a file that a parser did not survive."""
        if data is None:
            self._chunks(path, [Chunk(1, 1, "block", "")], gathering)
            return Source("", b"", 0, "unreadable", Outline([], []))
        state = _state(data)
        lang = "" if state == "binary" else self._languages.of(path, data)
        if state:
            count = data.count(b"\n")
            self._chunks(path, [Chunk(1, max(1, count), "block", "")] if state != "binary" else [], gathering)
            return Source(lang, digest(data), count, state, Outline([], []))
        lines = Lines(data)
        grammar = None if plain or len(data) > PARSED else self.grammars.of(lang)
        tree = grammar.parse(data) if grammar is not None else None
        if grammar is None or tree is None:
            found, captures = Found([], []), dict[str, "list[Node]"]()
        else:
            found, captures = outline(grammar, tree.root_node), grammar.captures(tree.root_node)
        chunks = cut(lines, found.pieces)
        content = _Content(data, [lines.offset(chunk.line - 1) for chunk in chunks], chunks, found.symbols, captures)
        self._chunks(path, chunks, gathering, content)
        return Source(lang, digest(data), len(lines), "", Outline(found.symbols, _imports(captures, data)))

    def _chunks(self, path: str, chunks: list[Chunk], gathering: Gathering, content: "_Content | None" = None) -> None:
        for number, chunk in enumerate(chunks):
            gathering.open(chunk)
            if number == 0:
                terms = self.vocabulary.splitting.path(path)
                gathering.names(PATH, (term for term, often in terms.items() for _ in range(often)))
            if content is not None:
                content.add(number, gathering)


class _Content:
    """The text of one file by chunk: all of it, its comments, its names."""

    def __init__(
        self, data: bytes, offsets: list[int], chunks: list[Chunk], symbols: list[Symbol],
        captures: "dict[str, list[Node]]",
    ) -> None:  # fmt: skip
        self._data = data
        self._offsets = [*offsets, len(data)]
        self._comments = _comments(captures.get("comment", []), offsets, data)
        self._calls = _calls(captures.get("call", []), offsets, data)
        self._names, self._defined = _names(chunks, symbols)

    def add(self, number: int, gathering: Gathering) -> None:
        """Add what chunk `number` holds to the chunk that is open."""
        gathering.text(BODY, self._data[self._offsets[number] : self._offsets[number + 1]])
        if number in self._comments:
            gathering.text(COMMENT, b"\n".join(self._comments[number]))
        if number in self._names:
            gathering.text(SYMBOL, " ".join(dict.fromkeys(self._names[number])).encode())
        if number in self._calls:
            gathering.names(CALL, self._calls[number])
        if number in self._defined:
            gathering.names(DEFINED, self._defined[number])


def _state(data: bytes) -> str:
    """Why the text of a file is not indexed, "" when it is."""
    if not data:
        return "empty"
    if b"\0" in data[:PEEKED]:
        return "binary"
    if len(data) > LARGEST:
        return "large"
    return "minified" if len(data) > 10 * _LINE and len(data) > _LINE * (1 + data.count(b"\n")) else ""


def _comments(nodes: "list[Node]", offsets: list[int], data: bytes) -> dict[int, list[bytes]]:
    """Chunk -> its comments and docstrings."""
    found: dict[int, list[bytes]] = {}
    for node in nodes:
        start = node.start_byte
        found.setdefault(bisect_right(offsets, start) - 1, []).append(data[start : node.end_byte])
    return found


def _calls(nodes: "list[Node]", offsets: list[int], data: bytes) -> dict[int, list[str]]:
    """Chunk -> the names it calls, as often as it does."""
    found: dict[int, list[str]] = {}
    for node in nodes[:_MOST_CALLS]:
        start = node.start_byte
        name = data[start : node.end_byte]
        if len(name) <= _LONGEST_NAME:
            found.setdefault(bisect_right(offsets, start) - 1, []).append(name.decode("utf-8", "replace"))
    return found


def _names(chunks: list[Chunk], symbols: list[Symbol]) -> tuple[dict[int, list[str]], dict[int, list[str]]]:
    """Chunk -> the names defined in it and around it; chunk -> the names defined in it, folded."""
    starts = [chunk.line for chunk in chunks]
    around: dict[int, list[str]] = {}
    defined: dict[int, list[str]] = {}
    for symbol in symbols:
        first = bisect_right(starts, symbol.line) - 1
        around.setdefault(first, []).extend(filter(None, (symbol.name, symbol.scope)))
        defined.setdefault(first, []).append(folded(symbol.name))
        for later in range(first + 1, bisect_right(starts, symbol.end_line)):
            if symbol.kind == chunks[later].kind and symbol.name == chunks[later].symbol:
                around.setdefault(later, []).append(symbol.name)
    return around, defined


def _imports(captures: "dict[str, list[Node]]", data: bytes) -> list[tuple[int, str]]:
    """(line, what is imported), each thing once, in the order of lines."""
    found: dict[str, int] = {}
    for node in sorted(captures.get("import", []), key=lambda node: (node.start_byte, node.end_byte))[:_MOST_IMPORTS]:
        text = data[node.start_byte : node.end_byte][:300].strip(_QUOTES).decode("utf-8", "replace")
        if text:
            found.setdefault(_SPACE.sub(" ", text), node.start_point.row + 1)
    return [(line, text) for text, line in found.items()]
