"""Runs in SQLite, and the leases by which one process at a time writes for each."""

import sqlite3
from collections.abc import Sequence

import msgspec

from codewhale.journal.database import Database, packed, seal, unpacked
from codewhale.journal.model import LONGEST_LEASE, Data, JournalDamaged, Lease, LeaseLost, NewRun, Run, RunState

_ROW = "id, kind, state, data, created, began, ended, result, owner, expires, fence, attempt, stop, crc"
_DUE = (
    f"SELECT {_ROW} FROM runs WHERE kind = ? AND state = 'queued' AND due <= ? ORDER BY due, created, id LIMIT 1",
    f"SELECT {_ROW} FROM runs WHERE kind = ? AND state = 'waiting' AND EXISTS (SELECT 1 FROM waits WHERE run = id AND "
    "(arrived IS NOT NULL OR until <= ?)) ORDER BY created, id LIMIT 1",
)


def read_run(row: Sequence[object]) -> Run:
    """Raises JournalDamaged."""
    if seal(str(row[0]), str(row[1]), str(row[3])) != row[-1]:
        raise JournalDamaged(f"the journal's run {str(row[0])[:40]} is not what was written")
    named = dict(zip(_ROW.split(", "), row, strict=True))
    named |= {"data": unpacked(str(row[3])), "result": unpacked(str(row[7])), "stop": bool(row[12])}
    try:
        return msgspec.convert(named, Run)
    except msgspec.ValidationError as error:
        raise JournalDamaged(f"the journal's run {str(row[0])[:40]} is not what was written ({error})") from None


def one_run(base: sqlite3.Connection, run: str) -> Run | None:
    row = base.execute(f"SELECT {_ROW} FROM runs WHERE id = ?", (run,)).fetchone()
    return None if row is None else read_run(row)


def held(base: sqlite3.Connection, lease: Lease, now: float) -> Run:
    """The run that a lease is of. Raises LeaseLost where its time is over, or another has the run since."""
    run = one_run(base, lease.run)
    if run is None or (run.state, run.owner, run.fence) != ("running", lease.owner, lease.fence) or run.expires <= now:
        raise LeaseLost(f"the lease {lease.fence} of {lease.run} is over; nothing was written")
    return run


def close_attempts(base: sqlite3.Connection, run: str, state: str, now: float) -> None:
    base.execute("UPDATE attempts SET state = ?, ended = ? WHERE run = ? AND ended IS NULL", (state, now, run))


