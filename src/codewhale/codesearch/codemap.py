"""A map of a tree within a budget: its folders, and the files that others use most with their main definitions.

What is important depends on the code alone, never on a question: the same tree has the same map, byte for byte.
"""

import math
import os
from collections import Counter, OrderedDict
from collections.abc import Sequence

from msgspec import Struct

from codewhale.codesearch.importgraph import ImportGraph
from codewhale.codesearch.model import CALL, DEFINED, Symbol, folded
from codewhale.codesearch.path_kinds import DOCS, ENTRY, EXAMPLES, SCRIPTS, TESTS, PathKinds
from codewhale.codesearch.reader import IndexReader
from codewhale.codesearch.search import CodeSearch
from codewhale.codesearch.store import IndexDamagedError

TOKENS = 1_500
DEPTH = 3
BYTES_A_TOKEN = 4
_MOST_GRAPHS = 4
_CANDIDATES = 240  # files whose references are counted
_NAMES = 24  # names of a file that are looked up
_SHOWN = 5  # definitions of a file
_METHODS = 3
_MISSES = 8  # files that do not fit before the map is full
_FOLDERS_SHARE = 3  # of the budget, one part is for folders
_LANGUAGES = 6
_LINE = 160  # bytes of a file's line
_HOLDERS = frozenset({"class", "struct", "enum", "trait", "interface", "impl", "module"})
_WEIGHTS = ((TESTS, 0.05), (EXAMPLES, 0.1), (DOCS, 0.1), (SCRIPTS, 0.3), (ENTRY, 0.7))


class _Rated(Struct, frozen=True):
    """A file, how many others use it, and of its names how many files call each."""

    file: int
    uses: float
    names: dict[str, float]


def code_map(reader: IndexReader, graph: ImportGraph, *, tokens: int = TOKENS, depth: int = DEPTH) -> str:
    """The map of an index, at most `tokens` long (of four bytes each); folders to `depth` levels. `graph` must be
    true of the reader."""
    rated = _ranked(reader, graph)
    units = Counter(_unit(path, depth) for path in reader.paths)
    budget = tokens * BYTES_A_TOKEN
    head = _head(reader, len(units))
    shown: dict[str, list[str]] = {}
    used = len(head.encode()) + 1
    for unit, count in sorted(units.items(), key=lambda item: (-item[1], item[0])):
        size = len(_folder(unit, count).encode()) + 1
        if used + size > budget // _FOLDERS_SHARE:
            break
        shown[unit] = []
        used += size
    misses = 0
    for one in rated:
        unit = _unit(reader.paths[one.file], depth)
        line = _line(reader, one, unit)
        size = len(line.encode()) + 1 + (0 if unit in shown else len(_folder(unit, units[unit]).encode()) + 1)
        if used + size > budget:
            misses += 1
            if misses == _MISSES:
                break
            continue
        shown.setdefault(unit, []).append(line)
        used += size
    lines = [head]
    for unit in sorted(shown):
        lines += [_folder(unit, units[unit]), *sorted(shown[unit])]
    return "\n".join(lines)[:budget]


class CodeMaps:
    """The maps of the folders whose index there is."""

    def __init__(self, search: CodeSearch) -> None:
        self._search = search
        self._graphs: OrderedDict[str, ImportGraph] = OrderedDict()

    async def show(self, root: str, *, tokens: int = TOKENS, depth: int = DEPTH) -> tuple[str, tuple[str, ...]] | None:
        """The map of a folder and what must be known of its index; None where there is no index to draw it from
        or it cannot be read. None is built for it."""
        if not self._search.is_indexed(root):
            return None
        graph = self._graph(os.path.realpath(root))

        def draw(reader: IndexReader) -> str:
            graph.update(reader)
            return code_map(reader, graph, tokens=tokens, depth=depth)

        try:
            text, notes = await self._search.read(root, draw)
        except (OSError, IndexDamagedError):
            return None
        return None if text is None else (text, notes)

    def pinned(self, root: str, tokens: int) -> str:
        """The map of a folder's index as it is, without checking it against the folder; "" where there
        is none or it cannot be read."""
        try:
            reader = self._search.open_reader(root)
        except (OSError, IndexDamagedError):
            return ""
        if reader is None:
            return ""
        try:
            graph = ImportGraph()
            graph.update(reader)
            return code_map(reader, graph, tokens=tokens)
        except (OSError, IndexDamagedError):
            return ""
        finally:
            reader.close()

    def _graph(self, root: str) -> ImportGraph:
        graph = self._graphs.setdefault(root, ImportGraph())
        self._graphs.move_to_end(root)
        while len(self._graphs) > _MOST_GRAPHS:
            self._graphs.popitem(last=False)
        return graph


