"""Streamed text with calls in it: in whatever pieces it comes, the same is shown, nothing is lost, and no mark of a
call that is meant is seen."""

from itertools import groupby

import pytest

from codewhale.agent.holdback import HoldBack
from codewhale.catalog.registry import Catalog
from codewhale.repair.repairer import CallRepairer
from support.writtencalls import Sample, meant, shown

REPAIR = CallRepairer(Catalog.load())


def stream(pieces: list[str]) -> tuple[str, str]:
    hold = HoldBack()
    seen = "".join(hold.feed(piece) for piece in pieces)
    return seen, hold.end()


def groups(samples: list[Sample]) -> list[list[Sample]]:
    return [list(group) for _, group in groupby(samples, key=lambda sample: sample.id.split("/")[0])]


def named(samples: list[Sample]) -> str:
    return samples[0].id.split("/")[0]


@pytest.mark.parametrize("samples", groups(list(meant())), ids=named)
def test_calls_are_held_back_wherever_the_text_is_split(samples: list[Sample]) -> None:
    for sample in samples:
        text = sample.text
        whole = stream([text])
        found = REPAIR.find_calls("".join(whole))
        assert found is not None
        assert text.startswith(whole[0])
        assert len(whole[0].rstrip()) <= len(found.before), (sample.id, whole[0])
        assert stream(list(text)) == whole
        for place in range(1, len(text)):
            seen, rest = stream([text[:place], text[place:]])
            assert (seen, rest) == whole, (sample.id, place)


@pytest.mark.parametrize("samples", groups(list(shown())[::7]), ids=named)
def test_texts_that_show_calls_come_out_whole(samples: list[Sample]) -> None:
    for sample in samples:
        whole = stream([sample.text])
        assert "".join(whole) == sample.text
        assert stream(list(sample.text)) == whole


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("I will look.\n\n<tool_call>\n{}", "I will look.\n\n"),
        ("I will look.<｜DSML｜tool", "I will look."),
        ("a < b and c > d", "a < b and c > d"),
        ("See <https://example.org> or [x](y).", "See <https://example.org> or [x](y)."),
        ("```python\nx = 1\n```\n", "```python\nx = 1\n```\n"),
        ("```json\n{}\n```", ""),
        ("```json\n{}\n```\n\nThat is all.", "```json\n{}\n```\n\nThat is all."),
        ("Text:\n```\n<tool_call>\n```\nmore", "Text:\n```\n<tool_call>\n```\nmore"),
        ("[link](x)", "[link](x)"),
        ('[{"name"', ""),
        ("Thoughts are free.", "Thoughts are free."),
        ("Thought: I should", ""),
        ("\n\n  plain", "\n\n  plain"),
        ('\n\n{"name"', ""),
        ("The next.\ntotal", "The next.\ntotal"),
        ("Use `<tool_call>` for it.", "Use `<tool_call>` for it."),
        ("<div>\n<p>\n<read", "<div>\n<p>\n"),
    ],
)
def test_what_is_shown(text: str, seen: str) -> None:
    assert stream([text])[0] == seen
    assert stream(list(text))[0] == seen


@pytest.mark.parametrize("piece", ["<", "\n", ". <b", "[", "`", " ", "x", "```\n", "to=", "<tool"])
def test_long_streams_cost_what_they_are_long(piece: str) -> None:
    text = piece * (200_000 // len(piece))
    pieces = [text[place : place + 5] for place in range(0, len(text), 5)]
    assert "".join(stream(pieces)) == text
