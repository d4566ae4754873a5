"""What is typed reaches the composer, wherever the focus is."""

from pathlib import Path
from typing import Any

import pytest
from textual import events
from textual.widgets import Input

from codewhale.protocol.events import (
    ApprovalAsked,
    Event,
    MessageAdded,
    QuestionAsked,
    Queued,
    SessionOpened,
    TurnStarted,
)
from codewhale.protocol.messages import Message, Text
from codewhale.protocol.modes import Mode
from codewhale.protocol.ops import Answer, SendMessage
from codewhale.protocol.tools import CommandSubject
from codewhale.protocol.views import GetQueue, QueuedRow
from codewhale.tui.input import is_letter, misses
from support.tuiapp import FOLDER, recorded
from support.tuirecord import typed

OPENED = SessionOpened(1, FOLDER, Mode.AGENT, "deepseek", "deepseek-v4")
SAID = MessageAdded(Message("user", (Text("Why does the login fail?"),)))
ASKED = ApprovalAsked("r1", "c1", "exec_shell", (CommandSubject("make", "."),), "why")


def ops(client: Any, kind: type) -> list[Any]:
    """The operations of a kind."""
    return [op for op in client.ops if isinstance(op, kind)]


@pytest.mark.parametrize(
    ("key", "character", "text"),
    [
        ("y", "y", True),
        ("space", " ", True),
        ("alt+f", "f", False),
        ("ctrl+a", "\x01", False),
        ("enter", "\r", False),
        ("delete", None, False),
        ("\u200d", "\u200d", True),
    ],
)
def test_which_keys_are_text(key: str, character: str | None, text: bool) -> None:
    assert misses(events.Key(key, character), None) is text
    assert not misses(events.Key(key, character), Input())
    assert is_letter("字") and not is_letter("\x1b") and not is_letter(None)


@pytest.mark.parametrize("place", ["transcript", "search", "queue", "card", "question"])
async def test_a_letter_reaches_the_composer_from_anywhere(tmp_path: Path, place: str) -> None:
    asked: dict[str, Event] = {"card": ASKED, "question": QuestionAsked("q1", ({"question": "Which?", "options": []},))}
    more = [TurnStarted(1), Queued("later", 1)] + ([asked[place]] if place in asked else [])
    async with recorded(tmp_path, [OPENED, SAID, *more], answers={GetQueue: (QueuedRow("later", "queue"),)}) as stage:
        await stage.until("main")
        if place == "search":
            await stage.pilot.press("ctrl+f", "a", "escape")
        elif place in ("transcript", "queue"):
            await stage.until("queued: later")
            await stage.pilot.press({"transcript": "alt+t", "queue": "alt+q"}[place])
        else:
            await stage.until(lambda: stage.app.asking.card is not None and stage.app.asking.card.armed)
        await stage.until(lambda: stage.app.focused is not stage.app.composer.text)
        text = "jkyngGNb/e1 2s"
        await typed(stage.pilot, [*text])
        await stage.until(lambda: stage.app.composer.text.content == text)
        await typed(stage.pilot, ["enter"])
        await stage.until(lambda: ops(stage.client, SendMessage))
        assert ops(stage.client, SendMessage)[0].text == text and not ops(stage.client, Answer)
