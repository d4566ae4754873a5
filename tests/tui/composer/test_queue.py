"""What waits, seen and changed."""

from pathlib import Path

from codewhale.protocol.events import QueueChanged, Queued, TurnFinished, TurnStarted
from codewhale.protocol.ops import EditQueue
from codewhale.protocol.views import QueuedRow
from codewhale.tui.composer.composer import Composer
from codewhale.tui.composer.store import ComposerStore
from support.composing import desk
from support.minipng import PNG
from support.tuirecord import screen_text


async def test_what_waits_is_shown_and_enter_on_nothing_sends_the_oldest(tmp_path: Path) -> None:
    async with desk(tmp_path) as here:
        here.waiting = [QueuedRow("steered", "steer"), QueuedRow("first", "queue"), QueuedRow("second", "queue")]
        here.happen(TurnStarted(1), Queued("second", 2))
        await here.until(lambda: "queued: second" in screen_text(here.host))
        assert "joins the turn: steered" in screen_text(here.host)
        await here.pilot.press("enter")
        await here.until(lambda: "joins the turn: first" in screen_text(here.host))
        assert [row.delivery for row in here.waiting] == ["steer", "steer", "queue"] and here.said(Composer.Sent) == []
        here.happen(TurnFinished(1, "interrupted"))
        await here.pilot.press("enter")
        [sent] = await here.until(lambda: here.said(Composer.Sent))
        assert (sent.text, sent.delivery) == ("second", "turn")
        here.waiting = []
        here.happen(QueueChanged(0))
        await here.until(lambda: "queued" not in screen_text(here.host))


async def test_a_waiting_message_is_changed_dropped_or_sent(tmp_path: Path) -> None:
    async with desk(tmp_path) as here:
        here.waiting = [QueuedRow(text, "queue") for text in ("one", "two", "three")]
        here.happen(TurnStarted(1), Queued("three", 3))
        await here.until(lambda: "three" in screen_text(here.host))
        await here.type("mine")
        await here.pilot.press("alt+q", "up", "enter")
        await here.until(lambda: here.text == "two")
        assert here.composer.text.has_focus
        await here.pilot.press("alt+q", "delete")
        await here.until(lambda: [row.text for row in here.waiting] == ["one"])
        await here.pilot.press("ctrl+t")
        await here.until(lambda: here.waiting[0].delivery == "steer")
        await here.pilot.press("escape")
        await here.until(lambda: here.composer.text.has_focus)
        keeper = ComposerStore(str(here.home), str(here.home))
        assert {row.draft.text for row in keeper.parked()} == {"mine", "three"}
        assert here.text == "two"


async def test_a_message_that_the_turn_took_meanwhile_is_not_sent_twice(tmp_path: Path) -> None:
    async with desk(tmp_path) as here:
        here.waiting = [QueuedRow("gone", "queue")]
        here.happen(TurnStarted(1), Queued("gone", 1))
        await here.until(lambda: "gone" in screen_text(here.host))
        here.waiting = []
        await here.pilot.press("enter")
        await here.until(lambda: any(isinstance(op, EditQueue) for op in here.client.ops))
        await here.until(lambda: "gone" not in screen_text(here.host))
        assert here.said(Composer.Sent) == []


async def test_many_are_counted_and_cut(tmp_path: Path) -> None:
    async with desk(tmp_path, size=(40, 24)) as here:
        here.waiting = [QueuedRow(f"\x1b[2Jmessage {number} " * 9, "queue") for number in range(9)]
        here.happen(TurnStarted(1), Queued("x", 9))
        await here.until(lambda: "and 5 more" in screen_text(here.host))
        assert "message 0" in screen_text(here.host) and "\x1b" not in screen_text(here.host)
        await here.pilot.press("alt+q")
        await here.until(lambda: "message 8" in screen_text(here.host))
        await here.pilot.press("up", "up", "down", "escape")
        await here.until(lambda: here.composer.text.has_focus)


async def test_attachments_go_along_where_they_are_known(tmp_path: Path) -> None:
    image = tmp_path / "a.png"
    image.write_bytes(PNG)
    async with desk(tmp_path) as here:
        here.happen(TurnStarted(1))
        here.composer.text._pasted(str(image))
        await here.pilot.press(*"look", "enter")
        await here.until(lambda: here.said(Composer.Sent))
        here.waiting = [QueuedRow("look", "queue", 1), QueuedRow("by another", "queue", 2)]
        here.happen(Queued("look", 1))
        await here.until(lambda: "+1 attachment" in screen_text(here.host))
        await here.pilot.press("alt+q", "enter")
        await here.until(lambda: "stays in the queue" in screen_text(here.host))
        await here.pilot.press("up", "enter")
        await here.until(lambda: here.text == "look")
        assert here.composer.draft.chips[0].name == "a.png"
        assert [row.text for row in here.waiting] == ["by another"]
