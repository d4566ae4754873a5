"""What must hold before a child is opened, and what opening it comes to: role, scope, limits, folder, price."""

import os
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TypeVar

from msgspec.structs import replace

from codewhale.agent.child_settings import HARD_CAP, ChildSettings
from codewhale.agent.roles import ChildRole, role_names, role_of
from codewhale.catalog.registry import Catalog
from codewhale.catalog.schema import check
from codewhale.lib.beneath import PathRefused, Root
from codewhale.lib.text import one_line
from codewhale.protocol.children import ChildPlan, ChildRequest
from codewhale.protocol.errors import Corrected, ErrorKind, NextCall, ToolError
from codewhale.protocol.events import ChildOpened
from codewhale.protocol.modes import Approval, Authority, Mode
from codewhale.protocol.ops import Limits, OpenSession
from codewhale.protocol.scopes import Scope, within
from codewhale.protocol.stream import Usage
from codewhale.protocol.tools import Effect
from codewhale.session.accounting import cost_of
from codewhale.session.session import Session

DEEPEST = 3
WRITER = "implementer"
FAST_ROLE, FAST_MODEL = "tool_agent", "fast_model"  # the provider's fact that names the model of that role
N = TypeVar("N", int, float)
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
_GUESS = 0.3  # tokens a byte of what was never counted
_ANSWER = 600  # tokens of a first answer, for a price that is said beforehand


