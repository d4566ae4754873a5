"""Whole turns through the terminal interface and a real engine: edits, tests, an approval; replayed, and told the same
without a screen."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from codewhale.headless.headless import Headless, HeadlessOptions, ProgressLines
from codewhale.protocol.events import (
    ApprovalAnswered,
    ApprovalAsked,
    CallFinished,
    Envelope,
    Event,
    FileChanged,
    SessionOpened,
    TurnFinished,
    is_durable,
)
from codewhale.protocol.modes import Authority, Mode
from codewhale.protocol.ops import OpenSession
from codewhale.testing import harness
from support.tuiapp import recorded, scripted

BASKET = """def total(prices, discount=0):
    return sum(prices) * (100 + discount) // 100
"""
TEST = """from basket import total

assert total([1000], 20) == 800, total([1000], 20)
print("1 passed")
"""
EDIT = {"path": "basket.py", "search": "100 + discount", "replace": "100 - discount"}
SCRIPT: tuple[dict[str, Any], ...] = (
    {"text": "I look first.", "calls": [{"name": "read_file", "arguments": {"path": "basket.py"}}]},
    {"calls": [{"name": "edit_file", "arguments": EDIT}]},
    {"text": "Now the tests.", "calls": [{"name": "exec_shell", "arguments": {"command": "python3 test_basket.py"}}]},
    {"text": "**Done**: the discount is taken off.\n\n```python\nprint('ok')\n```\n"},
)
TASK = "The discount is wrong."


class Collecting:
    """Somewhere to write lines to."""

    is_terminal = False

    def __init__(self) -> None:
        self.lines: list[str] = []

    async def write(self, text: str) -> None:
        """Keep it."""
        self.lines += text.splitlines()


def shop(tmp_path: Path, name: str) -> Path:
    """A workspace with a mistake in it."""
    folder = tmp_path / name
    folder.mkdir()
    (folder / "basket.py").write_text(BASKET)
    (folder / "test_basket.py").write_text(TEST)
    return folder


async def told(client: Any, session: str) -> list[Envelope]:
    """Every event of a session, to the end of its turn."""
    found = []
    async for envelope in client.events(session):
        found.append(envelope)
        if isinstance(envelope.event, TurnFinished):
            break
    return found


def alike(events: Sequence[Event]) -> list[Any]:
    """Durable events without what differs from run to run: times, sizes of what was measured, ids of sessions."""
    kept = []
    for event in events:
        if is_durable(event):
            tree = msgspec.to_builtins(event)
            for name in (
                "ms",
                "seconds",
                "workspace",
                "result",
                "metadata",
                "sha256",
                "bytes",
                "usage",
                "parent_session",
            ):
                tree.pop(name, None)
            kept.append(tree)
    return kept


async def test_a_turn_with_an_edit_a_test_and_an_approval(tmp_path: Path) -> None:
    folder = shop(tmp_path, "shop")
    async with scripted(tmp_path / "home", folder, SCRIPT) as stage:
        await stage.type(TASK)
        await stage.pilot.press("enter")
        await stage.until("python3 test_basket.py")
        await stage.until(lambda: stage.app.asking.card is not None and stage.app.asking.card.has_focus)
        assert (folder / "basket.py").read_text() == BASKET.replace("+", "-")
        await stage.until("Waiting for your approval")
        await stage.pilot.press("enter")
        await stage.until("Done: the discount is taken off.")
        await stage.until("1 passed")
        await stage.until(lambda: not stage.app.status.facts.busy)
        assert "print('ok')" in stage.text
        events = [envelope.event for envelope in await told(stage.client, stage.app.link.session)]
        kinds = [type(event) for event in events]
        assert kinds.index(ApprovalAsked) < kinds.index(ApprovalAnswered) < kinds.index(TurnFinished)
        assert sum(isinstance(event, FileChanged) for event in events) == 1
        assert [event.ok for event in events if isinstance(event, CallFinished)] == [True, True, True]


async def test_a_refusal_with_a_reason_reaches_the_model(tmp_path: Path) -> None:
    folder = shop(tmp_path, "shop")
    async with scripted(tmp_path / "home", folder, (SCRIPT[2], {"text": "Then not."})) as stage:
        await stage.type("go")
        await stage.pilot.press("enter")
        await stage.until(lambda: stage.app.asking.card is not None and stage.app.asking.card.has_focus)
        await stage.pilot.press("up", "enter")
        await stage.type("later")
        await stage.pilot.press("enter")
        await stage.until("Then not.")
        events = [envelope.event for envelope in await told(stage.client, stage.app.link.session)]
        assert [event.allowed for event in events if isinstance(event, ApprovalAnswered)] == [False]
        assert "later" in str(msgspec.to_builtins([event for event in events if not isinstance(event, SessionOpened)]))


async def test_a_record_gives_the_same_screen(tmp_path: Path) -> None:
    folder = shop(tmp_path, "shop")
    async with scripted(tmp_path / "home", folder, SCRIPT, mode=Mode.YOLO, size=(90, 40)) as stage:
        await stage.type(TASK)
        await stage.pilot.press("enter")
        await stage.until("Done: the discount is taken off.")
        await stage.until(lambda: not stage.app.status.facts.busy)
        record = await told(stage.client, stage.app.link.session)
        await stage.until(lambda: stage.app.transcript.seen)
        live = stage.text.splitlines()[:-4]
    async with recorded(tmp_path / "other", record, size=(90, 40)) as again:
        await again.until("Done: the discount is taken off.")
        await again.until(lambda: again.text.splitlines()[:-4] == live)


async def test_two_thousand_events_give_the_same_screens(tmp_path: Path) -> None:
    folder = shop(tmp_path, "shop")
    (folder / "long.txt").write_text("".join(f"line {number}\n" for number in range(1, 2001)))
    script = [{"text": f"## Part {part}\n\nI *read* on.", "calls": _reads(part)} for part in range(40)]
    live: list[list[str]] = []
    script.append({"text": "All read."})
    async with scripted(tmp_path / "home", folder, script, mode=Mode.YOLO, size=(90, 40)) as stage:
        await stage.type(TASK)
        await stage.pilot.press("enter")
        await stage.until("All read.")
        await stage.until(lambda: not stage.app.status.facts.busy)
        record = await told(stage.client, stage.app.link.session)
        for key in PLACES:
            await stage.pilot.press(key)
            await stage.pilot.pause(0.1)
            live.append(stage.text.splitlines()[:-4])
    assert len(record) >= 2000 and len({str(view) for view in live}) > 5
    async with recorded(tmp_path / "other", record, size=(90, 40)) as again:
        await again.until("All read.")
        for key, view in zip(PLACES, live, strict=True):
            await again.pilot.press(key)
            await again.until(lambda view=view: again.text.splitlines()[:-4] == view)


PLACES = ("ctrl+end", "pageup", "pageup", "alt+up", "ctrl+home", "pagedown", "pagedown", "ctrl+end")


def _reads(part: int) -> list[dict[str, Any]]:
    starts = range(part * 48 + 1, part * 48 + 49)
    return [
        {"name": "read_file", "arguments": {"path": "long.txt", "start_line": start, "max_lines": 1}}
        for start in starts
    ]


async def test_the_same_events_with_and_without_a_screen(tmp_path: Path) -> None:
    rights = {"mode": Mode.YOLO}
    folder = shop(tmp_path, "one")
    async with scripted(tmp_path / "home1", folder, SCRIPT, **rights) as stage:
        await stage.type(TASK)
        await stage.pilot.press("enter")
        await stage.until("Done: the discount is taken off.")
        await stage.until(lambda: not stage.app.status.facts.busy)
        seen = [envelope.event for envelope in await told(stage.client, stage.app.link.session)]
    other = shop(tmp_path, "two")
    async with harness(tmp_path / "home2", other, SCRIPT) as agent:
        opening = OpenSession(str(other), authority=Authority.PERSON, **rights)
        options = HeadlessOptions(opening, TASK, output="stream-json")
        headless = Headless(agent.client, options, Collecting(), ProgressLines(lambda line: None))
        assert await headless.run() == 0
        without = [envelope.event for envelope in await told(agent.client, headless.session)]
    assert alike(seen) == alike(without)
