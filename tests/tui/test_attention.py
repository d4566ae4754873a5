"""Calling for the person: title, notification, bell."""

import re

import pytest

from codewhale.display.words import Words
from codewhale.protocol.events import ApprovalAnswered, ApprovalAsked, Event, QuestionAsked, TurnFinished, TurnStarted
from codewhale.protocol.screen import Notify
from codewhale.testing import FakeClock
from codewhale.tui.attention import Attention, way_of
from support.tuirecord import envelopes

ASKED = ApprovalAsked("r", "c", "exec_shell", (), "")


class Scene:
    """An Attention with what it wrote."""

    def __init__(self, way: Notify = "osc9", title: bool = True, place: str = "shop") -> None:
        self.clock = FakeClock()
        self.written: list[str] = []
        self.attention = Attention(self.written.append, Words("en"), way, title, self.clock.monotonic)
        self.attention.begin(place)

    def take(self, *events: Event, live: bool = True) -> list[str]:
        """What is written for these events, titles left out."""
        self.written.clear()
        for envelope in envelopes(events):
            self.attention.take(envelope, live)
        return [text for text in self.written if not text.startswith("\x1b]2;")]


@pytest.mark.parametrize(
    ("environ", "way"),
    [
        ({"TERM_PROGRAM": "iTerm.app"}, "osc9"),
        ({"TERM": "xterm-kitty"}, "osc9"),
        ({"TERM": "foot"}, "osc777"),
        ({"TERM": "xterm-256color"}, "bell"),
        ({"TERM_PROGRAM": "WezTerm", "TMUX": "/tmp/x"}, "bell"),
    ],
)
def test_each_terminal_has_its_way(environ: dict[str, str], way: str) -> None:
    assert way_of("auto", environ) == way
    assert way_of("off", environ) == "off"


@pytest.mark.parametrize(
    ("way", "written"),
    [
        ("osc9", "\x1b]9;CodeWhale needs your approval in shop\x07"),
        ("osc777", "\x1b]777;notify;CodeWhale;CodeWhale needs your approval in shop\x07"),
        ("bell", "\x07"),
    ],
)
def test_somebody_who_looks_elsewhere_is_called(way: Notify, written: str) -> None:
    scene = Scene(way)
    scene.attention.focus(False)
    assert scene.take(ASKED) == [written]


def test_nobody_is_called_who_is_there() -> None:
    scene = Scene()
    scene.attention.focus(True)
    scene.clock.advance(100)
    assert scene.take(ASKED, QuestionAsked("q", ())) == []
    away = Scene("off")
    away.attention.focus(False)
    assert away.take(ASKED) == []
    past = Scene()
    past.attention.focus(False)
    assert past.take(ASKED, live=False) == []


def test_a_terminal_that_tells_no_focus_counts_keys() -> None:
    scene = Scene()
    assert scene.take(ASKED) == []
    scene.clock.advance(25)
    assert len(scene.take(ASKED)) == 1
    scene.attention.key()
    assert scene.take(ASKED) == []


def test_the_end_of_a_long_turn() -> None:
    scene = Scene()
    scene.attention.focus(False)
    assert scene.take(TurnStarted(1), TurnFinished(1, "done")) == []
    scene.take(TurnStarted(2))
    scene.clock.advance(12)
    assert scene.take(TurnFinished(2, "done")) == ["\x1b]9;CodeWhale is done in shop\x07"]
    scene.take(TurnStarted(3))
    scene.clock.advance(12)
    assert "stopped in" in scene.take(TurnFinished(3, "failed"))[0]


def test_the_title_tells_what_goes_on() -> None:
    scene = Scene()
    assert scene.written == ["\x1b[22;2t", "\x1b]2;codewhale · shop\x07"]
    scene.take(TurnStarted(1), ASKED, ApprovalAnswered("r", True), TurnFinished(1, "done"))
    assert re.findall("2;(.) ?codewhale", "".join(scene.written)) == ["●", "?", "●"]
    scene.attention.end()
    assert scene.written[-1] == "\x1b[23;2t"
    assert Scene(title=False).written == []


def test_a_folder_cannot_write_to_the_terminal() -> None:
    scene = Scene(place="a\x07b\x1b]52;c;x\x9c\u202e")
    said = "".join(scene.written).replace("\x1b[22;2t", "").removeprefix("\x1b]2;").removesuffix("\x07")
    assert not re.search("[\x00-\x1f\x7f-\x9f\u202e]", said)
