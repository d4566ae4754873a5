"""Durable tasks: work that outlives the window it was given in."""

import asyncio
import contextlib
from typing import Annotated, Any, Literal, NoReturn, Protocol

import msgspec

from codewhale.lib.jsontext import pretty
from codewhale.lib.text import one_line
from codewhale.protocol.blocks import Block, TableBlock
from codewhale.protocol.errors import CodeWhaleError, Corrected, ErrorKind, Look, ToolError
from codewhale.protocol.modes import Mode
from codewhale.protocol.tasks import MOST_TASKS, TaskBoard, TaskRecord, TaskView
from codewhale.protocol.tools import CallContext, Effect, Origin, ToolResult
from codewhale.tasks.model import PROMPT_LIMIT, TaskError
from codewhale.tasks.rights import TaskRequest
from codewhale.tasks.shown import record_object, task_object
from codewhale.tools.base import Args, Doc, outlined, tool

_SUMMARY = 160
_CHANGES = {Effect.WRITES, Effect.EXECUTES}
_ALLOWED = ("auto_approve", "on_death", "mode")
_EXPECTED = {
    "auto_approve": "false, or a person's yes to this call",
    "mode": "no more than this session's mode",
    "model": "the name of a model of this provider",
    "on_death": "ask, or a person's yes to this call",
    "prompt": "the task in words",
    "task_id": "the id of a task, or a beginning that one alone has",
    "workspace": "a folder of this session",
}
TaskName = Annotated[str, Doc("The id of a task, or an unambiguous beginning of it.", min_length=1, max_length=100)]


class Tasks(Protocol):
    """The tasks of an application."""

    def plan(self, session: str, request: TaskRequest) -> TaskView: ...
    def allowed(self, session: str, call: str) -> bool:
        """Whether a person has said yes to exactly this call."""

    async def board(self, most: int) -> TaskBoard: ...
    async def record(self, task: str) -> TaskRecord: ...
    async def cancel(self, task: str) -> TaskView: ...


class TaskCreate(Args, frozen=True):
    """What a task is to do, and what it may."""

    prompt: Annotated[
        str, Doc("The whole task: it sees nothing of this conversation.", min_length=1, max_length=PROMPT_LIMIT)
    ]
    model: Annotated[str, Doc("Another model of the same provider.")] | None = None
    workspace: Annotated[str, Doc("A folder of this session; default its workspace.")] | None = None
    mode: Annotated[Literal["plan", "agent", "yolo"], Doc("At most this session's.")] | None = None
    allow_shell: Annotated[bool, Doc("May call what runs programs (default true).")] | None = None
    trust_mode: Annotated[bool, Doc("May use the folders added to this session too.")] | None = None
    auto_approve: Annotated[bool, Doc("Runs what no rule asks about unasked; the user must approve it.")] = False
    on_death: (
        Annotated[Literal["ask", "resume"], Doc("When its process dies: wait, or go on; resume must be approved.")]
        | None
    ) = None


class TaskList(Args, frozen=True):
    """How many."""

    limit: Annotated[int, Doc("The newest, at most.", ge=1, le=MOST_TASKS)] = 20


class TaskNamed(Args, frozen=True):
    """Which task."""

    task_id: TaskName


def _card(args: TaskCreate, workspace: str) -> tuple[Block, ...]:
    """What a person is shown of a task before they allow it."""
    unasked = "all that no rule asks about" if args.auto_approve else "what rules allow"
    rows = [
        ("task", one_line(args.prompt, 400)),
        ("folder", args.workspace or workspace),
        ("mode", args.mode or "as this session, agent at most"),
        ("when its process dies", "goes on by itself" if args.on_death == "resume" else "waits for you"),
        ("runs unasked", unasked if args.allow_shell is not False else f"{unasked}; no programs"),
    ]
    return (TableBlock(("durable task", ""), tuple(rows)),)


