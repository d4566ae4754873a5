"""The broker's loop: orders come in on a pipe, each in a task of its own, and reports go out on another. It ends with
the pipe, and every server with it."""

import asyncio
import logging
import os
import shutil
from collections.abc import Callable
from typing import Any

import anyio

from codewhale.lib.text import one_line
from codewhale.mcp.broker.session import ServerSession
from codewhale.mcp.frames import (
    AskAnswer,
    Cancel,
    Changed,
    Close,
    Done,
    Frames,
    Log,
    Open,
    Order,
    OrderFailed,
    OrderProgress,
    Relist,
    Report,
    ServerAsk,
    UseOrder,
    frame,
)
from codewhale.mcp.terms import ServerFailed
from codewhale.process.streams import PipeReader, PipeWriter

MOST_WAITING = 1000  # reports; logs and progress are dropped beyond it
CLOSE_SECONDS = 5.0


class ServerBroker:
    """All servers of one harness. `folder` is where large results are put."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self._sessions: dict[str, ServerSession] = {}
        self._scopes: dict[int, anyio.CancelScope] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._out: asyncio.Queue[Report] = asyncio.Queue()
        self._asks: dict[int, asyncio.Future[AskAnswer]] = {}
        self._asked = 0
        self._changed: set[str] = set()  # servers whose change waits to be sent

    async def run(self, orders: int, reports: int) -> None:
        """Serve until the orders end."""
        incoming: asyncio.Queue[Order | None] = asyncio.Queue()
        frames = Frames(Order)

        def read(data: bytes) -> None:
            for order in frames.feed(data):
                incoming.put_nowait(order)

        def end() -> None:
            incoming.put_nowait(None)

        PipeReader(orders, read, end)
        writer = asyncio.create_task(self._write(PipeWriter(reports), end))
        while (order := await incoming.get()) is not None:
            self._take(order)
        for scope in tuple(self._scopes.values()):
            scope.cancel()
        with anyio.move_on_after(CLOSE_SECONDS):
            await asyncio.gather(*(session.close() for session in self._sessions.values()), return_exceptions=True)
        writer.cancel()
        shutil.rmtree(self.folder, ignore_errors=True)

    def post(self, report: Report) -> None:
        """Send a report; what says no more than one that waits is left out."""
        if isinstance(report, Changed):
            if report.server in self._changed:
                return
            self._changed.add(report.server)
        if not isinstance(report, Log | OrderProgress) or self._out.qsize() < MOST_WAITING:
            self._out.put_nowait(report)

    async def ask(self, order: int, server: str, what: str, data: dict[str, Any]) -> AskAnswer:
        """Ask the harness in the course of an order."""
        self._asked += 1
        number = self._asked
        answer: asyncio.Future[AskAnswer] = asyncio.get_running_loop().create_future()
        self._asks[number] = answer
        try:
            self.post(ServerAsk(number, order, server, what, data))
            return await answer
        finally:
            del self._asks[number]

    async def _write(self, writer: PipeWriter, end: Callable[[], None]) -> None:
        try:
            while True:
                report = await self._out.get()
                if isinstance(report, Changed):
                    self._changed.discard(report.server)
                try:
                    data = frame(report)
                except ValueError as error:
                    order = getattr(report, "order", 0)
                    data = frame(OrderFailed(order, "protocol", f"The answer is too large: {error}.", sent=True))
                await writer.write(data)
        except OSError:
            end()

    def _take(self, order: Order) -> None:
        if isinstance(order, AskAnswer):
            waiting = self._asks.get(order.ask)
            if waiting is not None and not waiting.done():
                waiting.set_result(order)
        elif isinstance(order, Cancel):
            if order.order in self._scopes:
                self._scopes[order.order].cancel()
        else:
            self._scopes[order.order] = scope = anyio.CancelScope()
            task = asyncio.create_task(self._do(order, scope))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _do(self, order: Open | Relist | UseOrder | Close, scope: anyio.CancelScope) -> None:
        try:
            with scope:
                self.post(await self._done(order))
        except ServerFailed as error:
            self.post(OrderFailed(order.order, error.kind, str(error), error.sent))
        except Exception as error:  # of the SDK, whatever it is: the order has its end
            text = one_line(f"{type(error).__name__}: {error}", 500)
            self.post(OrderFailed(order.order, "protocol", text, isinstance(order, UseOrder)))
        finally:
            del self._scopes[order.order]

    async def _done(self, order: Open | Relist | UseOrder | Close) -> Done:
        if isinstance(order, Open):
            return Done(order.order, await self._open(order))
        session = self._sessions.get(order.name)
        if isinstance(order, Close):
            if session is not None:
                del self._sessions[order.name]
                await session.close()
            return Done(order.order)
        if session is None or not session.runs:
            raise ServerFailed("lost", f"The MCP server {order.name} has ended. Nothing was sent; try again.")
        if isinstance(order, Relist):
            return Done(order.order, await session.offer())
        return Done(order.order, outcome=await session.use(order))

    async def _open(self, order: Open) -> Any:
        name = order.spec.name
        former = self._sessions.pop(name, None)
        if former is not None:
            await former.close()
        self._sessions[name] = session = ServerSession(order, self)
        try:
            return await session.open(order.order)
        except BaseException:
            if self._sessions.get(name) is session:
                del self._sessions[name]
            raise


def main(folder: str) -> None:
    """Serve on standard input and output, which nobody else in this process sees."""
    orders, reports = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(2, 1)
    logging.disable(logging.CRITICAL)
    asyncio.run(ServerBroker(folder).run(orders, reports))
