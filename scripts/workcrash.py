"""`make work-crash`: kill -9 processes that work at durable tasks, at random and at named moments, and look for loss.

Tasks write a file, append one line to a file of effects by a program, and run a gate. Whatever dies: no task may be
lost or finished twice, and no line appended twice. A person resumes what is interrupted. The last line is JSON.
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
from codewhale.models.dialects.base import ProviderSettings
from codewhale.models.scripted import ScriptedProvider
from codewhale.protocol.events import CallFinished, TurnFinished
from codewhale.protocol.modes import Mode
from codewhale.protocol.tasks import TaskBoard
from codewhale.session.store import SessionStore
from codewhale.tasks.book import TaskBook
from codewhale.tasks.conversation import conversations
from codewhale.tasks.model import TaskSpec

LIVES = 2  # processes at once
SLOTS = 4
SECONDS = 7200.0  # for all of it, and for a life that nobody kills
POINTS = {
    "task.taken": 3, "task.claimed": 3, "task.opened": 3, "task.intent": 8, "task.result": 8, "task.ended": 3,
    "task.beat": 4, "log.append.mid": 40, "log.sync.after": 20,
}  # fmt: skip


# ---------------------------------------------------------------------- the one that is killed


def text_of(message: dict[str, Any]) -> str:
    content = message.get("content") or ""
    return content if isinstance(content, str) else " ".join(part.get("text", "") for part in content)


def play(request: dict[str, Any]) -> dict[str, Any]:
    """The next step of the task that a conversation is about; what may be half done is not done again."""
    asked = " ".join(text_of(one) for one in request["messages"] if one["role"] == "user")
    number = asked.partition("Task number ")[2].split()[0]
    steps = [
        ("write_file", {"path": f"files/{number}.txt", "content": f"{number}\n"}),
        ("exec_shell", {"command": f"echo {number} >> effects/{number}"}),
        ("task_gate_run", {"gate": "custom", "command": f"test -e files/{number}.txt"}),
    ]
    called = {
        call["function"]["name"]
        for one in request["messages"]
        if one["role"] == "assistant"
        for call in one.get("tool_calls") or ()
    }
    for name, arguments in steps:
        if name not in called:
            return {"calls": [{"name": name, "arguments": arguments}], "delay": random.uniform(0.0, 0.15)}
    return {"text": f"finished {number}"}


async def live(home: str, workspace: str) -> None:
    provider = ScriptedProvider(play, settings=ProviderSettings(dialect="scripted", context_window=0))
    options = AppOptions(home=home, workspace=workspace, provider="scripted", model="scripted")
    async with (
        open_app(options, providers={"scripted": provider}) as app,
        app.parts.tasking.working(app.client, "life", SLOTS, lambda line: None),
    ):
        print("up", flush=True)
        await asyncio.sleep(SECONDS)


# ---------------------------------------------------------------------- the one that kills


class Loop:
    """Starts lives, kills them, and resumes as a person what they leave."""

    def __init__(self, home: Path, workspace: Path, seed: int) -> None:
        self.home, self.workspace = home, workspace
        self.dice = random.Random(seed)
        self.counts: Counter[str] = Counter()
        self.lives: dict[subprocess.Popen[bytes], tuple[float, str]] = {}
        self.book = TaskBook(str(home), SessionStore(str(home), SystemClock()))
        self.slowest, self.tasks = 0.0, 0
        self.died: dict[int, float] = {}  # when, by process

    def add(self, tasks: int) -> None:
        """Queue more tasks; every second one may go on by itself."""
        for number in range(self.tasks, self.tasks + tasks):
            spec = TaskSpec(
                f"Task number {number} is to be done.", str(self.workspace), Mode.AGENT, "scripted", "scripted",
                auto_approve=True, on_death="resume" if number % 2 else "ask",
            )  # fmt: skip
            self.book.add(spec, f"task_{number:08x}")
        self.tasks += tasks

    def run(self, kills: int, at_points: int) -> None:
        """Kill so many, then let the rest be finished."""
        ends = time.monotonic() + SECONDS
        while True:
            board = self.board()
            assert time.monotonic() < ends and not board.counts.get("failed"), dict(board.counts)
            finished = board.counts.get("completed", 0) == sum(board.counts.values())
            if finished and self.counts["kills"] >= kills:
                return
            if finished:
                self.add(20)
            while len(self.lives) < LIVES:
                left = at_points - self.counts["aimed"]
                named = left > 0 and (self.counts["kills"] + left >= kills or self.dice.random() < 0.4)
                self.begin(self.dice.choice(sorted(POINTS)) if named and self.counts["kills"] < kills else "")
            self.tend(kills)
            for view in board.tasks:
                self.book.resume(view.id)
                self.counts["resumed"] += 1
            time.sleep(0.1)

    def begin(self, point: str) -> None:
        """A life that ends at a point, or at a moment."""
        environ = {**os.environ}
        environ.pop(VARIABLE, None)
        if point:
            self.counts["aimed"] += 1
            environ[VARIABLE] = f"{point}=kill@{self.dice.randint(1, POINTS[point])}"
        command = [sys.executable, __file__, "--life", str(self.home), str(self.workspace)]
        with open(self.home.parent / "said", "ab") as said:
            process = subprocess.Popen(command, env=environ, stdout=subprocess.PIPE, stderr=said)
        assert process.stdout is not None
        os.set_blocking(process.stdout.fileno(), False)
        self.lives[process] = (time.monotonic() + 60.0, point)

    def tend(self, kills: int) -> None:
        """Kill those whose time has come, and count the dead."""
        for process, (until, point) in list(self.lives.items()):
            assert process.stdout is not None
            if process.stdout.read(1):  # it works from here on
                until = time.monotonic() + (15.0 if point else self.dice.uniform(0.0, 3.0))
                self.lives[process] = (until, point)
            if time.monotonic() >= until and self.counts["kills"] < kills:
                process.kill()
                process.wait()
                point = ""
            if process.poll() is not None:
                said = (self.home.parent / "said").read_text()[-2000:]
                assert process.returncode == -9, f"a life ended with {process.returncode}: {said}"
                process.stdout.close()
                self.died[process.pid] = time.time()
                self.counts["kills"] += 1
                self.counts[f"at {point}" if point else "at a moment"] += 1
                del self.lives[process]

    def board(self) -> TaskBoard:
        began = time.monotonic()
        board = self.book.board(100, ("interrupted",))
        self.slowest = max(self.slowest, time.monotonic() - began)
        return board

    def late(self) -> list[float]:
        """How long after its death each task of a dead process was told to be without one, in seconds."""
        found = []
        for number in range(self.tasks):
            for entry in self.book.journal.ledger.entries(f"task_{number:08x}"):
                owner = str(entry.data.get("text", "")).partition(" is gone")[0].split(":")
                if entry.kind == "died" and len(owner) == 3:
                    found.append(entry.at - self.died.get(int(owner[1]), entry.at))
        return sorted(found)

    def faults(self) -> list[str]:
        """What was lost, or happened twice."""
        found = []
        counts = self.board().counts
        if counts != {"completed": self.tasks}:
            found.append(f"of {self.tasks} tasks: {dict(counts)}")
        for path in (self.workspace / "effects").iterdir():
            lines = path.read_text().split()
            # A program that was killed may have opened its file, and written nothing.
            if lines not in ([path.name], []):
                found.append(f"effect {path.name} happened {len(lines)} times")
        store = SessionStore(str(self.home), SystemClock())
        known = conversations(store)
        for task in (f"task_{number:08x}" for number in range(self.tasks)):
            found += self._of_task(store, task, known.get(task, []))
        return found

    def _of_task(self, store: SessionStore, task: str, sessions: list[str]) -> list[str]:
        ended, calls = 0, Counter[str]()
        own = self.book.record(task).task.session
        for session in sessions:
            for envelope in store.read(session):
                if session == own and isinstance(envelope.event, TurnFinished) and envelope.event.status == "done":
                    ended += 1
                if isinstance(envelope.event, CallFinished) and envelope.event.ok and session == own:
                    calls[envelope.event.name] += 1
        # One that lost its lease may still hear its last answer, into a copy that nobody takes up: it ends nothing.
        attempts = [one for one in self.book.journal.ledger.attempts(task) if not one.node]
        completed = sum(one.state == "completed" for one in attempts)
        found = [] if ended == 1 and completed <= 1 else [f"{task} ended {ended} times, {completed} attempts did"]
        found += [f"{task} did {name} {count} times" for name, count in calls.items() if count > 1]
        effect = self.workspace / "effects" / str(int(task[5:], 16))
        done = effect.exists() and effect.stat().st_size > 0
        return found + ([f"{task} lost its effect"] if calls["exec_shell"] and not done else [])


def kill_many(kills: int, tasks: int, at_points: int, seed: int = 0, lease: float = 2.0) -> dict[str, Any]:
    """Kill so many processes over so many tasks; what happened, and what was wrong."""
    with tempfile.TemporaryDirectory(prefix="workcrash-") as folder:
        home, workspace = Path(folder, "home"), Path(folder, "work")
        home.mkdir()
        for name in ("files", "effects"):
            (workspace / name).mkdir(parents=True)
        (home / "config.toml").write_text(
            f'[tasks]\nlease_seconds = {lease}\n[tools]\nalways_load = ["task_gate_run"]\n'
        )
        loop = Loop(home, workspace, seed)
        began = time.monotonic()
        try:
            loop.add(tasks)
            loop.run(kills, at_points)
            faults, late = loop.faults(), loop.late()
        finally:
            for process in loop.lives:
                process.kill()
                process.communicate()
            loop.book.close()
        return {
            "tasks": loop.tasks, "kills": loop.counts["kills"], "faults": faults,
            "seconds": round(time.monotonic() - began),
            "taken_over_or_interrupted": len(late),
            "late_p50_s": round(late[len(late) // 2], 2) if late else 0.0,
            "late_max_s": round(late[-1], 2) if late else 0.0,
            "later_than_lease_and_a_second": sum(one > lease + 1 for one in late),
            "slowest_board_ms": round(loop.slowest * 1000), **dict(sorted(loop.counts.items())),
        }  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=1000)
    parser.add_argument("--tasks", type=int, default=500)
    parser.add_argument("--points", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--life", nargs=2, metavar=("HOME", "WORKSPACE"))
    args = parser.parse_args()
    if args.life:
        asyncio.run(live(*args.life))
        return 0
    outcome = kill_many(args.kills, args.tasks, args.points, args.seed)
    print("\n".join(outcome["faults"]))
    print(json.dumps(outcome))
    return bool(outcome["faults"])


if __name__ == "__main__":
    sys.exit(main())
