"""How full a session's context window is, when room is made in it, and what a request refused as too long teaches.

Window, room for the answer and what the next request takes are kept apart. Tokens are estimated from bytes by the
provider's own last count; no vocabulary is needed, and what was billed in all decides nothing here.
"""

from collections.abc import Callable, Sequence
from typing import Protocol

from msgspec import Struct
from msgspec.structs import replace

from codewhale.agent.effort import turn_effort
from codewhale.agent.message_queue import QueuedMessage
from codewhale.agent.model_call import ModelCalls
from codewhale.agent.turn import Turn
from codewhale.models.dialects.base import ModelFacts, RequestOptions
from codewhale.models.dialects.failures import headline
from codewhale.protocol.events import Compacted, CompactionUndone, Event, HeaderPinned, PrefixInvalidated
from codewhale.protocol.memory import LayerRow
from codewhale.protocol.modes import Authority
from codewhale.protocol.ops import SendMessage
from codewhale.protocol.stream import Failed
from codewhale.protocol.views import ContextView
from codewhale.session.conversation import Conversation
from codewhale.session.footprint import LAYERS, PICTURE_BYTES, Footprint, tables
from codewhale.session.projection import Projection
from codewhale.session.session import Session
from codewhale.session.window import ContextSettings, reserved

_WORDS = "w"  # stands for what the person will say
_MOST_ADOPTED = 3
_SHORTEST_ANSWER = 256


class Quantities(Struct, frozen=True):
    """In tokens. `spendable` is the window less `reserved`, the room kept for the answer; `used` what the next
    request takes, `head` of it system text and tools; from `threshold` on room is made (0: never by itself)."""

    window: int
    window_source: str
    reserved: int
    spendable: int
    threshold: int
    used: int
    head: int


