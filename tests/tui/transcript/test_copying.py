"""What is taken out of a transcript: whole messages, code, places, within what a terminal takes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codewhale.display.transcript.blocks import AskRecord, CallCard, NoteBlock, TextBlock, TranscriptBlock, Work
from codewhale.display.transcript.model import TranscriptModel
from codewhale.display.words import Words
from codewhale.protocol.blocks import ChecklistBlock, DiffBlock, MarkdownBlock, TableBlock, TerminalBlock
from codewhale.protocol.events import TextStreamed
from codewhale.tui.transcript.copying import (
    MOST_BYTES,
    Copier,
    bounded,
    code_blocks,
    display_text,
    whole_text,
)
from support.transcripts import ANSWER, DIFF, answered, begun, said, told, whole_session


def copier(story: TranscriptModel) -> Copier:
    """What is taken out of a story."""
    return Copier(story, Words("en"))


def test_all_parts_of_a_message_are_one_text() -> None:
    text = ANSWER * 60
    story = told([*begun(), answered(said(text))])
    last = story.settled[-1]
    assert isinstance(last, TextBlock) and last.part > 0
    assert whole_text(story, last) == text
    live = told([*begun(), TextStreamed(text)])
    assert whole_text(live, live.live[-1]) == text


def test_code_is_whole_even_where_it_is_long() -> None:
    code = "\n".join(f"x = {number}" for number in range(1_500))
    assert code_blocks(f"a\n```py\n{code}\n```\nb\n- ```\n  y\n  ```\n") == [code, "y"]


@given(st.text(alphabet="ab c", max_size=30).map(lambda text: text * 700), st.integers(0, 3))
def test_code_is_copied_to_the_letter(line: str, rows: int) -> None:
    code = "\n".join([line] * rows + ["end"])
    assert code_blocks(f"```\n{code}\n```\n") == [code]


def test_the_last_words_of_the_model() -> None:
    words = copier(told(whole_session())).last_words()
    assert words is not None and words.text == ANSWER
    assert copier(TranscriptModel()).last_words() is None


def test_displays_are_text() -> None:
    assert display_text(TerminalBlock("ls", "a")) == "$ ls\na"
    assert display_text(TableBlock(("a", "b"), (("1", "2"),))) == "a\tb\n1\t2"
    assert display_text(ChecklistBlock((("completed", "x"), ("pending", "y")))) == "[x] x\n[ ] y"
    assert display_text(DiffBlock("a", DIFF)) == DIFF
    assert display_text(MarkdownBlock("*x*")) == "*x*"


@pytest.mark.parametrize(
    ("block", "text"),
    [
        (CallCard(said="answer", subject="s"), "answer"),
        (CallCard(tail=("a", "b")), "a\nb"),
        (NoteBlock(text="line", detail="more"), "more"),
        (NoteBlock(key="mode", values={"mode": "plan"}), "plan"),
        (Work(name="n", text="t", latest="l"), "n: t l"),
        (AskRecord(rows=(("command", "ls"),)), "command\nls"),
    ],
)
def test_other_blocks_are_text(block: TranscriptBlock, text: str) -> None:
    assert whole_text(TranscriptModel(), block) == text
    assert text in copier(TranscriptModel()).searchable(block)


def test_a_terminal_takes_only_so_much() -> None:
    assert bounded("a\ud800中") == ("a\ufffd中", True)
    kept, whole = bounded("中" * MOST_BYTES)
    assert len(kept.encode()) <= MOST_BYTES and not whole


@pytest.mark.parametrize(
    ("block", "place"),
    [
        (CallCard(display=(DiffBlock("src/parse.py", DIFF),)), ("src/parse.py", 11)),
        (CallCard(display=(TableBlock(("file", "line", "text"), (("a.py", "7", "x"),)),)), ("a.py", 7)),
        (CallCard(files=("a.py", "b/c.py")), ("b/c.py", 0)),
        (CallCard(subject="src/x.rs"), ("src/x.rs", 0)),
        (TextBlock(text="See lib/text.py:42, please."), ("lib/text.py", 42)),
        (TextBlock(text="Nothing here."), ("", 0)),
    ],
)
def test_the_file_that_a_block_is_about(block: TranscriptBlock, place: tuple[str, int]) -> None:
    assert copier(TranscriptModel()).place_of(block) == place
