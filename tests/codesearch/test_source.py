"""Single files as the index sees them."""

from collections import Counter
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codewhale.codesearch.model import BODY, CALL, COMMENT, SYMBOL, ParsedSource
from codewhale.codesearch.source import LARGEST, SourceReader
from codewhale.codesearch.terms import ChunkWords, Terms, unpacked_words
from support.likeness import word_rows

TERMS = Terms()
PLAIN = SourceReader("/nowhere")


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> SourceReader:
    return SourceReader(str(tmp_path_factory.mktemp("state") / "grammars"))


def read(
    sources: SourceReader, path: str, data: bytes | None, *, plain: bool = False, known: Sequence[ChunkWords] = ()
) -> tuple[ParsedSource, dict[str, set[str]]]:
    """The source, and its terms by field."""
    source = sources.read(path, data, plain=plain, known=known)
    found: dict[str, set[str]] = {}
    for _, *fields in word_rows(source.words):
        for field, terms in zip((BODY, COMMENT, SYMBOL, CALL), fields, strict=True):
            if terms:
                found.setdefault(field, set()).update(terms.split(" "))
    return source, found


def body_lengths(source: ParsedSource) -> list[int]:
    return [chunk.body_length for chunk in unpacked_words(source.words)]


def test_each_field_has_its_words(sources: SourceReader) -> None:
    text = b'"""Harbours."""\n\n\ndef openGate(ship):\n    # let them in\n    return ship\n'
    source, terms = read(sources, "sea/port_side.py", text)
    assert {"harbour", "open", "gate", "opengat", "ship", "let"} & terms[BODY] >= {"harbour", "gate", "ship", "let"}
    assert {"harbour", "let"} <= terms[COMMENT] and "ship" not in terms[COMMENT]
    assert {"open", "gate"} <= terms[SYMBOL] and [symbol.name for _, symbol in source.symbols] == ["openGate"]
    assert (source.lang, source.lines, source.state) == ("python", 6, "")


@pytest.mark.parametrize(
    ("data", "state"),
    [
        (b"", "empty"),
        (b"a\0b", "binary"),
        (b"x" * 100_000, "minified"),
        (b"word\n" * (LARGEST // 5 + 2), "large"),
        (None, "unreadable"),
    ],
)
def test_what_is_no_text_is_found_by_its_path(sources: SourceReader, data: bytes | None, state: str) -> None:
    source, terms = read(sources, "some/whale.js", data)
    assert source.state == state and not terms and len(source.chunks) == (state != "binary")


def test_without_a_grammar_there_are_words_but_no_symbols(sources: SourceReader) -> None:
    source, terms = read(sources, "a.py", b"def openGate(): pass\n", plain=True)
    assert "gate" in terms[BODY] and source.symbols == [] and SYMBOL not in terms


def test_bytes_that_are_no_utf8_are_read_all_the_same(sources: SourceReader) -> None:
    _, terms = read(sources, "a.py", b"caf\xe9 = 'harbour'\n")
    assert "harbour" in terms[BODY]


def test_cjk_is_found_by_two_letters(sources: SourceReader) -> None:
    _, terms = read(sources, "a.md", "認証を解決する".encode())
    assert "認証" in terms[BODY]


TEXT = st.lists(
    st.sampled_from("open_gate openGate ship's Größe 認証キー x1y2 __init__ a-b HTTPServer".split()), max_size=12
)


@given(st.lists(TEXT.map(" ".join), min_size=1, max_size=4))
def test_a_chunk_has_each_term_as_often_as_its_text(texts: list[str]) -> None:
    source = PLAIN.read("a.txt", ("\n" * 60).join(texts).encode())
    counts: Counter[str] = Counter()
    lengths = Counter[int]()
    for at, body, *_ in word_rows(source.words):
        for term in body.split():
            counts[term] += at & 255
            lengths[at >> 8] += at & 255
    assert [lengths[number] for number in range(len(source.chunks))] == body_lengths(source)
    assert counts == Counter(TERMS.count("\n".join(texts)))


def test_counts_stop_at_255() -> None:
    source = PLAIN.read("a.txt", b"ship " * 1000 + b"sail")
    assert word_rows(source.words) == [(1, "sail", "", "", ""), (255, "ship", "", "", "")]
    assert body_lengths(source) == [1001]


def test_words_that_were_altered_are_not_read() -> None:
    for data in (b"", b"nonsense", PLAIN.read("a.txt", b"ship").words[:-3]):
        with pytest.raises(ValueError, match="cannot be read"):
            unpacked_words(data)


def python_source(*bodies: str) -> bytes:
    """A file of functions, a chunk each."""
    parts = (
        f"# part {at}\ndef step{at}(ship):\n    {body}\n" + "    go(ship)\n" * 90 for at, body in enumerate(bodies)
    )
    return "\n\n".join(parts).encode()


@pytest.mark.parametrize(
    "after", [("sail(ship)", "moor(ship)"), ("sail(ship)",), ("look()", "sail(ship)", "row(ship)")]
)
def test_words_known_from_before_give_what_reading_all_of_it_gives(
    sources: SourceReader, after: tuple[str, ...]
) -> None:
    before = sources.read("a.py", python_source("sail(ship)", "row(ship)"))
    data = python_source(*after)
    assert sources.read("a.py", data, known=unpacked_words(before.words)) == sources.read("a.py", data)


def test_a_chunk_that_is_as_it_was_is_not_counted_again(sources: SourceReader) -> None:
    first, *rest = unpacked_words(sources.read("a.py", python_source("sail(ship)", "row(ship)")).words)
    known = [ChunkWords(first.digest, 7, 0, [(1, "marked", "", "", "")]), *rest]
    source, terms = read(sources, "a.py", python_source("sail(ship)", "moor(ship)"), known=known)
    assert "marked" in terms[BODY] and "moor" in terms[BODY] and "row" not in terms[BODY]
    assert body_lengths(source)[0] == 7
