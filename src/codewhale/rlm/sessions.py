"""Recursive sessions by name: each a kernel over one source, opened, run in rounds, configured and closed."""

import asyncio
import os
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import msgspec
from msgspec import Struct

from codewhale.process.artifacts import ArtifactStore
from codewhale.process.launch import settle
from codewhale.protocol.errors import ToolError
from codewhale.protocol.handles import VarHandle
from codewhale.protocol.ports import Completer
from codewhale.rlm.answers import AnswerStore
from codewhale.rlm.fanout import Answer, SubQueries
from codewhale.rlm.handles import session_id
from codewhale.rlm.model import (
    IDLE_SECONDS,
    MOST_QUERIES,
    SESSIONS,
    KernelAsk,
    QueryLimits,
    RlmSettings,
    RoundResult,
)
from codewhale.rlm.process import KernelLost, KernelProcess
from codewhale.rlm.recursion import Recursion
from codewhale.rlm.slots import KernelSlots
from codewhale.rlm.source import SourceFile

Keep = Callable[[str, str, str, Any], VarHandle]  # conversation, id of the session, base name, value


class RoundReport(Struct, frozen=True):
    """One round as its tool reports it. `lost` says why the kernel's state is gone, "" where it is not; `began_anew`
    that this round began without what earlier ones had made."""

    result: RoundResult
    ms: int
    asked: int
    lost: str = ""
    began_anew: str = ""
    confined: str = ""


class RecursiveSession:
    """One named session of a conversation. `depth` counts how far below a conversation it stands, 0 at the top."""

    def __init__(self, name: str, source: SourceFile, queries: SubQueries, owner: str, number: int) -> None:
        self.name = name
        self.owner = owner
        self.id = session_id(owner, name, number)
        self.source = source
        self.queries = queries
        self.opened = time.time()
        self.lost = ""  # why the next round begins anew
        self._kernel: KernelProcess | None = None
        self._running = asyncio.Lock()
        self._idle: asyncio.TimerHandle | None = None
        self._unconfined = False
        self._confined = ""

    async def start(self, *, confined: bool = True) -> None:
        """Raises ToolError where no kernel can be started, not_available where nothing can hold it."""
        self._unconfined = not confined
        self._kernel = await KernelProcess.start(self.source.path, self.source.bytes, confined=confined)
        self._wait()

    async def run(self, code: str) -> RoundReport:
        """One round. Its errors are part of the report; a cancel ends the round and what it asked. Raises ToolError
        where one is running, or where the kernel cannot begin anew."""
        if self._running.locked():
            raise ToolError("execution_failed", f"A round of {self.name} is running; wait for its result.")
        async with self._running:
            if self._idle is not None:
                self._idle.cancel()
            anew, self.lost = self.lost, ""
            if self._kernel is None:
                self.source.check()  # a kernel maps what stands at its path
                await self.start(confined=not self._unconfined)
            assert self._kernel is not None
            self._confined = self._kernel.confined
            queries, begun = self.queries, time.monotonic()
            queries.begin_round()
            queries.counts.rounds += 1
            try:
                result = await self._kernel.run(code, queries.settings.round_seconds, self._ask)
                lost = f"{result.threads} threads of the round went on after its end" * bool(result.threads)
                if lost:
                    await self._drop(lost)
                return self._report(result, begun, anew, lost)
            except KernelLost as lost:
                await self._drop(lost.message)
                return self._report(RoundResult(0, error=lost.error), begun, anew, lost.message)
            finally:
                self._wait()

    def _report(self, result: RoundResult, begun: float, anew: str, lost: str = "") -> RoundReport:
        seconds = time.monotonic() - begun
        self.queries.counts.seconds += seconds
        self.queries.counts.variables = max(self.queries.counts.variables, len(result.new_vars))
        return RoundReport(result, int(seconds * 1000), self.queries.round, lost, anew, self._confined)

    async def _ask(self, ask: KernelAsk, answer: Answer) -> None:
        await self.queries.ask(ask, answer)

    def _wait(self) -> None:
        """Let the kernel go once nobody has used it for long."""
        if self._idle is not None:
            self._idle.cancel()
        self._idle = asyncio.get_running_loop().call_later(
            IDLE_SECONDS, lambda: asyncio.ensure_future(self._drop("nobody had used it for 30 minutes"))
        )

    async def _drop(self, why: str) -> None:
        kernel, self._kernel, self.lost = self._kernel, None, why
        if kernel is not None:
            await kernel.close()

    async def close(self) -> None:
        if self._idle is not None:
            self._idle.cancel()
        kernel, self._kernel = self._kernel, None
        if kernel is not None:
            await kernel.close()
        self.source.close()


