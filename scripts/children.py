"""`make children-bench`: twenty sub-agents of fifty steps each beside a person who types: how soon each is opened, how
soon the parent answers, what a step takes of the processor, and memory and descriptors. The last line is JSON."""

import argparse
import asyncio
import json
import os
import resource
import tempfile
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from codewhale.app.compose import App, AppOptions, open_app
from codewhale.lib.clock import SystemClock
from codewhale.models.dialects.base import ProviderSettings
from codewhale.models.scripted import ScriptedProvider
from codewhale.protocol.children import ListChildren
from codewhale.protocol.events import (
    LOG_VERSION,
    CallFinished,
    MessageAdded,
    SessionOpened,
    TurnFinished,
    TurnStarted,
)
from codewhale.protocol.messages import Message, Text
from codewhale.protocol.modes import Authority, Mode
from codewhale.protocol.ops import Interrupt, OpenSession, SendMessage, SessionStatus
from codewhale.protocol.stream import StreamEvent
from codewhale.protocol.views import CompleteCommand
from codewhale.session.store import SessionStore
from tui import figure, percentile

CHILDREN, STEPS = 20, 50
OPEN_MS, INPUT_MS, STEP_MS, CHILD_MB, FORK_MS = 60.0, 100.0, 3.0, 1.0, 50.0


class Model(ScriptedProvider):
    """Plays parent and children, and adds up its own time: `delay` is how long it thinks of a step."""

    def __init__(self, delay: float) -> None:
        facts = {"parallel_requests": CHILDREN}
        super().__init__(self._play, settings=ProviderSettings(dialect="scripted", facts=dict(facts)))
        self.delay, self.own, self.steps = delay, 0.0, 0

    async def stream(self, body: bytes) -> AsyncIterator[StreamEvent]:
        begun = time.thread_time()
        turn = self._next(body)
        events = list(self._events(turn, body))
        self.requests.clear()
        self.own += time.thread_time() - begun
        await asyncio.sleep(turn.delay)
        for event in events:
            yield event

    def _play(self, request: dict[str, Any]) -> dict[str, Any]:
        messages = request["messages"]
        said = [str(one["content"]) for one in messages if one["role"] == "user"]
        if any("Child " in text for text in said):
            self.steps += 1
            steps = sum(one["role"] == "assistant" for one in messages)
            given = {"path": "notes.txt", "start_line": steps + 1, "max_lines": 1}
            read = {"calls": [{"name": "read_file", "arguments": given}], "delay": self.delay}
            return read if steps < STEPS else {"text": "SUMMARY: all is read"}
        if not said[-1].startswith("Open") or messages[-1]["role"] == "tool":
            return {"text": "So it is."}
        opens = [
            {"name": "agent_open", "arguments": {"prompt": f"Child {one}", "role": "explore"}}
            for one in range(int(said[-1].split()[1]))
        ]
        return {"calls": opens}


def memory_mb() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 1e6


async def typed(app: App, session: str) -> list[float]:
    """How long, in ms, what a person does takes until it is answered, while children run."""
    took, number = list[float](), 0
    while any(not view.over for view in await app.client.query(ListChildren(session))):
        number += 1
        begun = time.perf_counter()
        if number % 10:
            await app.client.query(CompleteCommand(session, "/mo"))
        else:
            await app.client.submit(SendMessage(session, f"How far are they {number}"))
        took.append((time.perf_counter() - begun) * 1000)
        await asyncio.sleep(0.05)
    return took


async def idle(app: App, session: str) -> None:
    while (status := await app.client.query(SessionStatus(session))).busy or status.queue:  # noqa: ASYNC110
        await asyncio.sleep(0.01)


