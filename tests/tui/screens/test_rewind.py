"""Going back to a former message: the list, what goes with it, and the whole way through the interface."""

from pathlib import Path
from typing import Any

import msgspec

from codewhale.protocol.blocks import DiffBlock
from codewhale.protocol.errors import CodeWhaleError
from codewhale.protocol.ops import SessionStatus
from codewhale.protocol.views import FormerMessage, ListFormer, PreviewRewind, RewindView
from codewhale.tui.screens.context import OpenScreen, RunLine
from support.machine import MAKES_FILES
from support.tuiapp import STATUS, scripted
from support.tuiscreens import HOSTILE, opened

ROWS = tuple(FormerMessage(turn, text, f"2026-01-0{turn}T10:00:00Z") for turn, text in enumerate("One Two".split(), 1))
DIFF = DiffBlock("a.py", "--- a/a.py\n+++ b/a.py\n@@ -1 +1 @@\n-new\n+old\n")


def view(query: PreviewRewind) -> RewindView:
    refused = ("not undone: d.py: it was changed since",)
    return RewindView(tuple(row.text for row in ROWS if row.turn >= query.turn), ("reverted: a.py",), refused, (DIFF,))


ANSWERS = {ListFormer: ROWS, PreviewRewind: view, SessionStatus: STATUS}
REWOUND = ANSWERS | {SessionStatus: msgspec.structs.replace(STATUS, rewinds=1)}


async def test_the_latest_message_stands_first_with_what_would_go() -> None:
    async with opened("rewind", REWOUND, size=(120, 40)) as stage:
        text = await stage.shown("1 message and", "reverted: a.py", "not undone: d.py", "- new", "+ old")
        assert text.index("Two") < text.index("One")
        await stage.press("down")
        await stage.shown("2 messages and")
        await stage.press("enter")
        assert await stage.done() == OpenScreen("rewind_parts", "1") and stage.client.ops == []


async def test_it_forks_before_a_message_and_undoes_the_last_rewind() -> None:
    async with opened("rewind", REWOUND) as stage:
        await stage.press("alt+f")
        assert await stage.done() == RunLine("/fork 2")
        await stage.open("rewind")
        await stage.press("down", "down")
        await stage.shown("from before the last")
        await stage.press("alt+f", "enter")
        assert await stage.done() == RunLine("/rewind back")


async def test_a_rewind_is_offered_to_be_undone_only_where_there_is_one() -> None:
    for answers, keys in ((ANSWERS, ["2", "1"]), (REWOUND, ["2", "1", "back"])):
        async with opened("rewind", answers) as stage:
            await stage.shown("Two")
            assert [item.key for item in stage.screen.list.items] == keys
    async with opened("rewind", ANSWERS | {ListFormer: ()}) as stage:
        await stage.shown("No messages yet")


async def test_each_part_is_looked_at_before_it_is_chosen() -> None:
    for keys, part in (((), "both"), (("down",), "conversation"), (("down", "down"), "files")):
        async with opened("rewind_parts", ANSWERS, "1", size=(120, 40)) as stage:
            await stage.press(*keys)
            text = await stage.shown("Files stay as they are." if part == "conversation" else "reverted: a.py")
            assert ("2 messages and" in text) is (part != "files")
            await stage.press("enter")
            assert await stage.done() == RunLine(f"/rewind 1 {part} yes")
    async with opened("rewind_parts", ANSWERS, "1") as stage:
        await stage.press("escape")
        assert await stage.done() is None and stage.client.ops == []


async def test_hostile_words_and_failures_are_shown_as_text() -> None:
    rows = (FormerMessage(1, HOSTILE * 50, ""),)
    answers: dict[type, Any] = {**ANSWERS, ListFormer: rows, PreviewRewind: RewindView((HOSTILE,), why=HOSTILE)}
    async with opened("rewind", answers) as stage:
        await stage.shown("1 message and")
        stage.clean()
    async with opened("rewind", {**ANSWERS, PreviewRewind: CodeWhaleError("the disk is full")}) as stage:
        await stage.shown("the disk is full")


@MAKES_FILES
async def test_escape_twice_takes_the_message_back_into_the_composer(home: Path, git_workspace: Path) -> None:
    write = {"calls": [{"name": "write_file", "arguments": {"path": "made.txt", "content": "x\n"}}]}
    script = [{"text": "Answer one."}, write, {"text": "Answer two."}, {"text": "Answer three."}]
    async with scripted(home, git_workspace, script, mode="yolo") as stage:
        await stage.type("first")
        await stage.pilot.press("enter")
        await stage.until("Answer one.")
        await stage.type("second")
        await stage.pilot.press("enter")
        await stage.until("Answer two.")
        await stage.until(lambda: not stage.app.status.facts.busy)
        assert (git_workspace / "made.txt").exists()
        await stage.pilot.press("escape", "escape")
        await stage.until("Go back to a message")
        await stage.until("removed: made.txt")
        await stage.pilot.press("enter")
        await stage.until("Conversation and files")
        await stage.pilot.press("enter")
        await stage.until(lambda: stage.app.composer.text.content == "second")
        await stage.until(lambda: "Answer two." not in stage.text and "Answer one." in stage.text)
        assert "went back" in stage.text and "┃ second" not in stage.text
        assert not (git_workspace / "made.txt").exists()
        await stage.pilot.press("ctrl+s")
        await stage.pilot.press("escape", "escape")
        await stage.until("undo the last rewind")
        await stage.pilot.press("up", "enter")
        await stage.until("Answer two.")
        assert (git_workspace / "made.txt").exists()
        await stage.type("third")
        await stage.pilot.press("enter")
        await stage.until("Answer three.")
        assert "Answer two." in stage.text
