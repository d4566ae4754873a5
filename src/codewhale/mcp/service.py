"""The MCP servers of a workspace: which are named, which are approved, what they offer or offered last time, and calls
of them. A server is started when it is first needed, and not before it is approved as it is."""

import asyncio
import contextlib
import threading
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from codewhale.lib.clock import Clock
from codewhale.lib.text import one_line
from codewhale.mcp.approvals import Approvals, Standing
from codewhale.mcp.config import ConfigFile, Configured, config_files, read_config, with_fault
from codewhale.mcp.entries import ConfiguredServer, EntryFault
from codewhale.mcp.identity import ResolvedServer, card, place_of, resolve
from codewhale.mcp.relisting import Relisting
from codewhale.mcp.remembered import RememberedOffer, RememberedOffers
from codewhale.mcp.rows import NameOwners, WireTable, row, wire_table
from codewhale.mcp.terms import CallOutcome, OfferedTool, ServerCaller, ServerFailed, ServerOffer, Servers, ServerState
from codewhale.mcp.tokens import TokenStore
from codewhale.protocol.errors import ConfigError, ErrorKind, ToolError
from codewhale.protocol.tools import ToolSpec

T = TypeVar("T")
_KINDS: Mapping[str, ErrorKind] = {
    "timeout": "timeout", "start": "not_available", "auth": "not_available", "refused": "permission_denied",
}  # fmt: skip
_CHANGED = (
    "What the server {} says of {} has changed since the user approved it, so nothing was sent. Call it again: the "
    "user is shown the difference."
)
_GONE = "{} is not offered any more, and nothing was sent; look for another tool."
_MAYBE = " The request had been sent: look what it did before you send it again."


class McpPlace(Struct, frozen=True):
    """Where servers are named and kept: the state directory, the workspace, the person's own file, the environment that
    `${NAME}` is taken from."""

    home: str
    workspace: str
    user_file: str
    environ: Mapping[str, str]


class Pending(Struct, frozen=True):
    """A server that is not approved as it is: whether it is new or changed, its card, and the card that was approved
    before."""

    standing: Standing
    server: ResolvedServer
    card: tuple[str, ...]
    before: tuple[str, ...] = ()

    @property
    def fingerprint(self) -> str:
        return self.server.identity.fingerprint


Publish = Callable[[str, "tuple[ToolSpec, ...] | None"], Mapping[str, str]]