def measure(session: Session, settings: ContextSettings) -> Quantities:
    """How full a session's context is now. A window that was refused as too small is no larger than what it refused;
    after a compaction was undone, none happens by itself."""
    provider, state = session.provider, session.state
    window, source = provider.model.window, provider.model.window_source
    if 0 < state.overflow < window:
        window, source = state.overflow, "overflow"
    kept_back = reserved(window, provider.model.max_output)
    spendable = max(window - kept_back, window // 4)
    return Quantities(
        window=window,
        window_source=source,
        reserved=kept_back,
        spendable=spendable,
        threshold=0 if state.auto_compact_off else settings.threshold(provider.model.window, spendable),
        used=_used(session),
        head=int(_head_bytes(session) * bytes_to_tokens(session)),
    )


def bytes_to_tokens(session: Session) -> float:
    """Tokens that a byte of text takes, by the provider's last count."""
    measured, tokens = _measured(session)
    return min(1.5, max(0.05, tokens / measured)) if measured > 1000 else session.state.tokens_per_byte


def _measured(session: Session) -> tuple[int, int]:
    size, tokens = session.state.measured
    pictures = session.projection.sent_pictures
    return max(0, size - pictures), max(0, tokens - pictures // PICTURE_BYTES)


def _head_bytes(session: Session) -> int:
    header = session.state.pinned
    return sum(len(text) if text.isascii() else len(text.encode()) for text in (header.system, header.tools_json))


def _used(session: Session) -> int:
    projection = session.projection
    pictures = projection.picture_bytes
    text = _head_bytes(session) + projection.size - pictures
    measured, tokens = _measured(session)
    rate = bytes_to_tokens(session)
    known = tokens + (text - measured) * rate if 1000 < measured <= text else text * rate
    return int(known) + pictures // PICTURE_BYTES


def context_view(
    session: Session,
    settings: ContextSettings,
    request: Footprint | None = None,
    layers: Sequence[LayerRow] = LAYERS,
) -> ContextView:
    """With what a `request` consists of, where that is wanted."""
    now, state = measure(session, settings), session.state
    rows, parts = ((), ()) if request is None else tables(request, now.used, layers)
    return ContextView(
        provider=state.provider,
        model=state.model,
        window=now.window,
        window_source=now.window_source,
        reserved=now.reserved,
        spendable=now.spendable,
        used=now.used,
        threshold=now.threshold,
        rows=rows,
        parts=parts,
        bytes=request.body if request is not None else 0,
        calibrated=state.measured[1] > 0,
        billed_input=state.usage.input,
        billed_output=state.usage.output,
        last_hit=state.last_usage.cache_hit,
        last_miss=state.last_usage.cache_miss,
        compactions=len(state.standing),
    )


def next_request(turn: Turn, beginning: Sequence[Event], projection: Projection, header: HeaderPinned) -> Footprint:
    """What the next request of a session consists of: of a turn that runs, its next step; else of a turn that begins
    with a message, without the words of that, and with `beginning` behind it."""
    session = turn.session
    options = RequestOptions(session.provider.model.max_output, turn.effort)
    if not turn.idle:
        return projection.footprint(header, options)
    message = QueuedMessage(SendMessage(session.id, _WORDS)).joins(session)
    more = Conversation(session.as_recorded((message, *beginning))).pending
    options = replace(options, effort=turn_effort(session.state.effort, _WORDS))
    return projection.footprint(header, options, more).without(len(_WORDS))


# ---------------------------------------------------------------------- keeping within it


class CompactionFailed(Exception):
    """The conversation stays as it was; the text says why."""


class Compactor(Protocol):
    """Makes room. While a summary is asked for, `asking` is set, and stays so when that is cancelled."""

    asking: bool

    async def make_room(self, calls: ModelCalls) -> None:
        """Before a request: make room if it is time to."""

    async def overflowed(self, calls: ModelCalls) -> bool:
        """After the provider refused a request as too long: whether enough was taken away to send it again."""

    async def asked(self, turn: Turn, focus: str) -> Compacted:
        """A compaction that the person asks for, outside a turn. Raises CompactionFailed."""


class ContextWindow:
    """Keeps a session within its model's window, by a compactor that is built when it is first needed."""

    def __init__(
        self, session: Session, settings: ContextSettings, build: Callable[[Session, ContextSettings], Compactor]
    ) -> None:
        self._session = session
        self._settings = settings
        self._build = build
        self._compactor: Compactor | None = None
        self._adopted = 0

    @property
    def compactor(self) -> Compactor:
        if self._compactor is None:
            self._compactor = self._build(self._session, self._settings)
        return self._compactor

    @property
    def asking(self) -> bool:
        return self._compactor is not None and self._compactor.asking

    async def make_room(self, calls: ModelCalls) -> None:
        """Before a request: make room if the context is full."""
        now = self.now
        if 0 < now.threshold <= now.used:
            await self.compactor.make_room(calls)

    @property
    def now(self) -> Quantities:
        return measure(self._session, self._settings)

    async def overflowed(self, calls: ModelCalls, failure: Failed) -> bool:
        """After the provider refused a request as too long: whether it may be sent again, with a shorter answer asked
        for where that was too much, else with enough taken away."""
        self._adopted += 1
        if self._adopted <= _MOST_ADOPTED and _adopt_window(self._session, failure, self.now.used):
            return True
        return await self.compactor.overflowed(calls)

    def undo(self) -> int:
        compactions = self._session.state.standing
        if not compactions:
            return 0
        number = compactions[-1]
        self._session.emit(PrefixInvalidated("compaction undone", 1), CompactionUndone(number))
        return number


def _adopt_window(session: Session, failure: Failed, used: int) -> bool:
    """Take what the server says it reads for the model's window. Whether a shorter answer is all that is needed: the
    request itself takes `used` tokens."""
    provider = session.provider
    model = provider.model
    if 0 < failure.window < model.window:
        session.notice(
            "warning",
            f"The server reads {failure.window:,} tokens, not {model.window:,}: this is the model's window now. "
            f"To keep it, set providers.{provider.name}.context_window = {failure.window}.",
            "window_adopted",
        )
        model = replace(model, window=failure.window, window_source="reported")
    longest = max(_SHORTEST_ANSWER, model.window - used - used // 8 - _SHORTEST_ANSWER)
    shorter = longest < model.max_output and used < model.window * 3 // 4
    provider.model = replace(model, max_output=longest) if shorter else model
    return shorter


def explain(session: Session, failure: Failed, now: Quantities) -> str:
    """Why the turn ends and what to do, a line each: in an interface its own commands, else those of a shell."""
    name, person = session.state.provider, session.rights.authority is Authority.PERSON
    test, retry = f"codewhale provider test {name}", "/retry" if person else "codewhale exec --continue /retry"
    head = headline(name, session.state.model, failure.kind, failure.message)
    answer = f"{failure.message}{'' if failure.message.endswith('.') else '.'}"
    match failure.kind:
        case "auth":
            login = "/login to change it" if person else f"codewhale login {name} changes it, {test} tries it"
            return f"{head}. {login}.\nIt answered: {answer}"
        case "no_model":
            choose = (
                "/model to choose another" if person else "Choose with --model M; codewhale model list --live shows all"
            )
            return f"{head}. {choose}.\nIt answered: {answer}"
        case "connect":
            check = (
                "/connect changes the address, /doctor checks it" if person else f"codewhale doctor or {test} checks it"
            )
            return f"{head}: {answer}\nCheck that the server runs; {check}; then {retry}."
        case "context_length":
            return _too_long(name, answer, now, session.provider.model)
        case "quota":
            remedy = "Check the account with the provider."
        case _:
            lost = "No tool call of the answer was run; " if failure.started else ""
            remedy = f"{lost}{retry} asks again." if failure.retryable else ""
    return f"The model call failed: {answer} {remedy}".rstrip()


def _too_long(name: str, answer: str, now: Quantities, model: ModelFacts) -> str:
    """What the server said beside what was counted. That the window is too small is known only where the count says
    so, or the server with a figure of its own; what it refused without one is no measure of a window."""
    guessed = now.window_source == "overflow"
    if now.used < now.spendable or (guessed and now.used < model.window // 2):
        return (
            f"{name} refused the request as too long: {answer}\nBy our count it takes about {now.used:,} tokens of the "
            f"model's {model.window:,} ({model.window_source or 'unknown source'}). If the server runs with a smaller "
            f"window, codewhale provider test {name} --save asks it, or set providers.{name}.context_window; else "
            "choose another model (/model), or start a new session (/new)."
        )
    return (
        f"{name} refused the request as too long: {answer}\nThe conversation takes about {now.used:,} tokens of the "
        f"model's {now.window:,}, even after shortening it as far as possible: send less at once, choose a model with "
        "a larger window (/model), or start a new session (/new)."
    )
