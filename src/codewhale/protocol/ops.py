"""Operations go in, questions are answered: the whole surface of the engine beside its events."""

from typing import Any, Literal

from msgspec import Struct

from codewhale.protocol.messages import Message
from codewhale.protocol.modes import Approval, Authority, Mode
from codewhale.protocol.requests import Op, Query
from codewhale.protocol.scopes import Scope
from codewhale.protocol.views import SessionSummary


class Limits(Struct, frozen=True, omit_defaults=True):
    """Bounds of one turn and its children; None is unlimited. `cost` is in the model's currency."""

    turns: int | None = None
    tokens: int | None = None
    seconds: float | None = None
    cost: float | None = None


class OpenSession(Op[str], frozen=True, tag="open_session", omit_defaults=True):
    """Begin, resume (`resume` is an id, a unique prefix or "latest") or fork (`fork`) a session. Empty provider, model,
    effort and approval mean the session's own, or the configured ones. One that works for an open session names it as
    `owner`, with the `kind` of its work and its `name` there. `folders` beside the workspace are added to it; `scope`
    is what its role leaves it. A fork takes the records up to `until` (0: all). `clauses` are ids of clauses of the
    project's constitution that the person lets through, each once. Answered by the session's id."""

    workspace: str
    mode: Mode = Mode.AGENT
    authority: Authority = Authority.HEADLESS
    provider: str = ""
    model: str = ""
    resume: str = ""
    fork: str = ""
    effort: str = ""
    approval: Approval | None = None
    limits: Limits = Limits()
    owner: str = ""
    kind: str = ""
    name: str = ""
    folders: tuple[str, ...] = ()
    scope: Scope | None = None
    until: int = 0
    clauses: tuple[str, ...] = ()


class Attachment(Struct, frozen=True, omit_defaults=True):
    """What goes with a message: its bytes in `data`, or the file at `path` (absolute or relative to the workspace).
    An image (`media_type` image/...) is shown to a model that takes images, everything else is sent as fenced text."""

    name: str
    media_type: str = "text/plain"
    data: bytes = b""
    path: str = ""


class SendMessage(Op[None], frozen=True, tag="send_message", omit_defaults=True):
    """A person's words. While a turn runs, `steer` joins it at the next step, `queue` waits for its end;
    `turn` begins a turn and is queued when one runs. `context` is fenced text sent beside them. Raises SessionError for
    an attachment that cannot be sent, and then nothing was sent."""

    session: str
    text: str
    context: str = ""
    delivery: Literal["turn", "steer", "queue"] = "turn"
    attachments: tuple[Attachment, ...] = ()


class Interrupt(Op[None], frozen=True, tag="interrupt"):
    """Stop the running turn; every open call gets its one result."""

    session: str


class Answer(Op[bool], frozen=True, tag="answer", omit_defaults=True):
    """The person's answer to an approval (`allowed`) or to questions (`answers`). `remember` keeps the rule that the
    approval offered, for the session or always, with `exact` for the whole command line alone; "sandbox" asks no more,
    in this session, about what the sandbox holds. `command` runs in place of the command that was asked about.
    `confirm` names the clauses to let through, where some block; without them a yes is refused and goes on waiting."""

    session: str
    request_id: str
    allowed: bool = False
    answers: tuple[dict[str, Any], ...] = ()
    remember: Literal["", "session", "always", "sandbox"] = ""
    exact: bool = False
    command: str = ""
    confirm: str = ""


class SetMode(Op[None], frozen=True, tag="set_mode"):
    """Change the mode; refused while a turn runs."""

    session: str
    mode: Mode


class SetModel(Op[None], frozen=True, tag="set_model", omit_defaults=True):
    """Change provider or model; refused while a turn runs."""

    session: str
    model: str
    provider: str = ""


class SetEffort(Op[None], frozen=True, tag="set_effort"):
    """Change how hard the model thinks, from the next turn on: off, low, medium, high, max, auto, or "" for its own
    measure."""

    session: str
    effort: str


class RunCommand(Op["CommandOutput"], frozen=True, tag="run_command"):
    """Run a slash command ("/name args") without a model call. Answered by its CommandOutput."""

    session: str
    line: str


class CloseSession(Op[None], frozen=True, tag="close_session"):
    """Interrupt, end jobs, sync and release the session."""

    session: str


class EditQueue(Op[str], frozen=True, tag="edit_queue", omit_defaults=True):
    """Change what message `index` of GetQueue says; the text "" drops it. With `was` only where it still says that;
    `delivery` makes a steer of it, or puts it at the end of the queue. Answered by its former text ("": it is gone)."""

    session: str
    index: int
    text: str
    was: str = ""
    delivery: Literal["", "steer", "queue"] = ""


