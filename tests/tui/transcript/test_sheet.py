"""The blocks as a pane shows them: heights agree with what is drawn, folding concerns whole messages."""

from codewhale.display.transcript.blocks import CallCard, TextBlock
from codewhale.display.words import Words
from codewhale.protocol.events import Event, ReasoningStreamed
from codewhale.protocol.messages import Reasoning
from codewhale.tui.transcript.view import TranscriptSource
from support.transcripts import answered, asked, begun, said, whole_session
from support.tuirecord import envelopes


def sheet(*events: Event) -> TranscriptSource:
    found = TranscriptSource(Words("en"))
    for envelope in envelopes(events):
        found.model.take(envelope)
    return found


def test_gaps_belong_to_the_block_below() -> None:
    found = sheet(*whole_session())
    lines = found.lines(1, 60)
    assert lines[0].text == "" and lines[1].text.startswith("┃")
    assert found.lines(0, 60)[0].text != ""


def test_estimates_are_near() -> None:
    found = sheet(*whole_session(), asked("word " * 300), answered(said("Words and words. " * 90)))
    for index in range(len(found)):
        assert abs(found.estimate(index, 60) - len(found.lines(index, 60))) <= 20


def test_folding_concerns_all_parts_of_a_message() -> None:
    found = sheet(*begun(), answered(Reasoning("thought\n" * 2_000), said("x")))
    parts = [block.id for block in found.model.settled if isinstance(block, TextBlock) and block.who == "thought"]
    assert len(parts) > 1
    assert found.set_open(found.block(parts[-1]), True) == parts
    assert all(len(found.lines(index, 60)) > 10 for index in parts)
    assert found.set_open(found.block(parts[0]), False) == parts
    assert [len(found.lines(index, 60)) for index in parts[1:]] == [0] * (len(parts) - 1)
    assert found.lines(parts[0], 60)[-1].text.startswith("▸ Thought")


def test_what_was_opened_while_it_grew_stays_open() -> None:
    found = sheet(*begun(), ReasoningStreamed("why"))
    found.set_open(found.block(len(found) - 1), True)
    found.model.take(envelopes([answered(Reasoning("why"), said("x"))])[0])
    found.moved()
    block = next(block for block in found.model.settled if isinstance(block, TextBlock) and block.who == "thought")
    assert found.is_open(block)


def test_all_can_be_opened() -> None:
    found = sheet(*whole_session())
    card = next(block for block in found.model.settled if isinstance(block, CallCard))
    folded = len(found.lines(card.id, 60))
    found.open_all(True)
    assert len(found.lines(card.id, 60)) > folded


def test_an_empty_sheet_can_be_begun_again() -> None:
    found = sheet(*whole_session())
    found.clear()
    assert len(found) == 0
