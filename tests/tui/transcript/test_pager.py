"""The pager: everything that is kept, drawn as far as it is seen, searched and left again."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from textual.pilot import Pilot
from textual.widgets import Input

from codewhale.display.transcript.blocks import AskRecord, CallCard, NoteBlock, TranscriptBlock
from codewhale.display.transcript.model import TranscriptModel
from codewhale.protocol.blocks import ChecklistBlock, DiffBlock, MarkdownBlock, TableBlock, TerminalBlock
from codewhale.protocol.errors import SessionError
from codewhale.protocol.requests import Query
from codewhale.protocol.views import ReadOutput
from codewhale.tui.screens.context import ScreenContext
from codewhale.tui.transcript.pager import Pager
from support.transcripts import ANSWER, DIFF, answered, begun, said, told
from support.transcriptview import shown
from support.tuirecord import SESSION, PanelHost, screen_text, until


@asynccontextmanager
async def paged(story: TranscriptModel, block: TranscriptBlock) -> AsyncIterator[tuple[Pager, PanelHost, Pilot[None]]]:
    """A pager with a block."""
    async with shown() as (view, host, pilot):
        pager = Pager.of_block(story, block, view._words, host.palette)
        host.push_screen(pager)
        await until(pilot, lambda: pager.pane.seen)
        yield pager, host, pilot


async def test_long_words_are_whole_and_gone_through_by_key() -> None:
    story = told([*begun(), answered(said((ANSWER + "\n") * 40 + "the very end"))])
    async with paged(story, story.settled[-1]) as (pager, host, pilot):
        assert "Found it" in screen_text(host)
        await pilot.press("G")
        await until(pilot, lambda: "the very end" in screen_text(host))
        await pilot.press("g", "j", "j", "k")
        assert pager.pane.seen[0] == (0, 1)
        await pilot.press("space")
        assert pager.pane.top == pager.pane.room
        await pilot.press("pageup", "escape")
        await until(pilot, lambda: host.screen is not pager)


@pytest.mark.parametrize(
    ("block", "text"),
    [
        (CallCard(name="x", display=(DiffBlock("a.py", DIFF),), arguments='{"a":1}'), "head.strip"),
        (CallCard(name="x", display=(TerminalBlock("make", "all good"),)), "all good"),
        (CallCard(name="x", display=(MarkdownBlock("**bold**"),)), "bold"),
        (CallCard(name="x", display=(TableBlock(("a",), (("cell",),)),)), "cell"),
        (CallCard(name="x", display=(ChecklistBlock((("pending", "item"),)),)), "☐ item"),
        (CallCard(name="x", tail=("still going",)), "still going"),
        (NoteBlock(key="told", values={"kind": "rules"}, detail="be kind"), "be kind"),
        (AskRecord(subject="x", rows=(("command", "ls"),)), "ls"),
    ],
)
async def test_every_block_can_be_paged(block: TranscriptBlock, text: str) -> None:
    async with paged(TranscriptModel(), block) as (_, host, pilot):
        await until(pilot, lambda: text in screen_text(host))


async def test_a_line_without_end_and_lines_without_number() -> None:
    card = CallCard(name="x", said="y" * 1_000_000 + "\n" + "z\n" * 100_000 + "last")
    async with paged(TranscriptModel(), card) as (pager, host, pilot):
        await pilot.press("G")
        await until(pilot, lambda: "last" in screen_text(host))
        await pilot.press("g")
        await until(pilot, lambda: "yyyy" in screen_text(host))
        assert pager.pane.heights.total > 100_000


@asynccontextmanager
async def of_ten_thousand_lines() -> AsyncIterator[tuple[Pager, PanelHost, Pilot[None]]]:
    """A pager on a command of which the transcript holds both ends, and the engine all lines."""
    rows = [f"line {number}" for number in range(1, 10_001)]
    part = "\n".join((*rows[:50], "[... left out ...]", *rows[-50:]))
    card = CallCard(name="!", subject="make all", display=(TerminalBlock("make all", part),), kept="a" * 64)
    asked: list[Query[Any]] = []

    async def ask(query: Query[Any]) -> Any:
        asked.append(query)
        return "\n".join(rows) + "\n"

    async with shown() as (view, host, pilot):
        desk = ScreenContext(view._words, host.palette, ask, ask, {})
        desk.session = SESSION
        pager = Pager.of_block(TranscriptModel(), card, view._words, host.palette, desk)
        host.push_screen(pager)
        await until(pilot, lambda: "10,000 lines" in screen_text(host))
        assert asked == [ReadOutput(SESSION, "", "a" * 64)]
        yield pager, host, pilot


async def test_the_middle_of_a_long_output_is_read_searched_and_copied() -> None:
    async with of_ten_thousand_lines() as (_, host, pilot):
        assert screen_text(host).startswith(" make all")
        await pilot.press("slash")
        await until(pilot, lambda: isinstance(host.focused, Input))
        await pilot.press(*"line 5432", "enter")
        await until(pilot, lambda: "line 5431" in screen_text(host) and "1 of 1\n" in screen_text(host) + "\n")
        await pilot.press("escape", "pagedown")
        await until(pilot, lambda: "line 5450" in screen_text(host))
        await pilot.press("y")
        assert host.clipboard.startswith("$ make all\nline 1\n") and "\nline 5000\n" in host.clipboard


async def test_what_is_no_longer_kept_is_said_and_the_part_stays() -> None:
    async def ask(query: Query[Any]) -> Any:
        raise SessionError("the full output is no longer stored")

    async with shown() as (view, host, pilot):
        desk = ScreenContext(view._words, host.palette, ask, ask, {})
        card = CallCard(name="!", display=(TerminalBlock("make", "an end"),), shortened=9, call_id="c1")
        host.push_screen(Pager.of_block(TranscriptModel(), card, view._words, host.palette, desk))
        await until(
            pilot, lambda: "Only a part can be shown: the full output is no longer stored." in screen_text(host)
        )
        assert "an end" in screen_text(host)


async def test_an_output_that_is_slow_to_come_is_shown_in_part_until_it_does() -> None:
    comes = asyncio.Event()

    async def ask(query: Query[Any]) -> Any:
        await comes.wait()
        return "a beginning\nthe middle\nan end\n"

    async with shown() as (view, host, pilot):
        desk = ScreenContext(view._words, host.palette, ask, ask, {})
        card = CallCard(name="!", display=(TerminalBlock("make", "an end"),), shortened=9, call_id="c1")
        host.push_screen(Pager.of_block(TranscriptModel(), card, view._words, host.palette, desk))
        await until(pilot, lambda: "an end" in screen_text(host) and "Loading the whole output" in screen_text(host))
        comes.set()
        await until(pilot, lambda: "the middle" in screen_text(host) and "3 lines" in screen_text(host))
        assert "Loading" not in screen_text(host)


async def test_the_colours_of_a_program_are_no_letters_and_do_not_part_words() -> None:
    card = CallCard(name="x", said="\x1b[1;31mFAILED\x1b[0m test_\x1b[38:2::1:2:3mbasket\x1b[m \x1b[2J")
    async with paged(TranscriptModel(), card) as (_, host, pilot):
        await until(pilot, lambda: "FAILED test_basket \\x1b[2J" in screen_text(host))
        await pilot.press("slash")
        await until(pilot, lambda: isinstance(host.focused, Input))
        await pilot.press(*"test_basket", "enter")
        await until(pilot, lambda: "1 of 1" in screen_text(host))


async def test_it_is_searched() -> None:
    card = CallCard(name="x", said="\n".join(f"row {number}" for number in range(3_000)))
    async with paged(TranscriptModel(), card) as (pager, host, pilot):
        await pilot.press("slash")
        await until(pilot, lambda: isinstance(host.focused, Input))
        await pilot.press(*"row 2345", "enter")
        await until(pilot, lambda: "row 2345" in screen_text(host))
        await pilot.press("escape")
        await until(pilot, lambda: "1 of 1" not in screen_text(host))
        await pilot.press("q")
        await until(pilot, lambda: host.screen is not pager)
