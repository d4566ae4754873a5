"""`make rewinds`: kill -9 whoever goes back, forks, exports, renames and queues, at random and at named moments.

After each kill every session must open, its conversation and files must be as before or after what was under way, and
no message that was taken may be missing or there twice. The last line is one JSON object with all counts.
"""

import argparse
import asyncio
import contextlib
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from codewhale.app.compose import AppOptions, open_app
from codewhale.lib.clock import SystemClock
from codewhale.lib.failpoints import VARIABLE
from codewhale.models.scripted import ScriptedProvider
from codewhale.protocol.errors import SessionError
from codewhale.protocol.modes import Authority, Mode
from codewhale.protocol.ops import CloseSession, CommandOutput, OpenSession, RunCommand, SendMessage, SessionStatus
from codewhale.protocol.views import ListFormer
from codewhale.session.standing import former_messages
from codewhale.session.state import SessionState
from codewhale.session.store import SessionStore

STEPS = 60
SECONDS = 120.0
BATCH = 40
# Where a life is killed by name, and the highest hit tried.
AIMS = {
    "log.append.before": 40, "log.append.mid": 40, "log.append.after": 40, "log.sync.before": 20, "log.sync.after": 20,
    "disk.write": 60, "fork.before_rename": 1, "fork.after_rename": 1, "export.before_rename": 2,
    "export.after_rename": 2, "rewind.files_back": 2, "listing.before_rename": 2, "listing.after_rename": 2,
}  # fmt: skip
World = dict[str, Any]


def files_of(work: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in sorted(work.glob("*.txt"))}


# ---------------------------------------------------------------------- the one that is killed


