"""The interface under hardship, on a real pseudo-terminal: a slow line, a storm of sizes, scripts of the world, and a
window that is closed in the middle of a turn."""

import random

from codewhale.protocol.events import CallStarted, MessageAdded, TurnFinished
from support.patience import HANG
from support.terminal import Terminal, environment
from support.ttyworld import PROGRAM, World

PROSE = "".join(f"Line {number} of a long answer, with `code` and **weight** in it.\n\n" for number in range(60))
WORLD = """你好，世界。한국어 テスト ｆｕｌｌ

עברית שלום · العربية مرحبا

👍🏽 🎉 🇪🇺 e\u0301 นี่

| 列 | b |
|---|---|
| 一二三 | 4 |
"""


def repainted(term: Terminal) -> tuple[str, str]:
    """The screen as it stands, and as it is when all of it is drawn anew."""
    term.until_quiet(0.5)
    before = term.text
    term.type("\x0c")
    term.until_quiet(0.5)
    return before, term.text


def assert_sound(world: World) -> None:
    """No fault was written down, and nothing of one stands on a screen."""
    assert [path.name for path in world.home.rglob("*crash*")] == []
    for term in world.opened:
        assert b"Traceback" not in term.raw


def test_a_slow_line_shows_the_end_and_takes_keys(world: World) -> None:
    world.says({"text": PROSE}, {"text": "Second answer."})
    term = world.open(size=(80, 24), pace=9_600)
    term.type("go\r")
    term.type("meanwhile")
    term.sees("Line 59", "meanwhile")
    term.type("\r")
    text = term.sees("Second answer.")
    assert text.count("Second answer.") == 1
    before, after = repainted(term)
    assert before == after
    assert_sound(world)


def test_a_storm_of_sizes_leaves_a_whole_screen(world: World) -> None:
    world.says(
        {"text": PROSE, "calls": [{"name": "exec_shell", "arguments": {"command": "seq 2000"}}]}, {"text": WORLD}
    )
    term = world.open(size=(80, 24))
    term.type("go\r")
    sizes = random.Random(7)
    for _ in range(60):
        term.resize(sizes.randint(10, 200), sizes.randint(3, 60))
    term.resize(80, 24)
    term.sees("一二三", "tokens", "scripted/m")
    before, after = repainted(term)
    assert before == after
    assert_sound(world)


def test_every_script_stands_in_its_columns(world: World) -> None:
    world.says({"text": WORLD})
    term = world.open(size=(60, 30))
    term.type("写点什么 مرحبا 👍🏽")
    term.sees("写点什么")
    term.type("\r")
    text = term.sees("一二三", "tokens")
    # This terminal orders no text: what runs from right to left comes in the order in which it is seen.
    for shown in ("你好，世界。", "한국어", "שלום"[::-1], "مرحبا"[::-1], "🎉"):
        assert shown in text.replace("\u200f", ""), text
    before, after = repainted(term)
    assert before == after
    term.type("日本語" * 30)
    term.sees("日本語" * 5)
    before, after = repainted(term)
    assert before == after
    assert_sound(world)


def test_a_window_closed_in_a_turn_loses_nothing(world: World) -> None:
    world.says({"text": "Begun.", "calls": [{"name": "exec_shell", "arguments": {"command": "echo up; sleep 300"}}]})
    term = world.open()
    term.type("go\r")
    term.sees("sleep 300", "Running")
    term.type("half a thought")
    term.sees("half a thought")
    term.hang_up()
    assert term.wait(HANG) in (0, 129)
    events = world.events()
    assert any(isinstance(event, MessageAdded) and "Begun." in event.message.text for event in events)
    assert any(isinstance(event, CallStarted) for event in events)
    assert isinstance(end := next(e for e in reversed(events) if isinstance(e, TurnFinished)), TurnFinished)
    assert end.status == "interrupted"
    again = world.open("--continue")
    again.sees("Begun.", "half a thought")
    assert_sound(world)


def test_a_process_killed_in_a_turn_keeps_what_was_acknowledged(world: World) -> None:
    world.says({"text": "Begun.", "calls": [{"name": "exec_shell", "arguments": {"command": "sleep 300"}}]})
    term = world.open()
    term.type("go\r")
    term.sees("Begun.", "Running")
    term.type("half a thought")
    term.sees("half a thought")
    world.until_drafted("half a thought")
    world.until_recorded(CallStarted)
    term.child.kill()
    term.wait(HANG)
    again = world.open("--continue")
    again.sees("Begun.", "half a thought", "outcome unknown")
    assert_sound(world)


def test_what_is_typed_before_the_first_paint_is_not_lost(world: World) -> None:
    world.says({"text": "Answered."})
    term = Terminal(PROGRAM, environment(world.home), cwd=world.work)
    world.opened.append(term)
    term.type("typed early")
    term.sees("› typed early")


def test_what_is_typed_before_a_screen_stands_is_for_the_screen(world: World) -> None:
    world.says({"text": "Answered."})
    (world.work / "nothing-else.txt").write_text("")
    term = world.open()
    term.type("\x0bnothing-e")
    term.sees("│ nothing-e ", "nothing-else.txt")
    term.type("\x1b")
    term.until(lambda text: "Ask anything" in text and "nothing-e" not in text)
