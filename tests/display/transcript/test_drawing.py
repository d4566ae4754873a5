"""Blocks as lines: each kind, in both languages, at every width, safe."""

from typing import Any

import msgspec
import pytest

from codewhale.display.text import cells
from codewhale.display.transcript.blocks import (
    AskRecord,
    CallCard,
    Countdown,
    NoteBlock,
    Receipt,
    TextBlock,
    Work,
    Writing,
    parts_of,
)
from codewhale.display.transcript.cards import DrawOptions
from codewhale.display.transcript.drawing import Drawer, gap_before, lines_of
from codewhale.display.words import LANGUAGES, Words
from support.transcripts import USAGE, told, whole_session

WORDS = Words("en")
DRAWER = Drawer(WORDS)


def drawn(block: object, width: int = 70, opened: bool = False, now: float = 0.0) -> list[str]:
    return [line.text.rstrip() for line in DRAWER.lines(block, DrawOptions(width, opened, now))]  # type: ignore[arg-type]


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("width", [20, 40, 80, 200])
def test_everything_is_drawn_within_its_width(language: str, width: int) -> None:
    drawer = Drawer(Words(language))
    for opened in (False, True):
        for block in told(whole_session()).blocks:
            for line in drawer.lines(block, DrawOptions(width, opened)):
                assert cells(line.text) <= width, line.text


def test_words_of_the_person() -> None:
    (block,) = parts_of("person", "Fix it\n  **please**")
    assert drawn(block) == ["┃ Fix it", "┃   **please**"]


def test_long_words_of_the_person_are_folded() -> None:
    parts = parts_of("person", "\n".join(f"line {number}" for number in range(2_000)))
    assert len(drawn(parts[0])) == 13 and drawn(parts[0])[-1].endswith("more characters")
    assert drawn(parts[1]) == []
    assert drawn(parts[1], opened=True)[-1].startswith("┃ line")


def test_thoughts_are_one_line_until_they_are_opened() -> None:
    (block,) = parts_of("thought", "First.\nThen.")
    assert drawn(block) == ["▸ Thought"]
    block.seconds = 4.2
    assert drawn(block, opened=True) == ["▾ Thought for 4.2 s", "  │ First.", "  │ Then."]
    live = TextBlock(id=-1, who="thought", text="First.\nThen I look", began=100.0)
    assert drawn(live, now=112.0) == ["▸ Thinking 12 s"]
    live.seconds = 14.0
    assert drawn(live, now=120.0) == ["▸ Thought for 14 s"]


def test_an_approval_shows_every_character() -> None:
    asked = AskRecord(subject="exec_shell", reason="agent asks", rows=(("command", "rm x\r\x08\u202e\u200b\ntwo"),))
    assert drawn(asked) == [
        "? exec_shell needs approval: waiting for you",
        "  │ rm x\\x0d\\x08\\u202e\\u200b",
        "  │ two",
        "  │ agent asks",
    ]
    asked.state = "denied"
    assert drawn(asked)[0] == "✗ exec_shell needs approval: denied"


def test_a_long_command_is_never_cut_in_silence() -> None:
    asked = AskRecord(subject="exec_shell", rows=(("command", "echo " + "a " * 900 + "END"),), state="allowed")
    assert drawn(asked)[-1].endswith("END")
    assert "… +1," in " ".join(drawn(asked))
    asked.rows = (("command", "\n".join(f"echo {number}" for number in range(30))),)
    assert drawn(asked)[-1] == "  + 26 lines"


def test_work_is_one_line_each() -> None:
    work = Work(kind="child", name="scout", role="explore", text="find callers", started=100.0, steps=3, tokens=4_210)
    assert drawn(work, width=120, now=112.0) == ["◐ agent scout (explore) find callers · 12 s · 3 steps · 4.2k tokens"]
    work.call = CallCard(name="read_file", subject="a.py", status="running")
    assert drawn(work, width=120, now=112.0) == [
        "◐ agent scout (explore) find callers — Reading a.py · 12 s · 3 steps · 4.2k tokens"
    ]
    assert drawn(work, width=40, now=112.0) == ["◐ agent scout Reading a.py · 12 s"]
    work.status, work.seconds, work.latest, work.call = "failed", 3.0, "no callers", None
    assert drawn(work, width=120) == ["✗ agent scout (explore) no callers · failed · 3.0 s · 3 steps · 4.2k tokens"]
    for status, first in (("completed", "✓"), ("cancelled", "■"), ("interrupted", "■"), ("queer", "✗")):
        work.status = status
        assert drawn(work)[0].startswith(first)
    work.text = work.latest = "x" * 500
    assert [len(drawn(work, width=width)) for width in (20, 40, 60, 80)] == [1, 1, 1, 1]


