"""Questions with two answers: no is at hand, and neither letters nor Enter alone say yes."""

from pathlib import Path
from typing import Any

import pytest

from codewhale.protocol.events import ApprovalAsked, Event, JobStarted, SessionOpened, TurnStarted
from codewhale.protocol.modes import Mode
from codewhale.protocol.ops import RunCommand, SetMode
from codewhale.protocol.tools import CommandSubject
from support.tuiapp import FOLDER, recorded

OPENED = SessionOpened(1, FOLDER, Mode.AGENT, "deepseek", "deepseek-v4")


def ops(client: Any, kind: type) -> list[Any]:
    """The operations of a kind."""
    return [op for op in client.ops if isinstance(op, kind)]


@pytest.mark.parametrize("line", ["/yolo", "/mode yolo"])
async def test_yolo_is_asked_about_and_no_is_at_hand(tmp_path: Path, line: str) -> None:
    async with recorded(tmp_path, [OPENED]) as stage:
        await stage.until("─ agent ─")
        await stage.type(line)
        await stage.pilot.press("enter")
        await stage.until("Switch to yolo mode?")
        await stage.type("yes")
        await stage.pilot.press("enter")
        await stage.until(lambda: "Switch to yolo" not in stage.text)
        assert not ops(stage.client, RunCommand) and not ops(stage.client, SetMode)
        await stage.type(line)
        await stage.pilot.press("enter")
        await stage.until("Switch to yolo mode?")
        await stage.pilot.press("down", "enter")
        await stage.until(lambda: ops(stage.client, RunCommand))
        assert ops(stage.client, RunCommand) == [RunCommand(stage.client.session, "/mode yolo yes")]


ASKED = ApprovalAsked("r1", "c1", "exec_shell", (CommandSubject("make", "."),), "why")
MIDDLES: dict[str, tuple[list[Event], str]] = {
    "a turn": ([TurnStarted(1)], "A turn is running"),
    "a card": ([TurnStarted(1), ASKED], "A question is waiting for your answer"),
    "a job": ([JobStarted("j1", "npm run dev", ".")], "1 job would be killed: npm run dev"),
}


@pytest.mark.parametrize("way", ["ctrl+d", "/quit", "/exit"])
@pytest.mark.parametrize("middle", MIDDLES)
async def test_leaving_in_the_middle_asks(tmp_path: Path, middle: str, way: str) -> None:
    events, said = MIDDLES[middle]
    async with recorded(tmp_path, [OPENED, *events]) as stage:
        await stage.until("─ agent ─")
        for _ in range(2):
            if way.startswith("/"):
                await stage.type(way)
            await stage.pilot.press("enter" if way.startswith("/") else way)
            await stage.until(said)
            await stage.pilot.press("enter")
            await stage.until(lambda: "Quit?" not in stage.text)
            assert stage.app.is_running
        await stage.app.actions.command("/quit")
        await stage.until(said)
        await stage.pilot.press("down", "enter")
        await stage.until(lambda: not stage.app.is_running)
        assert stage.app.return_code == 0


async def test_ctrl_c_twice_asks_while_a_job_runs(tmp_path: Path) -> None:
    async with recorded(tmp_path, [OPENED, JobStarted("j1", "npm run dev", ".")]) as stage:
        await stage.until("1 job")
        await stage.pilot.press("ctrl+c", "ctrl+c")
        await stage.until("1 job would be killed: npm run dev")
        await stage.pilot.press("ctrl+c")
        await stage.until(lambda: "Quit?" not in stage.text)
        assert stage.app.is_running
