"""Automations: durable tasks that begin by the clock. What changes one shows a person what may then run unasked."""

import asyncio
import contextlib
from collections.abc import Callable
from functools import partial
from typing import Annotated, Any, Literal, NoReturn, Protocol

import msgspec

from codewhale.automations.book import AutomationBook, Wanted
from codewhale.automations.recurrence import EXAMPLES, AutomationError, local_zone
from codewhale.lib.jsontext import pretty
from codewhale.lib.text import one_line
from codewhale.protocol.automations import MOST_AUTOMATIONS, AutomationRecord, AutomationView
from codewhale.protocol.blocks import Block, TableBlock
from codewhale.protocol.errors import CodeWhaleError, Corrected, Look, ToolError
from codewhale.protocol.tools import CallContext, Effect, Origin, Preview, ToolResult
from codewhale.tasks.model import PROMPT_LIMIT, TaskError, TaskSpec
from codewhale.tasks.rights import TaskRequest
from codewhale.tools.base import Args, Doc, tool

_CHANGES = {Effect.WRITES, Effect.EXECUTES}
_RULE = f"{EXAMPLES['HOURLY']} (elapsed hours, BYDAY may be added) or {EXAMPLES['WEEKLY']}."
_SUMMARY = 160
_CHANGEABLE = ("name", "prompt", "rrule", "timezone", "cwds", "status")
Named = Annotated[str, Doc("The id of an automation, or an unambiguous beginning of it.", min_length=1, max_length=100)]
Prompt = Annotated[
    str, Doc("The whole task of each run: it sees no conversation.", min_length=1, max_length=PROMPT_LIMIT)
]
Folders = Annotated[list[str], Doc("The one folder of this session to work in.", min_length=1, max_length=1)]
Rule = Annotated[str, Doc(f"When: {_RULE}", min_length=1, max_length=300)]
Zone = Annotated[str, Doc("Time zone of days and hours, as Europe/Berlin.", min_length=1, max_length=60)]
Title = Annotated[str, Doc("What to call it, one line.", min_length=1, max_length=200)]


class ScheduleRights(Protocol):
    """What a session may schedule."""

    def allowed(self, session: str, call: str) -> bool:
        """Whether a person has said yes to exactly this call."""

    def scheduled(self, session: str, request: TaskRequest) -> TaskSpec:
        """The task of each run, as far as the session may go now. Raises TaskError."""


class AutomationCreate(Args, frozen=True):
    """What to run, and when."""

    name: Title
    prompt: Prompt
    rrule: Rule
    timezone: Zone | None = None
    cwds: Folders | None = None
    paused: Annotated[bool, Doc("Make it, and let it wait.")] = False
    allow_shell: Annotated[bool, Doc("Its runs may call what runs programs (default false).")] = False
    auto_approve: Annotated[bool, Doc("Its runs do unasked what no rule asks about; the user must approve it.")] = True


class AutomationList(Args, frozen=True):
    """How many."""

    limit: Annotated[int, Doc("The newest, at most.", ge=1, le=MOST_AUTOMATIONS)] = 50


class AutomationNamed(Args, frozen=True):
    """Which one."""

    automation_id: Named


class AutomationUpdate(Args, frozen=True):
    """Which one, and what becomes of it."""

    automation_id: Named
    name: Title | None = None
    prompt: Prompt | None = None
    rrule: Rule | None = None
    timezone: Zone | None = None
    cwds: Folders | None = None
    status: Annotated[Literal["active", "paused"], Doc("Active begins from now.")] | None = None


