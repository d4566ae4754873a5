"""The attempts of an application: those of a session by its state, those of a task by its record."""

import asyncio
import contextlib

import msgspec

from codewhale.agent.engine import Engine
from codewhale.app.tasking import Tasking
from codewhale.protocol.attempts import AttemptRecord


class Attempts:
    """What is kept of attempts, and where."""

    def __init__(self, engine: Engine, tasking: Tasking) -> None:
        self._engine = engine
        self._tasking = tasking

    def task_of(self, session: str) -> str:
        """The task that a session works for, "" for none."""
        return self._tasking.task_of(session)

    async def attempts(self, session: str, task: str) -> tuple[str, tuple[AttemptRecord, ...]]:
        """The attempts of a task with its id, or of a session where `task` is "". Raises TaskError."""
        own = self._engine.session(session).state.attempts
        if not task:
            return "", tuple(own.values())
        record = await asyncio.to_thread(self._tasking.book.record, task)
        rows = list[AttemptRecord]()
        for value in record.updates.get("attempt", ()):
            with contextlib.suppress(msgspec.ValidationError):
                rows.append(msgspec.convert(value, AttemptRecord))
        rows += [row for row in own.values() if row.task_id == record.task.id]  # of which the log may not tell yet
        return record.task.id, tuple({row.id: row for row in rows}.values())

    async def put(self, task: str, updates: dict[str, object]) -> None:
        """Write into a task, by kind. Raises TaskError."""
        for kind, value in updates.items():
            await asyncio.to_thread(self._tasking.book.put, task, kind, value)
