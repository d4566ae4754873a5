"""/mcp: the MCP servers of a workspace: look, add, approve, switch, check, start."""

import asyncio
import shlex
from collections.abc import Awaitable, Callable, Iterator, Sequence

from codewhale.commands.base import CommandContext, OwnCommand, OwnCommands, command, misuse
from codewhale.lib.text import fenced, one_line, sanitise
from codewhale.mcp.admin import McpAdmin, describe, shown
from codewhale.mcp.calls import McpCalls
from codewhale.mcp.rows import bounded, wire_name
from codewhale.mcp.terms import OfferedPrompt
from codewhale.mcp.typed import typed_entry
from codewhale.protocol.errors import CodeWhaleError, ConfigError, ToolError
from codewhale.protocol.ops import CommandOutput, SendMessage
from codewhale.protocol.requests import Do

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


class PromptCommands:
    """The commands of `files`, and each prompt of a server as one, `/mcp_<server>_<prompt>`: what it says is sent, as
    somebody else's text. `calls()` are those of the servers, None where none is named."""

    def __init__(self, files: OwnCommands, calls: Callable[[], McpCalls | None], submit: Do) -> None:
        self._files = files
        self._calls = calls
        self._submit = submit

    def specs(self, workspace: str) -> Sequence[OwnCommand]:
        """All of them, those from files first."""
        return [*self._files.specs(workspace), *(spec for spec, _, _ in self._prompts())]

    async def run(self, name: str, args: str, context: CommandContext) -> CommandOutput | None:
        """Send what a prompt says, filled in."""
        output = await self._files.run(name, args, context)
        found = next(((server, one) for spec, server, one in self._prompts() if spec.name == name), None)
        calls = self._calls()
        if output is not None or found is None or calls is None:
            return output
        server, prompt = found
        try:
            given = filled(prompt, args)
            text = (await calls.prompt_text(context.session, server, prompt.name, given)).content
            said = f"Do what the prompt {prompt.name} of the MCP server {server} says, which I have asked for."
            await self._submit(SendMessage(context.session, said, context=text))
        except ToolError as error:
            return CommandOutput(f"{name} was not sent: {error.message}", ok=False)
        except (CodeWhaleError, ValueError) as error:
            return CommandOutput(f"{name} was not sent: {error}", ok=False)
        return CommandOutput(f"Sent the prompt {one_line(prompt.name, 80)} of {server}.", turn=True)

    def _prompts(self) -> Iterator[tuple[OwnCommand, str, OfferedPrompt]]:
        calls = self._calls()
        for server in () if calls is None else calls.service.usable():
            known = calls.service.offered(server) if calls is not None else None
            for one in () if known is None else known.offer.prompts:
                usage = " ".join(f"{name}=" if needed else f"[{name}=]" for name, _, needed in one.arguments)
                about = f"{bounded(one.description, 120)} (MCP server {server})"
                name = "/" + wire_name(server, one.name)
                yield OwnCommand(name, bounded(usage, 60), about, f"MCP server {server}"), server, one


def filled(prompt: OfferedPrompt, args: str) -> dict[str, str]:
    """The arguments of a prompt: NAME=VALUE, and the others in their order. Raises ValueError."""
    names = [name for name, _, _ in prompt.arguments]
    given: dict[str, str] = {}
    for word in shlex.split(args):
        name, equals, value = word.partition("=")
        if equals and name in names:
            given[name] = value
            continue
        left = [name for name in names if name not in given]
        if not left:
            raise ValueError(f"{one_line(word, 60)} is one argument too many; it takes {', '.join(names) or 'none'}")
        given[left[0]] = word
    missing = [name for name, _, needed in prompt.arguments if needed and name not in given]
    if missing:
        raise ValueError(f"{missing[0]} is missing; it takes {', '.join(names)}")
    return given
