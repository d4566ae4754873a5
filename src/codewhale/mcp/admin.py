"""What a person does with the servers of a workspace, typed in a session or at the shell: look, add, approve, switch,
check."""

import asyncio
import os
from collections.abc import Callable, Sequence

from msgspec import Struct

from codewhale.lib.text import one_line, sanitise
from codewhale.mcp import edit
from codewhale.mcp.config import config_files
from codewhale.mcp.entries import ConfigFault, ConfiguredServer, Times, read_entry
from codewhale.mcp.identity import shown_line
from codewhale.mcp.logins import LoginStore
from codewhale.mcp.service import McpService, Pending, log_in, unapproved
from codewhale.protocol.errors import ConfigError, ToolError
from codewhale.protocol.views import ServerRow

MOST_LINES = 60


class CheckedServers(Struct, frozen=True):
    """What is wrong, in lines, and which servers answered with what they offer."""

    faults: tuple[str, ...]
    answered: tuple[str, ...] = ()


class McpAdmin:
    """The doings. All raise ConfigError, in words for a person."""

    def __init__(self, service: McpService) -> None:
        self._service = service

    # ------------------------------------------------------------------ looking

    def rows(self) -> tuple[ServerRow, ...]:
        """Every server that is named. Nothing is started."""
        return tuple(self._row(server) for server in self._service.refresh().servers)

    def row(self, name: str) -> ServerRow:
        return self._row(self._named(name))

    def faults(self) -> tuple[ConfigFault, ...]:
        """What is wrong with files as a whole."""
        return self._service.refresh().faults

    def _row(self, server: ConfiguredServer) -> ServerRow:
        service = self._service
        known, running = service.offered(server.name), service.state(server.name)
        state, error = self._state(server)
        offer = known.offer if known is not None else None
        names = {tool: wire for wire, (owner, tool) in service.table.tools.items() if owner == server.name}
        tools = (
            [(names[one.name], one.name, one.description) for one in offer.tools if one.name in names] if offer else []
        )
        prompts = [(one.name, one.description) for one in offer.prompts] if offer else []
        resources = [(one.uri, one.description or one.name) for one in offer.resources] if offer else []
        return ServerRow(
            server.name, server.file, server.source, server.transport, server.url or shown_line(server.argv), state,
            error, running.stderr, (server.times.connect, server.times.call, server.times.read), server.required,
            offer.version if offer else "", offer.protocol if offer else "", tuple(tools), tuple(prompts),
            tuple(resources), known.at if known is not None else "", self._notes(server),
        )  # fmt: skip

    def _state(self, server: ConfiguredServer) -> tuple[str, str]:
        if server.fault is not None:
            return "faulty", server.fault.line
        if server.disabled:
            return "off", ""
        state = self._service.state(server.name)
        if state.state in ("ready", "starting"):
            return state.state, state.error
        try:
            pending = self._service.pending(server.name)
        except ToolError as error:
            return "faulty", error.message
        if pending is not None:
            standing = "changed" if pending.standing == "changed" else "unapproved"
            return standing, unapproved(server.name, pending.standing)
        return state.state, state.error

    def _notes(self, server: ConfiguredServer) -> tuple[str, ...]:
        known = self._service.offered(server.name)
        refused = [one.line for one in self._service.table.refused if one.server == server.name]
        refused += [f"{tool}: {why}" for tool, why in self._service.not_taken.get(server.name, {}).items()]
        notes = [f"not to be had: {line}" for line in refused]
        notes += [line for line in self._service.table.renamed if line.startswith(f"mcp_{server.name}_")]
        if known is not None:
            notes += [f"left out: {one_line(line, 300)}" for line in known.offer.left_out]
            changed = [tool.name for tool in known.offer.tools if known.changed(tool.name)]
            notes += [
                f"says something else of itself now: {one_line(name, 80)}; asked about at its next call"
                for name in changed
            ]
            hidden = [tool.name for tool in known.offer.tools if not server.takes(tool.name)]
            notes += [f"switched off: {', '.join(one_line(name, 80) for name in hidden)}"] if hidden else []
        return tuple(notes)

    # ------------------------------------------------------------------ the files

    def path(self, project: bool) -> str:
        """The file that is changed: the person's own, or the project's (the one that there is)."""
        files = config_files(self._service.place.user_file, self._service.place.workspace)
        if not project:
            return files[0].path
        return next((file.path for file in files[1:] if file.stamp is not None), files[-1].path)

    def init(self, project: bool) -> str:
        """Make an empty file; its path."""
        path = self.path(project)
        if os.path.lexists(path):
            raise ConfigError(f"{path}: is there already; nothing was changed")
        edit.set_server(path, "example", {"command": "npx", "args": ["-y", "package@1.0.0"], "disabled": True})
        return path

    def add(self, name: str, row: dict[str, object], project: bool) -> str:
        """Write an entry, checked before; the path of its file."""
        path = self.path(project)
        there = self._service.refresh().get(name)
        if there is not None:
            raise ConfigError(
                f"{there.file}: there is a server {name} already; remove it first, or choose another name"
            )
        server = read_entry(name, row, path, "project" if project else "user", Times())
        if server.fault is not None:
            raise ConfigError(server.fault.line)
        edit.set_server(path, name, row)
        self._service.refresh()
        return path

    def switch(self, name: str, on: bool) -> str:
        """Switch a server on or off; the path of its file."""
        server = self._named(name)
        edit.set_key(server.file, name, "enabled", None)
        edit.set_key(server.file, name, "disabled", None if on else True)
        self._service.refresh()
        return server.file

    def remove(self, name: str) -> str:
        """Take a server out of its file, with its approval; the file's path."""
        server = self._named(name)
        edit.drop_server(server.file, name)
        self._service.forget(server)
        self._service.refresh()
        return server.file

    # ------------------------------------------------------------------ approval, and starting

    def pending(self, name: str) -> Pending | None:
        """What is to be approved of a server; None where it is approved as it is."""
        self._named(name)
        try:
            return self._service.pending(name)
        except ToolError as error:
            raise ConfigError(error.message) from None

    def approve(self, name: str, fingerprint: str) -> None:
        """Approve a server as it was shown."""
        try:
            self._service.approve(name, fingerprint)
        except ToolError as error:
            raise ConfigError(error.message) from None

    async def start(self, name: str, again: bool = False) -> ServerRow:
        """Start a server, or start it anew; how it stands then."""
        self._named(name)
        try:
            await self._service.ready(name, again)
        except ToolError as error:
            raise ConfigError(error.message) from None
        return self.row(name)

    async def validate(self, start: bool) -> CheckedServers:
        """What is wrong with the files and with what they name; with `start` every approved server is started."""
        configured = self._service.refresh()
        faults, answered = list(configured.lines), list[str]()
        ready = []
        for server in (one for one in configured.servers if one.fault is None and not one.disabled):
            try:
                await asyncio.to_thread(self._service.pending, server.name)
                ready.append(server)
            except ToolError as error:
                faults.append(self._service.state(server.name).error or error.message)
        for server, found in zip(ready, await self._answers(ready) if start else (), strict=False):
            line = f"{one_line(server.name, 80)}: {found}"
            (answered if found.startswith("offers") else faults).append(line)
        return CheckedServers(tuple(dict.fromkeys(faults)), tuple(answered))

    async def _answers(self, servers: Sequence[ConfiguredServer]) -> list[str]:
        async def ask(server: ConfiguredServer) -> str:
            try:
                offer = (await self._service.ready(server.name)).offer
            except ToolError as error:
                return error.message
            return f"offers {len(offer.tools)} tools, {len(offer.prompts)} prompts, {len(offer.resources)} resources"

        return list(await asyncio.gather(*map(ask, servers)))

    # ------------------------------------------------------------------ tokens, and the end

    def keep_token(self, name: str, token: str) -> str:
        """Keep a token for the address of a server; the name of the server."""
        server = self._addressed(name)
        self._service.tokens.put(server, server.url, token)
        return name

    def forget_token(self, name: str) -> bool:
        """Forget the token of a server, and its login; whether there was one."""
        server = self._addressed(name)
        had = self._service.tokens.remove(server)
        return LoginStore(self._service.place.home).remove(name, server.url) or had

    async def log_in(self, name: str, visit: Callable[[str], None]) -> None:
        """Log in to a server in the browser."""
        self._addressed(name)
        try:
            await log_in(self._service, name, visit)
        except ToolError as error:
            raise ConfigError(error.message) from None

    def _addressed(self, name: str) -> ConfiguredServer:
        server = self._named(name)
        if not server.url:
            raise ConfigError(f"{name} is a program of this machine; it is given tokens by env in {server.file}.")
        if "${" in server.url:
            raise ConfigError(f"The address of {name} is made of variables; give it its token by headers.")
        return server

    async def aclose(self) -> None:
        """End what was started."""
        await self._service.aclose()

    def _named(self, name: str) -> ConfiguredServer:
        configured = self._service.refresh()
        server = configured.get(name)
        if server is None:
            known = ", ".join(one.name for one in configured.servers) or "none"
            raise ConfigError(f"There is no MCP server {one_line(name, 80)!r}; there are: {known}.")
        return server


