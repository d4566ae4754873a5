"""Who defines, uses, calls and imports what: from the definitions, calls and imports of the index and the lines of the
files themselves. A place is certain where definition or import say so, else it shares the name and no more."""

import os
import re
from collections.abc import Callable, Iterator, Sequence

from msgspec import Struct

from codewhale.codesearch.importgraph import ImportGraph
from codewhale.codesearch.model import BODY, CALL, COMMENT, Symbol
from codewhale.codesearch.path_kinds import DOCS, EXAMPLES, TESTS, PathKinds
from codewhale.codesearch.reader import IndexReader
from codewhale.codesearch.resolve import Resolver
from codewhale.codesearch.suggestions import similar_names
from codewhale.codesearch.terms import Terms
from codewhale.lib.beneath import PathRefused, Root
from codewhale.lib.bounded import read_regular
from codewhale.lib.text import scrub_surrogates

MOST = 200
ASIDE = TESTS | EXAMPLES | DOCS
RELATIONS = ("definitions", "references", "callers", "callees", "imports", "importers")
OF_FILES = frozenset({"imports", "importers"})
_MOST_FILES = 400  # read for one answer
_MOST_WORDS = 600  # of a definition whose callees are asked for
_LARGEST = 2 << 20
_TEXT = 160
_FILE = os.O_RDONLY | os.O_NONBLOCK
_LAST = re.compile(r"::|[.#]|->")
_WORD = re.compile(rb"[^\W\d]\w*")
_ITSELF = rb"(?<!\w)(?:(?:self|this|cls|Self)\s*(?:\.|->|::|\?\.)|@)\s*"
_REMARKS = (b"//", b"/*", b"*", b"#", b"--", b";", b"%", b'"', b"'")  # what a line of a comment begins with
_PACKAGED = frozenset({"go", "java", "kotlin", "swift"})  # files of one folder see each other


class CodeLocation(Struct, frozen=True, omit_defaults=True):
    """A place: what is there, inside which definition, and why it is sure to be what was asked for, or not."""

    path: str
    line: int
    certain: bool
    why: str
    name: str = ""
    kind: str = ""
    end_line: int = 0
    inside: str = ""
    text: str = ""


class RelatedCode(Struct, frozen=True):
    """What was found, the certain first, tests and examples last, a type before what is added to it and a body before
    a mere declaration; `total` counts what is left out too. `alike` are names that the one that nothing is called may
    have meant, `hint` says what to ask of one that is defined and of which nothing was found."""

    name: str
    relation: str
    spots: tuple[CodeLocation, ...]
    total: int
    alike: tuple[str, ...] = ()
    hint: str = ""


class NoSuchFile(Exception):
    """No file of this path is in the index; `near` are paths that end alike."""

    def __init__(self, path: str, near: tuple[str, ...]) -> None:
        super().__init__(f"no file {path!r} is in the index")
        self.path = path
        self.near = near


