import hashlib
import os
import signal
import stat
from pathlib import Path

import pytest

from codewhale.lib.failpoints import POINTS
from codewhale.protocol.errors import SessionBusyError, SessionError
from codewhale.protocol.events import SessionOpened
from codewhale.protocol.modes import Mode
from codewhale.session.store import AmbiguousSessionError, SessionStore
from support.patience import HANG
from support.storage import OPENED, HandClock, child, events, new_log, said


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


@pytest.fixture
def store(tmp_path: Path, clock: HandClock) -> SessionStore:
    return SessionStore(str(tmp_path / "home"), clock)


def opened(workspace: str) -> SessionOpened:
    return SessionOpened(1, workspace, Mode.AGENT, "scripted", "m")


def make(store: SessionStore, clock: HandClock, workspace: str = "/w", text: str = "hello") -> str:
    log = store.create(opened(workspace))
    clock.seconds += 1
    log.append([said(text)])
    log.close()
    return log.session


def test_nothing_is_made_before_a_session_is(tmp_path: Path, store: SessionStore) -> None:
    assert store.summaries() == []
    with pytest.raises(SessionError, match="no session"):
        store.resolve("latest")
    assert not (tmp_path / "home").exists()


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o277])
def test_everything_is_private_whatever_the_umask(tmp_path: Path, clock: HandClock, umask: int) -> None:
    before = os.umask(umask)
    try:
        store = SessionStore(str(tmp_path / "home"), clock)
        first = make(store, clock)
        log = store.open(first)
        log.close()
        with open(log.path, "ab") as file:
            file.write(b"torn")
        store.open(first).close()
        store.fork(first, OPENED).close()
        store.summaries()
    finally:
        os.umask(before)
    found = {}
    for folder, _, files in os.walk(tmp_path / "home"):
        assert stat.S_IMODE(os.stat(folder).st_mode) == 0o700
        for name in files:
            found[name] = stat.S_IMODE(os.stat(os.path.join(folder, name)).st_mode)
    assert set(found) == {".reserve", ".swept", "lock", "log.jsonl", "log.jsonl.corrupt", "listing.json"}
    assert set(found.values()) == {0o600}


@pytest.mark.skipif(os.geteuid() != 0, reason="giving a directory away needs root")
def test_a_home_of_someone_else_is_refused(tmp_path: Path, clock: HandClock) -> None:
    (tmp_path / "home").mkdir()
    os.chown(tmp_path / "home", 4242, 4242)
    with pytest.raises(SessionError, match="belongs to user 4242"):
        SessionStore(str(tmp_path / "home"), clock)


def test_resolve_by_id_prefix_and_latest(store: SessionStore, clock: HandClock) -> None:
    first, second = make(store, clock, "/a"), make(store, clock, "/b")
    assert store.resolve(first) == first
    assert store.resolve("latest") == second
    assert store.resolve("latest", "/a") == first
    with pytest.raises(AmbiguousSessionError) as caught:
        store.resolve(first[:3])
    assert set(caught.value.matches) == {first, second}
    assert first in str(caught.value)
    assert second in str(caught.value)
    unlike = next(place for place in range(len(first)) if first[place] != second[place])
    assert store.resolve(first[: unlike + 1]) == first
    for unknown in ("zzz", "", "..", "../x", f"{first}/log.jsonl"):
        with pytest.raises(SessionError):
            store.resolve(unknown)
    with pytest.raises(SessionError, match="of /c"):
        store.resolve("latest", "/c")


def test_summaries_are_newest_first_and_by_workspace(store: SessionStore, clock: HandClock) -> None:
    first, second = make(store, clock, "/a", "one"), make(store, clock, "/b", "two")
    assert [row.id for row in store.summaries()] == [second, first]
    assert [row.title for row in store.summaries("/a")] == ["one"]
    log = store.open(first)
    clock.seconds += 10
    log.append([said("later")])
    assert [(row.id, row.state) for row in store.summaries()] == [(first, "open"), (second, "idle")]
    log.close()


def test_damage_shows_in_the_listing(store: SessionStore, clock: HandClock) -> None:
    name = make(store, clock)
    log = store.open(name)
    log.append([said("more"), said("and more")])
    log.close()
    path = Path(log.path)
    whole = path.read_bytes()
    path.write_bytes(whole + b"torn")
    assert store.summaries()[0].state == "damaged"
    store.open(name).close()
    assert store.summaries()[0].state == "idle"
    path.write_bytes(whole.replace(b"and more", b"and MORE"))
    assert (store.summaries()[0].state, store.summaries()[0].messages) == ("damaged", 2)
    assert [envelope.seq for envelope in store.read(name)] == [1, 2, 3]
    path.write_bytes(b'{"v":9}\n')
    assert store.summaries()[0].state == "damaged"
    with pytest.raises(SessionError, match="newer"):
        list(store.read(name))


def test_reading_needs_no_holding(store: SessionStore, clock: HandClock) -> None:
    name = make(store, clock)
    log = store.open(name)
    assert events(store.read(name)) == events(log.read())
    log.close()
    with pytest.raises(SessionError, match="no session"):
        store.read("nobody")


