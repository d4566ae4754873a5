"""Lines: safe, never too wide, nothing lost."""

from hypothesis import given
from hypothesis import strategies as st

from codewhale.display.text import cells, clean, ends, fit, fold_hard, wrap

TEXTS = st.text(alphabet=st.sampled_from("ab 中文，é́👍\ufe0f-x"), max_size=200)


@given(TEXTS, st.integers(8, 60))
def test_words_fit_and_none_is_lost(text: str, width: int) -> None:
    lines = wrap([(text, "text")], width, (("• ", "accent"),), (("  ", "text"),))
    assert all(cells(line.text) <= width for line in lines)
    assert "".join(line.text[2:] for line in lines).replace(" ", "") == text.replace(" ", "")


@given(TEXTS, st.integers(8, 60))
def test_code_keeps_every_character(text: str, width: int) -> None:
    lines = fold_hard([(text, "code")], width, ((" ", "code"),))
    assert all(cells(line.text) <= width for line in lines)
    assert "".join(line.text[1:] for line in lines) == text


def test_words_part_at_blanks_and_between_wide_characters() -> None:
    assert [line.text.rstrip() for line in wrap([("one two three", "text")], 8)] == ["one two", "three"]
    assert [line.text for line in wrap([("中文字符，中文", "text")], 8)] == ["中文字", "符，中文"]


def test_spans_keep_their_styles_where_a_line_ends() -> None:
    lines = wrap([("one ", "bold"), ("two three", "text")], 7)
    assert [line.spans for line in lines] == [(("one ", "bold"), ("two", "text")), (("three", "text"),)]


def test_marks_without_width_do_not_make_a_line_endless() -> None:
    lines = wrap([("a" + "\u0301" * 5_000, "text")], 20)
    assert max(len(line.text) for line in lines) <= 80
    assert sum(len(line.text) for line in lines) == 5_001


def test_what_is_cut_ends_in_an_ellipsis() -> None:
    assert fit("abcdef", 4) == "abc…"
    assert fit("中文字", 4) == "中…"
    assert fit("abc", 4) == "abc"


@given(st.text(max_size=60))
def test_nothing_that_a_terminal_obeys_is_left(text: str) -> None:
    assert not any((ord(char) < 32 and char != "\n") or 0x7F <= ord(char) < 0xA0 for char in clean(text))
    assert "\u202e" not in clean(text)


def test_line_ends_and_tabs() -> None:
    assert clean("a\r\nb\rc\td") == "a\nb\nc   d"


def test_a_long_text_keeps_both_its_ends() -> None:
    assert ends("abcdefghi", 9) == "abcdefghi"
    assert ends("a" * 50 + "END", 9) == "aaaaaa … +44 … END"
