"""Cutting text, making it harmless, making it ASCII."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codewhale.lib.text import ascii_json, head_tail, one_line, sanitise, scrub_surrogates


@pytest.mark.parametrize(
    "attack",
    [
        "\x1b]52;c;AAAA\x07",
        "\x1b[2J",
        "\x9b31m",
        "\x9d0;t\x9c",
        "\r",
        "\x08",
        "\u202e",
        "\u200b",
        "\ufeff",
        "\U000e0041",
        "\U000e0141\U000e0142",
        "\ufe01\ufe02",
        "\u3164",
        "\u034f",
        "\U0001d173",
    ],
)
def test_nothing_that_moves_a_terminal_is_left(attack: str) -> None:
    shown = sanitise(f"a{attack}b")
    assert all(char.isprintable() for char in shown) and shown.startswith("a") and shown.endswith("b")
    assert len(shown) > 2  # shown as an escape, not dropped


@given(st.text(st.characters(max_codepoint=127)))
def test_ascii_is_made_harmless_as_within_other_text(text: str) -> None:
    assert sanitise(text) + "ä" == sanitise(text + "ä")


def test_plain_text_with_tabs_and_newlines_is_left_alone() -> None:
    text = "def f():\n\treturn 'Grüße, 世界'\n"
    assert sanitise(text) is text or sanitise(text) == text


@pytest.mark.parametrize("text", ["1\ufe0f\u20e3", "❤\ufe0f", "葛\U000e0100", "☎\ufe0e", "🏳\ufe0f\u200d🌈", "≨\ufe00"])
def test_a_sign_with_variants_keeps_the_one_that_is_meant(text: str) -> None:
    assert sanitise(text) == text


def test_one_line_folds_and_cuts() -> None:
    assert one_line(" a\n b\t c ") == "a b c"
    cut = one_line("x" * 500, 20)
    assert len(cut) == 20 and cut.endswith("…")


@given(st.text())
def test_ascii_json_means_the_same(text: str) -> None:
    data = json.dumps(text, ensure_ascii=False).encode("utf-8", "surrogatepass")
    line = ascii_json(data)
    assert line.isascii() and "\n" not in line and json.loads(line) == text


@given(st.text(alphabet=st.characters()))
def test_scrubbed_text_encodes(text: str) -> None:
    scrub_surrogates(text + "\ud800").encode()
    assert scrub_surrogates("é\ud83d") == "é\ufffd"


@given(st.text(max_size=400), st.integers(min_value=8, max_value=200))
def test_head_and_tail_are_the_ends_and_fit(text: str, limit: int) -> None:
    head, tail, omitted = head_tail(text, limit)
    size = len(text.encode())
    if size <= limit:
        assert (head, tail, omitted) == (text, "", 0)
        return
    assert text.startswith(head) and text.endswith(tail)
    kept = len(head.encode()) + len(tail.encode())
    assert kept <= limit and omitted == size - kept > 0


def test_cuts_fall_on_line_ends() -> None:
    text = "".join(f"line {number}\n" for number in range(1000))
    head, tail, _ = head_tail(text, 1000)
    assert head.endswith("\n") and tail.startswith("line ")
