"""Events: all that happens in a session, as frozen data with a `type` tag.

A durable event is in the session log before anyone is told of it; an ephemeral one (deltas, progress) is
shown and forgotten. Types unknown to this version are kept as they are.
"""

from typing import Any, Literal

import msgspec
from msgspec import Struct, field

from codewhale.protocol.attempts import AttemptRecord
from codewhale.protocol.blocks import Block
from codewhale.protocol.decisions import BlockingClause, Offer, Rule
from codewhale.protocol.eventbase import EventBase
from codewhale.protocol.files import FileChange
from codewhale.protocol.gates import GateRecord
from codewhale.protocol.handles import VarHandle
from codewhale.protocol.messages import Image, Message, ResultPart
from codewhale.protocol.modelevents import (
    AnswerDropped,
    AnswerMoved,
    BudgetChanged,
    BudgetReserved,
    BudgetSettled,
    CallStreamed,
    ReasoningStreamed,
    RequestSent,
    RetryCountdown,
    TextStreamed,
    UsageReported,
)
from codewhale.protocol.modes import Approval, Authority, Mode
from codewhale.protocol.scopes import Scope
from codewhale.protocol.stream import Usage
from codewhale.protocol.tools import Effect, Origin, Subject, ToolSpec

LOG_VERSION = 1
ONE_SHOT = frozenset(
    {"complete", "infill", "question", "title"}
)  # purposes of requests that nothing of the conversation stands in


class SessionOpened(EventBase, frozen=True):
    """First event of a log. A fork names its parent, the last inherited seq and the sha256 of that prefix. One that
    works for another session names it as its owner, what kind of work it does, how it is called there, and what its
    role leaves it."""

    version: int
    workspace: str
    mode: Mode
    provider: str
    model: str
    parent: str = ""
    parent_seq: int = 0
    parent_sha256: str = ""
    owner: str = ""
    kind: str = ""
    name: str = ""
    scope: Scope | None = None


class SessionResumed(EventBase, frozen=True):
    """A later process took the log over. `cut` and `skipped` count damage repaired at open."""

    mode: Mode
    authority: Authority
    cut_bytes: int = 0
    skipped_lines: int = 0


class ModeChanged(EventBase, frozen=True):
    """The mode from here on; told to the model by a context_appended, never an edge."""

    mode: Mode
    previous: Mode


class FolderAdded(EventBase, frozen=True):
    """A folder beside the workspace belongs to the session from here on; the rest tells whether it is still there."""

    path: str
    owner: int
    device: int
    inode: int


class FolderRemoved(EventBase, frozen=True):
    """An added folder belongs to the session no longer; `reason` says why where no person said so."""

    path: str
    reason: str = ""


class ModelChanged(EventBase, frozen=True):
    """The provider and model from here on: a named edge. `lent`: for one turn alone, after which the former comes
    again, also where its process dies in it."""

    provider: str
    model: str
    lent: bool = False


class HeaderPinned(EventBase, frozen=True):
    """The exact head every later request carries: system text and the tools value as sent. `facts` are the
    provider facts its messages are written by, so that the log alone gives the same bytes again; `profile` is the set
    of tools that the array began with ("" is the default one), `served` those of servers that stand behind it."""

    dialect: str
    provider: str
    model: str
    system: str
    tools_json: str
    sha256: str
    facts: dict[str, bool | int | str] = field(default_factory=dict)
    profile: str = ""
    served: tuple[ToolSpec, ...] = ()


class PrefixInvalidated(EventBase, frozen=True, tag="edge"):
    """A declared place where a request stops being a prefix of the next. `first_changed` is the index of
    the first wire message that differs (0 is the system message)."""

    reason: str
    first_changed: int


class ContextAppended(EventBase, frozen=True):
    """Text told to the model after the fact (mode, changed rules), appended once and never rewritten."""

    kind: str
    text: str


class EffortChanged(EventBase, frozen=True):
    """The reasoning effort from here on: off, low, medium, high, max, auto, or "" for the provider's own."""

    effort: str


class ResultsPruned(EventBase, frozen=True):
    """Old tool results are said shorter from here on: each stands in place of the result of its call. All results
    of one assistant message are given together. A named edge."""

    results: tuple[ResultPart, ...]


class Compacted(EventBase, frozen=True):
    """The conversation so far is said as `messages` from here on: a named edge. `number` counts a session's
    compactions from 1; tokens are estimates of the conversation before and after."""

    number: int
    reason: str
    messages: tuple[Message, ...]
    tokens_before: int = 0
    tokens_after: int = 0


