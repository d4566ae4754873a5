"""The text of a sub-query, and the same built again from what the log keeps."""

import pytest

from codewhale.rlm.recipes import query_text, recipe, text_of


def test_a_part_stands_where_the_prompt_says_or_below_it() -> None:
    assert query_text("Count the words of: {slice}!", "a b") == "Count the words of: a b!"
    assert query_text("Count the words.", "a b") == "Count the words.\n\na b"
    assert query_text("What is {slice}?", "") == "What is {slice}?"


def test_the_text_is_built_again_from_hashes_and_a_span() -> None:
    kept, data = {"p1": b"Which colour?"}, "zero 蓝色 red".encode()
    made = recipe("p1", "s1", (5, 12))
    assert text_of(made, kept.__getitem__, lambda sha, start, end: data[start:end]) == "Which colour?\n\n蓝色 "
    assert text_of(recipe("p1", "", (0, 0)), kept.__getitem__, lambda *_: b"") == "Which colour?"
    with pytest.raises(KeyError):
        text_of(recipe("p2", "s1", (0, 1)), kept.__getitem__, lambda *_: b"")
