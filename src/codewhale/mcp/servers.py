"""The servers as the rest of the harness sees them: one broker, started when it is needed, and what is known of each
server. A call that was sent once is never sent again; a server or broker that is gone starts anew with the next one."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable
from typing import Any, NamedTuple

from msgspec import structs

from codewhale.mcp.frames import (
    AskAnswer,
    Changed,
    Close,
    Done,
    Gone,
    Log,
    Open,
    OrderProgress,
    Relist,
    Report,
    ServerAsk,
    UseOrder,
)
from codewhale.mcp.link import ServersLink
from codewhale.mcp.logins import LoginStore, WayBack
from codewhale.mcp.terms import (
    CallOutcome,
    LoginOptions,
    ServerCaller,
    ServerFailed,
    ServerOffer,
    ServerSpec,
    ServerState,
)
from codewhale.protocol.errors import ConfigError

CLOSE_SECONDS = 10.0
LOGIN_SECONDS = 600.0
NO_OPTIONS = LoginOptions()
MOST_ASKS = 8  # of one call at once
SETTLE_LOOKS, SETTLE_LOOK = 80, 0.05  # at fresh tokens, before the end
_LOOK = 1.0  # how often a call is looked at while a person is asked


class _Turn:
    """A call under way: who made it, what it asks, and until when it may take. Time in which somebody is asked does not
    count."""

    def __init__(self, caller: ServerCaller, seconds: float) -> None:
        self.caller = caller
        self.asks: set[asyncio.Task[None]] = set()
        self._until = time.monotonic() + seconds
        self._asked = 0.0

    def pause(self) -> None:
        """Somebody is asked."""
        if not self.asks:
            self._asked = time.monotonic()

    def resume(self) -> None:
        """Nobody is asked any more."""
        if not self.asks:
            self._until += time.monotonic() - self._asked

    def left(self) -> float:
        """The seconds until it is looked at again; 0 for never."""
        return _LOOK if self.asks else max(0.0, self._until - time.monotonic())


class _Known:
    """A server: how it is reached, how it stands, and the broker that holds it."""

    def __init__(self, spec: ServerSpec) -> None:
        self.spec = spec
        self.state = ServerState(spec.name)
        self.link: ServersLink | None = None
        self.opening: asyncio.Task[ServerOffer] | None = None

    @property
    def runs(self) -> bool:
        return self.state.state == "ready" and self.link is not None and self.link.alive


class _Person(NamedTuple):
    """Somebody who can log in to a server."""

    visit: Callable[[str], None]
    way: WayBack
    options: LoginOptions


class McpServers:
    """Implements `Servers`. Nothing is started before the first `open`; `shut` it."""

    def __init__(self, logins: LoginStore | None = None) -> None:
        """`logins` keeps what came of logging in; without it nothing is kept."""
        self.changed: Callable[[str], None] = _nothing
        self._link: ServersLink | None = None
        self._starting = asyncio.Lock()
        self._servers: dict[str, _Known] = {}
        self._turns: dict[int, _Turn] = {}
        self._logins = logins
        self._persons: dict[str, _Person] = {}
        self._asking: set[asyncio.Task[None]] = set()
        self._renewing: set[tuple[str, str]] = set()  # logins for which fresh tokens are on their way

    @property
    def broker(self) -> int:
        """The process id of the broker, 0 where there is none."""
        return self._link.pid if self._link is not None and self._link.alive else 0

    async def open(self, spec: ServerSpec) -> ServerOffer:
        """What the server offers, once it is connected; a cancel stops the waiting alone."""
        known = self._servers.get(spec.name)
        if known is None or known.spec != spec:
            if known is not None:
                await self.close(spec.name)
            known = self._servers[spec.name] = _Known(spec)
        if known.runs and known.state.offer is not None:
            return known.state.offer
        if known.opening is None or known.opening.done():
            known.opening = asyncio.create_task(self._open(known))
            known.opening.add_done_callback(_heard)
        return await asyncio.shield(known.opening)

    @contextlib.asynccontextmanager
    async def attended(
        self, name: str, visit: Callable[[str], None], options: LoginOptions = NO_OPTIONS
    ) -> AsyncIterator[None]:
        """While this lasts, a person is there who can log in to a server: `visit(url)` shows their browser where."""
        async with WayBack(options.port) as way:
            self._persons[name] = _Person(visit, way, options)
            try:
                yield
            finally:
                del self._persons[name]

    async def login(
        self, spec: ServerSpec, visit: Callable[[str], None], options: LoginOptions = NO_OPTIONS
    ) -> ServerOffer:
        """Connect with a person there, keep what came of it, and close the server again. Raises ServerFailed."""
        await self.close(spec.name)
        async with self.attended(spec.name, visit, options):
            offer = await self.open(spec)
        await self.close(spec.name)
        return offer

    async def _open(self, known: _Known) -> ServerOffer:
        spec = known.spec
        known.state = ServerState(spec.name, "starting")
        try:
            known.link = link = await self._broker()
            order, seconds = Open(link.number(), spec), spec.connect_seconds
            if (person := self._persons.get(spec.name)) is not None:
                order, seconds = Open(order.order, spec, person.way.url, person.options), seconds + LOGIN_SECONDS
            try:
                done = await asyncio.wait_for(link.do(order), seconds)
            except TimeoutError:
                raise ServerFailed(
                    "timeout",
                    f"The MCP server {spec.name} did not connect within {spec.connect_seconds:g} seconds. "
                    "Give it more with connect_timeout, or look at what it prints.",
                ) from None
        except ServerFailed as error:
            known.state = structs.replace(known.state, state="failed", error=str(error))
            raise
        known.state = ServerState(spec.name, "ready", offer=_offer(done))
        return _offer(done)

    def state(self, name: str) -> ServerState:
        """How a server stands now."""
        known = self._servers.get(name)
        if known is None:
            return ServerState(name)
        if known.state.state == "ready" and not known.runs:
            return structs.replace(known.state, state="failed", error="The broker of MCP servers ended.")
        return known.state

    async def offer(self, name: str) -> ServerOffer:
        """What a running server offers now."""
        known = self._find(name)
        link = _running(known)
        order = Relist(link.number(), name)
        try:
            done = await asyncio.wait_for(link.do(order), known.spec.read_seconds)
        except TimeoutError:
            raise _late(name, "list what it offers", known.spec.read_seconds, "read_timeout") from None
        known.state = structs.replace(known.state, offer=_offer(done))
        return _offer(done)

    async def call(self, name: str, tool: str, arguments: dict[str, Any], caller: ServerCaller) -> CallOutcome:
        """Call a tool."""
        return await self._use(name, ("call", tool), arguments, caller)

    async def read(self, name: str, uri: str, caller: ServerCaller) -> CallOutcome:
        """Read a resource."""
        return await self._use(name, ("read", uri), {}, caller)

    async def prompt(self, name: str, prompt: str, arguments: dict[str, str], caller: ServerCaller) -> CallOutcome:
        """Get a prompt."""
        return await self._use(name, ("prompt", prompt), dict(arguments), caller)

    async def close(self, name: str) -> None:
        """End a server."""
        known = self._servers.pop(name, None)
        if known is None or known.link is None or not known.link.alive:
            return
        with contextlib.suppress(TimeoutError, ServerFailed):
            await asyncio.wait_for(known.link.do(Close(known.link.number(), name)), CLOSE_SECONDS)

    async def shut(self) -> None:
        """End all servers and the broker, once the tokens that are on their way are kept."""
        for _ in range(SETTLE_LOOKS):
            if not self._renewing or not self.broker:
                break
            await asyncio.sleep(SETTLE_LOOK)
        async with self._starting:
            link, self._link = self._link, None
            self._servers.clear()
            if link is not None:
                await link.close()

    async def _use(
        self, name: str, what: tuple[str, str], arguments: dict[str, Any], caller: ServerCaller
    ) -> CallOutcome:
        known = self._find(name)
        try:
            return await self._once(known, what, arguments, caller)
        except ServerFailed as error:
            if error.kind in ("lost", "auth") and known.state.state == "ready":
                known.state = structs.replace(known.state, state="failed", error=str(error))
            raise

    async def _once(
        self, known: _Known, what: tuple[str, str], arguments: dict[str, Any], caller: ServerCaller
    ) -> CallOutcome:
        name = known.spec.name
        link = _running(known)
        seconds = known.spec.call_seconds if what[0] == "call" else known.spec.read_seconds
        number = link.number()
        turn = self._turns[number] = _Turn(caller, seconds)
        work = asyncio.create_task(link.do(UseOrder(number, name, *what, arguments)))
        try:
            while not work.done() and (left := turn.left()):
                await asyncio.wait((work,), timeout=left)
            if not work.done():
                setting = "execute_timeout" if what[0] == "call" else "read_timeout"
                raise _late(name, f"answer {what[1][:100]}", seconds, setting)
            outcome = work.result().outcome
            return outcome if outcome is not None else CallOutcome()
        finally:
            work.cancel()
            del self._turns[number]
            for ask in tuple(turn.asks):
                ask.cancel()

    def _find(self, name: str) -> _Known:
        known = self._servers.get(name)
        if known is None:
            raise ServerFailed("refused", f"The MCP server {name} is not open; nothing was sent.")
        return known

    async def _broker(self) -> ServersLink:
        async with self._starting:
            if self._link is None or not self._link.alive:
                self._link = await ServersLink.start(self._hear)
            return self._link

    def _hear(self, report: Report) -> None:
        if isinstance(report, ServerAsk) and report.what in ("elicit", "sample"):
            self._asked(report)
        elif isinstance(report, ServerAsk):
            task = asyncio.create_task(self._log_in(report))
            self._asking.add(task)
            task.add_done_callback(self._asking.discard)
        elif isinstance(report, OrderProgress) and report.order in self._turns:
            self._turns[report.order].caller.progress(report.server, report.done, report.total, report.text)
        elif isinstance(report, Log) and report.order in self._turns:
            self._turns[report.order].caller.log(report.server, report.level, report.text)
        elif isinstance(report, Changed) and report.server in self._servers:
            self.changed(report.server)
        elif isinstance(report, Gone) and report.server in self._servers:
            known = self._servers[report.server]
            known.state = structs.replace(known.state, state="failed", error=report.error, stderr=report.stderr)

    def _asked(self, ask: ServerAsk) -> None:
        turn = self._turns.get(ask.order)
        if turn is None or len(turn.asks) >= MOST_ASKS:
            return self._answer(AskAnswer(ask.ask, refused="nobody can be asked now"))
        turn.pause()
        task = asyncio.create_task(self._ask(ask, turn))
        turn.asks.add(task)

        def ended(task: asyncio.Task[None]) -> None:
            turn.asks.discard(task)
            turn.resume()

        task.add_done_callback(ended)
        return None

    async def _ask(self, ask: ServerAsk, turn: _Turn) -> None:
        try:
            if ask.what == "elicit":
                data = ask.data
                found = await turn.caller.elicit(ask.server, data["message"], data["schema"], data["url"])
            else:
                found = await turn.caller.sample(ask.server, ask.data)
            self._answer(AskAnswer(ask.ask, found))
        except ServerFailed as error:
            self._answer(AskAnswer(ask.ask, refused=str(error)))
        except BaseException as error:  # whatever it was, also the end of the call: the server must not wait for it
            self._answer(AskAnswer(ask.ask, refused=type(error).__name__))
            if not isinstance(error, Exception):
                raise

    async def _log_in(self, ask: ServerAsk) -> None:
        """What the broker asks to log in, or to stay so."""
        person, url = self._persons.get(ask.server), str(ask.data.get("address", ""))
        found: dict[str, Any] = {}
        refused = ""
        try:
            if ask.what == "tokens" and self._logins is not None:
                lock = self._logins.lock(ask.server, url)
                found = {"login": self._logins.find(ask.server, url), "lock": lock}
                self._renewing |= {(ask.server, url)} if ask.data.get("renews") else set()
            elif ask.what == "renewed":
                self._renewing.discard((ask.server, url))
            elif ask.what == "keep" and self._logins is not None:  # also of one that was closed meanwhile
                self._logins.keep(ask.server, url, ask.data["login"])
            elif ask.what in ("visit", "code") and person is None:
                refused = "nobody is there to log in"
            elif ask.what == "visit" and person is not None:
                person.visit(str(ask.data["url"]))
            elif ask.what == "code" and person is not None:
                found = await asyncio.wait_for(person.way.found(), LOGIN_SECONDS)
                refused = str(found.get("error_description") or found.get("error") or "")[:300]
        except ConfigError as error:
            refused = str(error)
        except TimeoutError:
            refused = f"nobody logged in within {LOGIN_SECONDS:.0f} seconds"
        self._answer(AskAnswer(ask.ask, found, refused))

    def _answer(self, answer: AskAnswer) -> None:
        if self._link is not None and self._link.alive:
            self._link.send(answer)


def _offer(done: Done) -> ServerOffer:
    return done.offer if done.offer is not None else ServerOffer("")


def _late(name: str, what: str, seconds: float, setting: str) -> ServerFailed:
    text = f"The MCP server {name} did not {what} within {seconds:g} seconds. Give it more with {setting}."
    return ServerFailed("timeout", text, sent=True)


def _nothing(name: str) -> None:
    pass


def _heard(task: asyncio.Task[ServerOffer]) -> None:
    """Whoever waited may be gone: the error stands in the server's state."""
    if not task.cancelled():
        task.exception()


def _running(known: _Known) -> ServersLink:
    """The broker that holds a server. None is started here: whoever opens one has looked whether it may."""
    if known.link is None or not known.runs:
        raise ServerFailed("lost", f"The MCP server {known.spec.name} does not run. Nothing was sent.")
    return known.link