class AutomationTools:
    """The tools of automations."""

    def __init__(self, book: AutomationBook, rights: ScheduleRights) -> None:
        self._book = book
        self._rights = rights

    @tool("automation_create", effects=_CHANGES)
    async def automation_create(self, args: AutomationCreate, call: CallContext) -> Preview:
        """Schedule a prompt: each run queues a durable task by itself, in the rights of this session, at most agent
        mode. Time that passed with nobody at work gives one run at most, which says how many were missed. Runs need an
        open terminal interface or `codewhale work`; automation_list says when there is none."""
        zone = args.timezone or local_zone()
        request = TaskRequest(
            args.prompt,
            workspace=(args.cwds or [""])[0],
            allow_shell=args.allow_shell,
            auto_approve=args.auto_approve,
        )
        moments = await self._asked(args, self._book.preview, args.name, args.rrule, zone)
        card = _card(args.name, args.prompt, f"{args.rrule} in {zone}", (args.cwds or [call.workspace])[0], args)
        card.insert(-1, ("first runs", "none while it is paused" if args.paused else ", ".join(moments)))

        def create() -> AutomationView:
            task = self._rights.scheduled(call.session, self._by_model(call, request))
            return self._book.create(args.name, args.rrule, zone, task, args.paused)

        return Preview(_table(card), partial(self._changed, args, create, "is made"))

    @tool("automation_list", effects={Effect.READS}, parallel=True, polls=True)
    async def automation_list(self, args: AutomationList, call: CallContext) -> ToolResult:
        """List automations, newest first: when, what, its next and last run, how many moments were missed, and whether
        anybody is there to run them."""
        board = await self._asked(args, self._book.board, args.limit)
        rows = [{**_object(view), "prompt": one_line(view.prompt, _SUMMARY)} for view in board.automations]
        said: dict[str, Any] = {"automations": rows, **({"notice": board.notice} if board.notice else {})}
        return _result(said if rows else {"summary": "There are no automations.", **said}, board.automations)

    @tool("automation_read", effects={Effect.READS}, parallel=True, polls=True)
    async def automation_read(self, args: AutomationNamed, call: CallContext) -> ToolResult:
        """Read an automation with its last 20 runs: the moment, the task, how that stands, what was missed before."""
        return _recorded(await self._asked(args, self._book.record, args.automation_id))

    @tool("automation_update", effects=_CHANGES)
    async def automation_update(self, args: AutomationUpdate, call: CallContext) -> Preview:
        """Change the name, prompt, rule, time zone, folder or status of an automation. A new rule begins from now."""
        view, task = await self._stands(args)
        if all(getattr(args, name) is None for name in _CHANGEABLE):
            raise ToolError(
                "missing_field",
                f"Nothing of {view.id} was to change. Give what is to be another: {', '.join(_CHANGEABLE)}.",
                field="name",
                expected="at least one of them",
                received="the id alone",
                fix=Look("automation_read", {"automation_id": view.id}),
            )
        zone = args.timezone or view.timezone
        rule = args.rrule or view.rrule
        moments = await self._asked(args, self._book.preview, args.name or view.name, rule, zone)
        where = (args.cwds or [view.workspace])[0]
        card = _card(args.name or view.name, args.prompt or view.prompt, f"{rule} in {zone}", where, view)
        paused = None if args.status is None else args.status == "paused"
        still = view.status == "paused" if paused is None else paused
        card.insert(-1, ("next runs", "none while it is paused" if still else ", ".join(moments)))

        def update() -> AutomationView:
            bounded = None
            if args.prompt is not None or args.cwds is not None:
                request = TaskRequest(
                    args.prompt or task.prompt,
                    workspace=where,
                    mode=task.mode,
                    allow_shell=task.allow_shell,
                    auto_approve=task.auto_approve,
                )
                bounded = self._rights.scheduled(call.session, self._by_model(call, request))
            wanted = Wanted(args.name, args.rrule, args.timezone, paused, bounded)
            return self._book.update(view.id, wanted)

        return Preview(_table(card), partial(self._changed, args, update, "is changed"))

    @tool("automation_pause", effects=_CHANGES)
    async def automation_pause(self, args: AutomationNamed, call: CallContext) -> Preview:
        """Let an automation wait: it does not run until it is resumed. What it has queued stays."""
        return await self._switch(args, paused=True)

    @tool("automation_resume", effects=_CHANGES)
    async def automation_resume(self, args: AutomationNamed, call: CallContext) -> Preview:
        """Let a paused automation run again from now on; what passed meanwhile is not made up for."""
        return await self._switch(args, paused=False)

    async def _switch(self, args: AutomationNamed, *, paused: bool) -> Preview:
        view, _ = await self._stands(args)
        update = partial(self._book.update, view.id, Wanted(paused=paused))
        return Preview(_shown(view), partial(self._changed, args, update, "is paused" if paused else "runs again"))

    @tool("automation_delete", effects=_CHANGES)
    async def automation_delete(self, args: AutomationNamed, call: CallContext) -> Preview:
        """Remove an automation. The tasks that it has queued stay."""
        name = await self._asked(args, self._book.resolve, args.automation_id)
        try:
            view, _ = await self._stands(AutomationNamed(name))
        except ToolError as error:  # what cannot be read can be removed all the same
            return Preview(_table([("id", name), ("status", one_line(error.message))]), partial(self._discard, args))
        return Preview(_shown(view), partial(self._changed, args, partial(self._book.delete, view.id), "is deleted"))

    async def _discard(self, args: AutomationNamed) -> ToolResult:
        name = await self._asked(args, self._book.discard, args.automation_id)
        return _result({"summary": f"{name} is deleted."}, ())

    @tool("automation_run", effects=_CHANGES)
    async def automation_run(self, args: AutomationNamed, call: CallContext) -> Preview:
        """Run an automation now, beside its schedule: queues a durable task like any other run."""
        view, _ = await self._stands(args)

        async def run() -> ToolResult:
            return _recorded(await self._asked(args, self._book.run, view.id, "model"))

        return Preview(_shown(view), run)

    # ------------------------------------------------------------------ what they share

    def _by_model(self, call: CallContext, request: TaskRequest) -> TaskRequest:
        return request.by_model(request.auto_approve and self._rights.allowed(call.session, call.call_id))

    async def _stands(self, args: AutomationNamed | AutomationUpdate) -> tuple[AutomationView, TaskSpec]:
        record = await self._asked(args, self._book.record, args.automation_id)
        return record.automation, await self._asked(args, self._book.task, record.automation.id)

    async def _changed(self, args: Args, change: Callable[[], AutomationView], how: str) -> ToolResult:
        view = await self._asked(args, change)
        notice = ""
        with contextlib.suppress(CodeWhaleError):  # it is done, whatever comes of this
            notice = (await asyncio.to_thread(self._book.board, 1)).notice
        said = {"summary": f"{view.id} {how}.", "automation": _object(view)}
        return _result({**said, "notice": notice} if notice else said, (view,))

    async def _asked(self, args: Args, ask: Callable[..., Any], *arguments: Any) -> Any:
        try:
            return await asyncio.to_thread(ask, *arguments)
        except CodeWhaleError as error:
            _refused(error, args)


