"""`make children-crash`: kill -9 a process whose session has sub-agents at work, at random and at named moments.

After each kill every log must open, no call may have run twice and no end may be told twice; whoever goes on must find
each child as it stood, wake it with a message, and have been told of every end once. The last line is JSON: all counts.
"""

import argparse
import asyncio
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

from codewhale.app.compose import AppOptions, open_app
from codewhale.lib.clock import SystemClock
from codewhale.lib.failpoints import VARIABLE
from codewhale.models.scripted import ScriptedProvider
from codewhale.protocol.children import ChildView, ListChildren, agent_id
from codewhale.protocol.events import (
    CallFinished,
    ChildClosed,
    ChildOpened,
    ChildReleased,
    Event,
    MessageAdded,
    SessionResumed,
    TurnFinished,
    TurnStarted,
)
from codewhale.protocol.modes import Authority, Mode
from codewhale.protocol.ops import OpenSession, SendMessage, SessionStatus
from codewhale.session.store import SessionStore

ROUNDS = 3
SECONDS = 180.0
BATCH = 20
AT_ONCE = 3
# Where a life is killed by name, and the highest hit tried.
BETWEEN = {"child.end": 14}
AIMS = {
    "session.created": 8, "fork.before_rename": 3, "fork.after_rename": 3, "log.append.before": 150,
    "log.append.mid": 150, "log.append.after": 150, "log.sync.before": 60, "log.sync.after": 60,
}  # fmt: skip


def text_of(message: dict[str, Any]) -> str:
    content = message.get("content") or ""
    return content if isinstance(content, str) else "\n".join(part.get("text", "") for part in content)


# ---------------------------------------------------------------------- the one that is killed


class Life:
    """One process: it wakes what an earlier one left, opens more, and waits for all of them, a few times."""

    def __init__(self, folder: Path, seed: int, client: Any, last: bool) -> None:
        self.folder, self.seed, self.client, self.last = folder, seed, client, last
        self.dice = random.Random(seed)
        self.calls: list[dict[str, Any]] = []
        self.session = ""

    def model(self, request: dict[str, Any]) -> dict[str, Any]:
        said = [text_of(one) for one in request["messages"] if one["role"] == "user"]
        lines = [line for text in said for line in text.splitlines()]
        if any(line.startswith("Child ") for line in lines):
            return self.child(request, lines)
        return self.calls.pop(0) if self.calls else {"text": "All is told."}

    def child(self, request: dict[str, Any], lines: list[str]) -> dict[str, Any]:
        """A child writes two lines of its own a task, then says which task is over."""
        name, number = next(line for line in lines if line.startswith("Child ")).split()[1], 1
        asked = [line for line in lines if line.startswith("Again ")]
        number = int(asked[-1].split()[1]) if asked else 1
        sent = [call["function"]["arguments"] for one in request["messages"] for call in one.get("tool_calls", ())]
        own = [text for text in sent if f"line-{name}-" in text and "exec" not in text]
        for line in lines_of(self.folder):
            if line.startswith(f"line-{name}-") and not any(line in text for text in own):
                raise AssertionError(f"{name} does not know that it wrote {line}")
        if sum(f"line-{name}-{number}-" in text for text in own) >= 2:
            return {"text": f"SUMMARY: {name} task {number} is over"}
        command = f"echo line-{name}-{number}-{len(own)} >> lines.txt"
        return {"calls": [{"name": "exec_shell", "arguments": {"command": command}}]}

    async def views(self) -> tuple[ChildView, ...]:
        views: tuple[ChildView, ...] = await self.client.query(ListChildren(self.session))
        return views

    async def turn(self, *steps: list[dict[str, Any]]) -> None:
        self.calls = [{"calls": step} for step in steps if step]
        await self.client.submit(SendMessage(self.session, f"Round {self.seed}"))
        async with asyncio.timeout(SECONDS / 3):
            while (status := await self.client.query(SessionStatus(self.session))).busy or status.queue:  # noqa: ASYNC110
                await asyncio.sleep(0.005)

    async def run(self, former: str) -> None:
        opening = OpenSession(str(self.folder / "work"), Mode.YOLO, Authority.AUTO, resume=former)
        self.session = await self.client.submit(opening)
        print("open", flush=True)
        for number in range(ROUNDS):
            views = await self.views()
            if any(not view.over for view in views):
                raise AssertionError(f"a child runs that nobody started: {views}")
            wakes = [view for view in views if view.status == "interrupted" or self.dice.random() < 0.2][:AT_ONCE]
            steps = [self.wake(view) for view in wakes]
            steps += [self.open(number, at) for at in range(AT_ONCE - len(wakes))]
            await self.turn(steps, self.meanwhile([view for view in views if view not in wakes]))
        if self.last:
            await self.wake_all()

    async def wake_all(self) -> None:
        views = await self.views()
        for at in range(0, len(views), AT_ONCE):
            await self.turn([self.wake(view) for view in views[at : at + AT_ONCE]])
        for before, after in zip(views, await self.views(), strict=True):
            if after.status != "completed" or f"task {before.task + 1} is over" not in after.answer:
                raise AssertionError(f"a message did not wake {before.name}: {after}")

    def wake(self, view: ChildView) -> dict[str, Any]:
        given = {"name": view.name, "message": f"Again {view.task + 1}", "block": False}
        return {"name": "agent_eval", "arguments": given}

    def open(self, number: int, at: int) -> dict[str, Any]:
        name = f"c{self.seed}x{number}x{at}"
        fork = self.dice.random() < 0.3
        given = {"prompt": f"Child {name}", "name": name, "role": "general", "fork_context": fork}
        return {"name": "agent_open", "arguments": given}

    def meanwhile(self, views: list[ChildView]) -> list[dict[str, Any]]:
        """What the parent does beside them: nothing, wait, or give one up."""
        kind = self.dice.choice(["nothing", "wait", "close", "message"])
        if kind == "wait":
            return [{"name": "agent_eval", "arguments": {"timeout_ms": 500}}]
        if kind == "close" and views:
            return [{"name": "agent_close", "arguments": {"name": self.dice.choice(views).name}}]
        return [self.wake(self.dice.choice(views))] if kind == "message" and views else []