class CompactionUndone(EventBase, frozen=True):
    """Compaction `number` and whatever was pruned with it are taken back: the exact bytes stand again, with what
    came later behind them. A named edge."""

    number: int


class Rewound(EventBase, frozen=True):
    """The conversation stands again as it did before turn `turn` began; with `back` the last rewind is undone instead.
    `files`: what the agent had done to files since was taken back with it. A named edge."""

    turn: int
    back: bool = False
    files: bool = False


class TitleSet(EventBase, frozen=True):
    """What listings call the session: the person's own words, or the model's (`by` is person or model)."""

    title: str
    by: str = "person"


class TurnStarted(EventBase, frozen=True):
    """A person's message begins a turn; `turn` counts from 1."""

    turn: int


class MessageAdded(EventBase, frozen=True):
    """A whole message joined the conversation. `finish` is why an assistant message ended, `thought` how many seconds
    its model had thought before it, `queued` the key under which a message waited before, `child` the session whose end
    it reports."""

    message: Message
    finish: str = ""
    thought: float = 0.0
    queued: str = ""
    child: str = ""


class QueueKept(EventBase, frozen=True):
    """A message of the person waits, so that it outlives the process. Given again under its `key` it has changed; an
    empty one was dropped."""

    key: str
    text: str = ""
    context: str = ""
    images: tuple[Image, ...] = ()


class AnswerStreamed(EventBase, frozen=True):
    """More text of an answer that is not whole yet: all that is left of it where the process dies. It is shown then,
    and never sent back."""

    text: str


class TurnFinished(EventBase, frozen=True):
    """The turn is over. `result` is the object that `exec --output-format json` prints."""

    turn: int
    status: str
    reason: str = ""
    result: dict[str, Any] = field(default_factory=dict)


class RepairRecorded(EventBase, frozen=True):
    """What was changed in a call before it was judged, by repair codes."""

    call_id: str
    codes: tuple[str, ...]
    lossy: bool
    name: str
    arguments: str


class CallStarted(EventBase, frozen=True):
    """A call passed every gate and is about to run: the intent, durable before any side effect."""

    call_id: str
    name: str
    arguments: str
    effects: tuple[Effect, ...]
    rule: str


class CallFinished(EventBase, frozen=True):
    """The one result of a call. `content` is what the model reads, after truncation and redaction."""

    call_id: str
    name: str
    ok: bool
    content: str
    ms: int = 0
    error: str = ""
    origin: Origin = Origin.WORKSPACE
    display: tuple[Block, ...] = ()
    metadata: dict[str, Any] = field(default_factory=dict)
    images: tuple[Image, ...] = ()


def whole_output(event: CallFinished) -> str:
    """The sha256 of all that a call printed, or else answered; "" where its event holds that itself."""
    names = ("log_artifact_sha256", "artifact_sha256")
    return next((kept for name in names if isinstance(kept := event.metadata.get(name), str)), "")


class FileChanged(EventBase, frozen=True):
    """A call changed a file."""

    call_id: str
    change: FileChange


class ToolActivated(EventBase, frozen=True):
    """A deferred tool became known and joined the array after the head; `bytes` is what it takes there, `dropped` those
    that left to make room, `spec` the tool as the session was shown it."""

    name: str
    bytes: int = 0
    dropped: tuple[str, ...] = ()
    spec: ToolSpec | None = None


class ApprovalAsked(EventBase, frozen=True):
    """A person must say yes or no before call `call_id` runs. `display` is what it would do, where that was worked
    out beforehand: what is allowed is exactly this, and `sha256` is its digest. `rule` asks. `kind` tells an ask of
    policy from the offer of another run with more rights after the sandbox refused (elevation). `allowances` are what
    the sandbox would let it do beyond its profile. `offer` is the rule that the answer may be remembered as. `asker`
    names the owned session that asks. `held`: the sandbox holds it, and the person may choose not to be asked then.
    `clauses` of the project's constitution block it (kind clause): a yes counts with their ids as its `confirm`.
    Without an answer within `seconds` (0: not known) it is a no."""

    request_id: str
    call_id: str
    tool: str
    subjects: tuple[Subject, ...]
    reason: str
    display: tuple[Block, ...] = ()
    rule: str = ""
    kind: Literal["policy", "elevation", "clause"] = "policy"
    sandbox: str = "none"
    offer: Offer | None = None
    sha256: str = ""
    allowances: tuple[str, ...] = ()
    asker: str = ""
    held: bool = False
    seconds: float = 0.0
    clauses: tuple[BlockingClause, ...] = ()

    @property
    def word(self) -> str:
        """What has to be typed for a yes."""
        return " ".join(clause.id for clause in self.clauses)

    def confirmed(self, typed: str) -> bool:
        return set(self.word.casefold().split()) <= set(typed.replace(",", " ").casefold().split())


