"""Power cuts at every moment of a recorded run: what was acknowledged is there, what is there was written."""

import asyncio
import errno
import os
from pathlib import Path

from codewhale.process.artifacts import ArtifactStore
from codewhale.protocol.errors import SessionError, StorageFullError
from codewhale.protocol.events import Event
from codewhale.session.log import SessionLog
from codewhale.session.store import SessionStore
from support.powercut import Rebuilt, RecordingOps, Tree, crash_states
from support.storage import OPENED, HandClock, QuickOps, events, said

LOG = "log.jsonl"


class Filling(RecordingOps):
    """Recorded, and full for one write when told so: half of it is taken first."""

    full = 0

    def write(self, fd: int, data: bytes | memoryview) -> int:
        if self.full == 2 and len(data) > 1:
            self.full = 1
            return super().write(fd, data[: len(data) // 2])
        if self.full == 1:
            self.full = 0
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return super().write(fd, data)


async def session(home: str, ops: Filling) -> tuple[str, list[tuple[int, Event]]]:
    """A run that appends, syncs now and then, meets a full disk once and is opened a second time."""
    store = SessionStore(home, HandClock(), ops=ops)
    artifacts = ArtifactStore(os.path.join(home, "artifacts"), ops=ops)
    log = store.create(OPENED)
    await log.barrier()
    ops.mark(f"log {log.seq}")
    for number in range(18):
        if number == 6:
            ops.full = 2
            try:
                log.append([said("does not fit")])
            except StorageFullError:
                ops.mark("told")
        log.append([said(f"message {number} é")])
        if number == 8:
            ops.mark(f"artifact {artifacts.put(b'a large output')}")
        if number == 12:
            store.summaries()
        if number % 3 == 2:
            await log.barrier()
            ops.mark(f"log {log.seq}")
        if number == 10:
            log.close()
            ops.mark(f"log {log.seq}")
            log = store.open(log.session)
    log.close()
    ops.mark(f"log {log.seq}")
    return log.session, events(log.read())


def test_a_power_cut_at_any_moment(tmp_path: Path) -> None:
    ops = Filling()
    home = str(tmp_path / "home")
    name, written = asyncio.run(session(home, ops))
    assert [step.path for step in ops.steps if step.kind == "mark"].count("told") == 1
    target = tmp_path / "rebuilt"
    rebuilt = Rebuilt(home, str(target))
    folder = target / "sessions" / name
    folder.mkdir(parents=True)
    artifacts = ArtifactStore(str(target / "artifacts"))
    distinct: set[int] = set()
    for tree, marks in crash_states(ops.steps, home):
        distinct.add(hash(tuple(sorted(tree.items()))))
        rebuilt.show(tree, LOG)
        owed = max([0, *(int(mark.split()[1]) for mark in marks if mark.startswith("log "))])
        check_artifacts(artifacts, tree, marks)
        if not (folder / LOG).exists():
            assert owed == 0
            continue
        try:
            log = SessionLog(str(folder), HandClock(), ops=QuickOps())
        except SessionError:
            assert owed == 0
            continue
        kept = events(log.read())
        assert kept[:owed] == written[:owed], owed
        assert all(one in written for one in kept)
        if len(distinct) % 10 == 0:
            log.append([said("after the cut")])
            assert [seq for seq, _ in events(log.read())] == [*(seq for seq, _ in kept), log.seq]
        log.close()
    print(f"{len(distinct)} states after a power cut")
    assert len(distinct) >= 5_000


def check_artifacts(artifacts: ArtifactStore, tree: Tree, marks: list[str]) -> None:
    kept = {os.path.basename(path) for path in tree if "/artifacts/" in path and not path.endswith(".tmp")}
    owed = {mark.split()[1] for mark in marks if mark.startswith("artifact ")}
    assert owed <= kept
    for sha in kept:
        assert artifacts.get(sha) == b"a large output"


def test_a_power_cut_while_forking_shows_a_whole_fork_or_none(tmp_path: Path) -> None:
    home = str(tmp_path / "home")
    parent = SessionStore(home, HandClock()).create(OPENED)
    parent.append([said(f"message {number}") for number in range(5)])
    ops = RecordingOps()
    fork = SessionStore(home, HandClock(), ops=ops).fork(parent.session, OPENED)
    ops.mark("forked")
    written = events(fork.read())
    fork.close()
    target = tmp_path / "rebuilt"
    folder = target / "sessions" / fork.session
    folder.mkdir(parents=True)
    rebuilt = Rebuilt(home, str(target))
    states = 0
    for tree, marks in crash_states(ops.steps, home):
        states += 1
        rebuilt.show(tree, LOG)
        names = [row.id for row in SessionStore(str(target), HandClock()).summaries()]
        assert names in ([], [fork.session])
        assert names or not marks
        if names:
            read = list(SessionStore(str(target), HandClock()).read(fork.session))
            assert events(read)[: len(written)] == written
            assert read[0].event == written[0][1]
        (folder / "listing.json").unlink(missing_ok=True)
    assert states > 100
    parent.close()
