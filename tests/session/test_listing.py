import os
import random
import tempfile
from pathlib import Path

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from codewhale.protocol.events import (
    ContextAppended,
    Event,
    FileChanged,
    ModelChanged,
    TitleSet,
    TurnFinished,
    TurnStarted,
    UnknownEvent,
)
from codewhale.protocol.files import FileChange
from codewhale.protocol.messages import Message, Text
from codewhale.session import listing, records
from codewhale.session.store import SessionStore
from support.storage import OPENED, HandClock, QuickOps, new_log, said

EVENTS = st.one_of(
    st.text(max_size=40).map(said),
    st.text(max_size=40).map(lambda text: said(text, "assistant")),
    st.integers(1, 9).map(TurnStarted),
    st.integers(1, 9).map(lambda turn: TurnFinished(turn, "done")),
    st.text(max_size=90).map(TitleSet),
    st.text("abc", max_size=5).map(lambda model: ModelChanged("p", model)),
    st.just(ContextAppended("mode", "plan")),
    st.sampled_from("abc").map(lambda path: FileChanged("c1", FileChange(path, "a" * 64, "b" * 64))),
)
DAMAGE = st.sampled_from(["", "", "", "torn", "flipped", "doubled", "open end"])


def lines(events: list[Event]) -> list[bytes]:
    """The records of a log whose clock runs both ways."""
    chance = random.Random(len(events))
    written = []
    for seq, event in enumerate([OPENED, *events], 1):
        at = f"2026-01-{chance.randrange(1, 28):02d}T00:00:00.000Z"
        written.append(records.frame(seq, "s", at, records.event_json(event)[0]))
    return written


@settings(max_examples=150, deadline=None)
@given(st.lists(EVENTS, max_size=14), st.lists(st.integers(0, 4000), max_size=5), DAMAGE)
def test_a_fold_in_steps_equals_a_fold_from_the_beginning(events: list[Event], cuts: list[int], damage: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        check_steps(Path(folder), events, cuts, damage)


def check_steps(folder: Path, events: list[Event], cuts: list[int], damage: str) -> None:
    log, cache = folder / "log.jsonl", folder / "listing.json"
    data = spoil(lines(events), damage)
    for cut in [*sorted(cuts), len(data)]:
        log.write_bytes(data[:cut])
        in_steps = listing.summarise(str(folder), ops=QuickOps())
        kept = cache.read_bytes() if cache.exists() else None
        cache.unlink(missing_ok=True)
        assert in_steps == listing.summarise(str(folder), ops=QuickOps())
        cache.unlink(missing_ok=True)
        if kept is not None:
            cache.write_bytes(kept)


def spoil(written: list[bytes], damage: str) -> bytes:
    middle = len(written) // 2
    if damage == "flipped":
        written[middle] = written[middle][:30] + b"#" + written[middle][31:]
    elif damage == "doubled":
        written.insert(middle, written[0])
    data = b"".join(written)
    return data + b'{"crc":"12' if damage == "torn" else data[:-1] if damage == "open end" else data


def test_what_a_listing_says(tmp_path: Path) -> None:
    clock = HandClock()
    store = SessionStore(str(tmp_path), clock)
    log = store.create(OPENED)
    clock.seconds += 5
    harness = Message("user", (Text("context", source="harness"), Text("\n  Mend the\tbuild \nand more")))
    log.append([TurnStarted(1), said("too early", "assistant"), said("")])
    log.append([type(said(""))(harness), said("second question"), ModelChanged("p", "big")])
    log.append([FileChanged("c1", FileChange(path, None, "b" * 64)) for path in ("a.py", "b.py", "a.py")])
    (row,) = store.summaries()
    assert row.files == 2
    assert (row.title, row.turns, row.messages, row.model) == ("Mend the build", 1, 4, "big")
    assert (row.workspace, row.parent, row.state) == ("/w", "", "open")
    assert row.created < row.updated
    clock.seconds -= 100
    log.append([TitleSet("x" * 200 + "\x1b[31m")])
    log.close()
    (row,) = store.summaries()
    assert len(row.title) == 80
    assert row.state == "idle"
    assert row.created < row.updated


def test_an_unchanged_log_is_not_read_again(tmp_path: Path) -> None:
    log = new_log(tmp_path, 3)
    log.close()
    folder = os.path.dirname(log.path)
    before = listing.summarise(folder)
    found = os.stat(log.path)
    Path(log.path).write_bytes(b"#" * found.st_size)
    os.utime(log.path, ns=(found.st_atime_ns, found.st_mtime_ns))
    assert listing.summarise(folder) == before


def test_a_cache_that_is_damaged_or_foreign_is_made_again(tmp_path: Path) -> None:
    log = new_log(tmp_path, 3)
    log.close()
    folder = os.path.dirname(log.path)
    before = listing.summarise(folder)
    cache = Path(folder) / "listing.json"
    for bad in (b"", b"[]", b'{"version":99}', b'{"offset":"x"}', b'{"offset":99999,"last":3,"seq":2,"crc":"0"}'):
        cache.write_bytes(bad)
        assert listing.summarise(folder) == before


def test_an_event_of_a_later_version_does_not_stop_a_listing(tmp_path: Path) -> None:
    log = new_log(tmp_path, 1)
    log.append([UnknownEvent("title_set", msgspec.Raw(b'{"type":"title_set","title":{"text":"x"}}'))])
    log.close()
    assert listing.summarise(os.path.dirname(log.path))[0].messages == 1
