"""How the session stands, as a fold of its events and of the two views that fill in what no event says. Knows no
screen."""

import time
from collections.abc import Callable

from codewhale.display.words import Words
from codewhale.lib.text import one_line
from codewhale.protocol.events import (
    AnswerMoved,
    ApprovalAnswered,
    ApprovalAsked,
    ApprovalChanged,
    CallFinished,
    CallStarted,
    CallStreamed,
    ChildClosed,
    ChildOpened,
    ChildProgress,
    Compacted,
    EffortChanged,
    Envelope,
    Event,
    JobEnded,
    JobStarted,
    ModeChanged,
    ModelChanged,
    QuestionAnswered,
    QuestionAsked,
    QueueChanged,
    Queued,
    ReasoningStreamed,
    RequestSent,
    RetryCountdown,
    Rewound,
    SessionOpened,
    SessionResumed,
    SkillActivated,
    SkillReleased,
    TextStreamed,
    TurnFinished,
    TurnStarted,
    UsageReported,
)
from codewhale.protocol.ops import StatusView
from codewhale.protocol.stream import Usage
from codewhale.protocol.views import ContextView, WorkspaceRow

_STREAMED = (TurnStarted, RequestSent, ReasoningStreamed, TextStreamed, CallStreamed, AnswerMoved)
# What is waited for while a model answers.
_ANSWERING = frozenset({"model", "compaction", "relay", "thinking", "writing", "call"})


