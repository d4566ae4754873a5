"""The way to the engine: opened after the first paint, asked and told through, and pumped for events. What is asked
before it is open waits; why it cannot be opened is said in words."""

import asyncio
import time
from collections.abc import AsyncIterator
from typing import Any, Protocol, TypeVar

from msgspec.structs import replace

from codewhale.display.client import Client, Connect
from codewhale.protocol.errors import CodeWhaleError, SessionError
from codewhale.protocol.events import Envelope
from codewhale.protocol.ops import CloseSession, OpenSession, SessionStatus
from codewhale.protocol.requests import Op, Query, Request

R = TypeVar("R", bound=Request[Any])
T = TypeVar("T")

# The pump lets the screen have its turn after so many seconds of events on end.
SLICE_SECONDS = 0.004
# While it only catches up with what happened earlier it takes more of it at once.
PAST_SECONDS = 0.2
CLOSE_SECONDS = 15.0


class Listener(Protocol):
    """Who is told of the session."""

    def opened(self, session: str) -> None:
        """A session is open; its events follow from the first one on."""
        ...

    def take(self, envelope: Envelope) -> None: ...

    def failed(self, error: CodeWhaleError | OSError, opening: bool) -> None:
        """The session cannot be opened, or ended early."""
        ...

    def broke(self, error: Exception) -> None: ...


class Link:
    """One engine and the session at hand. `session` is "" before it is open; `live` tells that the event that is passed
    on happens now, and is none of the past."""

    def __init__(self, connect: Connect, opening: OpenSession, listener: Listener) -> None:
        self._connect = connect
        self._listener = listener
        self._wanted = opening
        self._closing = asyncio.Event()
        self._ready: asyncio.Future[Client] | None = None
        self._task: asyncio.Task[None] | None = None
        self._pump: asyncio.Task[None] | None = None
        self.session = ""
        self.live = True

    @property
    def over(self) -> bool:
        """Whether nothing is open and nothing is being opened."""
        return self._task is None or self._task.done()

    def start(self) -> None:
        """Begin to open; returns at once."""
        if self._ready is None or self._ready.done():
            self._ready = asyncio.get_running_loop().create_future()
        self._task = asyncio.create_task(self._run())

    async def aclose(self) -> None:
        """End the session and release everything, within 15 seconds."""
        if self._task is None:
            return
        self._closing.set()
        done, _ = await asyncio.wait({self._task}, timeout=CLOSE_SECONDS)
        if not done:
            self._task.cancel()
            await asyncio.wait({self._task}, timeout=1.0)

    async def submit(self, op: Op[T], /) -> T:
        """Do it, once a session is open; an empty session means that one. Raises what the client raises, SessionError
        when none can be opened."""
        client = await self._client()
        return await client.submit(self._named(op))

    async def query(self, query: Query[T], /) -> T:
        """Ask it, once a session is open. Raises like `submit`."""
        client = await self._client()
        return await client.query(self._named(query))

    async def go_on(self, opening: OpenSession) -> None:
        """Leave the session at hand for another; it stays where it is when that cannot be opened. Raises SessionError
        and ConfigError."""
        await self.adopt(await self.submit(opening))

    async def adopt(self, session: str) -> None:
        """Show a session that the client has opened already, in place of the one at hand."""
        client = await self._client()
        former = self.session
        if session == former:
            return
        await self._stop_pump()
        self._follow(client, session)
        if former:
            await client.submit(CloseSession(former))

    def retry(self, **fields: Any) -> None:
        """Try again to open what could not be opened, with other fields of OpenSession."""
        if self.over:
            self._wanted = replace(self._wanted, **fields)
            self.start()

    # -------------------------------------------------------------- its inside

    def _named(self, asked: R) -> R:
        return replace(asked, session=self.session) if getattr(asked, "session", None) == "" else asked

    async def _client(self) -> Client:
        if self._ready is None:
            self._ready = asyncio.get_running_loop().create_future()
        return await asyncio.shield(self._ready)

    async def _run(self) -> None:
        assert self._ready is not None
        try:
            async with self._connect() as client:
                try:
                    session = await client.submit(self._wanted)
                    self._follow(client, session)
                    self._ready.set_result(client)
                    await self._closing.wait()
                finally:
                    await self._stop_pump()
        except (CodeWhaleError, OSError) as error:
            self._give_up(error)
        except Exception as error:
            self._give_up(SessionError("the session could not be opened"))
            self._listener.broke(error)

    def _give_up(self, error: CodeWhaleError | OSError) -> None:
        if self._ready is not None and not self._ready.done():
            self._ready.set_exception(error)
            self._ready.exception()  # it has been seen, whether or not anybody waits
            self._listener.failed(error, opening=True)
        elif not self._closing.is_set():
            self._listener.failed(error, opening=False)

    def _follow(self, client: Client, session: str) -> None:
        self.session = session
        self._listener.opened(session)
        self._pump = asyncio.create_task(self._tell(client, session))

    async def _stop_pump(self) -> None:
        if self._pump is not None:
            self._pump.cancel()
            await asyncio.gather(self._pump, return_exceptions=True)
            self._pump = None

    async def _tell(self, client: Client, session: str) -> None:
        events = client.events(session, durable=False)
        try:
            await self._pass_on(events, await _last(client, session))
        except (CodeWhaleError, OSError) as error:
            self._listener.failed(error, opening=False)
        except Exception as error:
            self._listener.broke(error)
        finally:
            close = getattr(events, "aclose", None)
            if close is not None:
                await close()

    async def _pass_on(self, events: AsyncIterator[Envelope], last: int) -> None:
        began = time.monotonic()
        async for envelope in events:
            self.live = envelope.seq > last
            self._listener.take(envelope)
            if time.monotonic() - began > (SLICE_SECONDS if self.live else PAST_SECONDS):
                await asyncio.sleep(0)
                began = time.monotonic()


async def _last(client: Client, session: str) -> int:
    """The number of the last event of the past, 0 where nobody can say."""
    try:
        return int(getattr(await client.query(SessionStatus(session)), "seq", 0))
    except (CodeWhaleError, OSError, LookupError):
        return 0
