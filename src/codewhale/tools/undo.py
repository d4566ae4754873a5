"""Taking back what the agent itself did to files in its last turns. The undo service knows what that was."""

from functools import partial
from typing import Annotated, Any

from codewhale.lib.jsontext import pretty
from codewhale.protocol.blocks import Block, DiffBlock, MarkdownBlock
from codewhale.protocol.errors import Look, NextCall, ToolError
from codewhale.protocol.tools import CallContext, Effect, PathSubject, Preview, Subject, ToolResult
from codewhale.tools.base import Args, Doc, tool
from codewhale.workspace.patching import unified_diff
from codewhale.workspace.undo import Undo, UndoPlan, UndoRefusal, UndoTurn
from codewhale.workspace.undo.journal import SnapshotError
from codewhale.workspace.undo.render import MOST_LISTED, place, refusal_lines

MOST_TURNS = 50


class RevertTurn(Args, frozen=True):
    """How far back."""

    turn_offset: Annotated[
        int, Doc("How many turns that changed files to take back: 1 is the latest, this one included.", ge=1, le=50)
    ] = 1


def _writes(args: RevertTurn) -> tuple[Subject, ...]:
    return (PathSubject(".", write=True),)


class UndoTools:
    """The tool that takes changes back."""

    def __init__(self, undo: Undo) -> None:
        self._undo = undo

    @tool("revert_turn", effects={Effect.WRITES}, subjects=_writes)
    async def revert_turn(self, args: RevertTurn, call: CallContext) -> Preview:
        """Take back what your own edits and commands changed in files, by whole turns; the conversation stays. What
        people or other sessions changed is kept byte for byte: a place that they have touched since is left as it is
        and listed under conflicts. Ignored files, and what background commands changed later, are not restored. Returns
        JSON: restored, removed, conflicts. Read a restored file again before you edit it.
        """
        try:
            turns = (await self._undo.turns(call.session, call.workspace))[: args.turn_offset]
            if len(turns) < args.turn_offset:
                raise _too_far(args.turn_offset, len(turns))
            plan = await self._undo.plan(call.session, call.workspace, turns[-1].since)
            if not plan.files:
                raise _nothing(plan)
            shown = await self._undo.contents(plan)
        except SnapshotError as error:
            raise _unavailable(error) from error
        display: tuple[Block, ...] = tuple(
            DiffBlock(path, unified_diff(path, now, then) or "(its mode only)") for path, now, then in shown
        )
        notes = refusal_lines(plan.refused)
        if len(shown) < len(plan.files):
            notes.insert(0, f"{len(plan.files) - len(shown)} more files are restored or removed.")
        if notes:
            display += (MarkdownBlock("\n".join(notes)),)
        return Preview(display, partial(self._carry_out, plan, turns, display))

    async def _carry_out(self, plan: UndoPlan, turns: tuple[UndoTurn, ...], display: tuple[Block, ...]) -> ToolResult:
        try:
            done = await self._undo.carry_out(plan)
        except SnapshotError as error:
            raise _unavailable(error) from error
        facts: dict[str, Any] = {
            "turns": [turn.number for turn in turns],
            "restored": [change.path for change in done.changes if change.after is not None],
            "removed": [change.path for change in done.changes if change.after is None],
            "conflicts": [_conflict(refusal) for refusal in done.refused],
        }
        said = {key: value[:MOST_LISTED] for key, value in facts.items()}
        left = sum(len(value) for value in facts.values()) - sum(len(value) for value in said.values())
        if left:
            said["not_listed"] = left
        ok = bool(done.changes)
        return ToolResult(pretty(said), ok=ok, display=display, metadata=facts, changes=done.changes)


def _conflict(refusal: UndoRefusal) -> dict[str, Any]:
    return {"place": place(refusal), "path": refusal.path, "reason": refusal.reason}


def _too_far(wanted: int, there: int) -> ToolError:
    if not there:
        return ToolError(
            "execution_failed",
            "Nothing to undo: no turn of this session has file changes left to undo",
            field="turn_offset",
            expected="a turn that changed files",
            received=str(wanted),
        )
    return ToolError(
        "invalid_input",
        f"turn_offset {wanted} is too far back: only {there} turns of this session have changes left to undo",
        field="turn_offset",
        expected=f"1 to {there}",
        received=str(wanted),
        fix=NextCall("revert_turn", {"turn_offset": there}),
    )


def _nothing(plan: UndoPlan) -> ToolError:
    told = "; ".join(refusal_lines(plan.refused)) or "the files are already as they were before"
    path = next((refusal.path for refusal in plan.refused if refusal.path), "")
    return ToolError(
        "execution_failed",
        f"Nothing can be undone: {told}",
        field="turn_offset",
        expected="changes that nobody changed since",
        fix=Look("read_file", {"path": path}) if path else None,
    )


def _unavailable(error: SnapshotError) -> ToolError:
    return ToolError(
        "not_available",
        f"Changes cannot be undone here: {error}",
        expected="a journal of the changes that calls made",
    )
