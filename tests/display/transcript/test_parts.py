"""Parts of long words: bounded, nothing lost, the same however the text arrives."""

from hypothesis import given, settings
from hypothesis import strategies as st

from codewhale.display.transcript.blocks import PART, TextBlock, TextParts, parts_of
from codewhale.display.transcript.markdown import Pen, markdown_lines
from codewhale.display.transcript.splitting import MOST_CHARS
from support.transcripts import PIECES, sliced

LONG = st.lists(st.sampled_from([*PIECES, "line of words\n" * 60, "x" * 5_000]), max_size=30).map("".join)


def shown(parts: list[TextBlock]) -> list[tuple[str, object]]:
    return [(part.text, part.opening) for part in parts]


@settings(deadline=None)
@given(sliced(LONG))
def test_slices_give_the_same_parts(case: tuple[str, list[str]]) -> None:
    text, slices = case
    parts = TextParts("model")
    for piece in slices:
        parts.feed(piece)
    assert shown(parts.parts) == shown(parts_of("model", text))
    assert "".join(part.text for part in parts.parts) == text
    assert all(len(part.text) <= PART + 2 * MOST_CHARS for part in parts.parts[:-1])


@settings(deadline=None, max_examples=30)
@given(LONG)
def test_parts_are_drawn_as_the_whole_is(text: str) -> None:
    pen = Pen()
    whole = [line.text for line in markdown_lines(pen, text, 60)]
    parts = [line.text for part in parts_of("model", text) for line in markdown_lines(pen, part.text, 60, part.opening)]
    assert parts == whole


def test_long_code_goes_on_as_code() -> None:
    first, second, *_ = parts_of("model", "```py\n" + "value = 1\n" * 2_000 + "```\nend")
    assert second.opening is not None and second.opening.fence is not None and second.opening.fence.info == "py"
    assert (first.part, second.part, second.text[:5]) == (0, 1, "value")
