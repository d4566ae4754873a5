"""MCP servers in an application: nothing of them is imported where no file names one."""

import os
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from functools import partial
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from codewhale.agent.activation import ServedTools
from codewhale.app.settings import Place
from codewhale.catalog.registry import Catalog, ToolSource
from codewhale.lib.clock import Clock, SystemClock
from codewhale.process.artifacts import ArtifactStore
from codewhale.protocol.errors import SessionError, ToolError
from codewhale.protocol.ports import Asker, Completer
from codewhale.protocol.tools import BoundCall, ToolSpec

if TYPE_CHECKING:
    from codewhale.mcp.calls import McpCalls
    from codewhale.mcp.entries import ConfiguredServer
    from codewhale.mcp.service import McpService

PREFIX = "mcp:"
_FILES = (os.path.join(".codewhale", "mcp.json"), ".mcp.json")
LEARN_SECONDS = 10.0


class McpPorts(Struct, frozen=True):
    """What the servers of an application are built over: whom they may ask, where their tools and large results go."""

    clock: Clock
    catalog: Catalog
    artifacts: ArtifactStore
    asker: Asker
    completer: Callable[[], Completer]
    images: Callable[[str], bool]
    redact: Callable[[str], Callable[[str], str]]
    closers: AsyncExitStack


class McpParts:
    """The servers of the workspace that an application was started in. `user_file` is the person's own file."""

    def __init__(self, place: Place, user_file: str, ports: McpPorts) -> None:
        self._place = place
        self._user_file = user_file
        self._ports = ports
        self._calls: McpCalls | None = None

    def at(self) -> "McpCalls | None":
        """The servers as the files name them now; None where there never was a file."""
        if self._calls is None:
            if not any_named(self._user_file, self._place.workspace):
                return None
            self._calls = self._built()
        self._calls.service.refresh()
        return self._calls

    def built(self) -> "McpCalls":
        """The same, where there is no file either."""
        found = self.at()
        if found is None:
            found = self._calls = self._built()
            found.service.refresh()
        return found

    def _built(self) -> "McpCalls":
        from codewhale.mcp.calls import McpCalls
        from codewhale.mcp.results import ResultMaker
        from codewhale.mcp.service import McpPlace, McpService

        ports, place = self._ports, self._place
        where = McpPlace(place.home, place.workspace, self._user_file, place.environ)
        service = McpService(where, ports.clock, partial(_servers, self._place.home), self._publish)
        ports.closers.push_async_callback(service.aclose)
        results = ResultMaker(ports.artifacts, ports.images, ports.redact)
        return McpCalls(service, results, ports.asker, ports.completer)

    def _publish(self, server: str, rows: tuple[ToolSpec, ...] | None) -> Mapping[str, str]:
        """Give the catalog the tools of a server, or take them away; which are not taken, and why."""
        if rows is None:
            self._ports.catalog.remove(PREFIX + server)
            return {}
        return self._ports.catalog.register(ToolSource(PREFIX + server, rows, self._bind))

    def _bind(self, spec: ToolSpec, arguments: dict[str, Any]) -> BoundCall:
        assert self._calls is not None, "a tool of a server, and no servers"
        return self._calls.bind(spec, arguments)

    def _named(self) -> "tuple[ConfiguredServer, ...]":
        """The servers that the files name now; nothing is made of what they offered."""
        if self._calls is not None:
            return self._calls.service.refresh().servers
        if not any_named(self._user_file, self._place.workspace):
            return ()
        from codewhale.mcp.config import config_files, read_config

        return read_config(config_files(self._user_file, self._place.workspace)).servers

    async def require(self) -> None:
        """Start the servers without which no session begins. Raises SessionError."""
        for server in self._named():
            if server.required and not server.disabled:
                try:
                    await self.built().service.ready(server.name)
                except ToolError as error:
                    text = f"{error.message} It is required ({server.file}), so no session begins without it."
                    raise SessionError(text) from None

    async def learn(self) -> None:
        """Let what is approved and not known yet say what it offers."""
        calls = self.at()
        if calls is not None:
            await calls.service.learn(LEARN_SECONDS)

    def note(self, tool: str) -> str:
        """What a search says beside a tool of a server that has not been started."""
        found = None if self._calls is None else self._calls.service.tool(tool)
        if self._calls is None or found is None or self._calls.service.runs(found[0]):
            return ""
        known = self._calls.service.offered(found[0].name)
        when = "" if known is None else f" of {known.at[:10]}"
        return f"as its server said last time{when}; it is started when this is called"

    def serves(self, address: str) -> str:
        """The name of a server that offers the resource at an address, or a pattern that it fits; "" for none."""
        calls = self.at()
        if calls is None:
            return ""
        for name in calls.service.usable():
            known = calls.service.offered(name)
            for one in () if known is None else known.offer.resources:
                pattern = one.uri.partition("{")[0] if one.template else ""
                if one.uri == address or (len(pattern) > 1 and address.startswith(pattern)):
                    return name
        return ""

    def served(self, workspace: str, yolo: bool) -> ServedTools:
        """The tools of servers that join the array of a session that is opened now, from what they said last time:
        those that are always loaded, and in yolo mode all, those first."""
        # Rows are made where some are to join: no other session waits for them before its first request.
        if not any(yolo or server.always_load for server in self._named()):
            return ServedTools()
        calls = self.at()
        if calls is None or os.path.realpath(workspace) != os.path.realpath(self._place.workspace):
            return ServedTools()
        rows = calls.service.rows()
        always = sorted((spec for server, spec, name in rows if server.always(name)), key=_name)
        others = sorted((spec for server, spec, name in rows if not server.always(name)), key=_name) if yolo else []
        return ServedTools((*always, *others))


def any_named(user_file: str, workspace: str) -> bool:
    """Whether there is a file that may name servers."""
    root = os.path.realpath(workspace)
    places = (os.path.expanduser(user_file), *(os.path.join(root, name) for name in _FILES))
    return any(os.path.lexists(path) for path in places)


def open_servers(home: str, workspace: str, user_file: str, environ: Mapping[str, str]) -> "McpService":
    """The servers of a workspace, for what needs no session."""
    from codewhale.mcp.service import McpPlace, McpService

    place = McpPlace(home, workspace, os.path.expanduser(user_file), environ)
    return McpService(place, SystemClock(), partial(_servers, home), lambda server, rows: {})


def _name(spec: ToolSpec) -> str:
    return spec.name


def _servers(home: str) -> Any:
    from codewhale.mcp.logins import LoginStore
    from codewhale.mcp.servers import McpServers

    return McpServers(LoginStore(home))
