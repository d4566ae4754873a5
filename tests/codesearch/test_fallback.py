"""Answers without an index: from names and plain text, whatever stands in either."""

import os
from pathlib import Path

import pytest

from codewhale.codesearch.fallback import fallback_hits
from codewhale.codesearch.rank import Filter
from support.machine import RIPGREP
from support.searchtree import planted


@pytest.fixture
def root(tmp_path: Path) -> str:
    return os.path.realpath(planted(tmp_path))


async def test_names_and_texts_lead_there(root: str) -> None:
    first, *_ = await fallback_hits(root, "rate limiter", 5, Filter())
    assert first.path == "src/net/rate_limiter.py" and first.line >= 1
    assert first.score == pytest.approx(sum(reason.value for reason in first.reasons), abs=0.002)
    assert {reason.signal for reason in first.reasons} <= {"text", "path"}


@RIPGREP
async def test_a_word_in_the_text_alone_is_found_at_its_line(root: str) -> None:
    (found, *_) = await fallback_hits(root, "revoked", 5, Filter())
    text = Path(root, found.path).read_text().split("\n")
    assert found.path == "src/auth/token_store.py" and "revoked" in text[found.line - 1]


async def test_tests_and_papers_come_after_code(root: str) -> None:
    paths = [hit.path for hit in await fallback_hits(root, "token store", 9, Filter())]
    assert paths[0] == "src/auth/token_store.py" and paths.index("tests/test_token_store.py") > 0


async def test_they_are_as_many_as_asked_and_filtered(root: str) -> None:
    assert len(await fallback_hits(root, "token", 2, Filter())) == 2
    hits = await fallback_hits(root, "token", 9, Filter(lambda path: path.endswith(".md")))
    assert hits and all(hit.path.endswith(".md") for hit in hits)


@pytest.mark.parametrize("query", ["", " ", "xyzzyplugh", "-e", "--files", "\u2028", "\0", "(", "a" * 3000])
async def test_odd_words_find_little_and_harm_nothing(root: str, query: str) -> None:
    assert len(await fallback_hits(root, query, 3, Filter())) <= 3


async def test_an_empty_folder_has_nothing(tmp_path: Path) -> None:
    assert await fallback_hits(str(tmp_path), "token", 5, Filter()) == []


async def test_odd_names_are_passed_over_or_told(tmp_path: Path) -> None:
    Path(os.fsdecode(os.fsencode(str(tmp_path)) + b"/walrus\xff.py")).write_text("walrus = 1\n")
    (tmp_path / "two\nlines walrus.py").write_text("walrus = 2\n")
    assert [hit.path for hit in await fallback_hits(str(tmp_path), "walrus", 5, Filter())] == ["two\nlines walrus.py"]


async def test_a_language_is_asked_for_by_the_names_of_files(root: str) -> None:
    hits = await fallback_hits(root, "token", 9, Filter(lang="markdown"))
    assert hits and all(hit.path.endswith(".md") for hit in hits)
