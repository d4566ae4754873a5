"""/mcp: the MCP servers of a workspace: look, add, approve, switch, check, start."""

import asyncio
import shlex
from collections.abc import Awaitable, Callable

from codewhale.commands.base import CommandContext, command, misuse
from codewhale.lib.text import fenced, one_line, sanitise
from codewhale.mcp.admin import McpAdmin, describe, shown
from codewhale.mcp.typed import typed_entry
from codewhale.protocol.errors import ConfigError
from codewhale.protocol.ops import CommandOutput

_USAGE = "/mcp add [project] NAME COMMAND ARGS..., or /mcp add [project] NAME https://ADDRESS"
_NONE = "No MCP servers. /mcp add NAME COMMAND ARGS... adds one; /mcp init makes an empty file."

Verb = Callable[[str], Awaitable[CommandOutput]]


class McpCommand:
    """/mcp."""

    def __init__(self, admin: Callable[[], McpAdmin]) -> None:
        self._admin = admin
        self._verbs: dict[str, Verb] = {
            "list": self._list,
            "show": self._show,
            "init": self._init,
            "add": self._add,
            "approve": self._approve,
            "enable": lambda name: self._switch(name, True),
            "disable": lambda name: self._switch(name, False),
            "remove": self._remove,
            "validate": self._validate,
            "reload": self._reload,
            "login": self._login,
        }

    @command("/mcp", "[list|show|init|add|approve|enable|disable|remove|validate|reload|login ...]")
    async def mcp(self, args: str, context: CommandContext) -> CommandOutput:
        """List the MCP servers with their state; show, add, approve, switch, check or restart one."""
        verb, _, rest = args.partition(" ")
        try:
            if verb and verb not in self._verbs:
                return misuse(f"Unknown: {one_line(verb, 40)}. Use /mcp, or /mcp {' | '.join(self._verbs)}.")
            return await self._verbs[verb or "list"](rest.strip())
        except ConfigError as error:
            return CommandOutput(sanitise(str(error)), ok=False)

    async def _list(self, rest: str) -> CommandOutput:
        admin = self._admin()
        rows = await asyncio.to_thread(admin.rows)
        lines = [describe(row) for row in rows] + [fault.line for fault in admin.faults()]
        return CommandOutput(sanitise("\n".join((f"configured in {admin.path(False)}", *lines)) if lines else _NONE))

    async def _show(self, name: str) -> CommandOutput:
        if not name:
            return misuse("Use /mcp show NAME.")
        return CommandOutput(shown(await asyncio.to_thread(self._admin().row, name)))

    async def _init(self, rest: str) -> CommandOutput:
        path = self._admin().init(rest == "project")
        return CommandOutput(f"Made {path} with an example that is switched off.")

    async def _add(self, rest: str) -> CommandOutput:
        try:
            words = shlex.split(rest)
        except ValueError as error:
            return misuse(f"Cannot be read: {error}. Use {_USAGE}.")
        project = words[:1] == ["project"]
        name, *line = words[project:] or [""]
        if not name or not line:
            return misuse(f"Use {_USAGE}.")
        admin = self._admin()
        path = await asyncio.to_thread(admin.add, name, typed_entry(line), project)
        return CommandOutput(f"Added {name} to {path}.\n{await self._card(name)}")

    async def _card(self, name: str) -> str:
        pending = await asyncio.to_thread(self._admin().pending, name)
        if pending is None:
            return f"{name} is approved as it is."
        card = fenced(sanitise("\n".join(pending.card)))
        return f"{card}\nIt is not started before you approve it: /mcp approve {name} {pending.fingerprint[:12]}"

    async def _approve(self, rest: str) -> CommandOutput:
        name, _, typed = rest.partition(" ")
        if not name:
            return misuse("Use /mcp approve NAME; it shows what would be started.")
        admin = self._admin()
        pending = await asyncio.to_thread(admin.pending, name)
        if pending is None or not typed.strip():
            return CommandOutput(await self._card(name))
        if len(typed.strip()) < 8 or not pending.fingerprint.startswith(typed.strip()):
            return CommandOutput(f"That is not what would be started now.\n{await self._card(name)}", ok=False)
        await asyncio.to_thread(admin.approve, name, pending.fingerprint)
        row = await admin.start(name)
        return CommandOutput(f"Approved, and started.\n{sanitise(describe(row))}")

    async def _switch(self, name: str, on: bool) -> CommandOutput:
        if not name:
            return misuse(f"Use /mcp {'enable' if on else 'disable'} NAME.")
        path = await asyncio.to_thread(self._admin().switch, name, on)
        return CommandOutput(f"Switched {name} {'on' if on else 'off'} in {path}.")

    async def _remove(self, name: str) -> CommandOutput:
        if not name:
            return misuse("Use /mcp remove NAME.")
        path = await asyncio.to_thread(self._admin().remove, name)
        return CommandOutput(f"Removed {name} from {path}, and its approval.")

    async def _validate(self, rest: str) -> CommandOutput:
        found = await self._admin().validate(start=True)
        lines = sanitise("\n".join((*found.faults, *found.answered)))
        return CommandOutput(lines or "No MCP servers to check.", ok=not found.faults)

    async def _reload(self, name: str) -> CommandOutput:
        admin = self._admin()
        if not name:
            return await self._list("")
        row = await admin.start(name, again=True)
        return CommandOutput(sanitise(describe(row)))

    async def _login(self, name: str) -> CommandOutput:
        if not name:
            return misuse("Use /mcp login NAME.")
        return CommandOutput(
            f"A token is typed at the shell, where no conversation keeps it: codewhale mcp login {name}"
        )
