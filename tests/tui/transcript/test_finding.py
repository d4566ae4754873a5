"""Searching on the screen: found while it is typed, gone through by key, closed again."""

from textual.widgets import Input

from codewhale.protocol.events import Event
from codewhale.protocol.messages import Reasoning
from codewhale.tui.transcript.search import SearchLine
from support.transcripts import answered, asked, said
from support.transcriptview import shown
from support.tuirecord import screen_text, until


def needles(count: int) -> list[Event]:
    """Messages of which every tenth holds the word."""
    words = [f"message {number}" + (" with a Needle" if number % 10 == 3 else "") for number in range(count)]
    return [asked(text) for text in words]


async def test_what_is_typed_is_found_from_the_end() -> None:
    async with shown(*needles(100)) as (view, host, pilot):
        view.action_find()
        await until(pilot, lambda: isinstance(host.focused, Input))
        await pilot.press(*"needle")
        await until(pilot, lambda: "10 of 10" in screen_text(host))
        assert "message 93" in screen_text(host)
        await pilot.press("up")
        await until(pilot, lambda: "9 of 10" in screen_text(host))
        assert "message 83" in screen_text(host)
        await pilot.press("down", "down")
        await until(pilot, lambda: "1 of 10" in screen_text(host))
        assert "message 3 " in screen_text(host)


async def test_places_are_gone_through_and_lit() -> None:
    async with shown(*needles(40)) as (view, host, pilot):
        view.focus()
        view.action_find()
        await until(pilot, lambda: isinstance(host.focused, Input))
        await pilot.press(*"needle", "enter")
        await until(pilot, lambda: host.focused is view and "4 of 4" in screen_text(host))
        await pilot.press("ctrl+n")
        await until(pilot, lambda: "1 of 4" in screen_text(host))
        await pilot.press("alt+n", "alt+n")
        await until(pilot, lambda: "3 of 4" in screen_text(host))
        lit = [
            segment.text
            for row in view.render_lines(view.size.region)
            for segment in row
            if segment.style is not None and segment.style.bgcolor == view._paint.style("text on:selection").bgcolor
        ]
        assert "Needle" in lit
        await pilot.press("escape")
        await until(pilot, lambda: not view.query(SearchLine))
        assert view.query_text == ""


async def test_what_is_folded_away_is_unfolded() -> None:
    events = [asked("go"), answered(Reasoning("secret needle\nin a thought"), said("x")), *needles(3)[:2]]
    async with shown(*events) as (view, host, pilot):
        assert "needle" not in screen_text(host)
        view.search.seek("needle")
        await until(pilot, lambda: "secret needle" in screen_text(host))


async def test_nothing_found_is_said() -> None:
    async with shown(*needles(5)) as (view, host, pilot):
        view.action_find()
        await until(pilot, lambda: isinstance(host.focused, Input))
        await pilot.press(*"zebra")
        await until(pilot, lambda: "no match" in screen_text(host))
        await pilot.press("escape")
        await until(pilot, lambda: host.focused is view)