class ApprovalAnswered(EventBase, frozen=True):
    """An answer: `by` is person, cancel or timeout; `remember` how long it holds: "" for this call, session, always,
    or sandbox. `command` is what the person wrote in place of the command that was asked about, `clauses` what they let
    through this once."""

    request_id: str
    allowed: bool
    by: str = "person"
    remember: str = ""
    command: str = ""
    clauses: tuple[str, ...] = ()


class ApprovalChanged(EventBase, frozen=True):
    """What becomes of calls that no rule decides, from here on; it ends with the process."""

    approval: Approval
    previous: Approval


class QuestionAsked(EventBase, frozen=True):
    """Questions put to the person; each {id, header, question, options: [{label, description}]}."""

    request_id: str
    questions: tuple[dict[str, Any], ...]
    asker: str = ""


class QuestionAnswered(EventBase, frozen=True):
    """Answers by question id; empty when `by` is cancel or timeout."""

    request_id: str
    answers: tuple[dict[str, Any], ...]
    by: str = "person"


class JobStarted(EventBase, frozen=True):
    """A background command began; jobs outlive turns and die with the process. `task_id` is the durable task it works
    for; `pid` is its process, which began at `since` (kernel ticks): what tells it from a later one of that number. An
    `interactive` one runs in the foreground, on a terminal that the person types into."""

    job_id: str
    command: str
    cwd: str
    call_id: str = ""
    task_id: str = ""
    pid: int = 0
    since: int = 0
    interactive: bool = False


class JobEnded(EventBase, frozen=True):
    """A background command is over; `status` is Completed, Failed, Killed or TimedOut."""

    job_id: str
    status: str
    exit_code: int | None
    seconds: float


class ShellRan(EventBase, frozen=True):
    """The person's own command ended; the next message tells the model. `exit_code` is None when a signal ended it;
    `kept` is the sha256 of all that it printed, where `output` is only its beginning and its end."""

    command: str
    output: str
    exit_code: int | None
    seconds: float
    kept: str = ""


class ChildOpened(EventBase, frozen=True):
    """A child session began a task: its first, or with a message that woke it (`turn` counts from 1). `schema` is what
    its answer must fit, `limits` are those of the task."""

    child: str
    name: str
    objective: str
    role: str = ""
    turn: int = 1
    forked: bool = False
    schema: dict[str, Any] | None = None
    kind: str = "agent"


class Passed(Struct, frozen=True):
    """A command that has succeeded, by the tool that ran it, in a folder below the workspace; whether it changed files
    itself."""

    tool: str
    command: str
    cwd: str = "."
    changed: bool = False


class ChildClosed(EventBase, frozen=True):
    """A task of a child session is over; a message or a result that names the child tells the conversation. `steps` are
    those of the task, `calls` and `usage` sum the child's life with that of all who worked for it. `changes` is how
    often the child changed files of its owner's workspace, `passed` what has succeeded for it since."""

    child: str
    status: str
    summary: str = ""
    name: str = ""
    steps: int = 0
    calls: int = 0
    usage: Usage = Usage()
    changes: int = 0
    passed: tuple[Passed, ...] = ()


class ChildReleased(EventBase, frozen=True):
    """A child session is not needed any more: its name is free."""

    child: str


class SkillActivated(EventBase, frozen=True):
    """A skill or rule applies from here on: to the turn's end, or until it is released. `by` is who activated it, or
    how (file: a matching one was touched); its text is a context_appended of the kind `skill:NAME`. `scope` is
    what it leaves of the tools (None: all), `approved` what it pre-approves, `sha256` that of its file."""

    name: str
    path: str
    sha256: str
    by: Literal["person", "model", "plan", "file", "always"]
    lasts: Literal["turn", "session"] = "turn"
    scope: Scope | None = None
    approved: tuple[Rule, ...] = ()


class SkillReleased(EventBase, frozen=True):
    """A skill was switched off for the session: what it restricted and pre-approved holds no longer."""

    name: str


class FactProposed(EventBase, frozen=True):
    """A model proposes to remember something; it waits for a person under this id. `scope` is global or workspace,
    `origin` whose text it came from where that is foreign ("" where it is not)."""

    id: str
    text: str
    scope: str
    origin: str = ""


class FactDecided(EventBase, frozen=True):
    """What a person decided of a proposal; `text` is what was stored where that was changed."""

    id: str
    decision: Literal["taken", "changed", "dropped"]
    text: str = ""


