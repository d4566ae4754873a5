"""What belongs to a run, in SQLite: attempts of its nodes, intents of side effects, waits, and its history."""

import os
import sqlite3
from collections.abc import Sequence
from typing import TypeVar

import msgspec

from codewhale.journal.database import Database, packed, unpacked
from codewhale.journal.model import Data, Intent, JournalDamaged, JournalError, Lease, NodeAttempt, Run, RunEntry, Wait
from codewhale.journal.runs import held, put_run

_T = TypeVar("_T", NodeAttempt, Intent, Wait, RunEntry)
_INTENT = "run, key, attempt, made, settled, data, result"


class SqliteLedger:
    """Implements Ledger."""

    def __init__(self, database: Database) -> None:
        self._database = database

    # ------------------------------------------------------------------ attempts

    def begin(self, lease: Lease, node: str, data: Data) -> NodeAttempt:
        with self._database.write() as base:
            now = self._database.now(base)
            held(base, lease, now)
            last = "SELECT coalesce(max(number), 0) FROM attempts WHERE run = ? AND node = ?"
            number = int(base.execute(last, (lease.run, node)).fetchone()[0]) + 1
            base.execute(
                "INSERT INTO attempts VALUES (?, ?, ?, ?, 'running', ?, NULL, ?, '{}')",
                (lease.run, node, number, lease.fence, now, packed(data)),
            )
            return NodeAttempt(lease.run, node, number, lease.fence, "running", now, None, data)

    def finish(self, lease: Lease, attempt: NodeAttempt, state: str, result: Data) -> None:
        with self._database.write(full=True) as base:
            now = self._database.now(base)
            held(base, lease, now)
            base.execute(
                "UPDATE attempts SET state = ?, ended = ?, result = ? WHERE run = ? AND node = ? AND number = ?",
                (state, now, packed(result), attempt.run, attempt.node, attempt.number),
            )

    def attempts(self, run: str) -> tuple[NodeAttempt, ...]:
        with self._database.read() as base:
            rows = base.execute(
                "SELECT run, node, number, fence, state, began, ended, data, result FROM attempts WHERE run = ? "
                "ORDER BY began, node, number",
                (run,),
            )
            return tuple(_with_data(row, NodeAttempt, ("data", "result")) for row in rows.fetchall())

    # ------------------------------------------------------------------ intents

    def intend(self, lease: Lease, key: str, data: Data) -> Intent:
        with self._database.write(full=True) as base:
            now = self._database.now(base)
            held(base, lease, now)
            query = f"SELECT {_INTENT} FROM intents WHERE run = ? AND key = ?"
            known = base.execute(query, (lease.run, key)).fetchone()
            if known is not None:
                return _with_data(known, Intent, ("data", "result"))
            base.execute(
                "INSERT INTO intents VALUES (?, ?, ?, ?, NULL, ?, '{}')",
                (lease.run, key, lease.attempt, now, packed(data)),
            )
            return Intent(lease.run, key, lease.attempt, now, None, data)

    def settled(self, lease: Lease, key: str, result: Data) -> None:
        with self._database.write(full=True) as base:
            now = self._database.now(base)
            held(base, lease, now)
            done = base.execute(
                "UPDATE intents SET settled = ?, result = ? WHERE run = ? AND key = ? AND settled IS NULL",
                (now, packed(result), lease.run, key),
            )
            if done.rowcount == 0:
                raise JournalError(f"{lease.run} has no open intent {key!r}")

    def intents(self, run: str, *, open_only: bool = False) -> tuple[Intent, ...]:
        end = "AND settled IS NULL" if open_only else ""
        with self._database.read() as base:
            query = f"SELECT {_INTENT} FROM intents WHERE run = ? {end} ORDER BY made, key"
            rows = base.execute(query, (run,)).fetchall()
            return tuple(_with_data(row, Intent, ("data", "result")) for row in rows)

    # ------------------------------------------------------------------ waits

    def wait(self, lease: Lease, event: str, until: float) -> Run:
        with self._database.write(full=True) as base:
            now = self._database.now(base)
            run = put_run(base, held(base, lease, now), "waiting", {}, now)
            base.execute("INSERT OR REPLACE INTO waits VALUES (?, ?, ?, NULL, '{}')", (lease.run, event, until))
            return run

    def signal(self, event: str, data: Data) -> int:
        with self._database.write(full=True) as base:
            came = base.execute(
                "UPDATE waits SET arrived = ?, data = ? WHERE event = ? AND arrived IS NULL",
                (self._database.now(base), packed(data), event),
            )
            return came.rowcount

    def waits(self, run: str) -> tuple[Wait, ...]:
        with self._database.read() as base:
            rows = base.execute("SELECT run, event, until, arrived, data FROM waits WHERE run = ?", (run,))
            return tuple(_with_data(row, Wait) for row in rows.fetchall())

    # ------------------------------------------------------------------ history

    def note(self, run: str, kind: str, data: Data, key: str = "", lease: Lease | None = None) -> RunEntry:
        with self._database.write(full=lease is None) as base:
            now = self._database.now(base)
            if lease is not None:
                held(base, lease, now)
            return add_entry(base, RunEntry(run, key or f"{kind}-{os.urandom(6).hex()}", kind, now, data))

    def entries(self, run: str, most: int = 1000) -> tuple[RunEntry, ...]:
        with self._database.read() as base:
            rows = base.execute(
                "SELECT run, key, kind, at, data FROM entries WHERE run = ? ORDER BY seq DESC LIMIT ?", (run, most)
            )
            return tuple(_with_data(row, RunEntry) for row in reversed(rows.fetchall()))


def add_entry(base: sqlite3.Connection, entry: RunEntry) -> RunEntry:
    base.execute(
        "INSERT OR IGNORE INTO entries (run, key, kind, at, data) VALUES (?, ?, ?, ?, ?)",
        (entry.run, entry.key, entry.kind, entry.at, packed(entry.data)),
    )
    return entry


def _with_data(row: Sequence[object], kind: type[_T], texts: Sequence[str] = ("data",)) -> _T:
    """A row as what it is of, whose columns are called as that is. Raises JournalDamaged."""
    named = dict(zip(kind.__struct_fields__, row, strict=True))
    named |= {text: unpacked(str(named[text])) for text in texts}
    try:
        return msgspec.convert(named, kind)
    except msgspec.ValidationError as error:
        raise JournalDamaged(f"the journal holds a row that nobody wrote ({error})") from None
