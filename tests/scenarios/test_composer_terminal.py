"""What the composer and the line below it do on a real terminal, beside sending a message."""

import re
import time
from pathlib import Path

from codewhale.protocol.events import MessageAdded, ModeChanged, TurnFinished
from support.patience import HANG, Moment
from support.ttyworld import World


def test_a_model_that_does_not_answer_is_named_and_left_by_one_key(world: World) -> None:
    world.says({"text": "too late", "delay": 300})
    term = world.open()
    term.type("go\r")
    term.sees("scripted has not answered yet", "1", "esc to stop")
    began = Moment()
    term.type("\x1b")
    term.until(lambda text: "esc to stop" not in text)
    assert not began.hung
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
    term.until(lambda text: "not attached: .env" not in text and "@.env cannot" not in text)
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


def test_a_line_that_begins_with_a_hash_is_remembered_and_stands_in_no_other_file(world: World) -> None:
    world.says({"text": "Seen."}, {"text": "Seen too."})
    term = world.open()
    term.type("# deploys run on xyzzy days")
    term.sees("Enter remembers this")
    term.type("\r")
    term.until(lambda text: "› # deploys" not in text)
    [memory] = until_kept(world, "deploys run on xyzzy days")
    assert memory.name == "MEMORY.md" and not (world.work / "AGENTS.md").exists()
    term.type("\x1b[A")  # up
    term.sees("› # deploys run on xyzzy days")
    term.type("\x15/memory edit 0000 xyzzy\r")
    term.sees("has the id '0000'")
    term.type("\x15")
    term.paste("# A heading\nand what stands below")
    term.type("\r")
    term.sees("Seen.")
    term.type(" # to the model\r")
    term.sees("Seen too.")
    texts = [event.message.text for event in world.events() if isinstance(event, MessageAdded)]
    assert [text for text in texts if "#" in text] == ["# A heading\nand what stands below", " # to the model"]
    term.type("\x04")
    assert term.wait() == 0
    held = [path for path in world.home.rglob("*") if path.is_file() and b"xyzzy" in path.read_bytes()]
    inside = {path.relative_to(world.home).parts[0] for path in held}
    assert inside == {"memory", "sessions"}  # the facts, and the log of the session that was sent them


def test_after_a_clear_what_was_typed_as_a_fact_is_in_the_trash_alone(world: World) -> None:
    world.says({"text": "Seen."})
    term = world.open()
    term.type("# the code word is xyzzy")
    term.sees("Enter remembers this")
    world.until_drafted("xyzzy")  # not sent yet, so it is kept as all that is typed
    term.type("\x13")
    term.sees("draft stashed")
    term.type("\x13")
    term.sees("› # the code word is xyzzy")
    term.type("\r")
    [memory] = until_kept(world, "xyzzy")
    term.sees("Stored for this workspace")
    term.type("\x1b[A\x13")  # up, and into the stash
    term.sees("draft stashed")
    term.type("/memory edit the xyzzy\r")
    term.sees("has the id 'the'")
    term.type("/memory search xyzzy\r")
    term.until(lambda text: re.search(r"\d{4}-\d\d-\d\d +the code word is xyzzy", text))
    term.type("/memory clear all yes\r")
    term.sees("Cleared:")
    term.type("half a thought")
    world.until_drafted("half a thought")
    term.type("\x15a message\r")
    term.sees("Seen.")
    term.type("\x04")
    assert term.wait() == 0
    held = [path for path in world.home.rglob("*") if path.is_file() and b"xyzzy" in path.read_bytes()]
    assert held and {path.parent.name for path in held} == {"trash"} and "xyzzy" not in memory.read_text()


def test_a_fact_is_edited_and_cleared_from_the_screen_of_memory(world: World) -> None:
    world.says({"text": "Seen."})
    term = world.open()
    term.type("# deploys run on Fridays\r")
    until_kept(world, "deploys run on Fridays")
    term.until(lambda text: "› # deploys" not in text)
    term.type("/memory\r")
    term.sees("Memory · 1 fact", "This workspace", "your own words", "Layers of the context")
    term.type("\r")
    term.sees("deploys run on Fridays", "› /memory edit")
    term.type(" at noon\r")
    [memory] = until_kept(world, "deploys run on Fridays at noon")
    term.type("/memory edit\r")
    term.sees("Memory · 1 fact", "✓ deploys run on Fridays at noon")
    term.type("\x1b[24~")  # f12
    term.sees("To the trash", "Press f12 again")
    term.type("\x1b[24~")
    term.sees("Memory · 0 facts", "Cleared:")
    assert "deploys" not in memory.read_text()
    term.type("\x1b[20~")  # f9
    term.sees("Memory · 1 fact", "Restored:")
    term.type("\x1b")
    term.until(lambda text: "Memory ·" not in text)
    until_kept(world, "deploys run on Fridays at noon")


def until_kept(world: World, text: str) -> list[Path]:
    """Wait until a file of memory has a text; the files that do."""
    deadline = time.monotonic() + HANG
    while not (files := [path for path in world.home.rglob("MEMORY.md") if text in path.read_text()]):
        assert time.monotonic() < deadline, sorted(map(str, world.home.rglob("*")))
        time.sleep(0.05)
    return files
