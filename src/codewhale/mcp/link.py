"""The harness's side of the broker: its process, the frames of both, and its end. One that is gone is not started again
here; whoever needs it makes another."""

import asyncio
import contextlib
import shutil
import tempfile
from collections.abc import Awaitable, Callable
from typing import Any, Self

from codewhale.mcp.frames import Cancel, Done, Frames, Log, Order, OrderFailed, OrderProgress, Report, ServerAsk, frame
from codewhale.mcp.terms import ServerFailed
from codewhale.process.command import Launch
from codewhale.process.confinement import temporary_root
from codewhale.process.itself import own_python
from codewhale.process.launch import Child, settle, start
from codewhale.process.sandbox.profiles import NONE

_BROKER = "from codewhale.mcp.broker.main import main\nmain(sys.argv[1])"
_KEPT = 16_000  # bytes of what the broker prints
Hear = Callable[[Report], None]


class ServersLink:
    """One broker. Made by `start`; `close` it."""

    def __init__(self, hear: Hear) -> None:
        self.alive = True
        self.folder = tempfile.mkdtemp(prefix="mcp-", dir=temporary_root())
        self._hear = hear
        self._child: Child | None = None
        self._frames = Frames(Report)
        self._orders = 0
        self._waiting: dict[int, asyncio.Future[Done]] = {}
        self._tasks: set[asyncio.Future[None]] = set()

    @classmethod
    async def start(cls, hear: Hear) -> Self:
        """Start a broker; `hear` gets what belongs to no order alone. Raises ServerFailed."""
        self = cls(hear)
        launch = Launch(
            argv=own_python(_BROKER, self.folder), cwd="/", profile=NONE, keep_stdin=True, output_limit=_KEPT
        )
        try:
            self._child = await start(launch, self._heard)
        except OSError as error:
            shutil.rmtree(self.folder, ignore_errors=True)
            raise ServerFailed("start", f"The broker of MCP servers could not be started: {error.strerror}.") from None
        self._spawn(self._watch(self._child))
        return self

    @property
    def pid(self) -> int:
        return self._child.pid if self._child is not None else 0

    def number(self) -> int:
        """The number of the next order."""
        self._orders += 1
        return self._orders

    async def do(self, order: Any) -> Done:
        """Send an order and wait for its end; a cancel is sent on. Raises ServerFailed."""
        if not self.alive:
            raise lost(False)
        done: asyncio.Future[Done] = asyncio.get_running_loop().create_future()
        self._waiting[order.order] = done
        try:
            self.send(order)
            return await done
        except asyncio.CancelledError:
            self.send(Cancel(order.order))
            raise
        finally:
            del self._waiting[order.order]

    def send(self, order: Order) -> None:
        """Send a frame; one that is too large ends its order."""
        try:
            data = frame(order)
        except ValueError as error:
            raise ServerFailed("refused", f"The arguments are too large for an MCP server: {error}.") from None
        if self.alive:
            self._spawn(self._write(data))

    async def close(self) -> None:
        """End the broker and all servers below it. A second time does nothing."""
        self._lose()
        if self._child is not None:
            with contextlib.suppress(OSError):
                await self._child.close_stdin()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._child.wait(), 3.0)  # servers end by themselves where they can
            await settle(self._child.kill())
        shutil.rmtree(self.folder, ignore_errors=True)

    def _heard(self, stream: str, data: bytes) -> None:
        if stream != "stdout" or not self.alive:
            return
        try:
            for report in self._frames.feed(data):
                self._take(report)
        except ValueError:  # msgspec's errors are some of these
            self._end()

    def _take(self, report: Report) -> None:
        if isinstance(report, Done | OrderFailed):
            waiting = self._waiting.get(report.order)
            if waiting is None or waiting.done():
                return
            if isinstance(report, Done):
                waiting.set_result(report)
            else:
                waiting.set_exception(ServerFailed(report.kind, report.text, sent=report.sent))
        else:
            self._hear(report)

    def waits(self, report: ServerAsk | OrderProgress | Log) -> bool:
        """Whether somebody still waits for the order that a report belongs to."""
        return report.order in self._waiting

    async def _write(self, data: bytes) -> None:
        assert self._child is not None
        with contextlib.suppress(OSError):  # its end is told by whoever waits for it
            await self._child.write(data)

    async def _watch(self, child: Child) -> None:
        await child.wait()
        self._end()

    def _end(self) -> None:
        if self.alive:
            self._lose()
            self._spawn(self._clear())

    async def _clear(self) -> None:
        if self._child is not None:
            await settle(self._child.kill())
        shutil.rmtree(self.folder, ignore_errors=True)

    def _lose(self) -> None:
        """Nobody waits in vain: each order under way ends here, and none is sent again."""
        self.alive = False
        for waiting in self._waiting.values():
            if not waiting.done():
                waiting.set_exception(lost(True))

    def _spawn(self, work: Awaitable[None]) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def lost(sent: bool) -> ServerFailed:
    """The error of an order whose broker is gone."""
    what = "It may have been done: look before it is tried again." if sent else "Nothing was sent; try again."
    return ServerFailed("lost", f"The broker of MCP servers ended. {what}", sent=sent)
