"""How full the context is: window, room for the answer and what the next request takes, each kept apart.

Tokens are estimated from bytes by the provider's own last count; no vocabulary is needed, and what was billed in all
decides nothing here.
"""

from msgspec import Struct

from codewhale.engine.session import Session

LARGE_WINDOW = 500_000
_NEAR_END = 95
_SAFETY = 1024
_OUTPUT = 8192
_PICTURE_BYTES = 128  # of a picture's text form, one token


class ContextSettings(Struct, frozen=True, omit_defaults=True):
    """The `[context]` table. `auto_compact` unset is by the window: at `percent` of what may be spent, and only near
    the end where it is 500,000 tokens or more. `prune` first sets old tool results aside; `keep_tokens` is how much
    of the newest conversation a compaction leaves as it is (0: an eighth of what may be spent, 20,000 at most)."""

    auto_compact: bool | None = None
    percent: int = 80
    prune: bool = True
    keep_tokens: int = 0


class Quantities(Struct, frozen=True):
    """In tokens. `spendable` is the window less `reserved`, the room kept for the answer; `used` what the next
    request takes; beyond `threshold` room is made (0: never by itself)."""

    window: int
    window_source: str
    reserved: int
    spendable: int
    threshold: int
    used: int
    head: int


def measure(session: Session, settings: ContextSettings) -> Quantities:
    """How full a session's context is now."""
    provider, header = session.provider, session.state.header
    assert provider is not None and header is not None
    window, source = provider.model.window, provider.model.window_source
    if 0 < session.state.overflow < window:
        window, source = session.state.overflow, "overflow"
    reserved = _reserved(window, provider.model.max_output)
    spendable = max(window - reserved, window // 4)
    head = int((len(header.system) + len(header.tools_json)) * bytes_to_tokens(session))
    return Quantities(
        window, source, reserved, spendable, _threshold(session, settings, spendable), _used(session), head
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


def _used(session: Session) -> int:
    projection, header = session.projection, session.state.header
    assert projection is not None and header is not None
    pictures = projection.picture_bytes
    text = len(header.system) + len(header.tools_json) + projection.size - pictures
    measured, tokens = _measured(session)
    rate = bytes_to_tokens(session)
    known = tokens + (text - measured) * rate if 1000 < measured <= text else text * rate
    return int(known) + pictures // _PICTURE_BYTES


def _reserved(window: int, max_output: int) -> int:
    output = min(max_output, window // 2) if max_output else min(_OUTPUT, window // 4)
    return output + min(_SAFETY, window // 16)


def _threshold(session: Session, settings: ContextSettings, spendable: int) -> int:
    if settings.auto_compact is False or session.state.held_open:
        return 0
    percent = min(100, max(10, settings.percent))
    provider = session.provider
    if settings.auto_compact is None and provider is not None and provider.model.window >= LARGE_WINDOW:
        percent = _NEAR_END
    return spendable * percent // 100


def keep_tokens(settings: ContextSettings, spendable: int) -> int:
    """How much of the newest conversation a compaction leaves as it is."""
    return min(settings.keep_tokens or 20_000, spendable // (2 if settings.keep_tokens else 8))
