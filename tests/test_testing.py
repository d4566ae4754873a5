"""The public test kit does what it says."""

from pathlib import Path

import pytest

from codewhale.protocol.events import TurnFinished
from codewhale.testing import FakeClock, collect, harness


def test_a_clock_moves_only_when_told() -> None:
    clock = FakeClock(5.0)
    assert (clock.now(), clock.monotonic()) == (5.0, 5.0)
    clock.advance(2)
    assert (clock.now(), clock.monotonic()) == (7.0, 7.0)


async def test_a_turn_in_three_lines(home: Path, workspace: Path) -> None:
    async with harness(home, workspace, [{"text": "Hello."}]) as stage:
        events = await stage.turn("Say hello")
    assert isinstance(events[-1], TurnFinished)
    assert events[-1].result["answer"] == "Hello."


async def test_collecting_gives_up_after_its_time(home: Path, workspace: Path) -> None:
    async with harness(home, workspace, []) as stage:
        session = await stage.open()
        with pytest.raises(TimeoutError):
            await collect(stage.client.events(session, from_seq=-1), seconds=0.01)
