"""Schedules and the signs of life of workers, in SQLite."""

import sqlite3
from collections.abc import Sequence

from codewhale.journal.database import Database, packed, unpacked
from codewhale.journal.model import LONGEST_LEASE, Data, JournalDamaged, NewRun, Run, Schedule, Worker
from codewhale.journal.runs import insert

_ROW = "id, kind, data, next_at, version, created"


class SqliteSchedules:
    """Implements Schedules."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def put(self, schedule: Schedule) -> Schedule | None:
        with self._database.write(full=True) as base:
            return _put(base, schedule, self._database.now(base))

    def get(self, schedule: str) -> Schedule | None:
        with self._database.read() as base:
            row = base.execute(f"SELECT {_ROW} FROM schedules WHERE id = ?", (schedule,)).fetchone()
            return None if row is None else _read(row)

    def named(self, kind: str, prefix: str, most: int = 10) -> tuple[str, ...]:
        with self._database.read() as base:
            rows = base.execute(
                "SELECT id FROM schedules WHERE id >= ? AND id < ? AND kind = ? ORDER BY id LIMIT ?",
                (prefix, prefix + "\U0010ffff", kind, most),
            )
            return tuple(str(row[0]) for row in rows)

    def rows(self, kind: str, most: int = 100) -> tuple[Schedule, ...]:
        with self._database.read() as base:
            query = f"SELECT {_ROW} FROM schedules WHERE kind = ? ORDER BY created DESC, id DESC LIMIT ?"
            return tuple(map(_read, base.execute(query, (kind, most)).fetchall()))

    def due(self, kind: str) -> tuple[Schedule, ...]:
        with self._database.read() as base:
            query = f"SELECT {_ROW} FROM schedules WHERE kind = ? AND next_at <= ? ORDER BY next_at, id"
            return tuple(map(_read, base.execute(query, (kind, self._database.now(base))).fetchall()))

    def fire(self, schedule: Schedule, run: NewRun | None) -> tuple[Schedule, Run | None] | None:
        with self._database.write(full=True) as base:
            now = self._database.now(base)
            changed = _put(base, schedule, now)
            if changed is None:
                return None
            return changed, None if run is None else insert(base, run, now)

    def drop(self, schedule: str) -> bool:
        with self._database.write(full=True) as base:
            return base.execute("DELETE FROM schedules WHERE id = ?", (schedule,)).rowcount == 1


class SqliteWorkers:
    """Implements Workers."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def here(self, owner: str, seconds: float, data: Data) -> None:
        with self._database.write() as base:
            now = self._database.now(base)
            base.execute("DELETE FROM workers WHERE expires <= ?", (now,))
            base.execute(
                "INSERT INTO workers VALUES (?, ?, ?, ?) ON CONFLICT (owner) DO UPDATE SET expires = excluded.expires, "
                "data = excluded.data",
                (owner, now, now + seconds, packed(data)),
            )

    def gone(self, owner: str) -> None:
        with self._database.write() as base:
            base.execute("DELETE FROM workers WHERE owner = ?", (owner,))

    def rows(self) -> tuple[Worker, ...]:
        with self._database.read() as base:
            rows = base.execute(
                "SELECT owner, since, expires, data FROM workers WHERE expires > ? AND expires <= ? "
                "ORDER BY since, owner",
                ((now := self._database.now(base)), now + LONGEST_LEASE),
            )
            return tuple(
                Worker(owner, since, expires, unpacked(data)) for owner, since, expires, data in rows.fetchall()
            )


def _put(base: sqlite3.Connection, schedule: Schedule, now: float) -> Schedule | None:
    """Add one of version 0, or change the version that is given."""
    values = (schedule.kind, packed(schedule.data), schedule.next_at, schedule.version + 1)
    if schedule.version == 0:
        done = base.execute("INSERT OR IGNORE INTO schedules VALUES (?, ?, ?, ?, ?, ?)", (schedule.id, *values, now))
        created = now
    else:
        done = base.execute(
            "UPDATE schedules SET kind = ?, data = ?, next_at = ?, version = ? WHERE id = ? AND version = ?",
            (*values, schedule.id, schedule.version),
        )
        created = schedule.created
    if done.rowcount != 1:
        return None
    return Schedule(schedule.id, schedule.kind, schedule.data, schedule.next_at, schedule.version + 1, created)


def _read(row: Sequence[object]) -> Schedule:
    name, kind, data, next_at, version, created = row
    about = (int(str(version)), float(str(created)))
    try:
        moment = None if next_at is None else float(str(next_at))
        return Schedule(str(name), str(kind), unpacked(str(data)), moment, *about)
    except (JournalDamaged, ValueError):
        return Schedule(str(name), str(kind), {}, None, *about)  # it stands for nothing, and keeps no other one back