class Walk:
    """One life: steps at random, each written down with what stands before and what shall stand after it."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.work = folder / "work"
        self.steps = folder / "steps.jsonl"
        self.dice = random.Random(seed)
        self.seed = seed
        self.count = 0
        self.calls: list[dict[str, Any]] = []
        self.files_before: dict[int, dict[str, str]] = {}
        self.undoable: World = {}
        self.client: Any = None
        self.session = ""

    def note(self, **row: Any) -> None:
        with self.steps.open("a") as file:
            file.write(json.dumps(row) + "\n")

    def model(self, request: dict[str, Any]) -> dict[str, Any]:
        return self.calls.pop(0) if self.calls else {"text": "Done."}

    async def world(self) -> World:
        rows = await self.client.query(ListFormer(self.session))
        waiting = [row.text for row in self.client.queued(self.session)]
        return {"texts": [row.text for row in rows], "files": files_of(self.work), "waiting": waiting}

    async def settled(self) -> None:
        async with asyncio.timeout(SECONDS / 4):
            while (status := await self.client.query(SessionStatus(self.session))).busy or status.queue:  # noqa: ASYNC110
                await asyncio.sleep(0.003)

    async def run(self, line: str) -> CommandOutput:
        output: CommandOutput = await self.client.submit(RunCommand(self.session, line))
        if not output.ok:
            raise AssertionError(f"{line}: {output.text}")
        return output

    async def step(self) -> None:
        before = await self.world()
        turns = [row.turn for row in await self.client.query(ListFormer(self.session))]
        known = [turn for turn in turns if turn in self.files_before]
        kinds = ["turn", "turn", "queue", "rename", "export"]
        kinds += ["both", "both", "files"] * bool(known) + ["conversation", "fork"] * bool(turns)
        kind = self.dice.choice([*kinds, *(["back"] * 4 if self.undoable else [])])
        await getattr(self, f"_{kind}")(before, turns, known)

    async def _do(self, kind: str, before: World, after: World, act: Callable[[], Any]) -> None:
        self.note(kind=kind, session=self.session, before=before, after=after)
        await act()
        if kind == "turn":
            await self.settled()
        now = await self.world()
        if now != after:
            raise AssertionError(f"{kind}: {now} is not {after}")
        self.note(done=True, session=self.session, now=now)

    async def _turn(self, before: World, turns: list[int], known: list[int], queue: bool = False) -> None:
        self.count += 1
        name = f"f{self.dice.randint(1, 4)}.txt"
        text, content = f"message {self.seed}.{self.count}", f"{self.seed}.{self.count}\n" * self.dice.randint(1, 50)
        given = {"path": name, "content": content}
        look = [{"name": "read_file", "arguments": {"path": name}}] if name in before["files"] else []
        self.calls = [{"calls": [*look, {"name": "write_file", "arguments": given}]}, {"text": "Done."}]
        queued = [f"{text} queued"] if queue else []
        texts = [*before["texts"], text, *before["waiting"], *queued]
        after = {"texts": texts, "files": {**before["files"], name: content}, "waiting": []}
        following = (await self.client.query(SessionStatus(self.session))).turns + 1

        async def act() -> None:
            await self.client.submit(SendMessage(self.session, text))
            for one in queued:
                await self.client.submit(SendMessage(self.session, one, "", "queue"))
                self.note(taken=one)

        await self._do("turn", before, after, act)
        self.undoable = {}
        self.files_before[following] = before["files"]
        for turn in range(following + 1, following + len(texts) - len(before["texts"])):
            self.files_before[turn] = after["files"]

    async def _queue(self, before: World, turns: list[int], known: list[int]) -> None:
        await self._turn(before, turns, known, queue=True)

    async def _back_to(self, part: str, before: World, turns: list[int], known: list[int]) -> None:
        turn = self.dice.choice(turns if part == "conversation" else known)
        texts = before["texts"] if part == "files" else before["texts"][: turns.index(turn)]
        files = before["files"] if part == "conversation" else self.files_before[turn]
        after = {**before, "texts": texts, "files": files}
        if part == "files" and files == before["files"]:
            return  # which is refused: nothing would happen
        kept = dict(self.files_before)
        await self._do(part, before, after, lambda: self.run(f"/rewind {turn} {part} yes"))
        if part == "files":
            self.files_before |= {one: files for one in self.files_before if one >= turn}
            self.undoable = {}
        else:
            self.undoable = {"world": before, "files_before": kept}

    async def _both(self, *given: Any) -> None:
        await self._back_to("both", *given)

    async def _conversation(self, *given: Any) -> None:
        await self._back_to("conversation", *given)

    async def _files(self, *given: Any) -> None:
        await self._back_to("files", *given)

    async def _back(self, before: World, turns: list[int], known: list[int]) -> None:
        after = {**self.undoable["world"], "waiting": before["waiting"]}
        self.files_before, self.undoable = self.undoable["files_before"], {}
        await self._do("back", before, after, lambda: self.run("/rewind back"))

    async def _rename(self, before: World, turns: list[int], known: list[int]) -> None:
        await self._do("rename", before, before, lambda: self.run(f"/rename Title {self.seed}.{self.count}"))

    async def _export(self, before: World, turns: list[int], known: list[int]) -> None:
        await self._do("export", before, before, lambda: self.run("/export out.json --force"))

    async def _fork(self, before: World, turns: list[int], known: list[int]) -> None:
        async def act() -> None:
            former = self.session
            self.session = (await self.run("/fork")).session
            await self.client.submit(CloseSession(former))
            self.note(left=former, texts=before["texts"])

        self.files_before, self.undoable = {}, {}
        await self._do("fork", before, {**before, "waiting": []}, act)


async def live(folder: Path, seed: int) -> None:
    walk = Walk(folder, seed)
    options = AppOptions(home=str(folder / "home"), workspace=str(walk.work), provider="scripted", model="scripted")
    provider = ScriptedProvider([walk.model] * 10_000)
    async with open_app(options, environ={}, providers={"scripted": provider}) as app:
        walk.client = app.client
        former = last_session(folder)
        opening = OpenSession(str(walk.work), Mode.YOLO, Authority.PERSON, resume=former)
        walk.session = await app.client.submit(opening)
        print("open", flush=True)
        for _ in range(STEPS):
            await walk.step()


def rows_of(folder: Path) -> list[dict[str, Any]]:
    steps = folder / "steps.jsonl"
    lines = steps.read_text().splitlines() if steps.exists() else []
    return [json.loads(line) for line in lines]


def last_session(folder: Path) -> str:
    """The session to go on with: one that is there, that was named last."""
    store = SessionStore(str(folder / "home"), SystemClock())
    for row in reversed(rows_of(folder)):
        with contextlib.suppress(SessionError):
            if row.get("session") and store.summary(row["session"]).turns:
                return str(row["session"])
    return ""


# ---------------------------------------------------------------------- the one that kills


def life(folder: Path, seed: int, chance: random.Random) -> str:
    """One process to its end; where it was killed, "" when it ended by itself. Raises AssertionError for its faults."""
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    point = chance.choice(["", "", *AIMS])
    if point:
        environ[VARIABLE] = f"{point}=kill@{chance.randint(1, AIMS[point])}"
    command = [sys.executable, __file__, "--child", str(folder), "--seed", str(seed)]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environ)
    try:
        assert child.stdout is not None
        child.stdout.readline()
        if not point:
            time.sleep(chance.uniform(0.0, 0.8))
            child.kill()
        _, errors = child.communicate(timeout=SECONDS)
    finally:
        child.kill()
        child.wait()
    if child.returncode == -9:
        return point or "any moment"
    if child.returncode:
        raise AssertionError(errors[-2_000:])
    return ""


def judge(folder: Path) -> list[str]:
    """What is wrong after a life."""
    store, rows, faults = SessionStore(str(folder / "home"), SystemClock()), rows_of(folder), list[str]()
    for row in store.summaries():
        log = store.open(row.id)
        if log.damage.skipped_lines or log.damage.duplicates:
            faults.append(f"{row.id}: {log.damage}")
        log.close()
    for at, row in enumerate(rows):
        again = any(later.get("session") == row.get("left") for later in rows[at:])  # its fork was never gone on with
        if "left" in row and not again and texts_of(store, row["left"]) != row["texts"]:
            faults.append(f"{row['left']} was left with {row['texts']}")
    step = next((row for row in reversed(rows) if "kind" in row), None)
    session = last_session(folder)
    if step is None or session not in (step["session"], *(row.get("session") for row in rows[-1:])):
        return faults
    before, after = step["before"], step["after"]
    if rows[-1].get("done"):
        before = after = rows[-1]["now"]
    texts, waiting = texts_of(store, session), waiting_of(store, session)
    longer, shorter = sorted((before["texts"], after["texts"]), key=len, reverse=True)
    grows = step["kind"] == "turn"
    allowed = [longer[:n] for n in range(len(shorter), len(longer) + 1)] if grows else [longer, shorter]
    if texts not in allowed:
        faults.append(f"{step['kind']}: conversation {texts}, between {before['texts']} and {after['texts']}")
    taken = [row["taken"] for row in rows[rows.index(step) :] if "taken" in row]
    for text in (*before["waiting"], *taken) if step["kind"] != "fork" else ():
        if (texts + waiting).count(text) != 1:
            faults.append(f"{text!r} is there {(texts + waiting).count(text)} times")
    files = files_of(folder / "work")
    for name in {*files, *before["files"], *after["files"]}:
        if files.get(name) not in (before["files"].get(name), after["files"].get(name)):
            faults.append(f"{step['kind']}: {name} is neither as before nor as after")
    out = folder / "work" / "out.json"
    if out.exists() and not isinstance(json.loads(out.read_text())["entries"], list):
        faults.append("the export is not whole")
    if (folder / "work" / "mine.md").read_text() != "the person's\n":
        faults.append("a file of the person was changed")
    return faults


def texts_of(store: SessionStore, session: str) -> list[str]:
    return [row.text for row in former_messages(store.read(session))]


def waiting_of(store: SessionStore, session: str) -> list[str]:
    state = SessionState()
    for envelope in store.read(session):
        state.apply(envelope.event)
    return [kept.text for kept in state.waiting.values()]


def kill_many(kills: int, seed: int) -> dict[str, Any]:
    """So many kills, in a new workspace after every forty; what was found, with the counts."""
    chance, counts, steps, faults, lives = random.Random(seed), Counter[str](), Counter[str](), list[str](), 0
    while counts.total() < kills and not faults and lives < 3 * kills + 10:
        most = min(kills, counts.total() + BATCH)
        with tempfile.TemporaryDirectory(prefix="codewhale-rewinds-") as name:
            folder = Path(name)
            (folder / "work").mkdir()
            (folder / "work" / "mine.md").write_text("the person's\n")
            while counts.total() < most and not faults and lives < 3 * kills + 10:
                lives += 1
                try:
                    where = life(folder, seed + lives, chance)
                    counts.update([where] if where else [])
                    faults += judge(folder)
                except (AssertionError, subprocess.TimeoutExpired) as error:
                    faults.append(f"life {seed + lives}: {error}")
            steps.update(row["kind"] for row in rows_of(folder) if "kind" in row)
    return {"kills": counts.total(), "lives": lives, "at": dict(counts), "steps": dict(steps), "faults": faults}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--child", default="")
    given = parser.parse_args()
    if given.child:
        asyncio.run(live(Path(given.child), given.seed))
        return 0
    found = kill_many(given.kills, given.seed)
    print(json.dumps(found))
    return 1 if found["faults"] or found["kills"] < given.kills else 0


if __name__ == "__main__":
    sys.exit(main())