class OpeningChecks:
    """Over what is configured: `settings(workspace)` is the table, `roles(workspace)` are the person's own roles,
    `checkout(session, name)` makes a checkout of the workspace's repository and gives its folder."""

    def __init__(
        self,
        catalog: Catalog,
        settings: Callable[[str], ChildSettings],
        roles: Callable[[str], Mapping[str, ChildRole]],
        checkout: Callable[[Session, str], Awaitable[str]],
    ) -> None:
        self._catalog = catalog
        self.settings = settings
        self._roles = roles
        self._checkout = checkout

    def role(self, name: str, workspace: str) -> ChildRole:
        """The role of a name or an alias. Raises ToolError with all that there are."""
        own = self._roles(workspace)
        role = role_of(name, own)
        if role is None:
            names = ", ".join(role_names(own))
            raise ToolError(
                "invalid_input",
                f"`role`: there is no role {name[:60]!r}. The roles are {names}.",
                field="role",
                expected=f"one of {names}",
                received=repr(name[:60]),
                fix=Corrected({"role": "general"}, sure=True),
            )
        if role.problem:
            raise ToolError(
                "not_available",
                f"`role`: {role.name} cannot be used: {role.problem}",
                field="role",
                expected="a role that can be used",
                received=repr(name[:60]),
                fix=Corrected({"role": "general"}, sure=True),
            )
        return role

    def plan(
        self,
        request: ChildRequest,
        owner: Session,
        names: Mapping[str, str],
        running: Sequence[str],
        writers: Mapping[str, Sequence[str]],
    ) -> ChildPlan:
        """The request with all that was left open filled in. `names` are the sessions of the owner's children by name,
        `running` the names of those of the whole tree that run, `writers` the folders that some of them change files
        in. Raises ToolError."""
        state = owner.state
        settings, role = self.settings(state.workspace), self.role(request.role, state.workspace)
        if len(owner.owners) >= DEEPEST:
            raise ToolError(
                "not_available",
                f"Sub-agents may open sub-agents {DEEPEST} deep, and this one is at depth {DEEPEST}. Do the task "
                "yourself.",
                expected=f"a depth of {DEEPEST} at most",
                received=f"depth {DEEPEST + 1}",
            )
        self.room(running, state.workspace)
        name = self._name(request.name, role.name, names)
        scope = self._scope(request, role, owner)
        if request.schema is not None:
            _check_schema(request.schema)
        limits = _limits(request.limits, settings)
        fast = str(owner.provider.settings.facts.get(FAST_MODEL, "")) if role.name == FAST_ROLE else ""
        model = request.model or settings.models.get(role.name, "") or role.model or fast or state.model
        model = state.model if request.fork and not request.model else model
        effort = request.effort or ("" if request.fork else role.effort or state.effort)
        folder = self._folder(request, owner)
        if Effect.WRITES in scope.effects and not request.checkout:
            _check_apart(role.name, folder, request, writers)
        request = replace(request, name=name, role=role.name, model=model, effort=effort, limits=limits, folder=folder)
        return _priced(ChildPlan(request, scope, state.provider, 0), owner)

    def room(self, running: Sequence[str], workspace: str) -> None:
        """Raises ToolError where as many sub-agents run as may."""
        most = self.settings(workspace).max_concurrent
        if len(running) >= most:
            raise ToolError(
                "not_available",
                f"{len(running)} sub-agents run ({', '.join(running)}), and at most {most} may at once (hard cap "
                f"{HARD_CAP}, [subagents] max_concurrent). Wait for one with agent_eval, or stop one with agent_close.",
                expected=f"fewer than {most} sub-agents under way",
                received=f"{len(running)}",
                fix=NextCall("agent_eval", {"timeout_ms": 120_000}),
            )

    def _name(self, name: str, role: str, names: Mapping[str, str]) -> str:
        if not name:
            number = 1
            while f"{role}-{number}" in names:
                number += 1
            return f"{role}-{number}"
        if not _NAME.fullmatch(name):
            fixed = re.sub(r"[^A-Za-z0-9_.-]+", "-", name).strip("-._")[:64] or "agent"
            raise ToolError(
                "invalid_input",
                f"`name` is made of letters, digits, _ . and -, 64 at most; got {name[:80]!r}.",
                field="name",
                expected="letters, digits, _ . and -",
                received=repr(name[:80]),
                fix=Corrected({"name": fixed}, sure=True),
            )
        if name in names:
            number = 2
            while f"{name}-{number}" in names:
                number += 1
            raise ToolError(
                "invalid_input",
                f"`name`: {name!r} is a sub-agent already (session {names[name]}). Send it a message with agent_eval, "
                "release it with agent_close, or choose another name.",
                field="name",
                expected="a name that no other sub-agent has",
                received=repr(name),
                fix=Corrected({"name": f"{name}-{number}"}, sure=True),
            )
        return name

    def _scope(self, request: ChildRequest, role: ChildRole, owner: Session) -> Scope:
        if role.needs_tools and request.tools is None:
            raise ToolError(
                "missing_field",
                f"`allowed_tools`: the role {role.name} needs the tools that it may call.",
                field="allowed_tools",
                expected="a list of tool names",
                fix=Corrected({"allowed_tools": ["grep_files", "read_file"]}, sure=True),
            )
        for tool in request.tools or ():
            if self._catalog.resolve(tool) is None:
                near = self._catalog.closest(tool)
                known = [one for one in request.tools or () if self._catalog.resolve(one) is not None]
                raise ToolError(
                    "invalid_input",
                    f"`allowed_tools`: there is no tool {tool[:60]!r}."
                    + (f" Did you mean {' or '.join(near)}?" if near else ""),
                    field="allowed_tools",
                    expected="names of tools",
                    received=repr(tool[:60]),
                    fix=Corrected({"allowed_tools": [*known, *near[:1]] or ["read_file"]}, sure=True),
                )
        own = role.scope
        tools = None if request.tools is None else tuple(self._canonical(tool) for tool in request.tools)
        asked = Scope(role.name, own.effects, tools, (), request.paths)
        return within(replace(asked, role=role.name), within(own, owner.scope))

    def _canonical(self, tool: str) -> str:
        meant = self._catalog.resolve(tool)
        return tool if meant is None else meant.spec.name

    def _folder(self, request: ChildRequest, owner: Session) -> str:
        """Where a child works, as an absolute path. Raises ToolError for one outside the owner's workspace."""
        root, asked = Root(owner.state.workspace), request.folder or "."
        kind: ErrorKind = "invalid_input"
        problem = f"there is no folder {one_line(asked, 200)} in the workspace"
        try:
            path = os.path.join(root.path, root.resolve(asked))
            if os.path.isdir(path):
                return owner.state.workspace if os.path.samefile(path, root.path) else path
        except PathRefused as refused:
            kind, problem = "path_escape", f"{one_line(asked, 200)} cannot be used: {refused.reason}"
        except OSError as error:
            problem = f"{one_line(asked, 200)} cannot be used: {error.strerror}"
        raise ToolError(
            kind,
            f"`cwd`: {problem}. A sub-agent works in the workspace or in a folder of it.",
            field="cwd",
            expected="a folder of the workspace",
            received=repr(request.folder[:200]),
            fix=Corrected({"cwd": "."}, sure=True),
        )

    async def folder(self, request: ChildRequest, owner: Session) -> str:
        """The folder itself: a new checkout where one was asked for."""
        return await self._checkout(owner, request.name) if request.checkout else request.folder

    def waking(self, session: str, owner: Session, opened: ChildOpened) -> OpenSession:
        """How a child that is over is opened again for its next task."""
        limits = _limits(Limits(), self.settings(owner.state.workspace))
        return OpenSession(
            workspace=owner.state.workspace, mode=Mode.YOLO, authority=Authority.AUTO, approval=Approval.AUTO,
            resume=session, limits=limits, owner=owner.id, kind=opened.kind, name=opened.name,
        )  # fmt: skip


