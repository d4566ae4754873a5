"""What the composer and the line below it do on a real terminal, beside sending a message."""

import time

from codewhale.protocol.events import MessageAdded, ModeChanged, TurnFinished
from support.ttyworld import World


def test_a_model_that_does_not_answer_is_named_and_left_by_one_key(world: World) -> None:
    world.says({"text": "too late", "delay": 300})
    term = world.open()
    term.type("go\r")
    term.sees("scripted has not answered yet", "1", "esc to stop")
    began = time.monotonic()
    term.type("\x1b")
    term.until(lambda text: "esc to stop" not in text)
    assert time.monotonic() - began < 5
    world.until_recorded(TurnFinished)


def test_a_named_file_is_shown_with_its_size_and_goes_along(world: World) -> None:
    (world.work / "small.py").write_text("answer = 42\n" * 100)
    (world.work / "large.log").write_text("x" * 100_000)
    (world.work / ".env").write_text("KEY=1\n")
    world.says({"text": "Seen."})
    term = world.open()
    term.type("see @smal")
    term.sees("small.py")
    term.type("\t")
    term.sees("see @small.py", "attached: small.py, 1 kB")
    term.type("and @large.log ")
    term.sees("path only: large.log")
    term.type("and @.env")
    term.sees("not attached: .env")
    term.type("\r")
    term.sees("@.env cannot be attached", "see @small.py")
    term.type("\x7f" * len("and @.env"))
    term.until(lambda text: "not attached" not in text)
    term.type("\r")
    world.until_recorded(TurnFinished)
    [message] = [event.message for event in world.events() if isinstance(event, MessageAdded)][:1]
    assert message.text.startswith("see @small.py and @large.log")
    assert message.text.count("answer = 42") == 100 and "xxxx" not in message.text


def test_keys_of_former_settings_work_and_tab_changes_no_mode(world: World) -> None:
    world.says({"text": "One."}, {"text": "Two."})
    with (world.home / "config.toml").open("a") as settings:
        settings.write('[tui.keys]\n"composer.complete_or_mode" = "f9"\n')
    term = world.open()
    for text in ("first words", "second words"):
        term.type(f"{text}\r")
        term.sees(text, "One." if text.startswith("first") else "Two.")
    term.type("\x12")  # ctrl+r
    term.sees("› second words")
    term.type("\x12")
    term.sees("│› first words", "│  second words")
    term.type("\r")
    term.until(lambda text: "│› first words" in text and "│  second words" not in text)
    term.type("\x15/sta\x1b[20~")  # f9
    term.sees("/status")
    term.type("\x15")
    for mode in ("plan", "agent"):
        term.type("\x1b[Z")  # shift+tab
        term.until(lambda text, mode=mode: [one.mode for one in changes(world)][-1:] == [mode])
    assert [one.mode for one in changes(world)] == ["plan", "agent"]


def changes(world: World) -> list[ModeChanged]:
    """The changes of the mode that were recorded."""
    return [event for event in world.events() if isinstance(event, ModeChanged)]


def test_a_line_that_begins_with_a_hash_is_kept_only_when_confirmed(world: World) -> None:
    world.says({"text": "Seen."}, {"text": "Seen too."})
    file = world.work / "AGENTS.md"
    term = world.open()
    term.type("# run make check\r")
    term.sees("Remember this line?", "run make check")
    term.type("\r")  # no is at hand
    term.until(lambda text: "Remember this line?" not in text)
    assert not file.exists()
    term.type("# run make check\r")
    term.sees("Remember this line?")
    term.type("\x1b[B\r")
    term.sees("Added to AGENTS.md")
    assert file.read_text() == "- run make check\n"
    term.type("/remember undo\r")
    term.sees("Removed from")
    assert not file.exists()
    term.paste("# A heading\nand what stands below")
    term.type("\r")
    term.sees("Seen.")
    term.type(" # to the model\r")
    term.sees("Seen too.")
    assert not file.exists()
    texts = [event.message.text for event in world.events() if isinstance(event, MessageAdded)]
    assert [text for text in texts if "#" in text] == ["# A heading\nand what stands below", " # to the model"]
