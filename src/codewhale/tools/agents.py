"""Sub-agents: the tools' face of the ChildRunner port."""

from typing import Annotated, Any

from msgspec import Struct

from codewhale.lib.jsontext import pretty
from codewhale.lib.text import one_line
from codewhale.protocol.blocks import Block, TableBlock
from codewhale.protocol.children import READING_ROLES, ChildPlan, ChildRequest, ChildView
from codewhale.protocol.errors import Corrected, NextCall, ToolError
from codewhale.protocol.ports import ChildRunner
from codewhale.protocol.tools import CallContext, ChildSubject, Effect, Origin, Preview, ToolResult
from codewhale.tools.base import Args, Doc, gated, tool

LONGEST_WAIT = 120_000
_WAIT = 30_000
_ANSWER_LIMIT = 12_000
_ROLES = "general, explore, plan, review, implementer, verifier or custom"
Task = Annotated[str, Doc("The whole task: all that the sub-agent needs to know.", min_length=1, max_length=50_000)]
Name = Annotated[str, Doc("The sub-agent's name or agent id.", min_length=1, max_length=100)]


class AgentOpen(Args, frozen=True):
    """What a sub-agent is to do."""

    prompt: Task | None = None
    items: Annotated[list[str], Doc("In place of prompt: its parts.", min_length=1, max_length=50)] | None = None
    name: Annotated[str, Doc("A short name: letters, digits, _ . -")] | None = None
    role: Annotated[str, Doc(f"{_ROLES} (default general). explore, plan and review only read.")] | None = None
    allowed_tools: Annotated[list[str], Doc("The only tools it may call.", min_length=1, max_length=64)] | None = None
    model: Annotated[str, Doc("Another model of the same provider.")] | None = None
    cwd: Annotated[str, Doc("A folder of the workspace, or `worktree`: a checkout of its own.")] | None = None
    fork_context: Annotated[bool, Doc("Begin with this whole conversation instead of afresh.")] | None = None
    output_schema: (
        Annotated[dict[str, Any], Doc("A JSON Schema that its answer must fit.", extra_json_schema={"properties": {}})]
        | None
    ) = None


class ToolAgent(Args, frozen=True):
    """A short piece of work."""

    prompt: Task
    name: Annotated[str, Doc("A short name: letters, digits, _ . -")] | None = None
    allowed_tools: Annotated[list[str], Doc("The only tools it may call.", min_length=1, max_length=64)] | None = None


class AgentEval(Args, frozen=True):
    """Which sub-agent, and what of it."""

    name: Annotated[str, Doc("A name or agent id; left out: all of them.", min_length=1, max_length=100)] | None = None
    message: Annotated[str, Doc("Send this; one that is over goes on with it.", min_length=1)] | None = None
    interrupt: Annotated[bool, Doc("Stop what it does now, before the message.")] = False
    block: Annotated[bool, Doc("Wait until it is over (any of them without a name).")] = True
    timeout_ms: Annotated[int, Doc(f"How long to wait at most; {LONGEST_WAIT} is the longest.", ge=0)] = _WAIT


class AgentClose(Args, frozen=True):
    """Which sub-agent is not needed any more."""

    name: Name


def _opened(args: AgentOpen) -> tuple[ChildSubject, ...]:
    role = args.role or "general"
    reads = role.strip().lower().replace("-", "_").replace(" ", "_") in READING_ROLES
    effects = (Effect.READS,) if reads else tuple(Effect)
    return (ChildSubject(role, args.prompt or "\n".join(args.items or ()), effects),)


class _Look(Struct):
    """How a child stood when it was last looked at, and how often it was seen so."""

    state: tuple[object, ...]
    count: int = 0