def _object(view: AutomationView) -> dict[str, Any]:
    """An automation as models read it."""
    data: dict[str, Any] = msgspec.to_builtins(view)
    return {**data, "cwds": [data.pop("workspace")]}


def _recorded(record: AutomationRecord) -> ToolResult:
    said: dict[str, Any] = {
        "automation": _object(record.automation),
        "recent_runs": [msgspec.to_builtins(run) for run in record.recent_runs],
    }
    return _result({**said, "notice": record.notice} if record.notice else said, (record.automation,))


def _result(said: dict[str, Any], views: tuple[AutomationView, ...]) -> ToolResult:
    rows = tuple((view.id, view.status, one_line(view.name, 80), view.next_run_at) for view in views)
    shown = (TableBlock(("automation", "status", "", "next"), rows),) if rows else ()
    metadata = {"automations": [{"id": view.id, "status": view.status} for view in views]}
    return ToolResult(pretty(said), display=shown, metadata=metadata, origin=Origin.HARNESS)


def _card(
    name: str, prompt: str, when: str, where: str, rights: AutomationCreate | AutomationView
) -> list[tuple[str, str]]:
    """What a person is shown of an automation before they allow it; what they allow last, which the smallest screen
    shows."""
    unasked = "all that no rule asks about" if rights.auto_approve else "what rules allow"
    return [
        ("name", one_line(name, 100)),
        ("each run", one_line(prompt, 400)),
        ("when", one_line(when, 200)),
        ("folder", one_line(where, 200)),
        ("runs unasked", unasked if rights.allow_shell else f"{unasked}; no programs"),
    ]


def _shown(view: AutomationView) -> tuple[Block, ...]:
    rows = _card(view.name, view.prompt, f"{view.rrule} in {view.timezone}", view.workspace, view)
    return _table([("id", view.id), ("status", view.status), *rows])


def _table(rows: list[tuple[str, str]]) -> tuple[Block, ...]:
    return (TableBlock(("automation", ""), tuple(rows)),)


_WANTED = {
    "automation_id": "the id of an automation",
    "name": "one line",
    "prompt": "the task of each run in words",
    "rrule": f"a rule such as {EXAMPLES['WEEKLY']}",
    "timezone": "the name of a time zone",
    "cwds": "a folder of this session",
}


def _refused(error: CodeWhaleError, args: Args) -> NoReturn:
    """Raises the error as a model is told of it, with a call that works where there is one."""
    if not isinstance(error, TaskError):
        raise ToolError("not_available", str(error)) from error
    field, text = (
        ("cwds", str(error).replace("`workspace`", "`cwds`"))
        if error.field == "workspace"
        else (error.field, str(error))
    )
    fix: Corrected | None = None
    if field == "automation_id":
        fix = Corrected({field: error.better}) if isinstance(error, AutomationError) and error.better else None
    elif field in ("auto_approve", "cwds"):
        own = ["."] if isinstance(args, AutomationUpdate) else None  # an update of nothing is none
        fix = Corrected({field: False if field == "auto_approve" else own}, sure=True)
    elif isinstance(error, AutomationError) and error.better:
        fix = Corrected({field: error.better}, sure=True)
    given = getattr(args, field, None) if field else None
    refused = ToolError(
        "permission_denied" if field in ("auto_approve", "mode") else "invalid_input",
        text,
        field=field,
        expected=_WANTED.get(field, ""),
        received="" if given is None else one_line(str(given), 100),
        fix=fix,
    )
    refused.look = Look("automation_list", {}) if field == "automation_id" else None
    raise refused from error
