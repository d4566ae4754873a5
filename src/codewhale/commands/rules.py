"""/rules: what the model is told of how to work here and what of it is held, from where, when, and for which path."""

import asyncio
import os

from msgspec import Struct

from codewhale.commands.base import CommandContext, command, misuse, told
from codewhale.lib.text import one_line
from codewhale.permissions.constitution import FoundLaw, read_constitution
from codewhale.permissions.paths import beneath, matches
from codewhale.permissions.trust import TrustStore
from codewhale.protocol.decisions import Clause
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


class LawRow(Struct, frozen=True):
    """A clause of the constitution: what it says, and what CodeWhale does by it ("" where it is only told)."""

    id: str
    text: str
    held: str = ""


class RulesView(Struct, frozen=True):
    """The rules that are in use, and the clauses of the `constitution`, a file; those that apply to `path` where one
    was asked about; and why others are not used."""

    rules: tuple[RuleRow, ...]
    clauses: tuple[LawRow, ...] = ()
    constitution: str = ""
    not_used: tuple[str, ...] = ()
    path: str = ""


class RulesCommand:
    """/rules."""

    def __init__(self, rules: RuleStore, trust: TrustStore, control: SessionControl) -> None:
        self._rules = rules
        self._trust = trust
        self._control = control

    @command("/rules", "[json] | why PATH [json]")
    async def rules(self, args: str, context: CommandContext) -> CommandOutput:
        """List the rules here: from where, when they apply, and what CodeWhale holds; or those for one file."""
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
        law, left_out = self._law(context.workspace)
        clauses = [clause for clause in law.law.clauses if not path or _protects(clause, law.law.folder, path)]
        file = os.path.relpath(law.path, os.path.realpath(context.workspace)) if law.path else ""
        off = [f"{rule.path}: switched off; to use it: /skills on {rule.name}" for rule in found.off]
        not_used = () if path else tuple(one_line(line, 400) for line in (*off, *found.problems, *left_out))
        return RulesView(tuple(rows), tuple(map(_clause, clauses)), one_line(file), not_used, path)

    def _law(self, workspace: str) -> tuple[FoundLaw, list[str]]:
        """The constitution, and what of it is not used."""
        try:
            law = read_constitution(workspace, self._trust.holds)
        except ConfigError as error:
            return FoundLaw(), [str(error)]
        untrusted = [f"{path}: not trusted; to use it: codewhale trust add {path}" for path in law.untrusted]
        return law, [*untrusted, *law.law.notices]


def _protects(clause: Clause, folder: str, path: str) -> bool:
    """Whether a clause is held for a path below the workspace, which lies in `folder` of the constitution's."""
    placed = os.path.normpath(os.path.join(folder, path))
    return any(rule.path and matches(rule.path, placed) for rule in clause.rules)


def _clause(clause: Clause) -> LawRow:
    changed = (*clause.branches, *(rule.path for rule in clause.rules if rule.path))
    what = [f"changes of {one}" for one in changed] + [rule.shown for rule in clause.rules if not rule.path]
    verb = {"ask": "asks before", "deny": "blocks"}.get(clause.action, "")
    wanted = f"this must have succeeded before work counts as verified: {clause.command or clause.tool}"
    held = (f"{verb} {', '.join(what)}" if verb else wanted) if clause.held else ""
    return LawRow(clause.id, one_line(clause.text, 300), one_line(held, 300))


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
    if held := [f"  {row.id:<24} {row.held}  {row.text}".rstrip() for row in view.clauses if row.held]:
        parts.append("\n".join([f"Held by CodeWhale in every mode, from {view.constitution}:", *held]))
    if spoken := [f"  {row.id:<24} {row.text}" for row in view.clauses if not row.held]:
        parts.append("\n".join([f"Told to the model, from {view.constitution}:", *spoken]))
    if view.not_used:
        parts.append("\n".join(["Not used:", *(f"  {line}" for line in view.not_used)]))
    if not parts:
        return _NONE
    parts.append("What is only told can be missed by a model. Rules of your own that are held: /permissions.")
    return "\n\n".join(parts)


def _line(row: RuleRow) -> str:
    name = row.name or row.source
    detail = ", ".join(row.globs) if row.mode is Activation.GLOB else row.description
    return f"  {name:<24} {row.bytes:>7,} bytes  {detail}".rstrip() + _source(row)


def _source(row: RuleRow) -> str:
    return f"  ({row.program}: {row.source})" if row.name else ""


def _applying(view: RulesView) -> str:
    lines = []
    for row in view.rules:
        why = f"by the glob {row.glob}" if row.glob else "always"
        lines.append(f"  told  {row.name or row.source:<24} {why}{_source(row)}")
    lines += [f"  held  {row.id:<24} {row.held}  ({view.constitution})" for row in view.clauses]
    return "\n".join([f"Rules that apply to {view.path}:", *lines]) if lines else f"No rule applies to {view.path}."
