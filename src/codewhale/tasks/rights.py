"""What a task may do: no more than the session that makes it may at that moment, and nothing that no person allowed."""

import os

from msgspec import Struct
from msgspec.structs import replace

from codewhale.lib.text import one_line
from codewhale.protocol.modes import Approval, Authority, Mode
from codewhale.protocol.scopes import EVERYTHING, Scope, within
from codewhale.protocol.tasks import OnDeath
from codewhale.protocol.tools import Effect
from codewhale.session.session import Session
from codewhale.tasks.model import TaskError, TaskSpec

ROLE = "task"


class TaskRequest(Struct, frozen=True, omit_defaults=True):
    """What is asked for. Empty values are the session's own; `allowed` says that a person has said yes to exactly this
    request, with all that it may do unasked."""

    prompt: str
    workspace: str = ""
    mode: Mode | None = None
    model: str = ""
    allow_shell: bool = True
    trust_mode: bool = False
    auto_approve: bool = False
    on_death: OnDeath = "ask"
    by: str = "person"
    allowed: bool = False

    def by_model(self, allowed: bool) -> "TaskRequest":
        """The same, with whether a person has said yes to it."""
        return replace(self, by="model", allowed=allowed)


def runs_unasked(session: Session) -> bool:
    """Whether the person has chosen that this session asks for nothing."""
    rights = session.rights
    unasked = rights.authority is Authority.AUTO or rights.approval is Approval.AUTO or rights.mode is Mode.YOLO
    return unasked and rights.mode is not Mode.PLAN


def bounded(session: Session, request: TaskRequest) -> TaskSpec:
    """The task as far as the session may go. Raises TaskError that names the field."""
    state = session.state
    mode = _mode(session, request)
    if one_line(request.model) != request.model:
        raise TaskError(
            f"`model`: {one_line(request.model)!r} is no name of a model. Leave it out for {state.model}.", "model"
        )
    tainted = request.by == "model" and state.tainted  # whose words these may be, nobody can tell
    unasked = "auto_approve" if request.auto_approve else "on_death" if request.on_death == "resume" else ""
    if unasked and not (request.allowed or (runs_unasked(session) and not tainted)):
        raise TaskError(
            f"`{unasked}`: what a task does unasked is for a person to allow, by a yes to this very call or in a "
            "session that asks nothing (/approval auto, codewhale exec --auto). Leave it out: what rules allow runs "
            "even so.",
            unasked,
        )
    scope = session.scope
    if not request.allow_shell:
        effects = tuple(effect for effect in EVERYTHING if effect is not Effect.EXECUTES)
        scope = within(Scope(ROLE, effects), scope)
    model = request.by == "model"
    return TaskSpec(
        prompt=request.prompt,
        workspace=_workspace(session, request.workspace),
        mode=mode,
        provider=state.provider,
        model=request.model or state.model,
        effort=state.effort,
        allow_shell=request.allow_shell,
        auto_approve=request.auto_approve,
        on_death=request.on_death,
        folders=tuple(folder.path for folder in state.folders.values()) if request.trust_mode else (),
        limits=session.budget.remaining(),
        scope=scope,
        creator=(session.id, *session.owners)[-1] if model else "",
        by=request.by,
    )


def _mode(session: Session, request: TaskRequest) -> Mode:
    most = session.rights.mode
    if request.mode is None:
        return min(most, Mode.AGENT, key=list(Mode).index)
    if list(Mode).index(request.mode) > list(Mode).index(most):
        raise TaskError(
            f"`mode`: a task never does more than the session that makes it, which is in {most.value} mode; "
            f"{request.mode.value} is more. Leave it out, or say {most.value}.",
            "mode",
        )
    if request.mode is Mode.YOLO and not request.auto_approve:
        raise TaskError(
            "`mode`: yolo runs everything unasked, so it needs auto_approve too, which a person allows. Say agent, or "
            "leave it out.",
            "mode",
        )
    return request.mode


def _workspace(session: Session, asked: str) -> str:
    """A folder of the session: its workspace, one of those added to it, or one below them."""
    own = session.state.workspace
    if not asked:
        return os.path.realpath(own)
    path = "" if "\0" in asked else os.path.realpath(os.path.join(own, os.path.expanduser(asked)))
    shown = one_line(asked, 200)
    if not path or not os.path.isdir(path):
        raise TaskError(f"`workspace`: there is no folder {shown}. Leave it out for {own}.", "workspace")
    for root in map(os.path.realpath, (own, *(folder.path for folder in session.state.folders.values()))):
        if path == root or path.startswith(root.rstrip("/") + "/"):
            return path
    raise TaskError(
        f"`workspace`: {shown} is outside this session: a task works in {own} or in a folder that the person has added "
        "(/add-dir). Leave it out for the first.",
        "workspace",
    )
