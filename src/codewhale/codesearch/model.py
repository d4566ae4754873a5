"""What an index holds: the words that chunker, store and ranking share. Lines are 1-based and inclusive, paths POSIX
from the root."""

from msgspec import Struct

# The fields of a chunk, each with its own postings. `body` is the whole text, comments included; `comment` its comments
# and docstrings again; `symbol` the terms of the names defined in it and around it; `call` the names that are called,
# as written; `defined` the names that are defined, folded.
BODY, COMMENT, SYMBOL, CALL, DEFINED = "body", "comment", "symbol", "call", "defined"

# What a symbol or a chunk can be.
KINDS = (
    "block", "fn", "class", "struct", "enum", "trait", "interface", "impl", "const", "type", "module", "macro", "doc",
)  # fmt: skip


class Symbol(Struct, frozen=True, array_like=True):
    """A definition. `scope` is what encloses it, dotted ("" at the top)."""

    name: str
    kind: str
    line: int
    end_line: int
    scope: str = ""


class Chunk(Struct, frozen=True, array_like=True):
    """A stretch of a file that is found as one. `symbol` is its main definition ("" for a plain stretch)."""

    line: int
    end_line: int
    kind: str
    symbol: str


class ParsedSource(Struct, array_like=True):
    """What a file is. `state` is "" when its text is in, else why it is not ("large", "binary", "minified", "empty",
    "unreadable", "failed"); then it has one chunk without text, or none at all for a binary one. Each symbol comes with
    the number of its chunk; `words` are packed by `terms.packed_words`."""

    lang: str
    sha: bytes
    lines: int
    state: str
    chunks: list[Chunk]
    symbols: list[tuple[int, Symbol]]
    imports: list[tuple[int, str]]
    words: bytes


class IndexedFile(Struct, array_like=True):
    """A file as it is stored. A `ctime_ns` of 0 is a stamp not to be trusted."""

    path: str
    size: int
    mtime_ns: int
    ctime_ns: int
    source: ParsedSource


class FileDoc(Struct, frozen=True, array_like=True):
    """A file as it was when it was indexed: `lang` is "" where it is not known; `state` says why its text is not in
    ("" when it is); its `chunks` chunks are numbered from `first` on."""

    id: int
    path: str
    lang: str
    state: str
    size: int
    lines: int
    first: int
    chunks: int


class Commit(Struct, frozen=True, array_like=True):
    """A commit as a document: Unix seconds, its subject, and the paths it changed (at most 30)."""

    sha: str
    at: int
    subject: str
    paths: tuple[str, ...]


class Stamp(Struct, frozen=True, array_like=True):
    """What a file was known by when it was indexed. A `ctime_ns` of 0 is a stamp not to be trusted."""

    size: int
    mtime_ns: int
    ctime_ns: int


class Touch(Struct, frozen=True, array_like=True):
    """That sessions looked at or changed a path: how often, and last when (Unix nanoseconds)."""

    path: str
    count: int
    last_ns: int


def folded(name: str) -> str:
    """A name without case and underscores: `rate_limit`, `RateLimit` and `RATE_LIMIT` are one."""
    return name.replace("_", "").lower() or name
