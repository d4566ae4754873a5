"""Queries taken apart."""

import pytest

from codewhale.codesearch.query import CHANGE, QUESTION, SYMBOL, read_query
from codewhale.codesearch.terms import Terms


@pytest.mark.parametrize(
    ("text", "shape"),
    [
        ("Session", SYMBOL),
        ("Rack::Builder", SYMBOL),
        ("resolve_api_key()", SYMBOL),
        ("self->next", SYMBOL),
        ("how are sessions closed", QUESTION),
        ("cache store and driver", QUESTION),
        ("fix a crash when the store is empty", CHANGE),
        ("http2: clear the session at delete", CHANGE),
        ("feat(core)!: retry twice", CHANGE),
        ("Don't panic on an empty tree", CHANGE),
        ("", QUESTION),
    ],
)
def test_the_shape_of_a_query(text: str, shape: str) -> None:
    assert read_query(text, Terms()).shape == shape


def test_words_that_say_nothing_are_left_out_unless_there_are_no_others() -> None:
    assert read_query("where is the provider resolved", Terms()).words == ("provider", "resolved")
    assert read_query("what is this", Terms()).words == ("what", "is", "this")


def test_whole_names_are_terms_but_not_parts() -> None:
    query = read_query("who calls createStore", Terms())
    assert query.terms == {"call": 1, "creat": 1, "store": 1, "createstore": 1}
    assert query.parts == {"call", "creat", "store"}
    assert query.names == ("createStore",)


def test_neighbours_are_tried_as_one_name() -> None:
    query = read_query("rate limit retries", Terms())
    assert set(query.pairs) == {"ratelimit", "limitretries", "limitretrie", "ratelimitretries"}


@pytest.mark.parametrize("text", ["MAX_RETRIES", "foo(bar)", 'print "x" == y', '"pool is full"', "std::move", "a/b.py"])
def test_code_is_told_from_prose(text: str) -> None:
    assert read_query(text, Terms()).literal


@pytest.mark.parametrize("text", ["how are sessions closed", "Fix the empty tree", "retries, then gives up."])
def test_prose_is_no_code(text: str) -> None:
    assert not read_query(text, Terms()).literal


def test_a_very_long_query_is_cut() -> None:
    query = read_query("alpha beta " * 5_000, Terms())
    assert len(query.text) == 2_000 and len(query.words) == 48


@pytest.mark.parametrize(
    "text", ["where are the tests of the token store", "unit tests for retries", "which test covers it"]
)
def test_tests_can_be_asked_for(text: str) -> None:
    assert read_query(text, Terms()).tests


@pytest.mark.parametrize("text", ["how are tests run", "Fix the crash, unit tests added", "tokens"])
def test_tests_are_not_asked_for_by_their_mention(text: str) -> None:
    assert not read_query(text, Terms()).tests