def _ranked(reader: IndexReader, graph: ImportGraph) -> list[_Rated]:
    """The files worth showing, most important first. Importance goes by half powers of two, so that one more use of
    a file moves nothing."""
    kinds = PathKinds()
    weights = [_weight(kinds.of(path)) for path in reader.paths]
    importers = graph.importers()
    imported = {file: sum(weights[user] for user in users) for file, users in importers.items()}

    def first_guess(file: int) -> float:
        return weights[file] * (imported.get(file, 0.0) + math.log2(1 + reader.files[file].lines) / 8)

    code = [number for number, file in enumerate(reader.files) if file.lang and not file.state]
    likely = sorted(code, key=lambda file: (-first_guess(file), reader.paths[file]))[:_CANDIDATES]
    rated = [_rated(reader, file, imported.get(file, 0.0), weights) for file in likely]
    return sorted(
        (one for one in rated if one.names),
        key=lambda one: (-_step(weights[one.file] * one.uses), reader.paths[one.file]),
    )


def _rated(reader: IndexReader, file: int, imported: float, weights: Sequence[float]) -> _Rated:
    names: dict[str, float] = {}
    for symbol in _public(reader.symbols(file))[:_NAMES]:
        if symbol.name not in names:
            names[symbol.name] = _callers(reader, file, symbol.name, weights)
    return _Rated(file, imported + sum(names.values()), names)


def _callers(reader: IndexReader, file: int, name: str, weights: Sequence[float]) -> float:
    """The files other than its own that call a name, shared among all that define it."""
    chunks, _ = reader.postings(CALL, name)
    if not len(chunks):
        return 0.0
    files: set[int] = set(reader.chunk_file[chunks].tolist()) - {file}
    definers = len(reader.postings(DEFINED, folded(name))[0])
    return sum(weights[user] for user in sorted(files)) / max(1, definers)


def _public(symbols: Sequence[Symbol]) -> list[Symbol]:
    """What others may use: first what stands at the top, then what is in it."""
    named = [one for one in symbols if one.kind not in ("block", "doc") and not one.name.startswith("_")]
    plain = [one for one in named if not one.scope and one.kind != "const"]
    const = [one for one in named if not one.scope and one.kind == "const"]
    return [*plain, *(one for one in named if one.scope), *const]


def _line(reader: IndexReader, one: _Rated, unit: str) -> str:
    """A file and its main definitions, those that are used most, in the order of the source."""
    path = reader.paths[one.file]
    symbols = _public(reader.symbols(one.file))
    top = {symbol.name: symbol for symbol in reversed(symbols) if not symbol.scope or symbol.kind in _HOLDERS}
    told = [symbol for symbol in top.values() if symbol.kind not in ("const", "module")] or list(top.values())
    best = sorted(told, key=lambda symbol: (-_step(one.names.get(symbol.name, 0.0)), symbol.line))[:_SHOWN]
    text = "  " + _printable(path[len(unit) + 1 :] if unit else path)
    parts = [_definition(symbol, symbols, one.names) for symbol in sorted(best, key=lambda symbol: symbol.line)]
    for number, part in enumerate(parts):
        longer = f"{text}{', ' if number else ': '}{part}"
        if len(longer.encode()) > _LINE:
            break
        text = longer
    return text


def _definition(symbol: Symbol, symbols: Sequence[Symbol], names: dict[str, float]) -> str:
    if symbol.kind not in _HOLDERS:
        return _printable(symbol.name)
    scope = f"{symbol.scope}.{symbol.name}" if symbol.scope else symbol.name
    inner = {one.name: one for one in reversed(symbols) if one.scope == scope and one.kind == "fn"}
    best = sorted(inner.values(), key=lambda one: (-_step(names.get(one.name, 0.0)), one.line))[:_METHODS]
    methods = ", ".join(_printable(one.name) for one in sorted(best, key=lambda one: one.line))
    return f"{_printable(symbol.name)}({methods})" if methods else _printable(symbol.name)


def _head(reader: IndexReader, folders: int) -> str:
    languages = Counter(file.lang for file in reader.files if file.lang)
    told = sorted(languages.items(), key=lambda item: (-item[1], item[0]))[:_LANGUAGES]
    files = "1 file" if len(reader.files) == 1 else f"{len(reader.files)} files"
    counts = ", ".join(f"{lang} {count}" for lang, count in told)
    return (
        f"{files} in {folders} folder{'' if folders == 1 else 's'}{f': {counts}' if counts else ''}; named: most used"
    )


def _folder(unit: str, count: int) -> str:
    return f"{_printable(unit) or '.'}/ ({count} file{'' if count == 1 else 's'})"


def _unit(path: str, depth: int) -> str:
    """The folder that a path is shown under."""
    return "/".join(path.split("/")[:-1][:depth])


def _weight(kinds: int) -> float:
    return math.prod(weight for flag, weight in _WEIGHTS if kinds & flag)


def _step(value: float) -> int:
    return int(2 * math.log2(1 + value))


def _printable(name: str) -> str:
    """A name that stays on its line."""
    return name if name.isprintable() else ascii(name)[1:-1]