class Intelligence:
    """Questions about the symbols and files of one state of an index. `root` is the folder it is of."""

    def __init__(self, reader: IndexReader, root: str) -> None:
        self._reader = reader
        self._beneath = Root(root)
        self._lines: dict[int, list[bytes]] = {}
        self._resolver: Resolver | None = None
        self._imported: dict[int, frozenset[int]] = {}

    def related(self, name: str, relation: str, most: int = MOST) -> RelatedCode:
        """What stands in a relation to a symbol ("name" or "Scope.name"), or for imports and importers to a file (its
        path). Raises NoSuchFile; KeyError for a relation that is none of RELATIONS."""
        ways: dict[str, Callable[[str], Iterator[CodeLocation]]] = {
            "definitions": self._definitions,
            "references": self._references,
            "callers": self._callers,
            "callees": self._callees,
            "imports": self._imports,
            "importers": self._importers,
        }
        kinds, asked = PathKinds(), scrub_surrogates(name).strip()
        spots = sorted(
            set(ways[relation](asked)),
            key=lambda spot: (not spot.certain, kinds.of(spot.path) & ASIDE > 0, _adds(spot), spot.path, spot.line),
        )
        if spots or relation in OF_FILES:
            return RelatedCode(name, relation, tuple(spots[:most]), len(spots))
        if not (defined := self._defined(asked)):
            return RelatedCode(name, relation, (), 0, similar_names(self._reader, _last(asked)))
        kind, instead = defined[0][1].kind, "definitions" if relation == "references" else "references"
        return RelatedCode(
            name, relation, (), 0, hint=f"It is defined ({kind}) and has no {relation} by name: ask for {instead}."
        )

    def _definitions(self, name: str) -> Iterator[CodeLocation]:
        for file, symbol in self._defined(name):
            yield self._spot(file, symbol.line, (True, "defined here"), symbol)

    def _references(self, name: str) -> Iterator[CodeLocation]:
        last = _last(name)
        definers = self._defined(name)
        at = {(file, symbol.line) for file, symbol in definers}
        for file in self._holding(last):
            for line in self._lines_with(file, last):
                if (file, line) not in at:
                    sure, why = self._use(file, line, last, definers)
                    if sure and not self._is_code(file, line, last):
                        sure, why = False, f"{why}, but this may be a comment"
                    yield self._spot(file, line, (sure, why))

    def _callers(self, name: str) -> Iterator[CodeLocation]:
        last = _last(name)
        definers = self._defined(name)
        at = {(file, symbol.line) for file, symbol in self._defined(last)}
        for chunk, calls in zip(*(found.tolist() for found in self._reader.postings(CALL, last)), strict=True):
            file = int(self._reader.chunk_file[chunk])
            if len(self._lines) >= _MOST_FILES and file not in self._lines:
                break
            start, end = int(self._reader.chunk_line[chunk]), int(self._reader.chunk_end[chunk])
            lines = [line for line in self._lines_with(file, last, start, end) if (file, line) not in at]
            for line in self._calling(file, lines, last, int(calls)):
                yield self._spot(file, line, self._use(file, line, last, definers))

    def _callees(self, name: str) -> Iterator[CodeLocation]:
        """The calls inside the definitions of a name, with where what they call is defined."""
        for file, symbol in self._defined(name)[:MOST]:
            doc = self._reader.files[file]
            own = {
                chunk
                for chunk in range(doc.first, doc.first + doc.chunks)
                if self._reader.chunk_line[chunk] <= symbol.end_line and self._reader.chunk_end[chunk] >= symbol.line
            }
            for word in self._words(file, symbol):
                chunks, often = self._reader.postings(CALL, word)
                calls = sum(n for chunk, n in zip(chunks.tolist(), often.tolist(), strict=True) if chunk in own)
                lines = self._lines_with(file, word, symbol.line, symbol.end_line) if calls else []
                if lines:
                    yield self._callee(file, word, self._calling(file, lines, word, int(calls))[0])

    def _callee(self, file: int, word: str, line: int) -> CodeLocation:
        definers = self._defined(word)
        sure, why = self._use(file, line, word, definers)
        if len(definers) == 1 or sure:
            bodies = [one for one in definers if one[1].end_line > one[1].line]
            seen = (one for one in definers if self._sees(file, one[0]))
            target, symbol = bodies[0] if len(bodies) == 1 else next(seen, definers[0])
            why = f"{why}; {self._reader.paths[target]}:{symbol.line}"
        spot = self._spot(file, line, (sure, why if definers else "defined outside this project"))
        return CodeLocation(spot.path, line, spot.certain, spot.why, name=word, inside=spot.inside, text=spot.text)

    def _calling(self, file: int, lines: list[int], name: str, calls: int) -> list[int]:
        """Those of the lines with a name that call it, of which the index knows so many: where more look like it,
        without those that look like comments or have it in a string."""
        found = [line for line in lines if self._is_called(file, line, name)] or lines
        code = [line for line in found if not _is_remark(self._text(file)[line - 1], name.encode("utf-8", "replace"))]
        return code or found if len(found) > calls else found

    def _imports(self, path: str) -> Iterator[CodeLocation]:
        file = self._file(path)
        for line, written in self._reader.imports(file):
            targets = self._targets(file, written)
            if targets and self._reader.files[file].lang == "go":
                folder = self._reader.paths[targets[0]].rpartition("/")[0]
                why = f"a package of {len(targets)} file{'s' * (len(targets) != 1)}"
                yield CodeLocation(self._reader.paths[file], line, True, why, name=f"{folder}/", text=written[:_TEXT])
                continue
            why = (
                "outside this project" if not targets else "exactly this file" if len(targets) == 1 else "one of these"
            )
            for target in targets or [-1]:
                named = self._reader.paths[target] if target >= 0 else ""
                yield CodeLocation(
                    self._reader.paths[file], line, len(targets) == 1, why, name=named, text=written[:_TEXT]
                )

    def _importers(self, path: str) -> Iterator[CodeLocation]:
        file = self._file(path)
        graph = ImportGraph()
        graph.update(self._reader)
        for user in graph.importers().get(file, ()):
            for line, written in self._reader.imports(user):
                targets = self._targets(user, written)
                if file in targets:
                    package = self._reader.files[user].lang == "go"
                    sure = package or len(targets) == 1
                    why = "exactly this file" if sure else f"it or {len(targets) - 1} more"
                    why = "this file's package" if package else why
                    yield CodeLocation(self._reader.paths[user], line, sure, why, text=written[:_TEXT])

    def _defined(self, name: str) -> list[tuple[int, Symbol]]:
        """The definitions of a name; of a qualified one those whose scope ends so, where there are such."""
        steps = [step for step in _LAST.split(name.removesuffix("()")) if step]
        if not steps:
            return []
        found = self._reader.defined(steps[-1]) or self._reader.defined(steps[-1], fold=True)
        scope = ".".join(steps[:-1])
        within = [one for one in found if f".{one[1].scope}".endswith(f".{scope}")] if scope else found
        return within or found

    def _use(self, file: int, line: int, name: str, definers: list[tuple[int, Symbol]]) -> tuple[bool, str]:
        """Whether a name in a line means one of the definitions, and why: one of the class it is called in, where it
        is called on the object itself, else as for the file."""
        own = (
            rb"(?<!\w)(?:self|this|cls|Self|@)(?:\.|->|::|\?\.)?"
            + re.escape(name.encode("utf-8", "replace"))
            + rb"(?!\w)"
        )
        if any(target == file and symbol.scope for target, symbol in definers):
            around = {f"{one.scope}.{one.name}".lstrip(".") for one in self._reader.symbols(file)
                      if one.line <= line <= one.end_line}  # fmt: skip
            scopes = {symbol.scope for target, symbol in definers if target == file}
            if around & scopes and re.search(own, self._text(file)[line - 1]):
                return True, "called on the object itself; its class defines it"
        return self._reason(file, definers)

    def _reason(self, file: int, definers: list[tuple[int, Symbol]]) -> tuple[bool, str]:
        """Whether a use in a file means one of the definitions, and why."""
        top = [target for target, symbol in definers if not symbol.scope]
        for target in top:
            if target == file:
                return True, "defined in this file"
        for target in top:
            if self._sees(file, target):
                return True, f"this file sees {self._reader.paths[target]}"
        if not definers:
            return False, "by name only; no definition in this project"
        return False, f"by name only; {len(definers)} definition{'' if len(definers) == 1 else 's'}"

    def _sees(self, file: int, target: int) -> bool:
        """Whether a file is, imports, or shares a package with another."""
        mine, other = self._reader.files[file], self._reader.files[target]
        together = mine.path.rpartition("/")[0] == other.path.rpartition("/")[0]
        if file == target or (mine.lang == other.lang and mine.lang in _PACKAGED and together):
            return True
        if file not in self._imported:
            written = (text for _, text in self._reader.imports(file))
            self._imported[file] = frozenset(number for text in written for number in self._targets(file, text))
        return target in self._imported[file]

    def _targets(self, file: int, written: str) -> list[int]:
        self._resolver = self._resolver or Resolver(self._reader.paths)
        return self._resolver.targets(file, self._reader.files[file].lang, written)

    def _file(self, path: str) -> int:
        wanted = path.replace("\\", "/")
        if os.path.isabs(wanted):
            wanted = os.path.relpath(os.path.realpath(wanted), self._beneath.path)
        wanted = wanted.removeprefix("./")
        try:
            return self._reader.paths.index(wanted)
        except ValueError:
            raise NoSuchFile(path, _near(wanted, self._reader.paths)) from None

    def _holding(self, name: str) -> list[int]:
        """The files whose text may hold a name: those with all its terms in one chunk."""
        import numpy

        chunks = None
        for term in dict.fromkeys(Terms().expand(name)):
            found, _ = self._reader.postings(BODY, term)
            chunks = found if chunks is None else numpy.intersect1d(chunks, found, assume_unique=True)
        files = {int(self._reader.chunk_file[chunk]) for chunk in ([] if chunks is None else chunks.tolist())}
        return sorted(files)[:_MOST_FILES]

    def _words(self, file: int, symbol: Symbol) -> list[str]:
        """The words of a definition in their order, but for its own name where that alone is given."""
        found: dict[str, int] = {}
        for line in range(symbol.line, min(symbol.end_line, len(self._text(file))) + 1):
            for match in _WORD.findall(self._text(file)[line - 1]):
                word = match.decode("utf-8", "replace")
                if word != symbol.name or line > symbol.line:
                    found.setdefault(word, line)
        return list(found)[:_MOST_WORDS]

    def _lines_with(self, file: int, name: str, first: int = 1, last: int | None = None) -> list[int]:
        whole = re.compile(rb"(?<!\w)" + re.escape(name.encode("utf-8", "replace")) + rb"(?!\w)")
        lines = self._text(file)[first - 1 : last]
        return [number for number, line in enumerate(lines, start=first) if whole.search(line)]

    def _is_called(self, file: int, line: int, name: str) -> bool:
        called = re.compile(rb"(?<!\w)" + re.escape(name.encode("utf-8", "replace")) + rb"[!?]?\s*(?:[(<{]|::<)")
        return called.search(self._text(file)[line - 1]) is not None

    def _is_code(self, file: int, line: int, name: str) -> bool:
        """Whether a line that holds a name does so outside comments, as far as its chunk shows."""
        doc = self._reader.files[file]
        chunks = range(doc.first, doc.first + doc.chunks)
        chunk = next((one for one in chunks if self._reader.chunk_line[one] <= line <= self._reader.chunk_end[one]), -1)
        if chunk in self._reader.postings(CALL, name)[0] and self._is_called(file, line, name):
            return True
        terms = Terms().expand(name)
        return not terms or chunk not in self._reader.postings(COMMENT, terms[-1])[0]

    def _text(self, file: int) -> list[bytes]:
        """The lines of a file as it is now; none where it cannot be read."""
        if file not in self._lines:
            try:
                data = read_regular(self._beneath.open(self._reader.paths[file], _FILE, links=False), _LARGEST)
            except (OSError, PathRefused):
                data = None
            self._lines[file] = (data or b"").split(b"\n")
        return self._lines[file]

    def _spot(self, file: int, line: int, sure: tuple[bool, str], symbol: Symbol | None = None) -> CodeLocation:
        lines = self._text(file)
        text = lines[line - 1].decode("utf-8", "replace").strip()[:_TEXT] if line <= len(lines) else ""
        path = self._reader.paths[file]
        if symbol is not None:
            return CodeLocation(path, line, *sure, symbol.name, symbol.kind, symbol.end_line, symbol.scope, text)
        around = [one for one in self._reader.symbols(file) if one.line <= line <= one.end_line and one.kind != "const"]
        inner = min(around, key=lambda one: one.end_line - one.line, default=None)
        inside = "" if inner is None else f"{inner.scope}.{inner.name}".lstrip(".")
        return CodeLocation(path, line, *sure, inside=inside, text=text)


def _is_remark(line: bytes, name: bytes) -> bool:
    """Whether a name seems to be in a comment or a string of a line."""
    return line.lstrip().startswith(_REMARKS) or line.partition(name)[0].count(b'"') % 2 == 1


def _adds(spot: CodeLocation) -> bool:
    """Whether a definition adds to one elsewhere, or declares a function whose body is elsewhere."""
    return spot.kind == "impl" or (spot.kind == "fn" and spot.end_line == spot.line)


def _near(wanted: str, paths: Sequence[str]) -> tuple[str, ...]:
    """At most three paths whose name is the wanted one, with or without an ending, those that end like it first."""
    name = wanted.rpartition("/")[2]
    named = [one for one in paths if name in ((last := one.rpartition("/")[2]), last.partition(".")[0])]
    return tuple(sorted(named, key=lambda one: (f"/{wanted}" not in f"/{one}", len(one), one))[:3])


def _last(name: str) -> str:
    return next((step for step in reversed(_LAST.split(name.removesuffix("()"))) if step), name)
