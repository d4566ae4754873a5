"""Slash commands about what may run: the rows of the permissions, hosts among them, and what becomes of asks."""

import re

from codewhale.commands.base import CommandContext, command, misuse
from codewhale.permissions.prefixes import is_runner, offered, words
from codewhale.permissions.service import PermissionService
from codewhale.protocol.decisions import Rule
from codewhale.protocol.errors import CodeWhaleError
from codewhale.protocol.modes import Approval
from codewhale.protocol.ops import CommandOutput
from codewhale.protocol.ports import SessionControl

NO_UNDO = "Changes there cannot be undone with /undo."
_ACTIONS = ("allow", "ask", "deny")


class PermissionsCommands:
    """/permissions, /network, /approval, /add-dir."""

    def __init__(self, permits: PermissionService, control: SessionControl) -> None:
        self._permits = permits
        self._control = control

    @command("/permissions", "[list | allow|ask|deny COMMAND | remove ROW]")
    async def permissions(self, args: str, context: CommandContext) -> CommandOutput:
        """Show the permission rules, add one for commands that start with PREFIX, or remove one."""
        verb, _, rest = args.partition(" ")
        rest = rest.strip()
        if verb in ("", "list"):
            return self._listed(context)
        if verb == "remove":
            return self._removed(rest)
        if verb not in _ACTIONS or not rest:
            return misuse("Use /permissions allow|ask|deny COMMAND, or /permissions remove ROW.")
        return self._added(verb, rest, context)

    @command("/network", "[list | allow|ask|deny HOST]")
    async def network(self, args: str, context: CommandContext) -> CommandOutput:
        """Show the network rules, or add one: a host, or .host for all hosts below it."""
        verb, _, host = args.partition(" ")
        host = host.strip()
        if verb in ("", "list"):
            return self._listed(context, hosts=True)
        if verb not in _ACTIONS or not host or not all(char.isalnum() or char in ".-_:" for char in host):
            return misuse("Use /network allow|ask|deny HOST, such as example.com or .example.com.")
        return self._save(Rule(verb, host=host.casefold()))  # type: ignore[arg-type]

    @command("/approval", "[suggest|sandbox|auto|never]")
    async def approval(self, args: str, context: CommandContext) -> CommandOutput:
        """Show what happens to calls that no rule decides (ask, ask outside the sandbox, run or deny), or change it."""
        choices = "|".join(Approval)
        if not args:
            return CommandOutput(f"approval: {self._control.status(context.session).approval} (one of {choices})")
        if args not in list(Approval):
            return misuse(f"Unknown approval setting {args!r}; choose one of {choices}.")
        try:
            self._control.set_approval(context.session, Approval(args))
        except CodeWhaleError as error:
            return CommandOutput(str(error), ok=False)
        return CommandOutput(f"approval: {args}")

    @command("/add-dir", "[FOLDER | --remove FOLDER]")
    async def add_dir(self, args: str, context: CommandContext) -> CommandOutput:
        """Let this session read and change a folder beside the workspace, show those it may, or take one away."""
        removed = re.fullmatch(r"(?:--remove|remove)(?:\s+(.*))?", args)
        path = (removed[1] or "" if removed else args).strip().strip("\"'")
        if removed and not path:
            return CommandOutput("Name the folder: /add-dir --remove FOLDER.", ok=False)
        try:
            if removed and not self._control.set_folder(context.session, path, False):
                known = ", ".join(self._control.folders(context.session)) or "none"
                return CommandOutput(f"{path} is not an added folder. Added folders: {known}.", ok=False)
            if removed:
                return CommandOutput(f"Removed {path}: access there asks again.")
            if path:
                real = self._control.set_folder(context.session, path, True)
                text = f"Added {real} to this session: its files can be read, and changed as the mode allows. {NO_UNDO}"
                return CommandOutput(text)
        except CodeWhaleError as error:
            return CommandOutput(str(error), ok=False)
        rows = self._folders(context)
        return CommandOutput("\n".join(rows) or "No folders are added. Use /add-dir FOLDER.")

    def _folders(self, context: CommandContext) -> list[str]:
        return [f"{'session':<10} {'folder':<16} {path}" for path in self._control.folders(context.session)]

    def _listed(self, context: CommandContext, hosts: bool = False) -> CommandOutput:
        rules = self._permits.rules(context.session, context.workspace)
        lines = [_line(rule) for rule in rules if rule.host or not hosts]
        lines += self._folders(context) if not hosts else []
        return CommandOutput("\n".join(lines) or f"No rules{' about hosts' if hosts else ''} in {self._permits.path}.")

    def _added(self, verb: str, prefix: str, context: CommandContext) -> CommandOutput:
        if verb == "allow":
            try:
                said = words(prefix)
            except ValueError as error:
                return misuse(f"{prefix!r} cannot be a prefix: {error}.")
            if not offered(said):
                why = "runs any program" if is_runner(said[0]) else "is too broad to allow for good"
                text = f"{prefix!r} {why}. Name a longer prefix, such as git push, or write the row in {{}} yourself."
                return CommandOutput(text.format(self._permits.path), ok=False)
        workspace = context.workspace if verb == "allow" else ""
        return self._save(Rule(verb, command=prefix, workspace=workspace))  # type: ignore[arg-type]

    def _save(self, rule: Rule) -> CommandOutput:
        try:
            self._permits.add(rule)
        except CodeWhaleError as error:
            return CommandOutput(str(error), ok=False)
        return CommandOutput(f"Saved in {self._permits.path}: {_line(rule)}")

    def _removed(self, row: str) -> CommandOutput:
        if not row.isdecimal():
            return misuse("Name the row: /permissions remove ROW, as /permissions lists them.")
        try:
            return CommandOutput(f"Removed: {_line(self._permits.remove(int(row[:9])))}")
        except CodeWhaleError as error:
            return CommandOutput(str(error), ok=False)


def _line(rule: Rule) -> str:
    place = f"{rule.source} {rule.row}" if rule.row else rule.source
    where = f" in {rule.workspace}" if rule.workspace else ""
    return f"{place:<10} {rule.action:<16} {rule.shown}{where}"
