"""/memory: the person's facts, what waits to become one, and how they go away again."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Protocol

from msgspec.structs import replace

from codewhale.commands.base import CommandContext, command, misuse
from codewhale.lib.text import counted, one_line
from codewhale.memory.doctor import MemoryDoctor, fault_lines
from codewhale.memory.layers import MemoryRefused
from codewhale.memory.model import Fact, FactScope, FoundFact
from codewhale.memory.originals import plan_lines
from codewhale.memory.promote import answer, promote
from codewhale.memory.sent import has_expired
from codewhale.memory.service import Memory
from codewhale.memory.user_layer import fact_items
from codewhale.protocol.errors import CodeWhaleError
from codewhale.protocol.memory import MemoryItem
from codewhale.protocol.ops import CommandOutput
from codewhale.protocol.views import SessionSummary

MOST_SHOWN = 200
MOST_SESSIONS = 20
_SCOPES = ("workspace", "global")
_ADD = "Use /memory add TEXT, or /memory add global TEXT for all workspaces."
_CLEAR = (
    "Use /memory clear ID..., /memory clear workspace, global or all; add `yes` to do it, `sessions` to also remove "
)
_CLEAR += "the session logs that hold the facts."
_EMPTY = "No facts. `# TEXT` in the composer stores one, and so does /memory add TEXT."

Run = Callable[[str, CommandContext], Awaitable[CommandOutput]]


class Clearer(Protocol):
    """What follows when facts are cleared."""

    def forget(self, texts: Sequence[str]) -> None: ...
    def holding(self, texts: Sequence[str]) -> tuple[SessionSummary, ...]: ...
    def remove(self, texts: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]: ...


class MemoryCommand:
    """/memory. `hide` is a text without the secrets in it; `more` are sub-commands that stand elsewhere."""

    def __init__(
        self,
        memory: Memory,
        clearer: Clearer,
        doctor: Callable[[str], MemoryDoctor],
        hide: Callable[[str], str],
        more: Mapping[str, Run],
    ) -> None:
        self._memory = memory
        self._clearer = clearer
        self._doctor = doctor
        self._hide = hide
        self._verbs: dict[str, Run] = {
            "add": self._add,
            "edit": self._edit,
            "search": self._search,
            "clear": self._clear,
            "restore": self._restore,
            "doctor": self._examine,
            "promote": self._promote,
            **more,
        }

    @command("/memory", "[add|edit|search|clear|restore|waiting|take|drop|doctor|promote ...]")
    async def memory(self, args: str, context: CommandContext) -> CommandOutput:
        """Show the facts you want remembered; add, edit, search, clear, check or promote them; decide on proposals."""
        verb, _, rest = args.partition(" ")
        try:
            if not verb:
                return await self._show(context)
            if verb not in self._verbs:
                return misuse(f"Unknown: {one_line(verb, 40)}. Use /memory, or /memory {' | '.join(self._verbs)}.")
            return await self._verbs[verb](rest.strip(), context)
        except MemoryRefused as error:
            return CommandOutput(str(error), ok=False)

    async def _show(self, context: CommandContext) -> CommandOutput:
        facts = await asyncio.to_thread(fact_items, self._memory, context.workspace)
        lines = [fact_row(fact, _unsent(fact)) for fact in facts[:MOST_SHOWN]]
        lines += [f"and {len(facts) - MOST_SHOWN:,} more; /memory search QUERY"] * (len(facts) > MOST_SHOWN)
        lines += [f"problem: {one_line(line, 300)}" for line in self._memory.problems(context.workspace)]
        return CommandOutput("\n".join(lines) or _EMPTY)

    async def _add(self, args: str, context: CommandContext) -> CommandOutput:
        scope, text = split_scope(args)
        if not text:
            return misuse(_ADD)
        fact = await asyncio.to_thread(self._memory.add, context.workspace, text, scope)
        others = await asyncio.to_thread(self._memory.contradicting, context.workspace, fact)
        lines = [f"Stored for {'all workspaces' if scope == 'global' else 'this workspace'}: {fact_row(fact)}"]
        lines += [f"It contradicts {fact_row(one)}" for one in others]
        lines += ["Only the newer one is sent until you decide: /memory clear ID removes one."] * bool(others)
        return CommandOutput("\n".join(lines))

    async def _edit(self, args: str, context: CommandContext) -> CommandOutput:
        name, _, text = args.partition(" ")
        if name in ("", *_SCOPES) and not text:
            path = self._memory.paths(context.workspace)["global" if name == "global" else "workspace"]
            return CommandOutput(f"Edit {path}; or use /memory edit ID TEXT.")
        if not text.strip():
            _, fact = await asyncio.to_thread(self._memory.find, context.workspace, name)
            return CommandOutput("Use /memory edit ID TEXT to change it.", draft=f"/memory edit {fact.id} {fact.text}")
        fact = await asyncio.to_thread(self._memory.change, context.workspace, name, text)
        return CommandOutput(f"Changed: {fact_row(fact)}")

    async def _search(self, args: str, context: CommandContext) -> CommandOutput:
        if not args:
            return misuse("Use /memory search QUERY.")
        rows = await asyncio.to_thread(self._memory.search, context.workspace, args, 20)
        lines = [fact_row(row.fact, _standing(row)) for row in rows]
        return CommandOutput("\n".join(lines) or f"Nothing for {one_line(args, 80)!r}.")

    async def _examine(self, args: str, context: CommandContext) -> CommandOutput:
        if args not in ("", "fix"):
            return misuse("Use /memory doctor, or /memory doctor fix to repair what is safe.")
        return await asyncio.to_thread(self._examined, context.workspace, args == "fix")

    def _examined(self, workspace: str, fix: bool) -> CommandOutput:
        doctor = self._doctor(workspace)
        lines = [f"plan   {line}" for line in plan_lines(doctor.plan())]
        lines += [f"fixed  {fault.code:<15} {fault.text}" for fault in (doctor.repair() if fix else ())]
        faults = doctor.examine()
        lines += fault_lines(faults)
        return CommandOutput("\n".join(lines), ok=all(fault.level != "error" for fault in faults))

    async def _promote(self, args: str, context: CommandContext) -> CommandOutput:
        if not args or " " in args:
            return misuse("Use /memory promote ID: a patch of one line for the nearest instruction file.")
        _, fact = await asyncio.to_thread(self._memory.find, context.workspace, args)
        made = await asyncio.to_thread(promote, fact, context.workspace, self._hide)
        return CommandOutput("\n".join([made.diff.rstrip("\n"), *answer(made)]))

    # ------------------------------------------------------------------ taking away

    async def _clear(self, args: str, context: CommandContext) -> CommandOutput:
        words = args.split()
        sure, sessions = "yes" in words, "sessions" in words
        names = [word for word in words if word not in ("yes", "sessions")]
        if not names:
            return misuse(_CLEAR)
        facts = await asyncio.to_thread(self._chosen, names, context.workspace)
        if not facts:
            return CommandOutput("There is nothing to clear.", ok=False)
        texts = tuple(fact.text for fact in facts)
        rows = await asyncio.to_thread(self._clearer.holding, texts)
        if not sure:
            listed = [f"To the trash, for 30 days: {fact_row(fact)}" for fact in facts[:MOST_SHOWN]]
            again = f"/memory clear {' '.join(names)}"
            asked = f"Nothing has changed yet. Use {again} yes to do it"
            more = f", or {again} sessions yes to also remove these session logs." if rows else "."
            return CommandOutput("\n".join([*listed, *_holding(rows), asked + more]))
        cleared = await asyncio.to_thread(self._memory.clear, context.workspace, facts)
        if not cleared:
            return CommandOutput("Nothing was cleared: those facts were removed meanwhile.", ok=False)
        lines = [f"Cleared: {fact_row(fact)}" for fact in cleared[:MOST_SHOWN]]
        try:
            self._clearer.forget(texts)
        except CodeWhaleError as error:
            lines.append(f"Kept answers to sub-queries may still say it; /context rlm-memo clear removes all. {error}")
        lines.append(f"Within 30 days /memory restore {cleared[0].id} takes it back.")
        if not sessions:
            return CommandOutput("\n".join([*lines, *_holding(rows)]))
        gone, kept = await asyncio.to_thread(self._clearer.remove, texts)
        lines += [f"Removed {counted(len(gone), 'session')}."] if gone else []
        lines += [f"Open, so kept: {', '.join(kept)}. Close them and use `codewhale sessions rm`."] if kept else []
        return CommandOutput("\n".join(lines))

    def _chosen(self, names: Sequence[str], workspace: str) -> tuple[Fact, ...]:
        facts = self._memory.facts(workspace)
        if "all" in names:
            return facts
        scoped = tuple(fact for fact in facts if fact.scope in names)
        ids = [name for name in names if name not in _SCOPES]
        return (*scoped, *(fact for name in ids for fact in self._memory.meant(workspace, name)))

    async def _restore(self, args: str, context: CommandContext) -> CommandOutput:
        if not args:
            rows = await asyncio.to_thread(self._memory.trashed)
            listed = (f"cleared {one.cleared[:10]}  {fact_row(replace(one.fact, id=one.name))}" for one in rows)
            return CommandOutput("\n".join(listed) or "The trash is empty.")
        fact = await asyncio.to_thread(self._memory.restore, args)
        return CommandOutput(f"Restored: {fact_row(fact)}")


def split_scope(args: str) -> tuple[FactScope, str]:
    """The scope that a line begins with, workspace where it names none, and the text."""
    scope, _, text = args.partition(" ")
    if scope == "global":
        return "global", text.strip()
    return "workspace", text.strip() if scope == "workspace" else args.strip()


def fact_row(fact: Fact | MemoryItem, more: str = "") -> str:
    """A fact in one line: id, scope, date, text, and where it came from where that is not the person."""
    date = fact.created[:10] or "no date"
    source = f"  (from {one_line(fact.source, 120)}{', not verified' if fact.tainted else ''})" if fact.source else ""
    return f"{fact.id}  {fact.scope:<9}  {date:<10}  {one_line(fact.text, 500)}{source}{more}"


def _standing(found: FoundFact) -> str:
    """Why a fact that was found does not hold, "" where it does."""
    if has_expired(found.fact):
        return f"  [expired {found.fact.expires}]"
    return f"  [superseded by {found.superseded}]" * bool(found.superseded)


def _unsent(fact: MemoryItem) -> str:
    why = f"expires {fact.expires}" if fact.expires else "too many, or said already"
    return f"  [not sent: {f'{fact.newer} is newer' if fact.newer else why}]" * fact.unsent


def _holding(rows: Sequence[SessionSummary]) -> list[str]:
    if not rows:
        return []
    named = [f"  {row.id}  {one_line(row.title, 60)}" for row in rows[:MOST_SESSIONS]]
    more = [f"  and {len(rows) - MOST_SESSIONS:,} more"] * (len(rows) > MOST_SESSIONS)
    return [f"What was sent before stands in the logs of {counted(len(rows), 'session')}:", *named, *more]
