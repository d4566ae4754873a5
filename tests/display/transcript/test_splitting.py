"""Pieces of markdown: cut by the text alone, and each block of them can go on where the former ended."""

import pytest
from hypothesis import given

from codewhale.display.transcript.splitting import MOST_CHARS, MOST_CODE_LINES, MarkdownPiece, Splitter
from support.transcripts import markdown_texts, sliced


def pieces(text: str) -> list[MarkdownPiece]:
    splitter = Splitter()
    splitter.feed(text)
    return splitter.finish()


@given(sliced())
def test_slices_give_the_same_pieces(case: tuple[str, list[str]]) -> None:
    text, slices = case
    splitter = Splitter()
    for part in slices:
        splitter.feed(part)
        splitter.rest()
    assert splitter.finish() == pieces(text)


@given(markdown_texts)
def test_a_text_goes_on_behind_each_of_its_pieces(text: str) -> None:
    whole = pieces(text)
    for at, piece in enumerate(whole):
        if piece.then is None:
            continue
        later = Splitter(piece.then)
        later.feed(text[piece.end :])
        shown = [(other.text, other.code, other.goes_on) for other in later.finish()]
        assert shown == [(other.text, other.code, other.goes_on) for other in whole[at + 1 :]]


@given(markdown_texts)
def test_no_word_is_lost(text: str) -> None:
    kept = "".join(piece.text for piece in pieces(text))
    assert kept.count("word") == text.count("word") and kept.count("中") == text.count("中")


@pytest.mark.parametrize("mark", ["~~~", "```", "- ", "# "])
def test_the_rest_of_a_long_line_begins_nothing(mark: str) -> None:
    first = "x" * MOST_CHARS
    found = pieces(f"{first}{mark}word\n\nafter\n")
    assert [(piece.text, piece.code, piece.broken) for piece in found] == [
        (first, None, True),
        (f"{mark}word", None, False),
        ("after", None, False),
    ]
    code = pieces(f"```\n{first}```\n  word\n```\nafter\n")
    assert [(piece.text, piece.code is None) for piece in code] == [
        (first, False),
        ("```\n  word", False),
        ("after", True),
    ]


def test_prose_is_cut_at_blank_lines_and_code_at_its_fence() -> None:
    found = pieces("one\ntwo\n\nthree\n```py\na\n\nb\n```\nfour\n")
    assert [(piece.text, piece.code and piece.code.info, piece.gap) for piece in found] == [
        ("one\ntwo", None, False),
        ("three", None, True),
        ("a\n\nb", "py", False),
        ("four", None, False),
    ]


def test_code_of_a_list_item_is_set_off_by_its_indent() -> None:
    found = pieces("1. run\n   ```sh\n   ls\n     -l\n   ```\n2. done\n")
    assert [piece.text for piece in found] == ["1. run", "ls\n  -l", "2. done"]
    assert found[1].code is not None and found[1].code.indent == 3


def test_a_fence_that_begins_an_item_does_not_swallow_the_rest() -> None:
    found = pieces("- ```py\n  x = 1\n  ```\n\nafter\n")
    assert [piece.text for piece in found] == ["-", "x = 1", "after"]
    assert found[2].code is None


def test_pieces_are_bounded() -> None:
    line = "word " * 300_000
    assert max(len(piece.text) for piece in pieces(line)) <= MOST_CHARS
    code = pieces("```\n" + "x\n" * 1_000 + "```\n")
    assert max(piece.text.count("\n") + 1 for piece in code) <= MOST_CODE_LINES
    assert [piece.goes_on for piece in code] == [False] + [True] * (len(code) - 1)