def describe(row: ServerRow) -> str:
    """A server in a line."""
    counts = f"{len(row.tools)} tools, {len(row.prompts)} prompts, {len(row.resources)} resources"
    error = f": {one_line(row.error, 300)}" if row.error else ""
    return f"{row.name:<16} {row.state:<10} {row.transport:<5} {counts if row.since else 'not listed yet'}{error}"


def shown(row: ServerRow) -> str:
    """All that is known of a server."""
    connect, call, read = row.times
    lines = [
        describe(row),
        f"  named in   {row.file} ({row.source})",
        f"  {'address' if row.transport == 'http' else 'command'}    {row.line}",
        f"  waits      {connect:g} s to connect, {call:g} s for a call, {read:g} s for a resource",
    ]
    lines += ["  required   yes"] if row.required else []
    lines += [f"  server     {row.version}, protocol {row.protocol}, listed {row.since}"] if row.since else []
    lines += [f"  note       {note}" for note in row.notes]
    lines += [f"  tool       {wire}: {one_line(about, 120)}" for wire, _, about in row.tools[:MOST_LINES]]
    lines += [f"  prompt     {name}: {one_line(about, 120)}" for name, about in row.prompts[:MOST_LINES]]
    lines += [f"  resource   {uri}: {one_line(about, 120)}" for uri, about in row.resources[:MOST_LINES]]
    more = sum(max(0, len(part) - MOST_LINES) for part in (row.tools, row.prompts, row.resources))
    lines += [f"  and {more} more"] if more else []
    lines += [f"  printed    {one_line(line, 200)}" for line in row.stderr.splitlines()[-5:]]
    return sanitise("\n".join(lines))