RECEIPTS = [
    (Receipt(seconds=12.3, usage=USAGE), "✓ 12 s · 4.5k tokens, 95% cached · $0.0012"),
    (Receipt(seconds=1.0, changed=2, verified="3 passed"), "✓ 1.0 s · 2 files changed · tests passed on this tree"),
    (Receipt(changed=1), "✓ 0.0 s · 1 file changed · not tested"),
    (
        Receipt(changed=1, stale="3 passed"),
        "✓ 0.0 s · 1 file changed · changed since the tests passed",
    ),
    (Receipt(usage={"input": 5, "output": 1, "cost": None}), "✓ 0.0 s · 6 tokens"),
    (Receipt(usage={"input": 5, "cost": 2.5, "currency": "CNY"}), "✓ 0.0 s · 5 tokens · 2.50 CNY"),
    (Receipt(status="sleepy"), "✗ ended: sleepy · 0.0 s"),
]


@pytest.mark.parametrize(("receipt", "line"), RECEIPTS)
def test_receipts(receipt: Receipt, line: str) -> None:
    assert drawn(receipt, width=100) == [line]


def test_a_failure_has_its_reason() -> None:
    assert drawn(Receipt(status="infra", reason="No connection.")) == [
        "✗ connection failed · 0.0 s",
        "  No connection.",
    ]


def test_what_is_on_its_way() -> None:
    assert drawn(Writing(name="grep")) == ["◌ Call grep …"]
    count = Countdown(attempt=2, attempts=5, delay=4.0, until=110.0, reason="busy")
    assert drawn(count, now=107.0) == ["↻ request failed, retry 2 of 5 in 3.0 s: busy"]


def test_gaps_stand_around_words() -> None:
    story = told(whole_session())
    gaps = [gap_before(former, block) for former, block in zip([None, *story.settled], story.settled, strict=False)]
    assert gaps[0] is False and gaps[1] is True
    first, second = parts_of("model", "word\n\n" * 2_000)[:2]
    assert gap_before(first, second) is False


BAD = "\x1b]52;c;aGk=\x07\x1b[2J\x9b6n\x90\r\x08\u202e\u200b\U000e0041[bold]"
# What is an enumeration, or tells which struct it is.
_FIXED = frozenset({"type", "role", "source", "mode", "previous", "effects", "kind", "origin", "field", "remember"})


def spoiled(value: Any, key: str = "") -> Any:
    """Plain data with every text in it made hostile."""
    match value:
        case dict():
            return {name: spoiled(inner, name) for name, inner in value.items()}
        case list():
            return [spoiled(inner, key) for inner in value]
        case str() if key not in _FIXED:
            return BAD + value + BAD
    return value


@pytest.mark.parametrize("opened", [False, True])
def test_whatever_text_is_hostile_none_of_it_is_obeyed(opened: bool) -> None:
    for events in (whole_session(), whole_session()[:14], whole_session()[:30]):
        bad = [msgspec.convert(spoiled(msgspec.to_builtins(event)), type(event)) for event in events]
        for block in told(bad).blocks:
            for line in DRAWER.lines(block, DrawOptions(60, opened)):
                assert cells(line.text) <= 60
                assert not any(
                    ord(char) < 32 or 0x7F <= ord(char) < 0xA0 or char in "\u202e\u200b" for char in line.text
                )


def test_plain_lines_hold_everything() -> None:
    text = "\n".join(line for block in told(whole_session()).blocks for line in lines_of(block, WORDS))
    for part in ("┃ Fix the parser, please.", "• ☑ two", "$ pytest -q", "line 39", "→ this", "three callers"):
        assert part in text


def test_what_a_card_tells_is_told_once() -> None:
    asked = AskRecord(subject="exec_shell", rows=(("command", "ls"),), state="allowed", card=True)
    assert drawn(asked) == []
    assert drawn(asked, opened=True)[0] == "✓ exec_shell needs approval: allowed once"
    card = CallCard(name="exec_shell", subject="ls", status="done", answer="allowed_session")
    assert drawn(card) == ["● Ran  ls  allowed for this session"]


def test_what_the_harness_told_the_model_is_seen_unfolded() -> None:
    note = NoteBlock(key="told", values={"kind": "facts"}, detail="the date")
    assert drawn(note) == []
    assert drawn(note, opened=True) == ["▾ context update for the model (facts)", "  │ the date"]


def test_what_a_person_asked_for_is_seen_whole_unless_it_is_very_long() -> None:
    text = "\n".join(f"line {number}" for number in range(150))
    assert [len(drawn(NoteBlock(text=text[: text.index(f"line {rows}") - 1]))) for rows in (6, 30)] == [6, 7]
    assert len(drawn(NoteBlock(text=text[: text.index("line 100") - 1], asked=True))) == 100
    assert drawn(NoteBlock(text=text, asked=True))[-1] == "  + 50 lines"
    assert drawn(NoteBlock(text=text, asked=True), opened=True)[-1] == "  line 149"