def lines_of(folder: Path) -> list[str]:
    path = folder / "work" / "lines.txt"
    return path.read_text().split() if path.exists() else []


async def live(folder: Path, seed: int, last: bool) -> None:
    options = AppOptions(
        home=str(folder / "home"), workspace=str(folder / "work"), provider="scripted", model="scripted"
    )
    lives: list[Life] = []
    provider = ScriptedProvider(lambda request: lives[0].model(request))
    async with open_app(options, environ={}, providers={"scripted": provider}) as app:
        lives.append(Life(folder, seed, app.client, last))
        await lives[0].run(parent_of(folder))


def parent_of(folder: Path) -> str:
    rows = SessionStore(str(folder / "home"), SystemClock()).summaries() if (folder / "home").exists() else []
    return next((row.id for row in rows if row.turns), "")


# ---------------------------------------------------------------------- the one that kills


def life(folder: Path, seed: int, chance: random.Random, last: bool) -> str:
    """One process to its end; where it was killed, "" when it ended by itself. Raises AssertionError for its faults."""
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    points = chance.choice([{"": 1}, BETWEEN, BETWEEN, AIMS])
    point = "" if last else chance.choice([*points])
    if point:
        environ[VARIABLE] = f"{point}=kill@{chance.randint(1, points[point])}"
    command = [sys.executable, __file__, "--child", str(folder), "--seed", str(seed), *(["--last"] if last else [])]
    with tempfile.TemporaryFile("w+") as errors:
        child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True, env=environ)
        try:
            assert child.stdout is not None
            child.stdout.readline()
            if not point and not last:
                time.sleep(chance.uniform(0.0, 2.5))
                child.kill()
            child.wait(timeout=SECONDS)
        finally:
            child.kill()
            child.communicate()
        errors.seek(0)
        told = errors.read()
    if child.returncode == -9:
        return point or "any moment"
    if child.returncode or "never retrieved" in told:
        raise AssertionError(told[-3_000:])
    return ""