class RecursiveSessions:
    """All of a process. `most` bounds sub-queries, as configured."""

    def __init__(
        self, completer: Completer, artifacts: ArtifactStore, answers: AnswerStore, keep: Keep, most: QueryLimits
    ) -> None:
        self._completer = completer
        self._artifacts = artifacts
        self.answers = answers
        self.keep = keep
        self._most = most
        self._open: dict[tuple[str, str], RecursiveSession] = {}
        self._numbers: dict[tuple[str, str], int] = {}
        self._slots = KernelSlots()

    def of(self, owner: str) -> tuple[RecursiveSession, ...]:
        return tuple(one for (conversation, _), one in self._open.items() if conversation == owner)

    def find(self, owner: str, name: str) -> RecursiveSession | None:
        """By its name or its id."""
        return self._open.get((owner, name)) or next((one for one in self.of(owner) if one.id == name), None)

    async def open(self, owner: str, name: str, path: str, kind: str, *, confined: bool = True) -> RecursiveSession:
        """Open a session over a file. Raises ToolError where the name is taken, too many are open or none can start."""
        if (owner, name) in self._open:
            raise ToolError(
                "invalid_input",
                f"A session named {name!r} is open; choose another name, or close it with rlm_close.",
                field="name",
                expected="a name that no open session has",
                received=name,
            )
        source = await asyncio.to_thread(SourceFile, path, kind)
        if not self._slots.open():
            source.close()
            raise ToolError("not_available", self._full())
        number = self._numbers[owner, name] = self._numbers.get((owner, name), 0) + 1
        session = RecursiveSession(name, source, self._queries(owner, source), owner, number)
        self._open[owner, name] = session
        try:
            await session.start(confined=confined)
        except BaseException:
            await settle(self.close(session))
            raise
        return session

    def _full(self) -> str:
        names, below = ", ".join(one for _, one in self._open), self._slots.below
        if below:
            return (
                f"{below} kernels of sub_rlm run beside the sessions {names}; open another when their round has ended."
            )
        return f"{SESSIONS} recursive sessions are open ({names}), the most there may be; close one."

    def _queries(self, owner: str, source: SourceFile) -> SubQueries:
        queries = SubQueries(self._completer, self._artifacts, self.answers, source, owner)
        queries.limits = self._most
        recursion = Recursion(self._completer, self._artifacts, owner, self._slots)
        queries.recurse = partial(recursion.solve, queries)
        return queries

    def configure(self, session: RecursiveSession, changes: dict[str, Any], most: int | None) -> RlmSettings:
        queries = session.queries
        queries.settings = msgspec.structs.replace(queries.settings, **changes)
        if most is not None:
            most = min(most, MOST_QUERIES)
            queries.limits = QueryLimits(most, max(queries.limits.round, min(most, MOST_QUERIES)))
        return queries.settings

    async def close(self, session: RecursiveSession) -> None:
        if session in self._open.values():
            self._open = {key: one for key, one in self._open.items() if one is not session}
            self._slots.close()
        await session.close()

    async def ended(self, owner: str) -> None:
        """A conversation is over: its sessions end, what they kept stays."""
        for session in self.of(owner):
            await self.close(session)

    async def aclose(self) -> None:
        for session in list(self._open.values()):
            await self.close(session)
        await asyncio.to_thread(self.answers.close)


def default_name(path: str, taken: set[str]) -> str:
    """A name for a session over a file: that of the file, short, and one that no other has."""
    stem = "".join(char if char.isalnum() or char in "_-" else "_" for char in os.path.basename(path).split(".")[0])
    stem = stem.strip("_")[:40] or "source"
    return next(name for name in (stem, *(f"{stem}_{n}" for n in range(2, 1000))) if name not in taken)
