"""A composer on a screen, with a queue that obeys and answers to what it asks."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from textual.pilot import Pilot

from codewhale.display.words import Words
from codewhale.protocol.ops import EditQueue
from codewhale.protocol.views import (
    Choice,
    CommandRow,
    CompleteCommand,
    FileMatch,
    FindFiles,
    GetQueue,
    ListCommands,
    QueuedRow,
)
from codewhale.tui.composer.composer import Composer
from codewhale.tui.composer.store import ComposerStore
from support.tuirecord import SESSION, PanelHost, RecordedClient, envelopes, hosted, typed, until


class Desk:
    """A composer on a screen, with a queue that obeys."""

    def __init__(self, home: Path, session: str = SESSION) -> None:
        self.home = home
        self.session = session
        self.waiting: list[QueuedRow] = []
        self.client = RecordedClient(
            (),
            {
                GetQueue: lambda query: tuple(self.waiting),
                EditQueue: self._edit,
                ListCommands: (
                    CommandRow("/mode", "plan|agent|yolo", "change the mode"),
                    CommandRow("/model", "NAME", "change the model"),
                    CommandRow("/status", "", "how the session stands"),
                ),
                CompleteCommand: lambda query: (
                    (Choice("plan", "changes nothing"),) if query.line.startswith("/mode ") else ()
                ),
                FindFiles: lambda query: (FileMatch("src/app.py", 2.0), FileMatch("src/", 1.0)),
            },
        )
        self.host: PanelHost
        self.pilot: Pilot[None]

    def _edit(self, op: EditQueue) -> str:
        if op.index >= len(self.waiting) or (op.was and self.waiting[op.index].text != op.was):
            return ""
        former = self.waiting[op.index]
        kept = [QueuedRow(op.text, op.delivery or former.delivery, former.attachments)] if op.text else []
        self.waiting[op.index : op.index + 1] = kept
        return former.text

    @property
    def composer(self) -> Composer:
        """The panel."""
        return self.host.query_one(Composer)

    @property
    def text(self) -> str:
        """What stands in it."""
        return self.composer.text.content

    def said(self, kind: type[Any]) -> list[Any]:
        """The messages of a kind that went upward."""
        return [message for message in self.host.said if isinstance(message, kind)]

    def happen(self, *events: Any) -> None:
        """Let events reach the panel."""
        for envelope in envelopes(events):
            self.composer.take(envelope)

    async def type(self, text: str) -> None:
        """Type letters."""
        await typed(self.pilot, ({" ": "space", "\n": "ctrl+j"}.get(letter, letter) for letter in text))

    async def until(self, condition: Any) -> Any:
        """Wait for it."""
        return await until(self.pilot, condition)


@asynccontextmanager
async def desk(home: Path, size: tuple[int, int] = (80, 24), session: str = SESSION) -> AsyncIterator[Desk]:
    """A composer with the focus."""
    here = Desk(home, session)

    def make(palette: Any) -> Composer:
        keeper = ComposerStore(str(home), str(home))
        return Composer(Words("en"), palette, here.client.query, here.client.submit, keeper, editor="")

    async with hosted(make, size) as (host, pilot):
        here.host, here.pilot = host, pilot
        here.composer.focus()
        if session:
            here.composer.open(session)
        await pilot.pause()
        yield here
