"""What a model stream yields, in no provider's dialect. A provider never raises past this: a failure is
the last event."""

from typing import Literal

from msgspec import Struct

from codewhale.protocol.messages import Opaque

FailureKind = Literal[
    "connect", "timeout", "rate_limit", "server", "auth", "quota", "context_length", "content_policy",
    "bad_request", "no_model", "lost_call", "protocol", "malformed", "interrupted",
]  # fmt: skip


class TextDelta(Struct, frozen=True):
    """More answer text."""

    text: str


class ReasoningDelta(Struct, frozen=True):
    """More reasoning text."""

    text: str


class CallDelta(Struct, frozen=True):
    """A fragment of a tool call. `index` groups fragments; `id` and `name` are "" when not repeated."""

    index: int
    id: str
    name: str
    arguments: str


class OpaqueDelta(Struct, frozen=True):
    """A provider part to be kept byte for byte."""

    part: Opaque


class Usage(Struct, frozen=True, tag="usage", omit_defaults=True):
    """Tokens of one model call. `input` counts the whole prompt; hit and miss split it where the provider
    says. `cost` is in `currency`, None when the price is unknown."""

    input: int = 0
    output: int = 0
    cache_hit: int = 0
    cache_miss: int = 0
    reasoning: int = 0
    cost: float | None = None
    currency: str = "USD"


class Boundary(Struct, frozen=True):
    """The next text or reasoning is a part of its own. Dialects whose answers come in blocks say so; without it,
    all text is one part and all reasoning another."""


class UsageReport(Struct, frozen=True):
    """The provider's own count for this call."""

    usage: Usage


class Retrying(Struct, frozen=True):
    """The request will be sent again after `delay` seconds. `broke` tells that its answer had begun: what has come of
    it is void. `kind` is that of the failure."""

    attempt: int
    attempts: int
    delay: float
    reason: str
    broke: bool = False
    kind: str = ""


class Resent(Struct, frozen=True):
    """A request whose answer broke goes out again now."""


class Finished(Struct, frozen=True):
    """The stream ended; `reason` is stop, tool_calls, length, content_filter or the provider's own word."""

    reason: str


class Failed(Struct, frozen=True):
    """The stream failed. `started` tells whether anything had been received; `retryable` whether the same
    request may succeed later; `message` is one line for a person. `window` is how many tokens the server says that the
    model reads, where it refused a longer request and says so."""

    kind: FailureKind
    message: str
    retryable: bool
    started: bool
    window: int = 0


StreamEvent = (
    TextDelta
    | ReasoningDelta
    | CallDelta
    | OpaqueDelta
    | Boundary
    | UsageReport
    | Retrying
    | Resent
    | Finished
    | Failed
)
