"""Questions of scripts: one at a time or a line each, complete unless told not to wait."""

import fcntl
import json
import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from codewhale.cli.offline.search import Asked, Searcher, refused
from codewhale.codesearch.build import CodeIndex
from codewhale.protocol.errors import CodeWhaleError
from support.searchtree import planted


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    return planted(tmp_path)


@pytest.fixture
async def searcher(tree: Path, tmp_path: Path) -> AsyncIterator[Searcher]:
    made = Searcher(str(tmp_path / "home"), str(tree), Asked(most=3))
    yield made
    await made.aclose()


async def test_a_line_is_answered_with_places_alone(searcher: Searcher) -> None:
    found = await searcher.line(b'{"id": [1, "x"], "query": "TokenStore", "more": true}')
    assert found.keys() == {"id", "results"} and found["id"] == [1, "x"] and len(found["results"]) == 3
    assert found["results"][0].keys() == {"path", "line", "end_line", "score"}
    assert (found["results"][0]["path"], found["results"][0]["line"]) == ("src/auth/token_store.py", 4)
    assert [row["score"] for row in found["results"]] == sorted(
        (row["score"] for row in found["results"]), reverse=True
    )


async def test_the_same_question_has_the_same_answer(searcher: Searcher) -> None:
    lines = [await searcher.line(b'{"query": "expired tokens"}') for _ in range(3)]
    assert lines[0] == lines[1] == lines[2] and lines[0]["id"] is None


@pytest.mark.parametrize(
    "line",
    [
        b"", b"query", b"[]", b"{}", b'{"query": 5}', b'{"query": null}', b'{"id": 1}', b'{"query": "a"', b"\xff\xfe",
        b'{"query": "\\ud800"}', b"[" * 100_000,
    ],
)  # fmt: skip
async def test_a_line_that_is_no_query_is_refused_in_words(searcher: Searcher, line: bytes) -> None:
    with pytest.raises(ValueError, match="not a JSON object with id and query") as caught:
        await searcher.line(line)
    told = refused(7, caught.value)
    assert (told["id"], told["line"], told["error"]["code"]) == (None, 7, "bad_line")
    assert len(told["error"]["message"]) < 500


async def test_an_empty_query_finds_nothing(searcher: Searcher) -> None:
    for query in ("", "   ", "\u2028", "\0", "!?"):
        assert (await searcher.line(json.dumps({"query": query}).encode()))["results"] == []


async def test_both_ways_of_telling(searcher: Searcher) -> None:
    text, notes = await searcher.listed("rate limiter")
    assert text.split("\n")[0].split()[1].startswith("src/net/rate_limiter.py:") and notes == ()
    assert json.loads(await searcher.told("rate limiter"))["results"][0]["path"] == "src/net/rate_limiter.py"


async def test_who_does_not_wait_is_told_that_it_is_partial(tree: Path, tmp_path: Path) -> None:
    searcher = Searcher(str(tmp_path / "home"), str(tree), Asked(no_wait=True))
    held = CodeIndex(str(tree), str(tmp_path / "home")).path + ".lock"
    os.makedirs(os.path.dirname(held))
    lock = os.open(held, os.O_RDWR | os.O_CREAT)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        found = await searcher.line(b'{"id": 1, "query": "rate limiter"}')
        await searcher.aclose()
    finally:
        os.close(lock)
    assert (found["partial"], found["coverage"]) == (True, 0.0)
    assert found["results"][0]["path"] == "src/net/rate_limiter.py"


@pytest.mark.parametrize("asked", [Asked(lang="klingon"), Asked(kind="walrus"), Asked(path_glob="a" * 2000)])
def test_a_filter_that_cannot_be_is_an_error(asked: Asked, tmp_path: Path) -> None:
    with pytest.raises(CodeWhaleError, match="must be"):
        Searcher(str(tmp_path), str(tmp_path), asked)


async def test_filters_hold_for_every_line(tree: Path, tmp_path: Path) -> None:
    searcher = Searcher(str(tmp_path / "home"), str(tree), Asked(path_glob="*.md", lang="markdown"))
    found = await searcher.line(b'{"query": "token store"}')
    await searcher.aclose()
    assert {row["path"] for row in found["results"]} <= {"docs/tokens.md", "README.md"} and found["results"]
