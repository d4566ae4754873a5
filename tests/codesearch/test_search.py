"""Questions to a folder: what comes before its index, with it, and when it is held, damaged, gone or out of date."""

import asyncio
import fcntl
import os
import re
import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from codewhale.codesearch.build import CodeIndex
from codewhale.codesearch.rank import Filter
from codewhale.codesearch.search import MOST_ROOTS, CodeSearch
from codewhale.protocol.errors import CodeWhaleError
from support.searchtree import planted


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    return planted(tmp_path)


@pytest.fixture
def state(tmp_path: Path) -> str:
    return str(tmp_path / "state")


@pytest.fixture
async def search(state: str) -> AsyncIterator[CodeSearch]:
    found = CodeSearch(state)
    yield found
    await found.aclose()


async def test_the_best_come_first_with_what_is_known_of_the_index(search: CodeSearch, tree: Path) -> None:
    answer = await search.search(str(tree), "how are expired tokens refreshed", 3, patience=None)
    assert answer.hits[0].path == "src/auth/token_store.py" and len(answer.hits) == 3
    assert answer.coverage == 1.0 and answer.age is not None and answer.age < 60 and answer.notes == ()
    assert "lexical" in answer.backend.split("+")


async def test_changes_are_seen_by_the_next_question(search: CodeSearch, tree: Path) -> None:
    await search.search(str(tree), "walrus", patience=None)
    (tree / "src/walrus.py").write_text("def walrus_song(): pass\n")
    (tree / "src/net/retry.py").unlink()
    answer = await search.search(str(tree), "walrus song", patience=None)
    assert [hit.path for hit in answer.hits][:1] == ["src/walrus.py"]
    again = await search.search(str(tree), "retry with backoff", patience=None)
    assert "src/net/retry.py" not in [hit.path for hit in again.hits]


async def test_answers_follow_many_small_changes(search: CodeSearch, tree: Path) -> None:
    for number in range(30):
        (tree / f"new{number}.py").write_text(f"walrus_{number} = {number}\n")
        await search.search(str(tree), "walrus", patience=None)
    answer = await search.search(str(tree), "walrus_7", patience=None)
    assert [hit.path for hit in answer.hits][:1] == ["new7.py"] and answer.notes == ()


async def test_without_patience_names_and_text_answer_and_it_is_said(search: CodeSearch, tree: Path) -> None:
    answer = await search.search(str(tree), "rate limiter", patience=0.0)
    assert (answer.backend, answer.age, answer.coverage) == ("path+text", None, 0.0)
    assert answer.hits[0].path == "src/net/rate_limiter.py" and "being built" in answer.notes[0]
    later = await search.search(str(tree), "rate limiter", patience=None)
    assert later.notes == () and later.age is not None


async def test_an_index_that_another_holds_is_answered_from_as_it_is(tree: Path, state: str) -> None:
    search = CodeSearch(state)
    await search.search(str(tree), "tokens", patience=None)
    held = os.open(CodeIndex(str(tree), state).path + ".lock", os.O_RDWR)
    try:
        fcntl.flock(held, fcntl.LOCK_EX)
        (tree / "src/walrus.py").write_text("def walrus(): pass\n")
        answer = await search.search(str(tree), "TokenStore", patience=0.2)
        assert answer.hits[0].path == "src/auth/token_store.py" and "brought up to date" in answer.notes[0]
        await search.aclose()
    finally:
        os.close(held)


async def test_a_damaged_index_is_made_anew(tree: Path, state: str) -> None:
    path = Path(CodeIndex(str(tree), state).path)
    first = CodeSearch(state)
    await first.search(str(tree), "tokens", patience=None)
    await first.aclose()
    for ending in ("-wal", "-shm"):
        Path(f"{path}{ending}").unlink(missing_ok=True)
    path.write_bytes(b"no database at all, though long enough " * 200)
    second = CodeSearch(state)
    answer = await second.search(str(tree), "TokenStore", patience=None)
    await second.aclose()
    assert answer.hits[0].path == "src/auth/token_store.py" and answer.coverage == 1.0


async def test_a_folder_that_has_gone_is_an_error_that_names_it(search: CodeSearch, tree: Path) -> None:
    await search.search(str(tree), "tokens", patience=None)
    shutil.rmtree(tree)
    with pytest.raises(FileNotFoundError, match=re.escape(str(tree))):
        await search.search(str(tree), "tokens", patience=None)


async def test_an_empty_folder_has_an_index_in_which_nothing_is(search: CodeSearch, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    answer = await search.search(str(tmp_path / "empty"), "tokens or anything", patience=None)
    assert (answer.hits, answer.coverage, answer.notes) == ((), 1.0, ())


async def test_filters_bound_what_is_found(search: CodeSearch, tree: Path) -> None:
    only = Filter(lambda path: path.startswith("src/"), "python", "class")
    answer = await search.search(str(tree), "tokens calls sessions", only=only, patience=None)
    assert {hit.path for hit in answer.hits} == {"src/auth/token_store.py", "src/net/rate_limiter.py"}


async def test_questions_at_once_share_one_building(search: CodeSearch, tree: Path) -> None:
    asked = [search.search(str(tree), "TokenStore", patience=None) for _ in range(5)]
    answers = await asyncio.gather(*asked)
    assert {answer.hits[0].path for answer in answers} == {"src/auth/token_store.py"}
    assert len({tuple(hit.path for hit in answer.hits) for answer in answers}) == 1


async def test_few_folders_are_open_at_a_time(search: CodeSearch, tmp_path: Path) -> None:
    for number in range(MOST_ROOTS + 2):
        folder = tmp_path / f"tree{number}"
        folder.mkdir()
        (folder / "a.py").write_text(f"def walrus{number}(): pass\n")
        answer = await search.search(str(folder), f"walrus{number}", patience=None)
        assert [hit.symbol for hit in answer.hits] == [f"walrus{number}"]
    again = await search.search(str(tmp_path / "tree0"), "walrus0", patience=None)
    assert [hit.symbol for hit in again.hits] == ["walrus0"]


async def test_what_tools_touched_counts_and_is_kept(tree: Path, state: str, tmp_path: Path) -> None:
    (tmp_path / "outside").write_text("x")
    touched = ["./src/net/retry.py", str(tree / "README.md"), "src", "gone.py", "../outside", "a\0b"]
    search = CodeSearch(state, lambda root: touched)
    answer = await search.search(str(tree), "client calls again later", patience=None)
    touched.clear()
    await search.aclose()
    told = {hit.path: reason.detail for hit in answer.hits for reason in hit.reasons if reason.signal == "session"}
    assert told["src/net/retry.py"].startswith("touched once") and told.keys() <= {"src/net/retry.py", "README.md"}
    later = CodeSearch(state)
    answer = await later.search(str(tree), "client calls again later", patience=None)
    await later.aclose()
    assert any(reason.signal == "session" for hit in answer.hits for reason in hit.reasons)


async def test_closing_stops_what_is_being_built(search: CodeSearch, tree: Path) -> None:
    for number in range(300):
        (tree / f"f{number}.py").write_text(f"def f{number}(): pass\n" * 50)
    await search.search(str(tree), "tokens", patience=0.0)
    await search.aclose()
    answer = await search.search(str(tree), "f299", patience=None)
    assert answer.hits[0].path == "f299.py"


async def test_a_state_that_cannot_be_written_is_an_error(tree: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    search = CodeSearch(str(tmp_path / "file" / "state"))
    with pytest.raises((OSError, CodeWhaleError)):
        await search.search(str(tree), "tokens", patience=None)
    await search.aclose()
