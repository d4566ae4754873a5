"""What the composer and the line below it do on a real terminal, beside sending a message."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from codewhale.protocol.events import TurnFinished
from support.ttyworld import World


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    """A world whose terminals are closed at the end."""
    made = World(tmp_path)
    yield made
    for term in made.opened:
        term.__exit__()


def test_a_model_that_does_not_answer_is_named_and_left_by_one_key(world: World) -> None:
    world.says({"text": "too late", "delay": 300})
    term = world.open()
    term.type("go\r")
    term.sees("waiting for the model")
    term.sees("scripted has not answered yet", "1", "esc to stop")
    began = time.monotonic()
    term.type("\x1b")
    term.until(lambda text: "esc to stop" not in text)
    assert time.monotonic() - began < 5
    world.until_recorded(TurnFinished)