class AgentTools:
    """The tools that run other conversations."""

    def __init__(self, children: ChildRunner) -> None:
        self._children = children
        self._looks: dict[tuple[str, str], _Look] = {}

    @tool("agent_open", effects={Effect.READS}, subjects=_opened)
    async def agent_open(self, args: AgentOpen, call: CallContext) -> Preview:
        """Give one task to a sub-agent: a conversation that works beside you and reports its end. For large
        independent work: search, review, edits. At most 10 at once (20 by configuration), 3 deep. Sees only prompt,
        unless fork_context. Returns at once; agent_eval waits.
        """
        return self._preview(self._request(args, call), call)

    @gated("fast_model")
    @tool(
        "tool_agent",
        effects={Effect.READS},
        subjects=lambda args: (ChildSubject("tool_agent", args.prompt, tuple(Effect)),),
    )
    async def tool_agent(self, args: ToolAgent, call: CallContext) -> Preview:
        """Hand a short, mechanical piece of work with tools to a fast model that does not think: reading a list of
        files, running a command and reporting, a simple edit in many places. Counts as a sub-agent: at most 10 at
        once, and it opens none itself. Returns at once; agent_eval waits for it.
        """
        tools = None if args.allowed_tools is None else tuple(args.allowed_tools)
        request = ChildRequest(call.session, args.prompt, name=args.name or "", role="tool_agent", tools=tools)
        return self._preview(request, call)

    def _request(self, args: AgentOpen, call: CallContext) -> ChildRequest:
        if (args.prompt is None) == (args.items is None):
            both = args.prompt is not None
            parts = "\n".join(filter(None, (args.prompt, *(args.items or ()))))
            raise ToolError(
                "invalid_input" if both else "missing_field",
                "Give the task as `prompt` or as `items`, not both." if both else "`prompt`: the task is missing.",
                field="items" if both else "prompt",
                expected="one of prompt and items",
                received="both" if both else "neither",
                fix=Corrected({"prompt": parts, "items": None}, sure=True) if both else None,
            )
        checkout = args.cwd == "worktree"
        return ChildRequest(
            parent=call.session,
            objective=args.prompt or "\n".join(f"- {item}" for item in args.items or ()),
            name=args.name or "",
            role=args.role or "general",
            tools=None if args.allowed_tools is None else tuple(args.allowed_tools),
            model=args.model or "",
            folder="" if checkout else args.cwd or "",
            checkout=checkout,
            fork=args.fork_context or False,
            schema=args.output_schema,
        )

    def _preview(self, request: ChildRequest, call: CallContext) -> Preview:
        plan = self._children.plan(request)

        async def run() -> ToolResult:
            view = await self._children.open(plan.request)
            text = pretty({**_projection(view), "prefix_cache": _cache(plan)})
            return ToolResult(text, metadata=_metadata(view), origin=Origin.HARNESS)

        return Preview((_card(plan),), run)

    @tool("agent_eval", effects={Effect.READS}, polls=True)
    async def agent_eval(self, args: AgentEval, call: CallContext) -> ToolResult:
        """Look at sub-agents, wait for their end, or send one a message (it is read at the next step; one that is over
        goes on with it, where fewer than 10 run). Waits for change up to timeout_ms, 120000 at most. The end of a
        sub-agent is reported to you by itself, so do not poll. Returns status, steps, tokens and, once it is over, its
        whole answer.
        """
        if args.message is not None or args.interrupt:
            if args.name is None:
                raise self._nobody(args, call.session)
            if args.interrupt:
                await self._children.stop(call.session, args.name)
            if args.message is not None:
                await self._children.tell(call.session, args.name, args.message)
        wait = min(args.timeout_ms, LONGEST_WAIT) / 1000 if args.block else 0.0
        names = () if args.name is None else (args.name,)
        call.progress("Waiting for sub-agents" if wait else "Looking at sub-agents")
        views = await self._children.wait(call.session, names, wait)
        rows: list[dict[str, Any]] = [_projection(view) for view in views]
        said: dict[str, Any] = rows[0] if args.name is not None else {"agents": rows}
        said["timed_out"] = bool(wait) and not any(view.over for view in views) and bool(views)
        if args.timeout_ms > LONGEST_WAIT:
            said["note"] = f"One call waits {LONGEST_WAIT} ms at most; that was the wait."
        if said["timed_out"] or not args.block:
            said.update(self._patience(call.session, args.name or "", views))
        ended = [view.session for view in views if view.over and not view.reported]
        metadata = _metadata(views[0]) if args.name is not None else {"count": len(views)}
        metadata |= {"timed_out": said["timed_out"], "reported_children": ended}
        return ToolResult(pretty(said), display=_shown(views), metadata=metadata, origin=Origin.HARNESS)

    def _nobody(self, args: AgentEval, session: str) -> ToolError:
        """What is wrong with a message that says not whom it is for."""
        names = [view.name for view in self._children.views(session)]
        known = f"There are: {', '.join(names)}." if names else "There is none; open one with agent_open."
        fix: NextCall | Corrected = NextCall("agent_eval", {"block": False})
        if len(names) == 1:
            fix = Corrected({"name": names[0]}, sure=True)
        elif not names and args.message is not None:
            fix = NextCall("agent_open", {"prompt": args.message})
        return ToolError(
            "missing_field",
            f"`name`: which sub-agent is the message for? {known}",
            field="name",
            expected="the name or id of a sub-agent",
            received="no name",
            fix=fix,
        )

    def _patience(self, session: str, name: str, views: tuple[ChildView, ...]) -> dict[str, Any]:
        """What is added to a look at what has not changed since the last one."""
        state = tuple((view.session, view.status, view.steps, view.doing) for view in views)
        look = self._looks.setdefault((session, name), _Look(state))
        look.count = look.count + 1 if look.state == state else 1
        look.state = state
        if look.count < 2 or not any(not view.over for view in views):
            return {}
        seconds = min(120, 30 * (look.count - 1))
        text = f"Unchanged since the last look. Looking again is worth it in {seconds} s at the earliest; you are told "
        return {"unchanged": look.count, "next_look_after_s": seconds, "note": f"{text}of each end by itself."}

    @tool("agent_close", effects={Effect.READS})
    async def agent_close(self, args: AgentClose, call: CallContext) -> ToolResult:
        """Stop a sub-agent and all that work for it, and release its name. One that is over takes no place (at most 10
        run at once), so close only what is still at work and not needed, or whose name you want again. What it came to
        is in the result; its log stays.
        """
        view = await self._children.release(call.session, args.name)
        metadata = {**_metadata(view), "reported_children": [] if view.reported else [view.session]}
        return ToolResult(pretty(_projection(view)), display=_shown((view,)), metadata=metadata, origin=Origin.HARNESS)