class RunShell(Op[int | None], frozen=True, tag="run_shell"):
    """Run the person's own command line in the workspace, beside or without a turn; Interrupt ends it. Answered by its
    exit code, None when it was ended; what it printed goes to the model with the next message."""

    session: str
    command: str


class NoteFile(Op[None], frozen=True, tag="note_file"):
    """A file of the workspace was mentioned or opened: it comes sooner from now on."""

    session: str
    path: str


class ConnectProvider(Op[str], frozen=True, tag="connect_provider", omit_defaults=True):
    """Use a provider from now on, once it has answered: keep its `key` as a login does, or its `base_url` in
    config.toml, and ask it in this session; without `use` only its key is checked and kept; `exposed` allows requests
    to go unencrypted. Answered by "" or by what is wrong, in one sentence: then nothing has changed."""

    session: str
    name: str
    key: str = ""
    base_url: str = ""
    model: str = ""
    use: bool = True
    exposed: bool = False


class ChangeSetting(Op[str], frozen=True, tag="change_setting"):
    """Write a value into config.toml. Answered by what to know of it ("" for nothing: it holds from the next session
    on). Raises ConfigError, and then nothing has changed."""

    session: str
    key: str
    value: str


class StartDemo(Op["DemoStarted"], frozen=True, tag="start_demo"):
    """Open a session with the scripted model that comes with the program, in a small repository made for it."""


class DemoStarted(Struct, frozen=True):
    """A demonstration is ready: send `prompt` to `session`. All its model says was written beforehand."""

    session: str
    workspace: str
    prompt: str


class SessionStatus(Query["StatusView"], frozen=True, tag="session_status"):
    """Ask how a session stands; answered by a StatusView."""

    session: str


class ListSessions(Query[list[SessionSummary]], frozen=True, tag="list_sessions", omit_defaults=True):
    """Ask for the sessions of a workspace ("" is every one); answered by SessionSummary rows."""

    workspace: str = ""


class GetMessages(Query[tuple[Message, ...]], frozen=True, tag="get_messages"):
    """Ask for a session's messages."""

    session: str


class SessionUsage(Query["UsageView"], frozen=True, tag="session_usage"):
    """Ask what a session's model calls took; answered by a UsageView."""

    session: str


class CommandOutput(Struct, frozen=True, omit_defaults=True):
    """What a slash command says: `text` for people, `ok` False when it could not do it (`misused`: the line itself was
    wrong), `session` one to go on with in place of this one ("" is to stay). `turn` tells that it began a turn; `draft`
    is for the person to edit and send."""

    text: str
    ok: bool = True
    session: str = ""
    turn: bool = False
    draft: str = ""
    misused: bool = False


class StatusView(Struct, frozen=True):
    """How a session stands: what /status shows. `waiting_since` is when `waiting_for` began, in Unix seconds (0: it
    waits for nothing); `branch` is "" outside a git repository, `sandbox` the mechanism that holds commands, "" for
    none; `queue` counts messages that wait, `jobs` background commands that run, `rewinds` those that can be undone;
    `children` names sub-agents that run, `seq` is that of the last event."""

    session: str
    workspace: str
    mode: Mode
    authority: Authority
    provider: str
    model: str
    turns: int
    messages: int
    requests: int
    busy: bool
    waiting_for: str
    instructions: tuple[tuple[str, int], ...]
    tokens_in: int
    tokens_out: int
    effort: str = ""
    approval: Approval = Approval.SUGGEST
    waiting_since: float = 0.0
    branch: str = ""
    sandbox: str = ""
    queue: int = 0
    jobs: int = 0
    seq: int = 0
    children: tuple[str, ...] = ()
    rewinds: int = 0


class UsageView(Struct, frozen=True):
    """What a session's model calls took: what /tokens, /cost, /cache and /budget show. `active` is the provider's
    count of the latest prompt with its answer, `reserved` what an answer may take of the window. `total` and `turn`
    are sums with those of `children`, `models` sums by model, `calls` the latest calls; `price` is that of the model at
    hand, None when unknown. `limits` bound the session's life and `used` counts against them, `run_limits` and
    `run_used` since it was opened."""

    provider: str
    model: str
    window: int
    window_source: str
    active: int
    reserved: int
    price: dict[str, Any] | None
    turns: int
    total: dict[str, Any]
    turn: dict[str, Any]
    models: tuple[dict[str, Any], ...]
    calls: tuple[dict[str, Any], ...]
    limits: Limits
    used: dict[str, Any]
    run_limits: Limits
    run_used: dict[str, Any]
    children: dict[str, Any] = {}
