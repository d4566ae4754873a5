"""Parsers for the languages that have one, behind one adapter: compiled grammars are unpacked from their package into
the state directory once, loaded when a file first needs them, and done without where they cannot be had."""

import hashlib
import json
import os
import tarfile
from collections.abc import Iterable
from importlib import resources
from typing import TYPE_CHECKING, Any

from codewhale.codesearch.languages import Languages
from codewhale.lib.files import atomic_write, private_dir

if TYPE_CHECKING:
    from tree_sitter import Node, Parser, Query, Tree

_FOLDER_VARIABLE = "SEMBLE_GRAMMARS_CACHE_DIR"  # read by the package at each load


class Grammar:
    """The parser of one language, what its nodes define, and the query for comments, calls and imports.

    `actions` maps a node kind to what it defines; `into` holds kinds that are looked into for definitions."""

    def __init__(self, parser: "Parser", query: "Query", actions: dict[int, str], into: frozenset[int]) -> None:
        self.actions = actions
        self.into = into
        self._parser = parser
        self._query = query

    def parse(self, data: bytes) -> "Tree | None":
        """The tree of a source text."""
        return self._parser.parse(data)

    def captures(self, root: "Node") -> "dict[str, list[Node]]":
        """The nodes called comment, call and import."""
        from tree_sitter import QueryCursor

        return QueryCursor(self._query).captures(root)


class Grammars:
    """The grammars of one process; `known` holds those that were asked for. `folder` is where they are unpacked to,
    private to the person."""

    def __init__(self, folder: str, languages: Languages) -> None:
        self._folder = folder
        self._languages = languages
        self.known: dict[str, Grammar | None] = {}

    def of(self, language: str) -> Grammar | None:
        """The grammar of a language; None where there is none, or it cannot be loaded on this machine."""
        if language not in self.known:
            self.known[language] = self._load(language)
        return self.known[language]

    def _load(self, language: str) -> Grammar | None:
        row = self._languages.parsed.get(language)
        if row is None:
            return None
        try:
            os.environ[_FOLDER_VARIABLE] = unpack(self._folder, self._languages, (language,))
            import semble_grammars
            from tree_sitter import Parser, Query

            grammar = semble_grammars.get_language(row.grammar or language)
        except (ImportError, OSError, RuntimeError, ValueError, LookupError):
            return None
        actions: dict[int, str] = {}
        into: set[int] = set()
        for number in range(grammar.node_kind_count):
            kind = grammar.node_kind_for_id(number)
            if kind is None or not grammar.node_kind_is_named(number):
                continue
            if kind in row.definitions:
                actions[number] = row.definitions[kind]
            elif kind in self._languages.into:
                into.add(number)
        return Grammar(Parser(grammar), Query(grammar, "\n".join(row.query)), actions, frozenset(into))


def unpack(folder: str, languages: Languages, names: Iterable[str]) -> str:
    """Unpack the grammars of the languages `names` that are not yet, at once: the package would read its whole archive
    again for each. Returns where they are, a folder of this package's version."""
    found = _bundle()
    if found is None:
        return folder
    archive, manifest = found
    place = os.path.join(folder, _mark(manifest))
    target = os.path.join(place, manifest["platform"])
    rows = [(name, row) for name in names if (row := languages.parsed.get(name)) is not None]
    told = (manifest["languages"].get(row.grammar or name) for name, row in rows)
    wanted = {entry["file"]: entry["sha256"] for entry in told if entry is not None}
    wanted = {file: sha for file, sha in wanted.items() if not os.path.exists(os.path.join(target, file))}
    if not wanted:
        return place
    for path in (folder, place, target):
        private_dir(path)
    with tarfile.open(archive, "r:gz") as tar:
        for member in tar:
            source = tar.extractfile(member) if member.name in wanted else None
            data = source.read() if source is not None else b""
            if data and hashlib.sha256(data).hexdigest() == wanted.pop(member.name):
                atomic_write(os.path.join(target, member.name), data, 0o700)
            if not wanted:
                break
    return place


def _mark(manifest: dict[str, Any]) -> str:
    """A fingerprint of one package version's grammars."""
    return hashlib.sha256(json.dumps(manifest, sort_keys=True).encode()).hexdigest()[:16]


def _bundle() -> tuple[str, dict[str, Any]] | None:
    """The archive of compiled grammars of this machine's package, and what it says of itself."""
    try:
        platforms = resources.files("semble_grammars").joinpath("grammars")
        for platform in platforms.iterdir():
            manifest = platform.joinpath("manifest.json")
            if manifest.is_file():
                told = json.loads(manifest.read_bytes())
                return str(platform.joinpath(told["archive"])), told
    except (ImportError, OSError, ValueError, KeyError):
        return None
    return None
