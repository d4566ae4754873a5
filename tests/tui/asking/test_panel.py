"""The asking panel: one ask at a time, none answered by what was typed for something else."""

import pytest
from textual import events
from textual.widgets import Input

from codewhale.protocol.events import (
    ApprovalAnswered,
    MessageAdded,
    QuestionAnswered,
    RepairRecorded,
    SessionResumed,
    TurnFinished,
)
from codewhale.protocol.messages import Message, ToolCall
from codewhale.protocol.modes import Authority, Mode
from codewhale.protocol.ops import Answer, SendMessage
from codewhale.tui.asking.card import Patience
from support.tuiasking import approval, asked, question
from support.tuirecord import screen_text, typed, until


async def test_what_is_typed_ahead_answers_nothing() -> None:
    async with asked([], patience=Patience(idle=30.0, seen=0.0)) as stage:
        await stage.press(*"yes")
        stage.take(approval())
        await until(stage.pilot, lambda: "make test" in screen_text(stage.host))
        await stage.press(*"yan", "enter")
        assert stage.client.ops == [] and stage.typed == "yesyan"
        assert stage.host.focused.id == "composer" and not stage.panel.card.armed
        assert "your text is kept" in screen_text(stage.host)


async def test_a_card_that_was_not_seen_yet_takes_no_answer() -> None:
    async with asked([approval()], patience=Patience(idle=0.5, seen=30.0)) as stage:
        await until(stage.pilot, lambda: stage.panel.card is not None and stage.panel.card.has_focus)
        await stage.press("enter", "y", "a", "enter")
        assert stage.client.ops == []
        assert stage.typed == "ya" and stage.host.focused.id == "composer"


async def test_with_the_usual_patience_it_comes_to_the_focus_by_itself() -> None:
    async with asked([approval()], patience=None) as stage:
        await stage.press("q", "backspace")
        card = await stage.armed()
        assert (card.patience.idle, card.patience.seen) == (0.7, 0.4)
        await stage.press("enter")
        await stage.gone()
        assert stage.client.ops == [Answer("s-recorded", "ask_1", True)]


@pytest.mark.parametrize("letters", ["yes", "always", "no", "1", "2 ", "e", " ", "ünd", "字"])
async def test_no_letter_and_no_number_answers(letters: str) -> None:
    async with asked([approval()]) as stage:
        await stage.armed()
        await typed(stage.pilot, [*letters, "enter"])
        assert stage.client.ops == [] and stage.typed == letters
        assert stage.host.focused.id == "composer" and not stage.panel.card.armed


async def test_with_text_in_the_composer_the_card_waits() -> None:
    async with asked([approval()]) as stage:
        card = await stage.armed()
        await stage.press("w")
        await until(stage.pilot, lambda: "your text is kept" in screen_text(stage.host))
        assert not card.has_focus
        stage.host.screen.set_focus(card)
        await stage.press("enter")
        await until(stage.pilot, lambda: not card.has_focus)
        assert stage.client.ops == []
        await stage.press("backspace")
        await stage.armed()
        await stage.press("enter")
        await stage.gone()
        assert stage.client.ops == [Answer("s-recorded", "ask_1", True)]


async def test_a_paste_goes_to_the_composer() -> None:
    async with asked([approval()]) as stage:
        await stage.armed()
        pasted = events.Paste("yes\r\n")
        pasted.set_sender(stage.host)
        stage.host._driver.send_message(pasted)
        await until(stage.pilot, lambda: stage.typed.startswith("yes"))
        assert stage.client.ops == [] and stage.panel.card is not None


async def test_the_person_can_write_first_and_come_back() -> None:
    async with asked([approval()]) as stage:
        await stage.armed()
        await stage.press("tab")
        await until(stage.pilot, lambda: stage.host.focused.id == "composer")
        await until(stage.pilot, lambda: "alt+y to answer" in screen_text(stage.host))
        await stage.press("enter")
        assert stage.client.ops == []
        assert stage.panel.focus_card()
        await stage.armed()
        await stage.press("enter")
        await stage.gone()
        assert not stage.panel.focus_card()


async def test_asks_queue() -> None:
    asks = [approval(f"step {number}", f"ask_{number}") for number in (1, 2, 3)]
    async with asked(asks) as stage:
        for number in (1, 2, 3):
            await stage.armed(f"ask_{number}")
            text = screen_text(stage.host)
            assert f"step {number}" in text and ("1 of" in text) == (number < 3)
            await stage.press("enter")
            await until(stage.pilot, lambda number=number: len(stage.client.ops) == number)
        await stage.gone()
        assert [op.request_id for op in stage.client.ops] == ["ask_1", "ask_2", "ask_3"]