def _projection(view: ChildView) -> dict[str, Any]:
    """A child as a model reads it."""
    said: dict[str, Any] = {
        "name": view.name,
        "agent_id": view.id,
        "status": view.status,
        "terminal": view.over,
        "context_mode": "forked" if view.forked else "fresh",
        "transcript_handle": {"kind": "var_handle", "session_id": f"agent:{view.id}", "name": "transcript"},
        "snapshot": {
            "agent_type": view.role,
            "objective": one_line(view.objective, 240),
            "model": view.model,
            "task": view.task,
            "steps_taken": view.steps,
            "tokens": view.tokens,
            "duration_ms": int(view.seconds * 1000),
        },
    }
    if view.folder:
        said["folder"] = view.folder
    if view.doing:
        said["doing"] = view.doing
    if view.over:
        said["result"] = view.answer[:_ANSWER_LIMIT]
        if len(view.answer) > _ANSWER_LIMIT:
            said["result_left_out"] = len(view.answer) - _ANSWER_LIMIT
    if view.error:
        said["error"] = view.error
    return said


def _cache(plan: ChildPlan) -> dict[str, Any]:
    said: dict[str, Any] = {"first_request_tokens": plan.tokens, "expected_cached_tokens": plan.cached}
    if plan.cost is not None:
        said["first_request_cost"] = f"{plan.cost:.4g} {plan.currency}".strip()
    return said


def _metadata(view: ChildView) -> dict[str, Any]:
    mode = "forked" if view.forked else "fresh"
    return {"agent_id": view.id, "status": view.status, "terminal": view.over, "context_mode": mode}


def _card(plan: ChildPlan) -> Block:
    """What a person is shown of a child that would be opened."""
    request, scope = plan.request, plan.scope
    may = ", ".join(scope.effects if scope.tools is None else scope.shown)
    cost = "" if plan.cost is None else f", about {plan.cost:.3g} {plan.currency}".rstrip()
    cached = f" ({plan.cached:,} cached)" if plan.cached else ""
    rows = [
        ("name", request.name),
        ("may", may or "nothing"),
        ("folder", "a checkout of its own" if request.checkout else request.folder),
        ("first", f"{plan.tokens:,} tokens{cached}{cost}"),
        ("bounds", _bounds(plan)),
    ]
    return TableBlock(("sub-agent", ""), tuple(rows))


def _bounds(plan: ChildPlan) -> str:
    limits = plan.request.limits
    said = [f"{limits.turns} steps" if limits.turns else "", f"{limits.seconds / 60:g} min" if limits.seconds else ""]
    said += [f"{limits.tokens:,} tokens" if limits.tokens else "", f"cost {limits.cost:g}" if limits.cost else ""]
    return ", ".join(part for part in said if part)


def _shown(views: tuple[ChildView, ...]) -> tuple[Block, ...]:
    rows = tuple((view.name, view.role, view.status, one_line(view.answer or view.doing, 120)) for view in views)
    return (TableBlock(("sub-agent", "role", "status", ""), rows),) if rows else ()
