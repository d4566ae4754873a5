"""One file as the index sees it: what it is, what it defines, calls and imports, and the words of its chunks."""

import hashlib
import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from codewhale.codesearch.chunks import LineOffsets, cut
from codewhale.codesearch.grammars import Grammars
from codewhale.codesearch.languages import Languages
from codewhale.codesearch.model import Chunk, ParsedSource, Symbol
from codewhale.codesearch.symbols import SourceOutline, outline
from codewhale.codesearch.terms import ChunkWords, Terms, as_written, by_count, packed_words

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
_NO_WORDS = ChunkWords(b"", 0, 0, [])
_SPACE = re.compile(r"\s+")


def digest(data: bytes) -> bytes:
    """What a content is known by: 16 bytes of BLAKE2b."""
    return hashlib.blake2b(data, digest_size=16).digest()


class SourceReader:
    """Reads one file after another. Holds the grammars and the words met so far: one a process."""

    def __init__(self, grammar_folder: str) -> None:
        self._languages = Languages()
        self.grammars = Grammars(grammar_folder, self._languages)
        self._terms = Terms()

    def prepare(self, languages: Iterable[str]) -> None:
        """Load the grammars of languages ahead of their first file: each takes some hundredths of a second."""
        for language in languages:
            self.grammars.of(language)

    def read(
        self, path: str, data: bytes | None, *, plain: bool = False, known: Iterable[ChunkWords] = ()
    ) -> ParsedSource:
        """What the file at `path` is and holds. `data` None: its content cannot be had. `plain`: without a grammar,
        for a file that a parser did not survive. `known`: its words before, for the chunks that are as they were."""
        if data is None:
            return _without_words("", b"", 0, "unreadable")
        state = _state(data)
        lang = "" if state == "binary" else self._languages.of(path, data)
        if state:
            return _without_words(lang, digest(data), data.count(b"\n"), state)
        lines = LineOffsets(data)
        grammar = None if plain or len(data) > PARSED else self.grammars.of(lang)
        tree = grammar.parse(data) if grammar is not None else None
        if grammar is None or tree is None:
            found, captures = SourceOutline([], []), dict[str, "list[Node]"]()
        else:
            found, captures = outline(grammar, tree.root_node), grammar.captures(tree.root_node)
        cuts = cut(lines, found.pieces)
        starts = [chunk.line for chunk in cuts]
        symbols = [(max(0, bisect_right(starts, symbol.line) - 1), symbol) for symbol in found.symbols]
        content = _Content(data, [lines.offset(start - 1) for start in starts], captures)
        names = _names(cuts, symbols)
        before = {chunk.digest: chunk for chunk in known}
        words = [content.words(self._terms, at, names.get(at, []), before) for at in range(len(cuts))]
        imports = _imports(captures, data)
        return ParsedSource(lang, digest(data), len(lines), "", cuts, symbols, imports, packed_words(words))


def _without_words(lang: str, sha: bytes, lines: int, state: str) -> ParsedSource:
    chunks = [Chunk(1, max(1, lines), "block", "")] if state != "binary" else []
    return ParsedSource(lang, sha, lines, state, chunks, [], [], packed_words([_NO_WORDS] * len(chunks)))


class _Content:
    """The text of one file by chunk: all of it, its comments, its calls."""

    def __init__(self, data: bytes, offsets: list[int], captures: "dict[str, list[Node]]") -> None:
        self._data = data
        self._offsets = [*offsets, len(data)]
        self._comments = _comments(captures.get("comment", []), offsets, data)
        self._calls = _calls(captures.get("call", []), offsets, data)

    def words(self, terms: Terms, number: int, names: list[str], known: Mapping[bytes, ChunkWords]) -> ChunkWords:
        """The words of a chunk's body, comments, symbols and calls; `names` are defined in it and around it."""
        body = self._data[self._offsets[number] : self._offsets[number + 1]]
        comments = b"\n".join(self._comments.get(number, []))
        symbols = " ".join(dict.fromkeys(names)).encode()
        calls = sorted(self._calls.get(number, []))
        made_of = digest(b"\0".join((body, comments, symbols, " ".join(calls).encode())))
        if (found := known.get(made_of)) is not None:
            return found
        counts = [terms.count(text.decode("utf-8", "replace")) for text in (body, comments, symbols)]
        rows = by_count(*counts, Counter(map(as_written, calls)))
        return ChunkWords(made_of, counts[0].total(), counts[2].total(), rows)


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
    """Chunk -> its comments and docstrings, in order."""
    found: dict[int, list[bytes]] = {}
    for start, end in sorted((node.start_byte, node.end_byte) for node in nodes):
        found.setdefault(bisect_right(offsets, start) - 1, []).append(data[start:end])
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


def _names(chunks: list[Chunk], symbols: list[tuple[int, Symbol]]) -> dict[int, list[str]]:
    """Chunk -> the names defined in it and around it."""
    starts = [chunk.line for chunk in chunks]
    around: dict[int, list[str]] = {}
    for first, symbol in symbols:
        around.setdefault(first, []).extend(filter(None, (symbol.name, symbol.scope)))
        for later in range(first + 1, bisect_right(starts, symbol.end_line)):
            if symbol.kind == chunks[later].kind and symbol.name == chunks[later].symbol:
                around.setdefault(later, []).append(symbol.name)
    return around


def _imports(captures: "dict[str, list[Node]]", data: bytes) -> list[tuple[int, str]]:
    """(line, what is imported), each thing once, in the order of lines."""
    found: dict[str, int] = {}
    for node in sorted(captures.get("import", []), key=lambda node: (node.start_byte, node.end_byte))[:_MOST_IMPORTS]:
        text = data[node.start_byte : node.end_byte][:300].strip(_QUOTES).decode("utf-8", "replace")
        if text:
            found.setdefault(_SPACE.sub(" ", text), node.start_point.row + 1)
    return [(line, text) for text, line in found.items()]
