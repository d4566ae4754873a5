"""Which file imports which, kept from one state of an index to the next: only what has changed is resolved again."""

from collections import defaultdict

from codewhale.codesearch.reader import IndexReader, unpacked_imports
from codewhale.codesearch.resolve import Resolver


class ImportGraph:
    """The imports of one tree. Files are numbered as in the reader that it was last updated from."""

    def __init__(self) -> None:
        self._paths: list[str] = []
        self._resolver = Resolver(())
        self._resolved: dict[int, tuple[str, bytes, tuple[int, ...]]] = {}

    def update(self, reader: IndexReader) -> int:
        """Make it true of a reader. Returns how many files were resolved: all of them where files came or went, since
        an import may mean another file then, else those whose imports have changed."""
        if reader.paths != self._paths:
            self._paths = reader.paths
            self._resolver = Resolver(reader.paths)
            self._resolved = {}
        before, self._resolved, done = self._resolved, {}, 0
        for file, packed in reader.packed_imports():
            known = before.get(file)
            lang = reader.files[file].lang
            if known is None or known[:2] != (lang, packed):
                known = (lang, packed, self._targets(file, lang, packed))
                done += 1
            self._resolved[file] = known
        return done

    def importers(self) -> dict[int, list[int]]:
        """File -> the files that import it, ascending."""
        found: dict[int, list[int]] = defaultdict(list)
        for file in sorted(self._resolved):
            for target in self._resolved[file][2]:
                found[target].append(file)
        return found

    def _targets(self, file: int, lang: str, packed: bytes) -> tuple[int, ...]:
        targets = {
            target for _, written in unpacked_imports(packed) for target in self._resolver.targets(file, lang, written)
        }
        return tuple(sorted(targets - {file}))