class TaskTools:
    """The tools of durable tasks."""

    def __init__(self, tasks: Tasks) -> None:
        self._tasks = tasks

    @outlined(_card)
    @tool("task_create", effects=_CHANGES)
    async def task_create(self, args: TaskCreate, call: CallContext) -> ToolResult:
        """Queue a durable task: a conversation of its own that goes on when this one ends, run by whoever works at
        tasks. For long work that nobody waits for; agent_open is for what you wait for. Returns its id at once.
        """
        request = TaskRequest(
            args.prompt,
            workspace=args.workspace or "",
            mode=None if args.mode is None else Mode(args.mode),
            model=args.model or "",
            allow_shell=args.allow_shell is not False,
            trust_mode=args.trust_mode or False,
            auto_approve=args.auto_approve,
            on_death=args.on_death or "ask",
        )
        try:
            view = await asyncio.to_thread(self._add, call, request)
        except CodeWhaleError as error:
            _refused(error, "task_create", msgspec.to_builtins(args))
        notice = ""
        with contextlib.suppress(CodeWhaleError):  # it is made, whatever comes of this
            notice = (await self._tasks.board(1)).notice
        said = {"summary": f"{view.id} is queued.", "task": task_object(view)}
        return _result({"task_id": view.id, **said, **({"notice": notice} if notice else {})}, (view,))

    def _add(self, call: CallContext, request: TaskRequest) -> TaskView:
        asks = request.auto_approve or request.on_death == "resume"
        allowed = asks and self._tasks.allowed(call.session, call.call_id)
        return self._tasks.plan(call.session, request.by_model(allowed))

    @tool("task_list", effects={Effect.READS}, parallel=True, polls=True)
    async def task_list(self, args: TaskList, call: CallContext) -> ToolResult:
        """List durable tasks, newest first, with status, times and the ids of their sessions."""
        try:
            board = await self._tasks.board(args.limit)
        except CodeWhaleError as error:
            _refused(error, "task_list", {})
        counts = ", ".join(f"{count} {state}" for state, count in sorted(board.counts.items()))
        rows = [{**task_object(view), "prompt_summary": one_line(view.prompt, _SUMMARY)} for view in board.tasks]
        for row in rows:
            row.pop("prompt")
        said: dict[str, Any] = {"summary": counts or "There are no tasks.", "tasks": rows, "workers": board.workers}
        return _result({**said, "notice": board.notice} if board.notice else said, board.tasks)

    @tool("task_read", effects={Effect.READS}, parallel=True, polls=True)
    async def task_read(self, args: TaskNamed, call: CallContext) -> ToolResult:
        """Read a durable task: status, answer, its session, timeline, checklist, gates, artifacts and attempts."""
        try:
            record = await self._tasks.record(args.task_id)
        except CodeWhaleError as error:
            _refused(error, "task_read", {"task_id": args.task_id})
        return _result(record_object(record), (record.task,))

    @tool("task_cancel", effects=_CHANGES)
    async def task_cancel(self, args: TaskNamed, call: CallContext) -> ToolResult:
        """End a durable task: a queued one at once, a running one as soon as its worker hears of it. Its session
        stays.
        """
        try:
            view = await self._tasks.cancel(args.task_id)
        except CodeWhaleError as error:
            _refused(error, "task_cancel", {"task_id": args.task_id})
        done = "is cancelled" if view.status == "cancelled" else "will end as soon as its worker hears of it"
        return _result({"summary": f"{view.id} {done}.", "task": task_object(view)}, (view,))


def _result(said: dict[str, Any], views: tuple[TaskView, ...]) -> ToolResult:
    rows = tuple((view.id, view.status, one_line(view.prompt, 80), one_line(view.error, 120)) for view in views)
    shown = (TableBlock(("task", "status", "", ""), rows),) if rows else ()
    metadata = {"tasks": [{"id": view.id, "status": view.status} for view in views]}
    return ToolResult(pretty(said), display=shown, metadata=metadata, origin=Origin.HARNESS)


def _refused(error: CodeWhaleError, name: str, asked: dict[str, Any]) -> NoReturn:
    """Raises the error as a model is told of it, with a call that works."""
    if not isinstance(error, TaskError) or not error.field:
        raise ToolError("not_available", str(error), field="", expected="a journal", received=str(error)) from error
    field = error.field
    fix: Corrected | Look | None = None
    if field == "task_id":
        fix = Look("task_read", {field: error.task}) if error.task else Look("task_list", {})
        fix = Corrected({field: error.task}, sure=True) if error.task and name == "task_read" else fix
    elif field != "prompt":
        fix = Corrected({field: False if field == "auto_approve" else None}, sure=True)
    kind: ErrorKind = "permission_denied" if field in _ALLOWED else "invalid_input"
    raise ToolError(
        kind, str(error), field=field, expected=_EXPECTED[field], received=repr(asked.get(field))[:200], fix=fix
    ) from error