class SqliteRuns:
    """Implements Runs."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, run: NewRun) -> Run:
        with self._database.write(full=True) as base:
            return insert(base, run, self._database.now(base))

    def get(self, run: str) -> Run | None:
        with self._database.read() as base:
            return one_run(base, run)

    def named(self, kind: str, prefix: str, most: int = 10) -> tuple[str, ...]:
        with self._database.read() as base:
            rows = base.execute(
                "SELECT id FROM runs WHERE id >= ? AND id < ? AND kind = ? ORDER BY id LIMIT ?",
                (prefix, prefix + "\U0010ffff", kind, most),
            )
            return tuple(str(row[0]) for row in rows)

    def rows(self, kind: str, states: Sequence[RunState] = (), most: int = 100) -> tuple[Run, ...]:
        marks = f"AND state IN ({', '.join('?' * len(states))})" if states else ""
        with self._database.read() as base:
            rows = base.execute(
                f"SELECT {_ROW} FROM runs WHERE kind = ? {marks} ORDER BY created DESC, id DESC LIMIT ?",
                (kind, *states, most),
            )
            return tuple(map(read_run, rows.fetchall()))

    def counts(self, kind: str) -> dict[str, int]:
        with self._database.read() as base:
            rows = base.execute("SELECT state, count(*) FROM runs WHERE kind = ? GROUP BY state", (kind,))
            return {str(state): int(count) for state, count in rows}

    # ------------------------------------------------------------------ with a lease

    def claim(self, kind: str, owner: str, seconds: float) -> tuple[Run, Lease] | None:
        with self._database.read() as base:  # whoever only looks for work keeps nobody from writing
            now = self._database.now(base)
            if not any(base.execute(query, (kind, now)).fetchone() for query in _DUE):
                return None
        with self._database.write() as base:
            now = self._database.now(base)
            for query in _DUE:
                row = base.execute(query, (kind, now)).fetchone()
                if row is not None:
                    return _take(base, read_run(row), owner, now, now + seconds)
        return None

    def beat(self, lease: Lease, seconds: float) -> tuple[Run, Lease]:
        with self._database.write() as base:
            now = self._database.now(base)
            run, expires = held(base, lease, now), now + seconds
            base.execute("UPDATE runs SET expires = ? WHERE id = ?", (expires, lease.run))
            return run, msgspec.structs.replace(lease, expires=expires)

    def end(self, lease: Lease, state: RunState, result: Data) -> Run:
        with self._database.write(full=True) as base:
            now = self._database.now(base)
            run = held(base, lease, now)
            if run.stop and state in ("interrupted", "queued"):  # its end was asked for before the process left it
                state = "cancelled"
            if state == "queued":
                run = msgspec.structs.replace(run, attempt=run.attempt - 1)
                base.execute("UPDATE runs SET attempt = ? WHERE id = ?", (run.attempt, run.id))
                base.execute("DELETE FROM attempts WHERE run = ? AND fence = ?", (run.id, run.fence))
            return put_run(base, run, state, result, now)

    def change(self, lease: Lease, data: Data) -> Run:
        with self._database.write(full=True) as base:
            return _replace_data(base, held(base, lease, self._database.now(base)), data)

    # ------------------------------------------------------------------ without one

    def lapsed(self, kind: str) -> tuple[Run, ...]:
        with self._database.read() as base:
            now = self._database.now(base)
            rows = base.execute(
                f"SELECT {_ROW} FROM runs WHERE kind = ? AND state = 'running' AND (expires <= ? OR expires > ?) "
                "ORDER BY expires",
                (kind, now, now + LONGEST_LEASE),
            )
            return tuple(map(read_run, rows.fetchall()))

    def lapse(self, run: Run, state: RunState, result: Data) -> Run | None:
        with self._database.write(full=True) as base:
            now, stands = self._database.now(base), one_run(base, run.id)
            if stands is None or stands.state != "running" or stands.fence != run.fence:
                return None
            if now < stands.expires <= now + LONGEST_LEASE:
                return None
            half = "SELECT 1 FROM intents WHERE run = ? AND settled IS NULL LIMIT 1"
            if state == "queued" and base.execute(half, (run.id,)).fetchone() is not None:
                return None
            return put_run(base, stands, state, result, now, ending="interrupted")

    def requeue(self, run: str, states: Sequence[RunState], data: Data | None = None) -> Run | None:
        return self.settle(run, states, "queued", {}, data)

    def settle(
        self, run: str, states: Sequence[RunState], state: RunState, result: Data, data: Data | None = None
    ) -> Run | None:
        with self._database.write(full=True) as base:
            stands, now = one_run(base, run), self._database.now(base)
            if stands is None or stands.state not in states or stands.state == "running":
                return None
            if data is not None:
                stands = _replace_data(base, stands, data)
            if state == "queued":  # what was half done is known to the next attempt
                base.execute("UPDATE intents SET settled = ? WHERE run = ? AND settled IS NULL", (now, run))
            return put_run(base, stands, state, result, now)

    def stop(self, run: str) -> Run | None:
        with self._database.write(full=True) as base:
            stands = one_run(base, run)
            if stands is None or stands.state in ("completed", "failed", "cancelled"):
                return stands
            if stands.state != "running":
                return put_run(base, stands, "cancelled", stands.result, self._database.now(base))
            base.execute("UPDATE runs SET stop = 1 WHERE id = ?", (run,))
            return msgspec.structs.replace(stands, stop=True)


def insert(base: sqlite3.Connection, run: NewRun, now: float) -> Run:
    """Queue a run, or give back the one of its id."""
    if (known := one_run(base, run.id)) is not None:
        return known
    data = packed(run.data)
    base.execute(
        "INSERT INTO runs (id, kind, state, data, crc, created, due, result, owner, expires, fence, attempt, stop) "
        "VALUES (?, ?, 'queued', ?, ?, ?, ?, '{}', '', 0, 0, 0, 0)",
        (run.id, run.kind, data, seal(run.id, run.kind, data), now, run.due),
    )
    return Run(run.id, run.kind, "queued", run.data, now)


def _take(base: sqlite3.Connection, run: Run, owner: str, now: float, expires: float) -> tuple[Run, Lease]:
    fence, attempt = run.fence + 1, run.attempt + 1
    base.execute(
        "UPDATE runs SET state = 'running', owner = ?, expires = ?, fence = ?, attempt = ?, began = ?, ended = NULL "
        "WHERE id = ?",
        (owner, expires, fence, attempt, now, run.id),
    )
    close_attempts(base, run.id, "interrupted", now)
    base.execute(
        "INSERT INTO attempts VALUES (?, '', ?, ?, 'running', ?, NULL, '{}', '{}')", (run.id, attempt, fence, now)
    )
    taken = msgspec.structs.replace(
        run, state="running", owner=owner, expires=expires, fence=fence, attempt=attempt, began=now, ended=None
    )
    return taken, Lease(run.id, owner, fence, attempt, expires)


def put_run(
    base: sqlite3.Connection, run: Run, state: RunState, result: Data, now: float, *, ending: RunState | None = None
) -> Run:
    """Let a run stand in a state, owned by nobody. Its number grows where somebody may still think it theirs."""
    fence = run.fence + (1 if run.state == "running" else 0)
    ended = None if state in ("queued", "waiting") else now
    base.execute(
        "UPDATE runs SET state = ?, result = ?, ended = ?, owner = '', expires = 0, fence = ?, due = 0, stop = 0 "
        "WHERE id = ?",
        (state, packed(result), ended, fence, run.id),
    )
    close_attempts(base, run.id, ending or state, now)
    if state != "waiting":
        base.execute("DELETE FROM waits WHERE run = ?", (run.id,))
    return msgspec.structs.replace(
        run, state=state, result=result, ended=ended, owner="", expires=0.0, fence=fence, stop=False
    )


def _replace_data(base: sqlite3.Connection, run: Run, data: Data) -> Run:
    text = packed(data)
    base.execute("UPDATE runs SET data = ?, crc = ? WHERE id = ?", (text, seal(run.id, run.kind, text), run.id))
    return msgspec.structs.replace(run, data=data)
