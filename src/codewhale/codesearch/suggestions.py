"""What to ask instead where nothing was found: which part of a question left out everything, and names that a name
which nothing is called may have meant."""

from collections import Counter
from collections.abc import Iterator, Sequence

from codewhale.codesearch.model import SYMBOL, folded
from codewhale.codesearch.rank import Filter
from codewhale.codesearch.reader import IndexReader
from codewhale.codesearch.terms import Terms, word_parts
from codewhale.lib.text import one_line, scrub_surrogates

MOST = 3
_SAME_LETTERS = 2  # at the beginning of names that are spelled nearly alike
_LOOKED_AT = 5_000
_MOST_FILES = 50
_CLOSE = 0.75  # of difflib's ratio
_MOST_GLOB = 100  # characters that are told of one
_WILD = frozenset("*?[]{}\\")


def empty_answer_hint(reader: IndexReader, only: Filter) -> str:
    """One or two sentences for a query without results."""
    spoken = Counter(file.lang or "plain" for file in reader.files if only.paths is None or only.paths(file.path))
    if not reader.files:
        return "There are no files to search: the folder is empty, or its files are ignored. Look with list_dir."
    if not spoken:
        near = _folders_like(only.glob, reader.paths)
        instead = f" Do you mean {' or '.join(near)}?" if near else " Leave path_glob out, or look with list_dir."
        return f"path_glob {one_line(only.glob, _MOST_GLOB)} matches none of the {len(reader.paths):,} files.{instead}"
    if only.lang and not spoken[only.lang]:
        others = ", ".join(f"{lang} {count:,}" for lang, count in spoken.most_common(MOST))
        return f"No file {_within(only)}is in {only.lang}: {others}."
    where = _within(only).strip() or "here"
    if only.kind:
        return f"No file {where} that defines a {only.kind} contains a query word. Leave kind out, or use other words."
    return f"No file {where} contains a query word. Use words that the code would use, or say what it does."


def _within(only: Filter) -> str:
    return f"in {one_line(only.glob, _MOST_GLOB)} " if only.glob else ""


def _folders_like(glob: str, paths: Sequence[str]) -> list[str]:
    """Globs of at most three folders that are called like the last plain folder of a glob, those first that share most
    of its other folders."""
    named = [part for part in glob.split("/") if part and not _WILD.intersection(part)]

    def likeness(folder: str) -> tuple[int, int, str]:
        return -len({*folder.split("/")} & {*named}), len(folder), folder

    for name in reversed(named):
        found = {path[: at + len(name) + 1] for path in paths if (at := f"/{path}".find(f"/{name}/")) >= 0}
        if found:
            return [f"{folder.rstrip('/')}/**" for folder in sorted(found, key=likeness)[:MOST]]
    return []


def similar_names(reader: IndexReader, name: str) -> tuple[str, ...]:
    """At most three names that are defined in the tree: those spelled nearly like `name`, then those that hold all its
    words, the shortest first."""
    if not name.strip():
        return ()
    holding = sorted(_holding(reader, name), key=lambda one: (len(one), one))
    return tuple(dict.fromkeys([*_spelled(reader, name), *holding]))[:MOST]


def _spelled(reader: IndexReader, name: str) -> Iterator[str]:
    import difflib

    wanted = folded(scrub_surrogates(name))
    known = reader.names_with_prefix(wanted[:_SAME_LETTERS], _LOOKED_AT)
    for term in difflib.get_close_matches(wanted, known, MOST, _CLOSE):
        for _, symbol in reader.defined(term, fold=True)[:1]:
            yield symbol.name


def _holding(reader: IndexReader, name: str) -> set[str]:
    import numpy

    terms, chunks = Terms(), None
    words = {terms.stem(part.lower()) for part in word_parts(name)}
    for word in words:
        found, _ = reader.postings(SYMBOL, word)
        chunks = found if chunks is None else numpy.intersect1d(chunks, found, assume_unique=True)
    files = {int(reader.chunk_file[chunk]) for chunk in ([] if chunks is None else chunks.tolist())}
    symbols = (symbol for file in sorted(files)[:_MOST_FILES] for symbol in reader.symbols(file))
    return {symbol.name for symbol in symbols if words <= set(terms.expand(symbol.name))}