async def measure(folder: Path, delay: float) -> list[dict[str, Any]]:
    (folder / "home").mkdir()
    (folder / "home" / "config.toml").write_text(f"[subagents]\nmax_concurrent = {CHILDREN}\n")
    work = folder / "work"
    work.mkdir()
    (work / "notes.txt").write_text("".join(f"line {n}\n" for n in range(STEPS + 1)))
    options = AppOptions(home=str(folder / "home"), workspace=str(work), provider="scripted", model="scripted")
    model = Model(delay)
    async with open_app(options, environ={}, providers={"scripted": model}) as app:
        session = await app.client.submit(OpenSession(str(work), Mode.AGENT, Authority.PERSON))
        await app.client.submit(SendMessage(session, "Open 1"))  # what is built once is built
        await idle(app, session)
        await typed(app, session)
        await idle(app, session)
        opened, descriptors, memory = opens(app, session), len(os.listdir("/proc/self/fd")), memory_mb()
        await app.client.submit(SendMessage(session, f"Open {CHILDREN}"))
        await idle(app, session)
        took = await typed(app, session)
        await idle(app, session)
        before, own, steps = time.process_time(), model.own, model.steps
        await app.client.submit(SendMessage(session, f"Open {CHILDREN}"))
        await idle(app, session)
        grown = (await most_memory(app, session) - memory) / CHILDREN
        spent = time.process_time() - before - (model.own - own)
        await idle(app, session)
        left = len(os.listdir("/proc/self/fd")) / descriptors
        acknowledged = opens(app, session)[len(opened) :]
        await app.client.submit(Interrupt(session))
    if len(acknowledged) != 2 * CHILDREN or model.steps - steps < CHILDREN * STEPS:
        raise SystemExit(f"{len(acknowledged)} of {CHILDREN} were opened, {model.steps - steps} steps made")
    return [
        figure("agent_open acknowledged, 95 of 100, ms", OPEN_MS, percentile(acknowledged, 0.95)),
        figure(f"the parent answers a person ({len(took)} inputs), 95 of 100, ms", INPUT_MS, percentile(took, 0.95)),
        figure("processor time of a step, the model's left out, ms", STEP_MS, spent * 1000 / (model.steps - steps)),
        figure("memory of a child after its steps, MB", CHILD_MB, grown),
        figure("open descriptors after, as a share of those before", 1, left),
    ]


async def gaps(longest: list[float]) -> None:
    """Note how long the event loop was held."""
    while True:
        begun = time.perf_counter()
        await asyncio.sleep(0.001)
        longest.append((time.perf_counter() - begun) * 1000)


async def measure_fork(folder: Path) -> dict[str, Any]:
    """How long opening a fork of a large log holds the event loop, from when the parent's own request has been sent."""
    (folder / "work").mkdir(parents=True)
    store = SessionStore(str(folder / "home"), SystemClock())
    log = store.create(SessionOpened(LOG_VERSION, str(folder / "work"), Mode.AGENT, "scripted", "scripted"))
    said = "The function reads the configuration, then walks the tree. " * 40
    for turn in range(1, 20_000_000 // (2 * len(said)) + 1):
        messages = [MessageAdded(Message(role, (Text(said),))) for role in ("user", "assistant")]
        log.append([TurnStarted(turn), *messages, TurnFinished(turn, "done")])
    log.close()
    options = AppOptions(
        home=str(folder / "home"), workspace=str(folder / "work"), provider="scripted", model="scripted"
    )
    opens = [{"name": "agent_open", "arguments": {"prompt": "Look", "role": "explore", "fork_context": True}}]
    facts: dict[str, Any] = {"parallel_requests": CHILDREN}
    settings = ProviderSettings(dialect="scripted", context_window=50_000_000, facts=facts)
    model = ScriptedProvider([{"calls": opens, "delay": 0.1}], settings=settings)
    longest: list[float] = []
    async with open_app(options, environ={}, providers={"scripted": model}) as app:
        session = await app.client.submit(
            OpenSession(str(folder / "work"), Mode.AGENT, Authority.PERSON, resume=log.session)
        )
        await app.client.submit(SendMessage(session, "Open"))
        while not model.requests:  # noqa: ASYNC110
            await asyncio.sleep(0.001)
        ticker = asyncio.create_task(gaps(longest))
        while not any(view.over for view in await app.client.query(ListChildren(session))):  # noqa: ASYNC110
            await asyncio.sleep(0.001)
        ticker.cancel()
    return figure("a fork of a log of 20 MB holds the event loop, ms", FORK_MS, max(longest))


async def most_memory(app: App, session: str) -> float:
    """The most memory while they run, in MB."""
    most = 0.0
    while any(not view.over for view in await app.client.query(ListChildren(session))):
        most = max(most, memory_mb())
        await asyncio.sleep(0.5)
    return most


def opens(app: App, session: str) -> list[float]:
    """How long each agent_open of a session took, in ms."""
    events = (envelope.event for envelope in app.parts.sessions.read(session))
    return [one.ms for one in events if isinstance(one, CallFinished) and one.name == "agent_open" and one.ok]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--delay", type=float, default=0.3, help="seconds that the model thinks of a step")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="codewhale-children-", ignore_cleanup_errors=True) as name:
        rows = asyncio.run(measure(Path(name), given.delay))
        rows.append(asyncio.run(measure_fork(Path(name) / "fork")))
    print(json.dumps(rows))
    return 0 if all(row["ok"] for row in rows) else 1


if __name__ == "__main__":
    raise SystemExit(main())