class SessionFacts:
    """Every field is for reading. `doing` is the key of what is waited for ("" when idle) and `subject` its name,
    `since` when it began by `clock`; `context_used` and `context_room` are tokens, 0 where unknown; `hit` is the share
    of the last prompt that the provider's cache knew, None where unknown; `again_at` is when a call is sent again,
    `heard` when the model last sent something, `denied_at` when an approval that nobody answers is denied;
    `skills` are those that restrict the tools, with how long."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._purposes: dict[int, str] = {}
        self.begin()

    def begin(self) -> None:
        self.mode = ""
        self.provider = ""
        self.model = ""
        self.effort = ""
        self.approval = ""
        self.sandbox: str | None = None
        self.branch = ""
        self.changed = 0
        self.context_used = 0
        self.context_room = 0
        self.hit: float | None = None
        self.currency = "USD"
        self.queue = 0
        self.jobs: dict[str, str] = {}
        self.children: dict[str, str] = {}
        self.skills: dict[str, str] = {}
        self._skills_before: dict[int, dict[str, str]] = {}  # by turn
        self._rewound: list[dict[str, str]] = []
        self._costs: dict[str, float] = {}  # what children have cost
        self._own_cost: float | None = None
        self._asked_by: dict[str, str] = {}  # what children have asked: it outlasts a turn
        self._turns = False
        self._rested = self._latest = self._viewed = self._chosen = 0
        self._idle()

    def _idle(self) -> None:
        self.doing = ""
        self.subject = ""
        self.since = self._clock()
        self.again_at = self.denied_at = self.turn_since = 0.0
        self.heard = self.since
        self._calls: dict[str, str] = {}
        self._asked: dict[str, str] = {}
        self._purposes.clear()

    @property
    def busy(self) -> bool:
        return bool(self.doing)

    @property
    def cost(self) -> float | None:
        """What the session has cost with its children, None where that is unknown."""
        costs = [*self._costs.values(), *(() if self._own_cost is None else (self._own_cost,))]
        return sum(costs) if costs else None

    @property
    def asking(self) -> bool:
        """Whether the person is asked something."""
        return bool(self._asked or self._asked_by)

    @property
    def turn_asks(self) -> bool:
        """Whether the turn itself asks, not a child."""
        return bool(self._asked)

    @property
    def silent(self) -> float:
        """For how long the model that is waited for has sent nothing; 0 where none is."""
        return self._clock() - max(self.heard, self.since) if self.doing in _ANSWERING else 0.0

    def unfinished(self, words: Words) -> list[str]:
        """What leaving would end, a sentence each."""
        said = [words("leave.turn")] if self.busy else []
        said += [words("leave.asked")] if self.asking else []
        names = ", ".join(one_line(command, 60) for command in self.jobs.values())
        counted = (("jobs", len(self.jobs)), ("children", len(self.children)), ("queue", self.queue))
        said += [words(f"leave.{name}", n=count, names=names) for name, count in counted if count]
        return [*said, words("leave.hint")] if said else []

    # -------------------------------------------------------------- views

    def see(self, view: StatusView) -> None:
        """What the session says of itself. A view is made before it arrives: what events have changed since stays."""
        self.sandbox, self.branch, self._viewed = view.sandbox, view.branch, view.seq
        if view.seq >= self._chosen:
            self.approval = view.approval.value
        if view.seq >= self._latest:
            self.mode, self.provider, self.model = view.mode.value, view.provider, view.model
            self.effort, self.queue = view.effort, view.queue
        if not view.busy:
            self._rested = view.seq
            self._rest()

    def _rest(self) -> bool:
        """What is done outside of a turn, a compaction that was asked for, is over; whether it was under way."""
        if self._turns or not self.busy:
            return False
        self._idle()
        self._name_calls()
        return True

    def see_context(self, view: ContextView) -> None:
        self.context_used, self.context_room = view.used, view.spendable

    def see_workspace(self, view: WorkspaceRow) -> None:
        self.branch, self.changed = view.branch, view.changed

    # -------------------------------------------------------------- events

    def take(self, envelope: Envelope) -> bool:
        """An event; whether anything that is shown has changed."""
        event = envelope.event
        if isinstance(event, _STREAMED):
            self.heard = self._clock()
        self._latest = max(self._latest, envelope.seq)
        changed = self._session(event) or self._turn(event) or self._count(event)
        over = isinstance(event, Compacted) or envelope.seq <= self._rested
        return (over and self._rest()) or changed

    def _session(self, event: Event) -> bool:
        match event:
            case SessionOpened(mode=mode, provider=provider, model=model):
                self.mode, self.provider, self.model = mode.value, provider, model
            case SessionResumed(mode=mode):
                self._turns = False
                self._idle()
                self._keep_skills()
                self.mode, self.queue = mode.value, 0
                self.jobs.clear()
                self.children.clear()
                self._asked_by.clear()
            case ModeChanged(mode=mode):
                self.mode = mode.value
            case ModelChanged(provider=provider, model=model):
                self.provider, self.model = provider, model
            case ApprovalChanged(approval=approval) if self._latest > self._viewed:
                self.approval, self._chosen = approval.value, self._latest
            case SkillActivated(name=name, scope=scope, lasts=lasts) if scope is not None:
                self.skills[name] = lasts
            case SkillReleased(name=name):
                self.skills.pop(name, None)
            case Rewound(back=True):
                self.skills = self._rewound.pop() if self._rewound else self.skills
            case Rewound(turn=turn):
                self._rewound.append(self.skills)
                self.skills = dict(self._skills_before.get(turn, self.skills))
            case EffortChanged(effort=effort):
                self.effort = effort
            case Compacted(tokens_after=tokens):
                self.context_used = tokens
            case _:
                return False
        return True

    def _keep_skills(self) -> None:
        self.skills = {name: lasts for name, lasts in self.skills.items() if lasts == "session"}

    def _turn(self, event: Event) -> bool:
        match event:
            case TurnStarted(turn=turn):
                self._skills_before[turn] = dict(self.skills)
                self._rewound.clear()
                self._idle()
                self._turns = True
                self.turn_since = self._clock()
                self._wait("model")
            case TurnFinished():
                self._turns = False
                self._idle()
                self._keep_skills()
                self._name_calls()
            case RequestSent(request=request, purpose=purpose):
                self._purposes[request] = purpose
                if purpose != "title":  # which nobody waits for
                    self._wait(purpose if purpose in ("compaction", "relay") else "model")
            case RetryCountdown(attempt=attempt, attempts=attempts, delay=delay, reason=reason):
                self._wait("retry", f"{attempt}/{attempts}: {reason}")
                self.again_at = self._clock() + delay
            case ReasoningStreamed():
                return self._wait("thinking", keep=True)
            case TextStreamed():
                return self._wait("writing", keep=True)
            case CallStreamed(name=name):
                return self._wait("call", name, keep=True)
            case _:
                return self._call(event)
        return True

    def _call(self, event: Event) -> bool:
        match event:
            case CallStarted(call_id=call, name=name):
                self._calls[call] = name
                self._name_calls()
            case CallFinished(call_id=call):
                self._calls.pop(call, None)
                self._name_calls()
            case ApprovalAsked(request_id=request, tool=tool, seconds=seconds, asker=asker):
                (self._asked_by if asker else self._asked)[request] = tool
                self._wait("approval", tool)
                self.denied_at = self._clock() + seconds if seconds else 0.0
            case QuestionAsked(request_id=request, asker=asker) if self._turns or asker:
                (self._asked_by if asker else self._asked)[request] = ""
                self._wait("question")
            case ApprovalAnswered(request_id=request) | QuestionAnswered(request_id=request):
                self._asked.pop(request, None)
                self._asked_by.pop(request, None)
                self._name_calls()
            case _:
                return False
        return True

    def _name_calls(self) -> None:
        if waiting := next(iter((*self._asked.values(), *self._asked_by.values())), None):
            self._wait("approval", waiting)
        if self.asking or not self.busy:
            return
        if not self._turns and self.doing in ("approval", "question"):
            self._idle()
        elif len(self._calls) == 1:
            self._wait("tool", next(iter(self._calls.values())))
        elif self._calls:
            self._wait("tools", str(len(self._calls)))
        else:
            self._wait("model")

    def _count(self, event: Event) -> bool:
        match event:
            case UsageReported(request=request, usage=usage):
                self._spend(usage, self._purposes.pop(request, ""))
            case JobStarted(job_id=job, command=command):
                self.jobs[job] = command
            case JobEnded(job_id=job):
                self.jobs.pop(job, None)
            case ChildOpened(child=child, name=name, kind=kind):
                self.children[child] = name
                if kind == "review" and not self._turns:  # which a command waits for
                    self._wait("child", name)
            case ChildProgress(child=child, usage=usage):
                self._spend_of(child, usage)
            case ChildClosed(child=child, usage=usage):
                self.children.pop(child, None)
                self._spend_of(child, usage)
                if self.doing == "child":
                    self._rest()
            case Queued(waiting=waiting) | QueueChanged(waiting=waiting):
                self.queue = waiting
            case _:
                return False
        return True

    def _spend_of(self, child: str, usage: Usage) -> None:
        if usage.cost is not None:
            self._costs[child], self.currency = usage.cost, usage.currency

    def _spend(self, usage: Usage, purpose: str) -> None:
        if usage.cost is not None:
            self._own_cost = (self._own_cost or 0.0) + usage.cost
            self.currency = usage.currency
        if not purpose:
            self.context_used = usage.input + usage.output
            counted = usage.cache_hit + usage.cache_miss
            self.hit = usage.cache_hit / usage.input if counted and usage.input else self.hit

    def _wait(self, doing: str, subject: str = "", keep: bool = False) -> bool:
        """What is waited for now; with `keep` the time goes on where it already was that. Whether it changed."""
        if (doing, subject) == (self.doing, self.subject):
            if not keep:
                self.since = self._clock()
            return not keep
        if not self.doing and doing not in ("model", "approval", "question", "compaction", "relay", "child"):
            return False
        self.doing, self.subject, self.since = doing, subject, self._clock()
        return True
