"""/rules: what is told to the model of how to work here, from where, when, and which of it is for a path."""

import asyncio
import os

from msgspec import Struct

from codewhale.commands.base import CommandContext, command, misuse, told
from codewhale.lib.text import one_line
from codewhale.permissions.paths import beneath
from codewhale.protocol.errors import ConfigError
from codewhale.protocol.ops import CommandOutput
from codewhale.protocol.ports import SessionControl
from codewhale.skills.globs import matching_glob
from codewhale.skills.model import Activation, Skill
from codewhale.skills.rules import RuleStore

_WHEN = {
    Activation.ALWAYS: "Told to the model at the start of each session",
    Activation.GLOB: "Told to the model when a file that matches is read, changed, found or named",
    Activation.MODEL: "Offered to the model by their description",
    Activation.MANUAL: "Used only when you name them: $NAME in a message, or /skill NAME",
}
_NONE = (
    "No rules. Write them to AGENTS.md, or to files in .codewhale/rules; those of Cursor, Windsurf, Cline, Claude and "
    "Copilot are read too."
)


class RuleRow(Struct, frozen=True):
    """A rule: its file, whose format it has, when it applies, and by which globs; `glob` is the one that matches the
    path that was asked about."""

    source: str
    program: str
    mode: Activation
    bytes: int
    name: str = ""
    globs: tuple[str, ...] = ()
    glob: str = ""
    description: str = ""


class RulesView(Struct, frozen=True):
    """The rules that are in use, those that apply to `path` where one was asked about, and why others are not."""

    rules: tuple[RuleRow, ...]
    not_used: tuple[str, ...] = ()
    path: str = ""


class RulesCommand:
    """/rules."""

    def __init__(self, rules: RuleStore, control: SessionControl) -> None:
        self._rules = rules
        self._control = control

    @command("/rules", "[json] | why PATH [json]")
    async def rules(self, args: str, context: CommandContext) -> CommandOutput:
        """List the rules that the model is given here, with source and mode; or those that apply to a file."""
        asked, _, path = args.partition(" ")
        how = "json" if args == "json" else ""
        if asked == "why" and path.endswith(" json"):
            path, how = path.removesuffix(" json"), "json"
        if (asked == "why") != bool(path.strip()) or asked not in ("", "json", "why"):
            return misuse("Use /rules, /rules json, or /rules why PATH.")
        below = beneath(os.path.expanduser(path.strip()), context.workspace) if path else ""
        if below is None:
            return misuse(f"{one_line(path, 200)} is outside the workspace; rules apply to files in it.")
        try:
            view = await asyncio.to_thread(self._view, context, below)
        except ConfigError as error:
            return CommandOutput(str(error), ok=False)
        return told("/rules", how, view, _applying if below else _listed)

    def _view(self, context: CommandContext, path: str) -> RulesView:
        chain = self._control.status(context.session).instructions
        rows = [RuleRow(one_line(name), "AGENTS.md", Activation.ALWAYS, size) for name, size in chain]
        found = self._rules.of(context.workspace)
        for rule in found.skills:
            glob = matching_glob(rule, context.workspace, path) if path else ""
            if not path or glob or rule.activation is Activation.ALWAYS:
                rows.append(_row(rule, glob))
        return RulesView(tuple(rows), () if path else tuple(one_line(line, 400) for line in found.problems), path)


def _row(rule: Skill, glob: str) -> RuleRow:
    return RuleRow(
        rule.path,
        rule.program,
        rule.activation,
        rule.size,
        rule.name,
        rule.globs,
        glob,
        one_line(rule.description, 120),
    )


def _listed(view: RulesView) -> str:
    parts = []
    for mode, when in _WHEN.items():
        if lines := [_line(row) for row in view.rules if row.mode is mode]:
            parts.append("\n".join([f"{when}:", *lines]))
    if view.not_used:
        parts.append("\n".join(["Not used:", *(f"  {line}" for line in view.not_used)]))
    if not parts:
        return _NONE
    parts.append("These are words to the model. What is held whatever the model does: /permissions.")
    return "\n\n".join(parts)


def _line(row: RuleRow) -> str:
    name = row.name or row.source
    detail = ", ".join(row.globs) if row.mode is Activation.GLOB else row.description
    source = "" if name == row.source else f"  ({row.program}: {row.source})"
    return f"  {name:<24} {row.bytes:>7,} bytes  {detail}".rstrip() + source


def _applying(view: RulesView) -> str:
    lines = [f"Rules that apply to {view.path}:"]
    for row in view.rules:
        why = f"by the glob {row.glob}" if row.glob else "always"
        lines.append(f"  {row.name or row.source:<24} {why}  ({row.program}: {row.source})")
    return "\n".join(lines) if view.rules else f"No rule applies to {view.path}."
