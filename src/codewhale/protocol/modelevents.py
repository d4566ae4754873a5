"""Events of model requests: what was sent, what it took, what comes of its answer, and when it is asked for again."""

from codewhale.protocol.eventbase import EventBase
from codewhale.protocol.ops import Limits
from codewhale.protocol.stream import Usage


class RequestSent(EventBase, frozen=True):
    """Model request `request` of this session (from 1) is about to be sent: what its bytes are. `purpose` is "" for
    the conversation itself, else what it is made for (compaction); `extra` is a last user message of this request
    alone, of one whose purpose is in ONE_SHOT its whole body, and of a question what that is made of; `expected_hit`
    how many of its bytes the provider's cache should know; `model` the one asked, where it is not the session's."""

    request: int
    bytes: int
    sha256: str
    messages: int
    max_tokens: int = 0
    effort: str = ""
    purpose: str = ""
    extra: str = ""
    expected_hit: int = 0
    model: str = ""


class UsageReported(EventBase, frozen=True):
    """The provider's count for request `request`. `expected_hit` is the number of tokens that should have come from
    its cache, `cause` why fewer of those sent before did: cold, model, compaction, undo, pruned, activation, expired,
    provider, changed ("" when none was missed). `saved` is the money that the cache spared, None when unknown.
    `estimated`: the call was stopped before its provider counted."""

    request: int
    usage: Usage
    expected_hit: int = 0
    cause: str = ""
    saved: float | None = None
    estimated: bool = False


class BudgetChanged(EventBase, frozen=True):
    """The bounds of the session's whole life from here on, children included; None is unlimited."""

    limits: Limits


class BudgetReserved(EventBase, frozen=True):
    """Held before a model call; `tokens` is the estimate, `money` its price or None when unknown."""

    request: int
    tokens: int
    money: float | None = None
    parent_session: str = ""


class BudgetSettled(EventBase, frozen=True):
    """What the model call really took; running totals of the session."""

    request: int
    steps: int
    tokens: int
    seconds: float
    money: float | None = None
    parent_session: str = ""


class TextStreamed(EventBase, frozen=True):
    """A piece of answer text."""

    text: str


class ReasoningStreamed(EventBase, frozen=True):
    """A piece of reasoning."""

    text: str


class CallStreamed(EventBase, frozen=True):
    """A call is being written by the model."""

    index: int
    name: str


class AnswerMoved(EventBase, frozen=True):
    """More of an answer has come where none of it is shown: arguments of a call, text that is kept back."""


class AnswerDropped(EventBase, frozen=True):
    """The answer to request `request` broke before it was whole: nothing of it has run, and no request says it again.
    `text` and `calls` (their names) are what had come. The request is sent again in `delay` seconds, as retry `attempt`
    of `attempts`; an `attempt` of 0 says that it is not."""

    request: int
    reason: str
    attempt: int = 0
    attempts: int = 0
    delay: float = 0.0
    text: str = ""
    calls: tuple[str, ...] = ()
    purpose: str = ""


class RetryCountdown(EventBase, frozen=True):
    """The model call will be sent again in `delay` seconds, for its answer `broke` or there was none."""

    attempt: int
    attempts: int
    delay: float
    reason: str
    broke: bool = False