def _check_apart(role: str, folder: str, request: ChildRequest, writers: Mapping[str, Sequence[str]]) -> None:
    """Raises ToolError where a sub-agent that is there to change files would do so beside another one."""
    if role != WRITER and not request.paths:
        return
    own = [os.path.join(folder, path) for path in request.paths] or [folder]
    for name, folders in writers.items():
        for one in folders:
            if any(
                (one + os.sep).startswith(place + os.sep) or (place + os.sep).startswith(one + os.sep) for place in own
            ):
                raise ToolError(
                    "not_available",
                    f"{name} changes files in {one}, and two that write side by side must not share a folder. Give "
                    "this one a checkout of its own (cwd `worktree`) or another folder, or wait for the other's end.",
                    field="cwd",
                    expected="a folder that no other sub-agent writes in",
                    received=repr(request.folder or "."),
                    fix=Corrected({"cwd": "worktree"}),
                )


def _limits(asked: Limits, settings: ChildSettings) -> Limits:
    """What was asked for, else what is configured; never more than that."""
    tokens, cost = settings.tokens or None, settings.cost or None
    return Limits(
        turns=min(asked.turns or settings.steps, settings.steps),
        tokens=_least(asked.tokens, tokens),
        seconds=min(asked.seconds or settings.seconds, settings.seconds),
        cost=_least(asked.cost, cost),
    )


def _least(one: N | None, other: N | None) -> N | None:
    return min((bound for bound in (one, other) if bound is not None), default=None)


def _check_schema(schema: dict[str, object]) -> None:
    """Raises ToolError for what is no JSON Schema."""
    try:
        check({}, schema)
    except ValueError as error:
        raise ToolError(
            "invalid_input",
            f"`output_schema` is no JSON Schema: {error}",
            field="output_schema",
            expected="a JSON Schema",
            received=f"{error}"[:200],
            fix=Corrected({"output_schema": {"type": "object"}}, sure=True),
        ) from None


def _priced(plan: ChildPlan, owner: Session) -> ChildPlan:
    """The plan with what its first request takes: a fork's is its parent's last one and the task."""
    state, request = owner.state, plan.request
    head = state.header
    head_bytes = 0 if head is None else len(head.system) + len(head.tools_json)
    same = request.model == state.model and head is not None
    task = int(len(request.objective) * _GUESS) + 300
    begins = state.measured[1] or int(state.request_bytes * state.tokens_per_byte) if request.fork else 0
    begins = begins or int(head_bytes * state.tokens_per_byte)
    cached = begins if same else 0
    price = owner.provider.model.price if request.model == state.model else None
    cost = None
    if price is not None:
        usage = Usage(input=begins + task, output=_ANSWER, cache_hit=cached, cache_miss=begins + task - cached)
        cost = cost_of(price, usage, owner.clock.now())
    currency = "" if price is None else price.currency
    return replace(plan, tokens=begins + task, cached=cached, cost=cost, currency=currency)
