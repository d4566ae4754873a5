"""Sums over sessions at rest."""

from pathlib import Path

from codewhale.cli.offline.usage import usage_stats
from codewhale.lib.clock import rfc3339
from codewhale.protocol.events import Event, ModelChanged, RequestSent, SessionOpened, TurnStarted, UsageReported
from codewhale.protocol.modes import Mode
from codewhale.protocol.stream import Usage
from codewhale.session.log import LOG_FILE
from codewhale.session.store import SessionStore
from codewhale.testing import FakeClock

DAY = 86_400


def call(number: int, tokens: int, hit: int = 0, cost: float | None = None, cause: str = "") -> tuple[Event, Event]:
    """The events of one model call."""
    usage = Usage(tokens, 10, hit, tokens - hit, cost=cost)
    return RequestSent(number, 100, "0", 1), UsageReported(number, usage, hit, cause)


def record(store: SessionStore, workspace: Path, *events: Event) -> str:
    """A closed session with these events."""
    log = store.create(SessionOpened(1, str(workspace), Mode.AGENT, "p", "m"))
    log.append(events)
    log.close()
    return log.session


def test_nothing_is_no_error(tmp_path: Path) -> None:
    stats = usage_stats(str(tmp_path / "home"))
    assert (stats["sessions"], stats["turns"], stats["total"]["calls"]) == (0, 0, 0)
    assert (stats["models"], stats["days"], stats["since"]) == ([], [], None)


def test_sums_are_by_model_by_day_and_by_folder(tmp_path: Path) -> None:
    clock = FakeClock()
    store = SessionStore(str(tmp_path / "home"), clock)
    here, there = tmp_path / "here", tmp_path / "there"
    record(store, here, TurnStarted(1), *call(1, 100, 0, 1.0, "cold"), ModelChanged("q", "n"), *call(2, 50))
    clock.advance(DAY)
    record(store, there, TurnStarted(1), *call(1, 1_000, 900, 5.0), TurnStarted(2), *call(2, 10, 0, 0.5))
    home = str(tmp_path / "home")
    every = usage_stats(home)
    assert (every["sessions"], every["turns"], every["total"]["calls"], every["total"]["unpriced"]) == (2, 3, 4, 1)
    assert [(row["provider"], row["model"], row["calls"]) for row in every["models"]] == [("p", "m", 3), ("q", "n", 1)]
    assert every["models"][0]["cost"] == {"USD": 6.5}
    assert every["total"]["misses"] == {"cold": {"calls": 1, "tokens": 100}}
    assert every["total"]["hit_rate"] == round(900 / 1_160, 4)
    assert [(row["day"], row["input"]) for row in every["days"]] == [
        (rfc3339(clock.now() - DAY)[:10], 150),
        (rfc3339(clock.now())[:10], 1_010),
    ]
    assert usage_stats(home, str(here))["total"]["input"] == 150
    late = usage_stats(home, since=rfc3339(clock.now() - 60))
    assert (late["sessions"], late["turns"], late["total"]["input"]) == (1, 2, 1_010)


def test_what_a_fork_took_over_is_counted_once(tmp_path: Path) -> None:
    clock = FakeClock()
    store = SessionStore(str(tmp_path / "home"), clock)
    parent = record(store, tmp_path, TurnStarted(1), *call(1, 100))
    clock.advance(60)
    log = store.fork(parent, SessionOpened(1, str(tmp_path), Mode.AGENT, "p", "m"))
    clock.advance(60)
    log.append([TurnStarted(2), *call(2, 7)])
    log.close()
    stats = usage_stats(str(tmp_path / "home"))
    assert (stats["total"]["input"], stats["turns"], stats["sessions"]) == (107, 2, 2)


def test_a_session_of_a_later_version_is_told_and_not_summed(tmp_path: Path) -> None:
    store = SessionStore(str(tmp_path / "home"), FakeClock())
    record(store, tmp_path, TurnStarted(1), *call(1, 100))
    later = record(store, tmp_path, TurnStarted(1), *call(1, 100))
    log = tmp_path / "home" / "sessions" / later / LOG_FILE
    log.write_bytes(log.read_bytes().replace(b'"v":1', b'"v":9'))
    stats = usage_stats(str(tmp_path / "home"))
    assert (stats["total"]["calls"], stats["sessions"], stats["unreadable"]) == (1, 1, 1)