class McpService:
    """The servers of one workspace. `servers()` is the broker, made when the first one is started; `publish(server,
    rows)` gives the catalog a server's tools, or takes them away (None), and answers which it does not take."""

    def __init__(
        self, place: McpPlace, clock: Clock, servers: Callable[[], Servers], publish: Publish,
    ) -> None:  # fmt: skip
        self.place = place
        self.approvals = Approvals(place.home, clock)
        self.tokens = TokenStore(place.home)
        self._remembered = RememberedOffers(place.home, clock)
        self._make = servers
        self._publish = publish
        self._broker: Servers | None = None
        self._locks: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._tasks: set[asyncio.Future[None]] = set()
        self._offers: dict[str, RememberedOffer] = {}
        self._started: dict[str, str] = {}  # what was written of the servers that were started
        self._errors: dict[str, str] = {}
        self._rows: dict[str, tuple[ToolSpec, ...]] = {}
        self.not_taken: dict[str, Mapping[str, str]] = {}  # tools by server that the catalog refuses, and why
        self.configured = Configured()
        self.table = WireTable({})
        self._owners = NameOwners()
        self._relisting = Relisting(self._aside, self._list_again)
        self._guard = threading.RLock()  # over what is named, offered and published: files are read in threads too

    # ------------------------------------------------------------------ what is named

    def refresh(self) -> Configured:
        """What the files name now. Where one has changed, its servers and their tools are those of now, at once."""
        with self._guard:
            files = config_files(self.place.user_file, self.place.workspace)
            if files != self.configured.files:
                self._read_again(files)
            return self.configured

    def _read_again(self, files: tuple[ConfigFile, ...]) -> None:
        before, self.configured = self.configured, read_config(files)
        wanted = {server.name: server for server in self.configured.servers}
        for name in [name for name in self._errors if before.get(name) != wanted.get(name)]:
            del self._errors[name]  # it was of what was written before
        for name, written in list(self._started.items()):
            server = wanted.get(name)
            if server is None or server.disabled or server.digest != written:
                del self._started[name]
                self._aside(self._close(name))
        found = ((server.name, self._remembered.get(server.key, server.digest)) for server in self._usable())
        self._offers = {name: known for name, known in found if known is not None}
        self._tell()

    def _usable(self) -> list[ConfiguredServer]:
        return [one for one in self.configured.servers if one.fault is None and not one.disabled]

    def server(self, name: str) -> ConfiguredServer:
        """A server that may be used. Raises ToolError for one that is not named, is off, or has a fault."""
        self.refresh()
        server = self.configured.get(name)
        if server is None:
            known = ", ".join(one.name for one in self._usable()) or "none"
            raise ToolError(
                "not_available", f"There is no MCP server {one_line(name, 80)!r}; there are: {known}.", field="server"
            )
        if server.fault is not None:
            raise ToolError("not_available", f"The MCP server {name} cannot be used: {server.fault.line}")
        if server.disabled:
            raise ToolError(
                "not_available", f"The MCP server {name} is off; the user can switch it on: /mcp enable {name}."
            )
        return server

    def usable(self) -> tuple[str, ...]:
        """The names of those that are on and have no fault."""
        self.refresh()
        return tuple(server.name for server in self._usable())

    def offered(self, name: str) -> RememberedOffer | None:
        """What a server offers, or offered last time; None where that is not known."""
        return self._offers.get(name)

    def tool(self, wire: str) -> tuple[ConfiguredServer, OfferedTool] | None:
        """The server and the tool that a name stands for."""
        found = self.table.tools.get(wire)
        server = None if found is None else self.configured.get(found[0])
        known = None if found is None else self._offers.get(found[0])
        if found is None or server is None or known is None:
            return None
        tool = next((one for one in known.offer.tools if one.name == found[1]), None)
        return None if tool is None else (server, tool)

    def rows(self) -> tuple[tuple[ConfiguredServer, ToolSpec, str], ...]:
        """Every tool that the catalog has of servers: its server, its row, and its own name."""
        with self._guard:
            named = {server.name: server for server in self.configured.servers}
            return tuple(
                (named[server], spec, self.table.tools[spec.name][1])
                for server, specs in self._rows.items()
                for spec in specs
                if spec.name not in self.not_taken.get(server, {})
            )

    # ------------------------------------------------------------------ approval

    def pending(self, name: str) -> Pending | None:
        """What a person has to approve before a server is started; None where it is approved as it is. Reads files.
        Raises ToolError for one that cannot be used."""
        server = self.server(name)
        try:
            return self._pending(server, self._resolved(server))
        except ConfigError as error:
            raise ToolError("not_available", str(error)) from None

    def _pending(self, server: ConfiguredServer, resolved: ResolvedServer) -> Pending | None:
        place = place_of(server, self.place.workspace)
        standing = self.approvals.standing(server.key, resolved.identity, place)
        if standing == "approved":
            return None
        before = self.approvals.get(server.key, place)
        shown = () if before is None else card(server.name, server.file, before.identity)
        return Pending(standing, resolved, card(server.name, server.file, resolved.identity), shown)

    def _resolved(self, server: ConfiguredServer) -> ResolvedServer:
        try:
            resolved = resolve(server, self.place.environ, self.place.workspace)
            more = self.tokens.headers(server, resolved.spec.url)
            spec = replace(resolved.spec, headers={**resolved.spec.headers, **more})
            return replace(resolved, spec=spec)
        except ConfigError as error:
            raise ToolError("not_available", str(error)) from None
        except EntryFault as wrong:
            fault = with_fault(server, wrong).fault
            assert fault is not None
            self._errors[server.name] = fault.line
            raise ToolError("not_available", f"The MCP server {server.name} cannot be used: {fault.line}") from None

    def approve(self, name: str, fingerprint: str) -> None:
        """Approve a server as it was shown. Raises ToolError where it is another one now, ConfigError where that cannot
        be kept."""
        server = self.server(name)
        resolved = self._resolved(server)
        if resolved.identity.fingerprint != fingerprint:
            raise ToolError("not_available", f"The MCP server {name} has changed since it was shown; look at it again.")
        self.approvals.add(server.key, resolved.identity, place_of(server, self.place.workspace))
        self._errors.pop(name, None)

    def forget(self, server: ConfiguredServer) -> None:
        """Take back what a person has approved of a server, and what is known of it. Raises ConfigError."""
        self.approvals.remove(server.key)
        self._remembered.forget(server.key)
        self._offers.pop(server.name, None)

    def changed_tool(self, wire: str) -> tuple[OfferedTool, OfferedTool] | None:
        """A tool as the person knows it and as it is, where it says something else of itself now."""
        found = self.table.tools.get(wire)
        known = None if found is None else self._offers.get(found[0])
        return None if found is None or known is None else known.changed(found[1])

    def approve_tool(self, wire: str) -> None:
        """The person has seen what a tool says of itself now."""
        server, tool = self.table.tools.get(wire, ("", ""))
        configured = self.configured.get(server)
        if configured is not None:
            known = self._remembered.approve(configured.key, configured.digest, tool)
            if known is not None:
                self._learnt(server, known)

    # ------------------------------------------------------------------ running ones

    async def ready(self, name: str, again: bool = False) -> RememberedOffer:
        """What a server offers, which is started where it does not run, or `again`. Raises ToolError."""
        server = self.server(name)
        if again:
            self._started.pop(name, None)
            await self._close(name)
        async with self._locks[name]:
            server = self.server(name)  # it may be off by now
            known = self._offers.get(name)
            if known is not None and self.runs(server):
                return known
            resolved = await asyncio.to_thread(self._resolved, server)
            self._refuse_unapproved(server, resolved)
            try:
                offer = await self.broker.open(resolved.spec)
            except ServerFailed as failed:
                raise self._failed(name, failed) from None
            if self.refresh().get(name) != server:
                await self._close(name)
                raise ToolError(
                    "not_available", f"The MCP server {name} was changed while it started; nothing was sent."
                )
            self._started[name] = server.digest
            return self._take(server, offer)

    def _refuse_unapproved(self, server: ConfiguredServer, resolved: ResolvedServer) -> None:
        try:
            pending = self._pending(server, resolved)
        except ConfigError as error:
            raise ToolError("not_available", str(error)) from None
        if pending is not None:
            raise ToolError("permission_denied", unapproved(server.name, pending.standing))

    def runs(self, server: ConfiguredServer) -> bool:
        """Whether a server runs as it is configured now."""
        started = self._started.get(server.name) == server.digest
        return started and self._broker is not None and self._broker.state(server.name).state == "ready"

    def _take(self, server: ConfiguredServer, offer: ServerOffer) -> RememberedOffer:
        self._errors.pop(server.name, None)
        known = self._remembered.put(server.key, server.digest, offer)
        if self.configured.get(server.name) == server:
            self._learnt(server.name, known)
        return known

    @property
    def broker(self) -> Servers:
        """What starts servers; made when it is first needed."""
        if self._broker is None:
            self._loop, self._broker = asyncio.get_running_loop(), self._make()
            self._broker.changed = self._lists_changed
        return self._broker

    def state(self, name: str) -> ServerState:
        """How a server stands, without starting anything."""
        state = ServerState(name) if self._broker is None else self._broker.state(name)
        error = state.error or self._errors.get(name, "")
        return replace(state, error=error, state="failed" if error and state.state == "idle" else state.state)

    async def call(self, wire: str, arguments: dict[str, Any], caller: ServerCaller) -> CallOutcome:
        """Call a tool. Raises ToolError."""
        server, tool = self.table.tools.get(wire, ("", ""))
        if not server:
            raise ToolError("not_available", _GONE.format(wire))
        before = self.changed_tool(wire)

        def same() -> None:  # a start hears what a server says of itself today
            if self.table.tools.get(wire) != (server, tool) or self.changed_tool(wire) != before:
                raise ToolError("permission_denied", _CHANGED.format(server, one_line(tool, 80)))

        await self.ready(server)
        same()
        return await self._asked(server, lambda broker: broker.call(server, tool, arguments, caller), same)

    async def read(self, name: str, uri: str, caller: ServerCaller) -> CallOutcome:
        """Read a resource. Raises ToolError."""
        await self.ready(name)
        return await self._asked(name, lambda broker: broker.read(name, uri, caller))

    async def prompt(self, name: str, prompt: str, arguments: dict[str, str], caller: ServerCaller) -> CallOutcome:
        """The messages of a prompt. Raises ToolError."""
        await self.ready(name)
        return await self._asked(name, lambda broker: broker.prompt(name, prompt, arguments, caller))

    async def _asked(
        self, name: str, ask: Callable[[Servers], Awaitable[T]], check: Callable[[], None] = lambda: None
    ) -> T:
        """Ask a running server; one that was lost before it was asked is started once more, and `check` made then.
        Raises ToolError."""
        try:
            return await ask(self.broker)
        except ServerFailed as failed:
            if failed.kind != "lost" or failed.sent:
                raise self._failed(name, failed) from None
        self._started.pop(name, None)
        await self.ready(name)
        check()
        try:
            return await ask(self.broker)
        except ServerFailed as failed:
            raise self._failed(name, failed) from None

    def _failed(self, name: str, failed: ServerFailed) -> ToolError:
        self._errors[name] = one_line(str(failed), 400)
        text = f"MCP server {name}: {one_line(str(failed), 1_000)}"
        return ToolError(_KINDS.get(failed.kind, "execution_failed"), text + _MAYBE * failed.sent)

    async def learn(self, seconds: float) -> None:
        """Start what is approved and has never said what it offers; wait for it no longer than this."""
        unknown = [name for name in self.usable() if name not in self._offers and name not in self._errors]
        if unknown:
            await asyncio.wait([asyncio.ensure_future(self._learn(name)) for name in unknown], timeout=seconds)

    async def _learn(self, name: str) -> None:
        with contextlib.suppress(ToolError):
            if await asyncio.to_thread(self.pending, name) is None:
                await self.ready(name)

    async def _close(self, name: str) -> None:
        if self._broker is not None:
            await self._broker.close(name)

    def _lists_changed(self, name: str) -> None:
        self._relisting.changed(name)

    async def _list_again(self, name: str) -> None:
        server = self.configured.get(name)
        if server is None or self._broker is None:
            return
        try:
            self._take(server, await self._broker.offer(name))
        except ServerFailed as failed:
            self._failed(name, failed)

    # ------------------------------------------------------------------ the catalog, and the end

    def _learnt(self, name: str, known: RememberedOffer) -> None:
        with self._guard:
            self._offers[name] = known
            self._tell()

    def _tell(self) -> None:
        """Give the catalog the tools of now."""
        order = [server for server in self._usable() if server.name in self._offers]
        self.table = wire_table(((server, self._offers[server.name].shown) for server in order), self._owners)
        rows = {server.name: tuple(self._specs(server)) for server in order}
        changed = [name for name in {**self._rows, **rows} if self._rows.get(name) != rows.get(name)]
        for name in changed:
            self._publish(name, None)
            self.not_taken.pop(name, None)
        for name, specs in rows.items():
            if name in changed:
                self.not_taken[name] = self._publish(name, specs)
        self._rows = rows

    def _specs(self, server: ConfiguredServer) -> Iterable[ToolSpec]:
        tools = {tool.name: tool for tool in self._offers[server.name].shown.tools}
        for wire, (owner, name) in self.table.tools.items():
            if owner == server.name:
                yield row(wire, server.name, tools[name])

    def _aside(self, work: Awaitable[None]) -> None:
        """Do it on the loop that the servers run on, from any thread."""

        def begin() -> None:
            task = asyncio.ensure_future(work)
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

        self._loop.call_soon_threadsafe(begin)

    async def aclose(self) -> None:
        """End all servers and the broker."""
        for task in self._tasks:
            task.cancel()
        if self._broker is not None:
            await self._broker.shut()


def unapproved(name: str, standing: Standing) -> str:
    """Why a server is not started, and what the person can do."""
    what = "has changed since it was approved" if standing == "changed" else "has not been approved"
    return (
        f"The MCP server {name} {what}, so it was not started. The user looks at it and approves it with /mcp approve "
        f"{name}, or `codewhale mcp approve {name}`."
    )


async def log_in(service: McpService, name: str, visit: Callable[[str], None]) -> None:
    """Log in to an approved server in the person's browser, which `visit(url)` leads there. Raises ToolError."""
    server = service.server(name)
    resolved = await asyncio.to_thread(service._resolved, server)
    service._refuse_unapproved(server, resolved)
    kept = service.tokens.headers(server, resolved.spec.url)
    headers = {key: value for key, value in resolved.spec.headers.items() if key not in kept}
    try:
        await service.broker.login(replace(resolved.spec, headers=headers), visit)
    except ServerFailed as failed:
        raise service._failed(name, failed) from None
    service.tokens.remove(server)  # one that was typed before would go in place of the login
