"""Work tracking: the checklist, the plan and the notes. The lists live in the `lists` store; each change is
handed to the engine as metadata, which logs it."""

import time
from collections.abc import Sequence
from typing import Annotated, Any

import msgspec
from msgspec import Struct

from codewhale.lib.clock import rfc3339
from codewhale.lib.jsontext import pretty
from codewhale.protocol.blocks import ChecklistBlock
from codewhale.protocol.errors import Look, ToolError
from codewhale.protocol.modes import Mode
from codewhale.protocol.tools import CallContext, Effect, ListUpdate, Origin, PathSubject, ToolResult
from codewhale.services.notes import NOTES_PATH, append_note
from codewhale.session.lists import ListItem, Lists
from codewhale.tools.base import Args, Doc, tool

STATUSES = ("pending", "in_progress", "completed")
_ALIASES = {"inprogress": "in_progress", "done": "completed"}
_ENUM = {"enum": list(STATUSES)}

Status = Annotated[str, Doc("pending, in_progress or completed.", extra_json_schema=_ENUM)]


class Todo(Struct, frozen=True, forbid_unknown_fields=True):
    """One item."""

    content: Annotated[str, Doc("What is to be done, one short line.", min_length=1, max_length=1000)]
    status: Status | None = None


class ChecklistWrite(Args, frozen=True):
    """A whole checklist."""

    todos: Annotated[list[Todo], Doc("The whole list in order; it replaces the former one.", max_length=100)]


class ChecklistAdd(Args, frozen=True):
    """A new item."""

    content: Annotated[str, Doc("What is to be done, one short line.", min_length=1, max_length=1000)]
    status: Status | None = None


class ChecklistUpdate(Args, frozen=True):
    """An item and what it becomes."""

    id: Annotated[int, Doc("The item's id, as the checklist shows it.")]
    status: Status


class ChecklistList(Args, frozen=True):
    """Nothing."""


class PlanStep(Struct, frozen=True, forbid_unknown_fields=True):
    """One step."""

    step: Annotated[str, Doc("The step, one short line.", min_length=1, max_length=1000)]
    status: Status


class UpdatePlan(Args, frozen=True):
    """A whole plan."""

    plan: Annotated[list[PlanStep], Doc("All steps in order.", min_length=1, max_length=100)]
    explanation: Annotated[str, Doc("Why the plan is so, or why it changed.", max_length=4000)] | None = None


class Note(Args, frozen=True):
    """A note."""

    content: Annotated[str, Doc("The text to keep, Markdown.", min_length=1, max_length=20_000)]