async def test_an_ask_that_was_answered_elsewhere_goes_away() -> None:
    async with asked([approval(), question()]) as stage:
        await stage.armed("ask_1")
        stage.take(ApprovalAnswered("ask_1", True))
        await stage.armed("ask_q")
        stage.take(QuestionAnswered("ask_q", (), "timeout"))
        await stage.gone()
        assert stage.client.ops == [] and stage.panel.size.height == 0


async def test_asks_end_with_their_turn() -> None:
    async with asked([approval()]) as stage:
        stage.take(approval("theirs", "ask_child"), session="s-child")
        await stage.armed("ask_1")
        stage.take(TurnFinished(1, "interrupted"))
        await stage.armed("ask_child")
        stage.take(SessionResumed(Mode.AGENT, Authority.PERSON), session="s-child")
        await stage.gone()


async def test_a_child_is_answered_by_its_own_session() -> None:
    async with asked([]) as stage:
        stage.take(approval(), session="s-child")
        await stage.armed()
        await stage.press("enter")
        await stage.gone()
        assert stage.client.ops == [Answer("s-child", "ask_1", True)]


async def test_a_call_without_a_subject_is_shown_as_it_was_written() -> None:
    calls = Message("assistant", (ToolCall("call_1", "run_test", '{"path": "x\x1b'), ToolCall("call_2", "b", "{}")))
    fixed = RepairRecorded("call_1", ("closed",), False, "run_tests", '{"path": "x\x1b"}')
    async with asked([MessageAdded(calls), fixed, approval(tool="run_tests", subjects=())]) as stage:
        await stage.armed()
        assert 'run_tests {"path": "x\\x1b"}' in screen_text(stage.host)


async def test_what_an_earlier_run_asked_is_not_asked_again() -> None:
    asks = [approval(), ApprovalAnswered("ask_1", False), approval("later", "ask_2"), TurnFinished(1, "done")]
    async with asked(asks) as stage:
        await stage.pilot.pause()
        assert stage.panel.card is None and len(stage.panel.asks) == 0


async def test_an_answer_that_does_not_arrive_can_be_given_again() -> None:
    broken = [OSError("the pipe is gone")]

    def answer(op: Answer) -> bool:
        if broken:
            raise broken.pop()
        return True

    async with asked([approval()], answers={Answer: answer}) as stage:
        await stage.armed()
        await stage.press("enter")
        await until(stage.pilot, lambda: [said for said in stage.host.said if type(said).__name__ == "Failed"])
        said = next(said for said in stage.host.said if type(said).__name__ == "Failed")
        assert said.text == "The answer did not arrive: the pipe is gone"
        assert stage.panel.card is not None
        await stage.press("enter")
        await stage.gone()


async def test_a_key_held_down_answers_once() -> None:
    async with asked([approval(), approval("rm -rf build", "ask_2")], patience=Patience(idle=1.0, seen=0.1)) as stage:
        await stage.armed("ask_1")
        await typed(stage.pilot, ["enter"] * 6)
        await until(stage.pilot, lambda: stage.panel.card is not None and stage.panel.card.request == "ask_2")
        assert stage.client.ops == [Answer("s-recorded", "ask_1", True)]


async def test_colours_change_while_it_is_asked() -> None:
    async with asked([approval()]) as stage:
        await stage.armed()
        stage.panel.repaint(stage.host.palette)
        await stage.take_row("say why")
        await stage.press("o", "enter")
        await stage.gone()
        assert stage.client.ops[0] == SendMessage("s-recorded", "o", delivery="steer")


async def test_the_focus_is_taken_from_the_composer_alone() -> None:
    async with asked([]) as stage:
        search = Input(id="search")
        await stage.context.mount(search)
        search.focus()
        await until(stage.pilot, lambda: search.has_focus)
        stage.take(approval())
        await until(stage.pilot, lambda: "alt+y to answer" in screen_text(stage.host))
        await stage.press(*"needle")
        assert search.value == "needle" and search.has_focus and stage.client.ops == []
        stage.context.query_one("#composer").focus()
        await stage.armed()
        await stage.press("enter")
        await stage.gone()
