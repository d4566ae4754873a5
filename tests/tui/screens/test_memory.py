"""The memory screen: what is remembered, what waits, the layers; and what a key does about each."""

from typing import Any

import pytest

from codewhale.protocol.errors import SessionError
from codewhale.protocol.memory import GetFacts, GetWaiting, LayerRow, MemoryItem, WaitingFact
from codewhale.protocol.ops import CommandOutput, RunCommand, SessionStatus
from codewhale.protocol.views import GetContext
from codewhale.tui.screens.context import OfferText, OpenScreen
from support.tuiapp import STATUS
from support.tuiscreens import HOSTILE, Opened, context_view, opened

OLD = MemoryItem("1a2b3c4d", "The port is 5433.", "workspace", unsent=True, newer="2b3c4d5e", created="2026-05-03")
NEW = MemoryItem("2b3c4d5e", "The port is 5434.", "workspace", "call 7, from https://a.example", tainted=True)
ALL = MemoryItem("3c4d5e6f", "Commits are short.", "global", uses=3, last_used="2026-05-04T00:00:00Z")
WAITS = WaitingFact("4d5e6f7a", "Deploys run on Fridays.", "global", origin="https://b.example", message="go on")
LAYER = LayerRow(
    "user-memory", "User memory", "global", "user", "head", 3, 300, 200, 50,
    actions=(("add", "/memory add TEXT"), ("doctor", "/memory doctor"), ("own", "codewhale own")),
)  # fmt: skip


def answers() -> dict[type, Any]:
    return {
        GetFacts: (OLD, NEW, ALL),
        GetWaiting: (WAITS,),
        GetContext: context_view(rows=(LAYER,)),
        SessionStatus: STATUS,
        RunCommand: lambda op: CommandOutput(f"Done: {op.line}"),
    }


def lines(stage: Opened) -> list[str]:
    """The commands that were run."""
    return [op.line for op in stage.client.ops if isinstance(op, RunCommand)]


@pytest.mark.parametrize("language", ["en", "zh-Hans"])
async def test_everything_is_listed_with_where_it_came_from(language: str) -> None:
    async with opened("memory", answers(), size=(120, 40), language=language) as stage:
        text = await stage.shown(WAITS.text, OLD.text, NEW.text, ALL.text, "https://b.example", "go on")
        assert text.index(WAITS.text) < text.index(OLD.text) < text.index(NEW.text) < text.index(ALL.text)
        await stage.press("down")
        await until_preview(stage, OLD.id, NEW.text)
        await stage.press("down")
        await until_preview(stage, NEW.id, OLD.text, "https://a.example")
        await stage.press("down")
        await until_preview(stage, ALL.id, "2026-05-04")
        await stage.press("down")
        await until_preview(stage, "/memory add TEXT")
        stage.clean()


async def until_preview(stage: Opened, *texts: str) -> None:
    """Wait until the part about the row at hand says all of it."""
    await stage.shown(*texts)
    page = " ".join(" ".join(text for text, _ in line) for line in stage.screen.page.lines)
    assert all(text in page for text in texts), page


async def test_a_fact_is_cleared_only_the_second_time_and_can_be_brought_back() -> None:
    async with opened("memory", answers(), size=(100, 40)) as stage:
        await stage.press("down", "f12")
        await stage.shown("Press f12 again", "Done: /memory clear 1a2b3c4d")
        await stage.press("down", "up", "f12")
        await stage.shown("Press f12 again")
        assert set(lines(stage)) == {"/memory clear 1a2b3c4d"}
        await stage.press("f12")
        await stage.shown("Done: /memory clear 1a2b3c4d yes", "f9 restore")
        await stage.press("f9")
        await stage.shown("Done: /memory restore 1a2b3c4d")
        await stage.press("f9")
        assert lines(stage)[-1] == "/memory restore 1a2b3c4d" and lines(stage).count(lines(stage)[-1]) == 1


@pytest.mark.parametrize(("key", "line"), [("f7", "/memory take 4d5e6f7a"), ("f12", "/memory drop 4d5e6f7a")])
async def test_what_waits_is_decided_by_one_key(key: str, line: str) -> None:
    async with opened("memory", answers()) as stage:
        await stage.press(key)
        await stage.shown(f"Done: {line}")
        assert lines(stage) == [line]
        await stage.press("down", "f7")
        assert lines(stage) == [line]


@pytest.mark.parametrize(
    ("downs", "outcome"),
    [
        (0, OfferText("/memory take 4d5e6f7a Deploys run on Fridays.")),
        (1, OfferText("/memory edit 1a2b3c4d The port is 5433.")),
        (4, OpenScreen("layers", "user-memory")),
    ],
)
async def test_enter_edits_in_the_composer_and_leads_to_what_a_layer_offers(downs: int, outcome: object) -> None:
    async with opened("memory", answers()) as stage:
        await stage.press(*["down"] * downs, "enter")
        assert await stage.done() == outcome


async def test_nothing_remembered_and_what_fails_is_said() -> None:
    none = {**answers(), GetFacts: (), GetWaiting: ()}
    async with opened("memory", none) as stage:
        await stage.shown("Nothing is remembered.", "Your notes")
    async with opened("memory", {**answers(), GetContext: SessionError("no session")}) as stage:
        await stage.shown("no session", OLD.text)
    failing = {**answers(), RunCommand: SessionError("the disk is full")}
    async with opened("memory", failing) as stage:
        await stage.press("f7")
        await stage.shown("the disk is full", WAITS.text)


async def test_hostile_texts_break_nothing() -> None:
    facts = (
        MemoryItem("1a", HOSTILE, "workspace", HOSTILE, tainted=True, newer="2b"),
        MemoryItem("2b", HOSTILE, "global"),
    )
    layer = LayerRow(HOSTILE, HOSTILE, "", "repo", "head", note=HOSTILE, actions=((HOSTILE, HOSTILE),))
    odd = {**answers(), GetFacts: facts, GetWaiting: (), GetContext: context_view(rows=(layer,))}
    for name in ("memory", "layers"):
        async with opened(name, odd, size=(60, 20)) as stage:
            await stage.shown("[bold]x[/]")
            stage.clean()
            await stage.press("enter")
            outcome = await stage.done()
            assert "\x1b" not in str(getattr(outcome, "text", ""))