class WorkTools:
    """The tools that keep track of work."""

    def __init__(self, lists: Lists) -> None:
        self._lists = lists

    @tool("checklist_write", effects=())
    async def checklist_write(self, args: ChecklistWrite, call: CallContext) -> ToolResult:
        """Write the checklist of this task: the steps you will take and how far each is. Use it for work of three
        steps or more, before you begin and whenever a step starts or ends; send the whole list each time. At most
        one is in_progress (of several the last). Ids count from 1. Returns the list as JSON: items,
        completion_pct, in_progress_id.
        """
        items: list[ListItem] = []
        for i, todo in enumerate(args.todos):
            content = _content(todo.content, f"todos[{i}].content")
            items.append({"id": i + 1, "content": content, "status": _status(todo.status, f"todos[{i}].status")})
        current = [item["id"] for item in items if item["status"] == "in_progress"]
        return self._store(call, _with_one_current(items, current[-1] if current else None), "Checklist written")

    @tool("checklist_add", effects=())
    async def checklist_add(self, args: ChecklistAdd, call: CallContext) -> ToolResult:
        """Add one item at the end of the checklist; status is pending unless given. An item added as in_progress
        sets the current one back to pending. Returns the whole list as JSON with the new id.
        """
        content, status = _content(args.content, "content"), _status(args.status, "status")
        items = self._lists.get(call.session, "checklist")
        number = max((item["id"] for item in items), default=0) + 1
        current = number if status == "in_progress" else _current(items)
        items = (*items, {"id": number, "content": content, "status": status})
        return self._store(call, _with_one_current(items, current), f"Item {number} added")

    @tool("checklist_update", effects=())
    async def checklist_update(self, args: ChecklistUpdate, call: CallContext) -> ToolResult:
        """Set the status of one checklist item by its id. Setting an item in_progress sets the one that was back
        to pending. Returns the whole list as JSON; an unknown id changes nothing and lists the ids there are.
        """
        status = _status(args.status, "status")
        items = self._lists.get(call.session, "checklist")
        if all(item["id"] != args.id for item in items):
            there = ", ".join(f"{item['id']} ({item['content']})" for item in items)
            text = f"There is no checklist item {args.id}; nothing was changed. "
            text += f"The items are: {there}." if there else "The checklist is empty: write one with checklist_write."
            return ToolResult(text, ok=False, origin=Origin.HARNESS)
        changed: list[ListItem] = [{**item, "status": status} if item["id"] == args.id else item for item in items]
        current = args.id if status == "in_progress" else _current(changed)
        return self._store(call, _with_one_current(changed, current), f"Item {args.id} is {status}")

    @tool("checklist_list", effects=())
    async def checklist_list(self, args: ChecklistList, call: CallContext) -> ToolResult:
        """Show the checklist of this task as JSON: items with id, content and status, completion_pct and
        in_progress_id. Takes no arguments.
        """
        items = self._lists.get(call.session, "checklist")
        return _show(items, "Checklist" if items else "The checklist is empty", {})

    @tool("update_plan", effects=())
    async def update_plan(self, args: UpdatePlan, call: CallContext) -> ToolResult:
        """Record the strategy of a larger task: its phases in order with their status. Optional; for the steps at
        hand use checklist_write. Send all steps each time. At most one may be in_progress (if several are, the
        first stays so). In plan mode this hands the finished plan to the person and ends your turn. Returns
        counts and JSON: explanation, items.
        """
        items: list[ListItem] = []
        for i, step in enumerate(args.plan):
            status = _status(step.status, f"plan[{i}].status")
            if status == "in_progress" and any(item["status"] == status for item in items):
                status = "pending"
            items.append({"step": _content(step.step, f"plan[{i}].step"), "status": status})
        self._lists.set(call.session, "plan", items)
        counts = ", ".join(f"{_count(items, status)} {status}" for status in STATUSES)
        explanation = args.explanation or ""
        update = {"explanation": explanation, "items": items}
        return ToolResult(
            f"Plan updated: {len(items)} steps ({counts}).\n{pretty(update)}",
            display=(ChecklistBlock(tuple((item["status"], item["step"]) for item in items)),),
            metadata={"task_updates": {"plan": {**update, "updated_at": _now()}}},
            origin=Origin.HARNESS,
            end_turn=call.mode is Mode.PLAN,
            updates=(ListUpdate("plan", tuple(map(dict, items)), explanation),),
        )

    @tool("note", effects={Effect.WRITES}, subjects=lambda args: (PathSubject(NOTES_PATH, write=True),))
    async def note(self, args: Note, call: CallContext) -> ToolResult:
        """Add a note at the end of .codewhale/notes.md in the workspace: a decision, a finding or a warning that
        later sessions should know. Not for progress (use checklist_write) and not for the answer to the person.
        The file holds up to 1 MiB; read it with read_file.
        """
        text = _content(args.content, "content")
        try:
            change = append_note(call.workspace, text)
        except OSError as error:
            reason = error.strerror or str(error)
            raise ToolError(
                "execution_failed",
                f"The note was not written: {reason}. {NOTES_PATH} must be a plain file in a plain folder of the "
                "workspace, up to 1 MiB. Keep the point in the checklist, or tell the user.",
                field="content",
                expected=f"a writable {NOTES_PATH}",
                received=reason,
            ) from error
        return ToolResult(
            f"Noted at the end of {NOTES_PATH} ({len(text.encode('utf-8', 'replace'))} bytes).",
            metadata={"path": NOTES_PATH},
            origin=Origin.HARNESS,
            changes=(change,),
        )

    def _store(self, call: CallContext, items: list[ListItem], sentence: str) -> ToolResult:
        self._lists.set(call.session, "checklist", items)
        update = {**_checklist(items), "updated_at": _now()}
        shown = _show(items, sentence, {"task_updates": {"checklist": update}})
        return msgspec.structs.replace(shown, updates=(ListUpdate("checklist", tuple(map(dict, items))),))


def _show(items: Sequence[ListItem], sentence: str, metadata: dict[str, Any]) -> ToolResult:
    done = _count(items, "completed")
    return ToolResult(
        f"{sentence}: {done} of {len(items)} completed.\n{pretty(_checklist(items))}",
        display=(ChecklistBlock(tuple((item["status"], item["content"]) for item in items)),),
        metadata=metadata,
        origin=Origin.HARNESS,
    )


def _checklist(items: Sequence[ListItem]) -> dict[str, Any]:
    percent = _count(items, "completed") * 100 // len(items) if items else 0
    return {"items": list(items), "completion_pct": percent, "in_progress_id": _current(items)}


def _count(items: Sequence[ListItem], status: str) -> int:
    return sum(item["status"] == status for item in items)


def _current(items: Sequence[ListItem]) -> int | None:
    return next((item["id"] for item in items if item["status"] == "in_progress"), None)


def _with_one_current(items: Sequence[ListItem], current: int | None) -> list[ListItem]:
    """The items with no other than `current` in progress."""
    return [
        {**item, "status": "pending"} if item["status"] == "in_progress" and item["id"] != current else item
        for item in items
    ]


def _content(text: str, field: str) -> str:
    if text.strip():
        return text.strip()
    raise _refusal(f"`{field}` must say something; it is blank.", field, "text that is not blank", repr(text))


def _status(status: str | None, field: str) -> str:
    word = (status or "pending").strip().lower().replace("-", "_").replace(" ", "_")
    word = _ALIASES.get(word, word)
    if word in STATUSES:
        return word
    wanted = "one of pending, in_progress, completed"
    text = f"`{field}` must be {wanted}; got {status!r}. Nothing was changed."
    raise _refusal(text, field, wanted, repr(status))


def _refusal(message: str, field: str, expected: str, received: str) -> ToolError:
    look = Look("checklist_list", {})
    return ToolError("invalid_input", message, field=field, expected=expected, received=received, fix=look)


def _now() -> str:
    return rfc3339(time.time())
