"""Cards: what each display looks like, folded and opened, bounded and safe."""

import pytest

from codewhale.display.text import cells
from codewhale.display.transcript.blocks import FAILED, RUNNING, CallCard
from codewhale.display.transcript.cards import OPENED, CardDrawer, DrawOptions, time_text
from codewhale.display.transcript.markdown import Pen
from codewhale.display.words import LANGUAGES, Words
from codewhale.protocol.blocks import Block, ChecklistBlock, DiffBlock, MarkdownBlock, TableBlock, TerminalBlock
from support.transcripts import DIFF

CARDS = CardDrawer(Words("en"), Pen())


def drawn(card: CallCard, width: int = 60, opened: bool = False, now: float = 0.0) -> list[str]:
    lines = CARDS.lines(card, DrawOptions(width, opened, now))
    assert all(cells(line.text) <= width for line in lines)
    return [line.text.rstrip() for line in lines]


def done(*display: Block, **fields: object) -> CallCard:
    return CallCard(name="tool", subject="a.py", status="done", display=display, **fields)  # type: ignore[arg-type]


def test_a_terminal_shows_its_end_and_opens_to_all() -> None:
    card = done(TerminalBlock("make", "\n".join(map(str, range(30))), 2))
    assert drawn(card)[:3] == ["● Called  tool a.py  exit 2", "  + 25 lines above", "  │ 25"]
    assert drawn(card)[-1] == "  │ 29"
    assert drawn(card, opened=True)[1] == "  $ make" and len(drawn(card, opened=True)) == 32


def test_a_diff_shows_signs_and_counts() -> None:
    assert drawn(done(DiffBlock("a.py", DIFF)))[:3] == [
        "● Called  tool a.py  +2 -1",
        "   ⋯ def parse(text):",
        '  10       lines = text.split("\\n")',
    ]
    long = "@@ -1,0 +1,50 @@\n" + "+x\n" * 50
    assert drawn(done(DiffBlock("b.py", long)))[-1].startswith("  + 3")


def test_tables_hits_and_lists() -> None:
    table = TableBlock(("gate", "status"), (("lint", "passed"),))
    assert drawn(done(table))[1:] == ["  gate │ status", "  ─────┼───────", "  lint │ passed"]
    hits = TableBlock(("file", "line", "text"), (("src/a.py", "3", "  def parse():"),))
    assert drawn(done(hits))[1:] == ["  src/a.py:3  def parse():"]
    assert drawn(done(TableBlock(("commit", "date", "subject"), ()), count=("hits", 0))) == [
        "● Called  tool a.py  no matches"
    ]
    items = ChecklistBlock((("completed", "one"), ("in_progress", "two"), ("pending", "three")))
    assert drawn(done(items))[1:] == ["  ☑ one", "  ◐ two", "  ☐ three"]
    assert drawn(done(MarkdownBlock("**bold** move")))[1:] == ["  bold move"]


def test_a_running_call_shows_its_last_lines_and_its_time() -> None:
    card = CallCard(
        name="exec_shell", subject="make", status=RUNNING, started=100.0, tail=tuple(f"line {n}" for n in range(9))
    )
    assert drawn(card, now=112.0) == ["◐ Running  make  12 s", *(f"  │ line {n}" for n in range(6, 9))]
    stopped = CardDrawer(Words("en"), Pen(), "Esc").lines(card, DrawOptions(60, False, 113.0))
    assert stopped[0].text == "◓ Running  make  13 s  Esc stops it"


def test_a_failure_says_why_and_not_what_the_model_reads() -> None:
    said = "Error (invalid_input) in read_file: no.py does not exist. Next call: list_dir {}\n"
    card = CallCard(name="read_file", subject="no.py", status=FAILED, said=said, error="invalid_input")
    assert drawn(card) == ["✗ Read  no.py", "  Invalid arguments"]
    card.why = "no.py does not exist"
    assert drawn(card) == ["✗ Read  no.py", "  no.py does not exist"]
    assert "Next call: list_dir {}" in " ".join(drawn(card, width=120, opened=True))


def test_a_result_without_a_display_is_there_when_opened() -> None:
    card = done(said="one\ntwo\n")
    assert drawn(card) == ["● Called  tool a.py"]
    assert drawn(card, opened=True) == ["● Called  tool a.py", "  │ one", "  │ two"]


def test_repaired_calls_say_so() -> None:
    card = done(repairs=("R3", "R7"), lossy=True)
    assert drawn(card)[0] == "● Called  tool a.py  call repaired by a guess; check it"
    assert drawn(card, opened=True)[-1] == "  repaired: R3 R7"


def test_what_is_no_longer_kept_is_said() -> None:
    assert "5000 characters hidden" in " ".join(drawn(done(shortened=5_000)))


def test_a_narrow_screen_gets_the_facts_on_a_line_of_their_own() -> None:
    card = CallCard(name="run_tests", subject="a/long/path/of/tests.py", status=FAILED, error="not_found", ms=1_500)
    assert [line.strip() for line in drawn(card, width=30)[1:]] == ["1.5 s", "not found"]


@pytest.mark.parametrize("opened", [False, True])
def test_endless_lines_and_line_counts_are_bounded(opened: bool) -> None:
    wide = done(TerminalBlock("x", "y" * 1_000_000, 0), said="z" * 1_000_000)
    assert sum(map(len, drawn(wide, opened=opened))) < 5_000
    high = done(TerminalBlock("x", "y\n" * 100_000, 0))
    assert len(drawn(high, opened=opened)) <= OPENED + 5


@pytest.mark.parametrize("opened", [False, True])
def test_nothing_is_obeyed(opened: bool) -> None:
    bad = "\x1b]52;c;aGk=\x07\x1b[2J\x9b6n\u202e[bold]x[/bold]\r"
    displays = (
        TerminalBlock(bad, bad, 0),
        DiffBlock(bad, f"@@ -1 +1 @@ {bad}\n-{bad}\n+{bad}\n"),
        TableBlock((bad,), ((bad,),)),
        TableBlock(("file", "line", "text"), ((bad, bad, bad),)),
        ChecklistBlock(((bad, bad),)),
        MarkdownBlock(bad),
    )
    card = CallCard(name=bad, subject=bad, status=FAILED, error=bad, said=bad, display=displays, repairs=(bad,))
    for each in (card, CallCard(name=bad, tail=(bad,), status=RUNNING), CallCard(name=bad, said=bad, status=FAILED)):
        text = "".join(drawn(each, opened=opened))
        assert not any(ord(char) < 32 or 0x7F <= ord(char) < 0xA0 or char == "\u202e" for char in text)
        assert "[bold]" in text


@pytest.mark.parametrize("language", LANGUAGES)
def test_times_are_said_as_people_do(language: str) -> None:
    said = [time_text(Words(language), seconds) for seconds in (0.42, 12.3, 185, 7_400)]
    assert said == (
        ["0.4 s", "12 s", "3 min 05 s", "2 h 03 min"]
        if language == "en"
        else ["0.4 秒", "12 秒", "3 分 05 秒", "2 小时 03 分"]
    )
