"""Whole turns: an application with a model that says exactly what a test wants, and a listener that can wait."""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Literal, TypeVar

from codewhale.app.compose import AppOptions, open_app
from codewhale.models.scripted import ScriptedProvider
from codewhale.protocol.events import ApprovalAsked, CallFinished, Envelope, Event, QuestionAsked, TurnFinished
from codewhale.protocol.ops import Answer, SendMessage
from codewhale.protocol.stream import StreamEvent
from codewhale.testing import Harness
from support.patience import HANG

E = TypeVar("E")
SECONDS = HANG


class DeltaProvider(ScriptedProvider):
    """A model whose answers are given as stream events; an asyncio.Event among them is waited for."""

    def __init__(self, answers: Sequence[Sequence[StreamEvent | asyncio.Event]]) -> None:
        super().__init__()
        self._answers = list(answers)

    async def stream(self, body: bytes) -> AsyncIterator[StreamEvent]:
        """The next answer, or the scripted one when they are used up."""
        if not self._answers:
            async for event in super().stream(body):
                yield event
            return
        self.requests.append(body)
        for item in self._answers.pop(0):
            if isinstance(item, asyncio.Event):
                await item.wait()
            else:
                yield item


@asynccontextmanager
async def scene(
    home: Path, workspace: Path, provider: ScriptedProvider, environ: Mapping[str, str] | None = None
) -> AsyncIterator[Harness]:
    """An application over this provider."""
    options = AppOptions(home=str(home), workspace=str(workspace), provider="scripted", model="scripted")
    async with open_app(options, environ=environ or {}, providers={"scripted": provider}) as app:
        yield Harness(app, provider, workspace)


class Watch:
    """All events of a session from now on, and a way to wait for one."""

    def __init__(self, stream: AsyncIterator[Envelope]) -> None:
        self.events: list[Event] = []
        self._news = asyncio.Condition()
        self._task = asyncio.create_task(self._listen(stream))

    async def _listen(self, stream: AsyncIterator[Envelope]) -> None:
        async for envelope in stream:
            async with self._news:
                self.events.append(envelope.event)
                self._news.notify_all()

    async def until(self, kind: type[E], count: int = 1) -> E:
        """The event number `count` (from 1) of this type. Raises TimeoutError."""
        async with asyncio.timeout(SECONDS), self._news:
            await self._news.wait_for(lambda: len(only(self.events, kind)) >= count)
        return only(self.events, kind)[count - 1]

    async def ended(self) -> BaseException | None:
        """What the stream ended with, once it has. Raises TimeoutError."""
        async with asyncio.timeout(SECONDS):
            await asyncio.wait([self._task])
        return self._task.exception()

    async def close(self) -> None:
        """Stop listening."""
        self._task.cancel()
        await asyncio.wait([self._task])


@asynccontextmanager
async def watching(stage: Harness, session: str) -> AsyncIterator[Watch]:
    """A watch on a session."""
    watch = Watch(stage.client.events(session, from_seq=-1, durable=False))
    await asyncio.sleep(0)
    try:
        yield watch
    finally:
        await watch.close()


async def answered(
    stage: Harness, session: str, remember: Literal["", "session", "always"] = "", allowed: bool = True, label: str = ""
) -> list[Event]:
    """The events of a turn in which each approval is answered alike, and each question by the option `label`."""
    events: list[Event] = []
    stream = stage.client.events(session, from_seq=-1)
    begun = asyncio.ensure_future(anext(stream))
    await asyncio.sleep(0)
    await stage.client.submit(SendMessage(session, "Go"))
    events.append((await begun).event)
    async for envelope in stream:
        events.append(envelope.event)
        if isinstance(envelope.event, ApprovalAsked):
            request = envelope.event.request_id
            await stage.client.submit(Answer(session, request, allowed=allowed, remember=remember))
        if isinstance(envelope.event, QuestionAsked) and label:
            request = envelope.event.request_id
            await stage.client.submit(Answer(session, request, answers=({"label": label, "value": label},)))
        if isinstance(envelope.event, TurnFinished):
            break
    return events


def only(events: Sequence[Event], kind: type[E]) -> list[E]:
    """The events of one type."""
    return [event for event in events if isinstance(event, kind)]


def ending(events: Sequence[Event]) -> TurnFinished:
    """The one end of a turn."""
    (found,) = only(events, TurnFinished)
    return found


def results(events: Sequence[Event]) -> list[CallFinished]:
    """The results of calls in order."""
    return only(events, CallFinished)


def sent(stage: Harness, number: int = -1) -> list[dict[str, Any]]:
    """The messages of a request, the system text first."""
    messages: list[dict[str, Any]] = json.loads(stage.provider.requests[number])["messages"]
    return messages


async def appears(path: Path) -> None:
    """Return once the file is there. Raises TimeoutError."""
    deadline = time.monotonic() + SECONDS
    while not path.exists():
        if time.monotonic() > deadline:
            raise TimeoutError(str(path))
        await asyncio.sleep(0.01)
