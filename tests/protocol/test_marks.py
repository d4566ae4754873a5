"""Marks of written calls: each is known from its first character on, and ordinary text is let by."""

import pytest

from codewhale.protocol.marks import MARKS, Fences, may_stand, opens, opens_whole


@pytest.mark.parametrize("mark", MARKS)
def test_each_mark_is_known_from_its_first_character(mark: str) -> None:
    for end in range(1, len(mark) + 1):
        assert opens(mark[:end])
    assert opens(mark + "anything")
    assert not opens("x" + mark)


def test_a_tag_that_may_be_a_tool_is_a_mark() -> None:
    assert all(opens(text) for text in ("<read_file>", "<read_f", "<a_b_c>", "<re"))
    assert not any(opens(text) for text in ("<read file", "<div>", "<Read_file>", "<a-b>", "<1_2>", "< read_file>"))


@pytest.mark.parametrize("text", ["{", '[{"', "[ {", "[read(", "```", "```json\n", "Action:", "Tho", "["])
def test_what_may_be_a_whole_message(text: str) -> None:
    assert opens_whole(text)


@pytest.mark.parametrize("text", ["[x]", "[a link](b)", "```rust\n", "````text", "Hello", "- {", "(a)"])
def test_what_is_no_whole_message(text: str) -> None:
    assert not opens_whole(text)


def test_calls_stand_at_the_start_of_a_line_or_behind_a_sentence() -> None:
    assert all(may_stand(before) for before in ("", "\n", "   ", "done.", "done. ", "so:", "完成。"))
    assert not any(may_stand(before) for before in ("the ", "`", '"', "x", "a, "))


def test_a_fence_is_closed_by_its_own_mark() -> None:
    fences = Fences()
    states = []
    for line in ("````md", "```", "text", "```", "````", "~~~", "```", "~~~~", "`code`", "  ```", "> ```"):
        fences.pass_line(line)
        states.append(fences.inside)
    assert states == [True, True, True, True, False, True, True, False, False, True, False]
