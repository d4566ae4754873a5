"""How full a session's context is: window, room for the answer and what the next request takes, each kept apart.

Tokens are estimated from bytes by the provider's own last count; no vocabulary is needed, and what was billed in all
decides nothing here.
"""

from collections.abc import Iterable

from msgspec import Struct

from codewhale.protocol.messages import Image, Message, Opaque, Part, Reasoning, ResultPart, Text, ToolCall
from codewhale.protocol.views import ContextView
from codewhale.session.conversation import COMPACTED, Conversation
from codewhale.session.session import Session
from codewhale.session.window import ContextSettings, reserved

INSTRUCTIONS = "# Instructions of this project\n"
_PICTURE_BYTES = 128  # of a picture's text form, one token


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
    assert provider is not None
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
        threshold=0 if state.held_open else settings.threshold(provider.model.window, spendable),
        used=_used(session),
        head=int(_head_bytes(session) * bytes_to_tokens(session)),
    )


def bytes_to_tokens(session: Session) -> float:
    """Tokens that a byte of text takes, by the provider's last count."""
    measured, tokens = _measured(session)
    return min(1.5, max(0.05, tokens / measured)) if measured > 1000 else session.state.tokens_per_byte


def _measured(session: Session) -> tuple[int, int]:
    """Bytes of text, and tokens, of the last request that was counted."""
    assert session.projection is not None
    size, tokens = session.state.measured
    pictures = session.projection.sent_pictures
    return max(0, size - pictures), max(0, tokens - pictures // _PICTURE_BYTES)


def _head_bytes(session: Session) -> int:
    header = session.state.header
    return 0 if header is None else len(header.system.encode()) + len(header.tools_json.encode())


def _used(session: Session) -> int:
    projection = session.projection
    assert projection is not None
    pictures = projection.picture_bytes
    text = _head_bytes(session) + projection.size - pictures
    measured, tokens = _measured(session)
    rate = bytes_to_tokens(session)
    known = tokens + (text - measured) * rate if 1000 < measured <= text else text * rate
    return int(known) + pictures // _PICTURE_BYTES


def context_view(session: Session, settings: ContextSettings, brief: bool = False) -> ContextView:
    """The same for people, with what each layer takes unless it is `brief`: for that the whole log is read."""
    now, state = measure(session, settings), session.state
    return ContextView(
        provider=state.provider,
        model=state.model,
        window=now.window,
        window_source=now.window_source,
        reserved=now.reserved,
        spendable=now.spendable,
        used=now.used,
        threshold=now.threshold,
        layers=() if brief else _layers(session),
        calibrated=state.measured[1] > 0,
        billed_input=state.usage.input,
        billed_output=state.usage.output,
        last_hit=state.last_usage.cache_hit,
        last_miss=state.last_usage.cache_miss,
        compactions=len(state.standing),
    )


def _layers(session: Session) -> tuple[tuple[str, int], ...]:
    """What each layer takes, in tokens."""
    state, rate = session.state, bytes_to_tokens(session)
    conversation = Conversation(envelope.event for envelope in session.log.read())
    messages = (*conversation.messages, Message("user", conversation.pending))
    system, mark, chain = state.header.system.rpartition(INSTRUCTIONS) if state.header is not None else ("", "", "")
    system, chain = (system, chain) if mark else (chain, "")
    tools = state.header.tools_json if state.header is not None else ""
    layers = {
        "system text": len(system.encode()),
        "instruction files": len(chain.encode()),
        "tools": len(tools.encode()),
    }
    for name, size in _sizes(part for message in messages for part in message.parts):
        layers[name] = layers.get(name, 0) + size
    return tuple((name, int(size * rate)) for name, size in layers.items() if size)


def _sizes(parts: Iterable[Part]) -> Iterable[tuple[str, int]]:
    """Each part's layer and its bytes of text (of a picture, what its tokens would be as text)."""
    names = {"person": "your messages", "harness": "told by the harness", "model": "answers"}
    for part in parts:
        match part:
            case Text(text=text, source="harness") if text.startswith(COMPACTED):
                yield "compacted", len(text.encode("utf-8", "replace"))
            case Text(text=text, source=source):
                yield names.get(source, source), len(text.encode("utf-8", "replace"))
            case Reasoning(text=text) | Opaque(json=text):
                yield "reasoning", len(text.encode("utf-8", "replace"))
            case ToolCall():
                yield "tool calls", len(part.sent_name) + len(part.sent_arguments.encode("utf-8", "replace")) + 60
            case ResultPart(content=text):
                yield "tool results", len(text.encode("utf-8", "replace")) + 40
            case Image():
                yield "pictures", part.bytes // 24
