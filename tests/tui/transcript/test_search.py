"""Searching: every text is looked at, from the last one, and places are gone through around the end."""

from hypothesis import given
from hypothesis import strategies as st

from codewhale.tui.transcript.search import TextSearch

TEXTS = st.lists(st.text(alphabet="abAB ", max_size=8), max_size=200)


@given(TEXTS, st.text(alphabet="abAB", min_size=1, max_size=3))
def test_all_are_found(texts: list[str], query: str) -> None:
    search = TextSearch(len(texts), texts.__getitem__, query)
    while not search.done:
        search.scan(0.0)
    assert search.found == [at for at, text in enumerate(texts) if query.casefold() in text.casefold()]


def test_the_last_are_found_first() -> None:
    texts = ["x"] * 1_000
    search = TextSearch(len(texts), texts.__getitem__, "x")
    assert search.scan(0.0) and search.found[-1] == 999 and not search.done


def test_going_from_one_to_the_next() -> None:
    texts = ["a", "x", "b", "x", "x"]
    search = TextSearch(len(texts), texts.__getitem__, "x")
    search.scan(1.0)
    assert [search.near(at, 1) for at in (0, 1, 3, 4)] == [1, 3, 4, 1]
    assert [search.near(at, -1) for at in (4, 3, 1)] == [3, 1, 4]
    assert [search.place(at) for at in (1, 3, 4, 2)] == [1, 2, 3, 0]


def test_nothing_is_found_for_nothing() -> None:
    search = TextSearch(3, ["a", "b", "c"].__getitem__, "")
    assert search.done and search.near(0, 1) == -1