class Told:
    """What the log of a parent says of its children: by child and task, how often its end was recorded and told."""

    def __init__(self, events: list[Event]) -> None:
        self.task: dict[str, int] = {}
        self.closed, self.reported, self.released = Counter[str](), Counter[str](), set[str]()
        self.wrong: list[str] = []
        for event in events:
            self._add(event)

    def _add(self, event: Event) -> None:
        match event:
            case ChildOpened(child=child, turn=turn):
                if turn > 1 and not self.reported[self._key(child)]:
                    self.wrong.append(f"{child} got task {turn} before the end of the last one was told")
                self.task[child] = turn
            case ChildClosed(child=child):
                self.closed[self._key(child)] += 1
            case MessageAdded(message=message) if (text := str(message.parts)).count("<subagent_done>"):
                self._told(next(child for child in self.task if f'"{agent_id(child)}"' in text), text)
            case CallFinished(metadata=metadata):
                for child in metadata.get("reported_children", ()):
                    self._told(child, event.content)
            case ChildReleased(child=child):
                self.released.add(child)

    def _key(self, child: str) -> str:
        return f"{child} task {self.task.get(child, 0)}"

    def _told(self, child: str, text: str) -> None:
        key = self._key(child)
        self.reported[key] += 1
        if " is over" in text and f"{key.partition(' ')[2]} is over" not in text:
            self.wrong.append(f"{key}: told {text[:300]}")


def judge(folder: Path, ended: bool) -> tuple[list[str], bool]:
    """What is wrong after a life, and whether an end stood between its record and its delivery."""
    store, faults, between = SessionStore(str(folder / "home"), SystemClock()), list[str](), False
    for row in store.summaries(owned=True):
        log = store.open(row.id)
        if log.damage.skipped_lines or log.damage.duplicates:
            faults.append(f"{row.id}: {log.damage}")
        log.close()
    twice = [line for line, count in Counter(lines_of(folder)).items() if count > 1]
    faults += [f"{line} was written twice" for line in twice]
    parent = parent_of(folder)
    if not parent:
        return faults, between
    if store.resolve("latest") != parent:
        faults.append(f"{store.resolve('latest')} passes for the person's last session")
    told = Told([envelope.event for envelope in store.read(parent)])
    faults += told.wrong
    faults += [f"{key}: told {count} times" for key, count in told.reported.items() if count > 1]
    faults += [f"{key}: closed {count} times" for key, count in told.closed.items() if count > 1]
    for child, task in told.task.items():
        if not told.reported[f"{child} task {task}"]:
            between = between or over(store, child)
            if ended:
                faults.append(f"the end of {child}, task {task}, was never told")
    return faults, between


def over(store: SessionStore, child: str) -> bool:
    """Whether the last task of a child has ended."""
    open_turn = True
    for envelope in store.read(child):
        match envelope.event:
            case SessionResumed() | TurnStarted():
                open_turn = True
            case TurnFinished():
                open_turn = False
    return not open_turn


def kill_many(kills: int, seed: int) -> dict[str, Any]:
    """So many kills, in a new home after every twenty, each of which ends with a life that wakes every child."""
    chance, counts, between, lives, children = random.Random(seed), Counter[str](), 0, 0, 0
    faults: list[str] = []
    while counts.total() < kills and not faults and lives < 3 * kills + 10:
        most = min(kills, counts.total() + BATCH)
        with tempfile.TemporaryDirectory(prefix="codewhale-children-", ignore_cleanup_errors=True) as name:
            folder = Path(name)
            (folder / "work").mkdir()
            last = False
            while not last and not faults:
                last = counts.total() >= most
                lives += 1
                try:
                    where = life(folder, seed + lives, chance, last)
                    counts.update([where] if where else [])
                    wrong, amid = judge(folder, not where)
                    faults += [f"life {seed + lives} {where}: {one}" for one in wrong]
                    between += amid
                except (AssertionError, subprocess.TimeoutExpired) as error:
                    faults.append(f"life {seed + lives}: {error}")
            children += len(SessionStore(str(folder / "home"), SystemClock()).summaries(owned=True)) - 1
    return {
        "kills": counts.total(), "between": between, "lives": lives, "children": children, "at": dict(counts),
        "faults": faults,
    }  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--child", default="")
    parser.add_argument("--last", action="store_true")
    given = parser.parse_args()
    if given.child:
        asyncio.run(live(Path(given.child), given.seed, given.last))
        return 0
    outcome = kill_many(given.kills, given.seed)
    print(json.dumps(outcome))
    return 1 if outcome["faults"] or outcome["kills"] < given.kills else 0


if __name__ == "__main__":
    sys.exit(main())
