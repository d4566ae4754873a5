"""Single files as the index sees them."""

import pytest

from codewhale.codesearch.model import BODY, COMMENT, DEFINED, PATH, SYMBOL
from codewhale.codesearch.segment import Gathering, decoded
from codewhale.codesearch.source import LARGEST, Source, Sources
from support.likeness import entries


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Sources:
    return Sources(str(tmp_path_factory.mktemp("state") / "grammars"))


def read(sources: Sources, path: str, data: bytes | None, *, plain: bool = False) -> tuple[Source, dict[str, set[str]]]:
    """The source, and its terms by field."""
    gathering = Gathering(sources.vocabulary)
    source = sources.read(path, data, gathering, plain=plain)
    found: dict[str, set[str]] = {}
    for _, block in gathering.packed()[1]:
        for key, _ in entries(decoded(block)):
            found.setdefault(key[0], set()).add(key[1:])
    return source, found


def test_each_field_has_its_words(sources: Sources) -> None:
    text = b'"""Harbours."""\n\n\ndef openGate(ship):\n    # let them in\n    return ship\n'
    source, terms = read(sources, "sea/port_side.py", text)
    assert {"harbour", "open", "gate", "opengat", "ship", "let"} & terms[BODY] >= {"harbour", "gate", "ship", "let"}
    assert {"harbour", "let"} <= terms[COMMENT] and "ship" not in terms[COMMENT]
    assert {"open", "gate"} <= terms[SYMBOL] and terms[DEFINED] == {"opengate"}
    assert {"port", "side", "sea"} <= terms[PATH]
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
def test_what_is_no_text_is_found_by_its_path(sources: Sources, data: bytes | None, state: str) -> None:
    source, terms = read(sources, "some/whale.js", data)
    assert source.state == state and BODY not in terms
    assert ("whale" in terms.get(PATH, ())) == (state != "binary")


def test_without_a_grammar_there_are_words_but_no_symbols(sources: Sources) -> None:
    source, terms = read(sources, "a.py", b"def openGate(): pass\n", plain=True)
    assert "gate" in terms[BODY] and source.outline.symbols == [] and SYMBOL not in terms


def test_bytes_that_are_no_utf8_are_read_all_the_same(sources: Sources) -> None:
    _, terms = read(sources, "a.py", b"caf\xe9 = 'harbour'\n")
    assert "harbour" in terms[BODY]


def test_cjk_is_found_by_two_letters(sources: Sources) -> None:
    _, terms = read(sources, "a.md", "認証を解決する".encode())
    assert "認証" in terms[BODY]
