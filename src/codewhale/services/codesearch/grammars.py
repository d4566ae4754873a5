"""Parsers for the languages that have one, behind one adapter: compiled grammars are unpacked from their package into
the state directory once, loaded when a file first needs them, and done without where they cannot be had."""

import hashlib
import json
import os
import tarfile
from importlib import resources
from typing import TYPE_CHECKING, Any

from codewhale.lib.files import atomic_write, private_dir
from codewhale.services.codesearch.languages import Languages

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
    """The grammars of one process. `folder` is where they are unpacked to, private to the person."""

    def __init__(self, folder: str, languages: Languages) -> None:
        self._folder = folder
        self._languages = languages
        self._known: dict[str, Grammar | None] = {}

    def of(self, language: str) -> Grammar | None:
        """The grammar of a language; None where there is none, or it cannot be loaded on this machine."""
        if language not in self._known:
            self._known[language] = self._load(language)
        return self._known[language]

    def _load(self, language: str) -> Grammar | None:
        row = self._languages.parsed.get(language)
        if row is None:
            return None
        try:
            unpack(self._folder, self._languages)
            os.environ[_FOLDER_VARIABLE] = self._folder
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


def unpack(folder: str, languages: Languages) -> None:
    """Unpack every grammar of the table at once: the package would read its whole archive again for each."""
    found = _bundle()
    if found is None:
        return
    archive, manifest = found
    target = os.path.join(folder, manifest["platform"])
    mark = os.path.join(target, "complete-" + manifest_mark(manifest))
    if os.path.exists(mark):
        return
    private_dir(folder)
    private_dir(target)
    wanted = {manifest["languages"].get(row.grammar or name, {}).get("file"): name for name, row in
              languages.parsed.items()}  # fmt: skip
    sums = {entry["file"]: entry["sha256"] for entry in manifest["languages"].values()}
    with tarfile.open(archive, "r:gz") as tar:
        for member in tar:
            source = tar.extractfile(member) if member.name in wanted else None
            data = source.read() if source is not None else b""
            if data and hashlib.sha256(data).hexdigest() == sums[member.name]:
                atomic_write(os.path.join(target, member.name), data, 0o700)
    atomic_write(mark, b"")


def manifest_mark(manifest: dict[str, Any]) -> str:
    """What tells one package version's grammars from another's."""
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
