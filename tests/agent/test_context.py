"""How full a context is: estimated by the provider's own counts, pictures apart, what was billed apart."""

from pathlib import Path

from codewhale.agent.context_window import bytes_to_tokens, context_view, measure, next_request
from codewhale.models.dialects.base import ModelFacts, RequestOptions
from codewhale.protocol.events import Compacted, CompactionUndone, MessageAdded, RequestSent, UsageReported
from codewhale.protocol.messages import Image, Message, Text
from codewhale.protocol.stream import Usage
from codewhale.session.session import Session
from codewhale.session.window import ContextSettings
from support.stage import staged

SETTINGS = ContextSettings()


def say(session: Session, size: int, picture: int = 0) -> None:
    """The person says so many bytes, with a picture of so many beside them."""
    parts = (Text("w" * size), *([Image("image/png", "a" * 64, picture)] if picture else []))
    session.emit(MessageAdded(Message("user", parts)))


def size(session: Session) -> int:
    """Bytes of the next request."""
    assert session.state.header is not None
    return len(session.projection.request(session.state.header, RequestOptions())[0])


async def test_the_estimate_follows_the_last_count(home: Path, workspace: Path) -> None:
    async with staged(home, workspace) as stage:
        session = stage.open()
        say(session, 40_000)
        guess = measure(session, SETTINGS).used
        assert 11_000 < guess < 14_500
        session.emit(RequestSent(1, size(session), "", 1), UsageReported(1, Usage(input=8_200, output=10)))
        assert abs(measure(session, SETTINGS).used - 8_200) < 300
        assert abs(bytes_to_tokens(session) - 0.18) < 0.01
        say(session, 10_000)
        assert abs(measure(session, SETTINGS).used - 10_000) < 300


async def test_what_was_billed_decides_nothing(home: Path, workspace: Path) -> None:
    async with staged(home, workspace) as stage:
        session = stage.open()
        say(session, 4000)
        for number in range(1, 50):
            session.emit(RequestSent(number, size(session), "", 1), UsageReported(number, Usage(1000, 10, 900, 100)))
        view = context_view(
            session, SETTINGS, next_request(stage.engine.turn(session.id), (), session.projection, session.state.pinned)
        )
        assert view.used < 1100 and view.billed_input == 49_000
        assert (view.last_hit, view.last_miss, view.calibrated) == (900, 100, True)
        assert sum(one.tokens for one in (*view.rows, *view.parts)) == view.used
        assert {"your messages", "system text"} < {part.name for part in view.parts}


async def test_a_picture_is_not_counted_as_the_text_it_travels_as(home: Path, workspace: Path) -> None:
    async with staged(home, workspace) as stage:
        session = stage.open()
        stage.artifacts.put(b"x" * 300_000)
        say(session, 100, picture=300_000)
        assert measure(session, SETTINGS).used < 6_000


async def test_a_refusal_and_an_undone_compaction_are_remembered(home: Path, workspace: Path) -> None:
    async with staged(home, workspace) as stage:
        session = stage.open()
        stage.provider.model = ModelFacts(128_000, "fallback", 4096)
        now = measure(session, SETTINGS)
        assert (now.window, now.window_source, now.reserved, now.spendable) == (128_000, "fallback", 5_120, 122_880)
        assert now.threshold == 122_880 * 80 // 100
        session.emit(Compacted(1, "overflow", (), 30_000, 9_000))
        assert (measure(session, SETTINGS).window, measure(session, SETTINGS).window_source) == (30_000, "overflow")
        session.emit(CompactionUndone(1))
        assert measure(session, SETTINGS).threshold == 0