class TextForgotten(EventBase, frozen=True):
    """No later request holds these texts as they were said until now: where one stood, requests say that it was
    removed. A named edge; a rewind does not take it back. `cleared` is when each was cleared from memory (RFC 3339),
    "" where a turn ran, which may say one again."""

    texts: tuple[str, ...]
    cleared: tuple[str, ...] = ()


class SourceRead(EventBase, frozen=True):
    """The version of an attached source that the session read: `bytes` in all, `sha256` of its files, "" until that is
    known."""

    name: str
    path: str
    bytes: int
    sha256: str


class ValueKept(EventBase, frozen=True):
    """A value was kept for the session's conversation, which reads it by its handle; `call_id` is the call that did."""

    handle: VarHandle
    call_id: str = ""


class ListChanged(EventBase, frozen=True):
    """The checklist or the plan as it now stands; `kind` is checklist or plan."""

    kind: str
    items: tuple[dict[str, Any], ...]
    explanation: str = ""


class GateRecorded(EventBase, frozen=True):
    """A gate has ended, in this session's work; `call_id` is the call that ran or recorded it."""

    gate: GateRecord
    call_id: str = ""


class AttemptRecorded(EventBase, frozen=True):
    """The diff of the workspace was kept as an attempt; `call_id` is the call that did."""

    attempt: AttemptRecord
    call_id: str = ""


class Notice(EventBase, frozen=True):
    """One line for the person; `level` is info, warning or error."""

    level: str
    text: str
    code: str = ""


class CallProgress(EventBase, frozen=True):
    """One line from a running call."""

    call_id: str
    text: str


class JobOutput(EventBase, frozen=True):
    """A background command printed something."""

    job_id: str
    text: str


class ChildProgress(EventBase, frozen=True):
    """What a child session does now, a call with its arguments, after so many steps; `usage` as in ChildClosed."""

    child: str
    tool: str
    arguments: str = ""
    steps: int = 0
    usage: Usage = Usage()


class Queued(EventBase, frozen=True):
    """A message waits for the turn to end; `waiting` counts the queue."""

    text: str
    waiting: int


class QueueChanged(EventBase, frozen=True):
    """What waits for the turn has changed otherwise than by one more: it was edited, dropped or sent."""

    waiting: int


class ShellOutput(EventBase, frozen=True):
    """The person's own command printed something."""

    text: str


class ProgressShown(EventBase, frozen=True):
    """How far the work named `task` has come; `total` is 0 while nobody knows it, and `done` equals it at the end."""

    task: str
    done: int
    total: int
    text: str = ""


class UnknownEvent(Struct, frozen=True):
    """An event of a later version, kept byte for byte."""

    type: str
    raw: msgspec.Raw


Durable = (
    SessionOpened | SessionResumed | ModeChanged | ModelChanged | HeaderPinned | PrefixInvalidated | ContextAppended
    | EffortChanged | ResultsPruned | Compacted | CompactionUndone | BudgetChanged
    | Rewound | TitleSet | TurnStarted | MessageAdded | RequestSent | UsageReported | BudgetReserved | BudgetSettled
    | TurnFinished | RepairRecorded | CallStarted | CallFinished | FileChanged | ToolActivated | ApprovalAsked
    | ApprovalAnswered | ApprovalChanged | QuestionAsked | QuestionAnswered | JobStarted | JobEnded | ChildOpened
    | ChildClosed | ChildReleased | ListChanged | Notice | ShellRan | AnswerDropped | FolderAdded | FolderRemoved
    | QueueKept | AnswerStreamed | SkillActivated | SkillReleased | FactProposed | FactDecided | TextForgotten
    | SourceRead
    | ValueKept
    | GateRecorded
    | AttemptRecorded
)  # fmt: skip
Ephemeral = (
    TextStreamed | ReasoningStreamed | CallStreamed | AnswerMoved | CallProgress | JobOutput | ChildProgress
    | RetryCountdown | Queued | QueueChanged | ShellOutput | ProgressShown
)  # fmt: skip
KnownEvent = Durable | Ephemeral
Event = KnownEvent | UnknownEvent

EPHEMERAL_TYPES: frozenset[type] = frozenset(Ephemeral.__args__)


def is_durable(event: Event) -> bool:
    return type(event) not in EPHEMERAL_TYPES


class Envelope(Struct, frozen=True):
    """An event in its place: `seq` counts a session's durable events from 1 (an ephemeral one repeats the
    last); `at` is UTC, RFC 3339 with milliseconds."""

    seq: int
    session: str
    at: str
    event: Event