def test_a_fork_inherits_and_stands_alone(store: SessionStore, clock: HandClock) -> None:
    parent = make(store, clock)
    held = store.open(parent)
    held.append([said("é second")])
    prefix = Path(held.path).read_bytes()
    clock.seconds += 50
    fork = store.fork(parent, opened("/elsewhere"))
    first, *inherited = fork.read()
    assert first.event == SessionOpened(
        1, "/elsewhere", Mode.AGENT, "scripted", "m", parent, 3, hashlib.sha256(prefix).hexdigest()
    )
    originals = list(held.read(2))
    assert [envelope.event for envelope in inherited] == [envelope.event for envelope in originals]
    assert [envelope.at for envelope in inherited] == [envelope.at for envelope in originals]
    assert [envelope.seq for envelope in inherited] == [2, 3]
    assert {envelope.session for envelope in inherited} == {fork.session}
    held.append([said("only the parent's")])
    fork.append([said("only the fork's")])
    held.close()
    store.remove([parent])
    again = events(fork.read())
    fork.close()
    assert events(store.read(fork.session)) == again
    (row,) = store.summaries()
    assert (row.id, row.parent, row.title, row.messages) == (fork.session, parent, "hello", 3)
    second = store.fork(fork.session, OPENED)
    assert second.seq == 4
    second.close()


def test_remove_takes_all_or_none_and_no_open_one(tmp_path: Path, store: SessionStore, clock: HandClock) -> None:
    names = [make(store, clock) for _ in range(3)]
    held = store.open(names[2])
    with pytest.raises(SessionBusyError):
        store.remove(names)
    with pytest.raises(SessionError):
        store.remove([names[0], "nobody"])
    assert len(store.summaries()) == 3
    held.close()
    store.remove(names[:2])
    assert [row.id for row in store.summaries()] == [names[2]]
    assert sorted(os.listdir(tmp_path / "home" / "sessions")) == [".reserve", names[2]]


RUN = """
    async def main():
        log = store.create(OPENED) if not arguments else store.open(arguments[0])
        await log.barrier()
        print(log.session, log.seq, flush=True)
        for number in range(40):
            log.append([said(f"message {number} " + "x" * 500)])
            if number % 4 == 3:
                await log.barrier()
                print(log.session, log.seq, flush=True)
            if number == 20:
                store.summaries()
                store.fork(log.session, OPENED).close()
    asyncio.run(main())
"""
AIMED = [
    "log.append.mid=kill@1",
    "log.append.before=kill@17",
    "log.append.mid=short@17",
    "log.append.after=kill@30",
    "log.sync.before=kill@5",
    "log.sync.after=kill@5",
    "session.created=kill@1",
    "listing.before_rename=kill@1",
    "listing.after_rename=kill@1",
    "fork.before_rename=kill@1",
    "fork.after_rename=kill@1",
]


@pytest.mark.parametrize("failpoint", AIMED)
def test_killed_at_a_point_everything_acknowledged_is_there(tmp_path: Path, failpoint: str) -> None:
    assert failpoint.partition("=")[0] in POINTS
    process = child(RUN, tmp_path, failpoints=failpoint)
    out, _ = process.communicate(timeout=HANG)
    assert process.returncode == -signal.SIGKILL
    store = SessionStore(str(tmp_path), HandClock())
    for row in store.summaries():
        log = store.open(row.id)  # whatever is listed can be opened
        log.append([said("goes on")])
        log.close()
    if out:
        session, seq = out.splitlines()[-1].split()
        kept = list(store.read(session))
        assert [envelope.seq for envelope in kept] == list(range(1, len(kept) + 1))
        assert len(kept) > int(seq)
        assert all(row.state == "idle" for row in store.summaries())


def test_killed_while_repairing_the_next_one_repairs(tmp_path: Path) -> None:
    log = new_log(tmp_path, 5)
    log.close()
    whole = Path(log.path).read_bytes()
    for point in ("log.repair.before", "log.repair.after"):
        Path(log.path).write_bytes(whole + b"torn")
        process = child(RUN, tmp_path, log.session, failpoints=f"{point}=kill@1")
        process.communicate(timeout=HANG)
        assert process.returncode == -signal.SIGKILL
        again = SessionStore(str(tmp_path), HandClock()).open(log.session)
        assert again.seq == 6
        again.close()
        assert Path(log.path).read_bytes() == whole


def test_killed_at_any_time(tmp_path: Path) -> None:
    for _ in range(4):
        process = child(RUN.replace("range(40)", "range(10**6)"), tmp_path)
        assert process.stdout is not None
        lines = [process.stdout.readline() for _ in range(6)]
        process.kill()
        rest, _ = process.communicate()
        session, seq = [line for line in [*lines, *rest.splitlines()] if line.strip()][-1].split()
        log = SessionStore(str(tmp_path), HandClock()).open(session)
        assert log.seq >= int(seq)
        assert log.damage.skipped_lines == 0
        log.close()


def test_many_processes_in_one_home(tmp_path: Path) -> None:
    processes = [child(RUN, tmp_path) for _ in range(4)]
    outs = [process.communicate(timeout=HANG)[0] for process in processes]
    assert [process.returncode for process in processes] == [0] * 4
    store = SessionStore(str(tmp_path), HandClock())
    assert len(store.summaries()) == 8
    for out in outs:
        session = out.split()[0]
        assert len(list(store.read(session))) == 41
