"""The composer by its keys: sending, queueing, steering, putting aside, coming back."""

import stat
from pathlib import Path

import pytest

from codewhale.display.attachments import Folder
from codewhale.display.drafts import Draft, Drafts
from codewhale.display.words import LANGUAGES, Words
from codewhale.protocol.events import Queued, SessionResumed, TurnFinished, TurnStarted
from codewhale.protocol.modes import Authority, Mode
from codewhale.protocol.ops import Interrupt
from codewhale.protocol.views import QueuedRow
from codewhale.tui.composer.composer import Composer
from codewhale.tui.keys import ACTIONS
from support.composing import desk
from support.tuirecord import screen_text


async def test_enter_sends_and_empties(tmp_path: Path) -> None:
    async with desk(tmp_path) as here:
        await here.type("fix the test")
        assert here.text == "fix the test"
        await here.pilot.press("enter")
        [sent] = await here.until(lambda: here.said(Composer.Sent))
        assert (sent.text, sent.delivery, sent.attachments) == ("fix the test", "turn", ())
        assert here.text == ""
        await here.pilot.press("enter")
        assert len(here.said(Composer.Sent)) == 1


async def test_keys_mean_what_they_mean_in_the_order_they_were_pressed(tmp_path: Path) -> None:
    async with desk(tmp_path) as here:
        await here.pilot.press(*"one", "enter", *"two", "enter", *"ab", "left", "c")
        sent = await here.until(lambda: len(here.said(Composer.Sent)) == 2 and here.said(Composer.Sent))
        assert [message.text for message in sent] == ["one", "two"]
        assert here.text == "acb"


@pytest.mark.parametrize("key", ["ctrl+j", "alt+enter", "shift+enter"])
async def test_a_new_line(tmp_path: Path, key: str) -> None:
    async with desk(tmp_path) as here:
        await here.pilot.press("a", key, "b")
        assert here.text == "a\nb"
        await here.until(lambda: here.composer.text.size.height == 2)
        await here.pilot.press(*[key] * 20)
        await here.until(lambda: here.composer.text.size.height == 10)


async def test_while_a_turn_runs_enter_queues_and_two_keys_steer(tmp_path: Path) -> None:
    async with desk(tmp_path) as here:
        here.happen(TurnStarted(1))
        await here.type("one")
        await here.pilot.press("enter", *"two", "ctrl+t", *"three", "ctrl+enter")
        sent = await here.until(lambda: len(here.said(Composer.Sent)) == 3 and here.said(Composer.Sent))
        assert [(m.text, m.delivery) for m in sent] == [("one", "queue"), ("two", "steer"), ("three", "steer")]
        here.happen(TurnFinished(1, "done"))
        await here.pilot.press("x", "ctrl+t")
        await here.until(lambda: len(here.said(Composer.Sent)) == 4)
        assert here.said(Composer.Sent)[3].delivery == "turn"


async def test_a_resumed_session_is_not_busy_with_what_broke_off(tmp_path: Path) -> None:
    async with desk(tmp_path) as here:
        here.happen(TurnStarted(1), SessionResumed(Mode.AGENT, Authority.PERSON))
        assert not here.composer.busy


async def test_escape_is_a_stack(tmp_path: Path) -> None:
    async with desk(tmp_path) as here:
        here.happen(TurnStarted(1))
        await here.type("/mo")
        await here.until(lambda: "/model" in screen_text(here.host))
        await here.pilot.press("escape")
        assert "/model" not in screen_text(here.host) and here.text == "/mo"
        await here.pilot.press("shift+left", "escape")
        assert here.composer.selected == "" and here.client.ops == []
        await here.pilot.press("escape")
        await here.until(lambda: any(isinstance(op, Interrupt) for op in here.client.ops))
        assert here.text == "/mo"
        here.happen(TurnFinished(1, "interrupted"))
        await here.pilot.press("escape")
        assert here.text == ""
        await here.pilot.press("ctrl+s")
        assert here.text == "/mo"


async def test_escape_twice_on_nothing_goes_back_to_a_former_message(tmp_path: Path) -> None:
    async with desk(tmp_path) as here:
        await here.pilot.press(*"draft", "escape", "escape")
        assert not here.said(Composer.Command) and here.text == ""
        await here.pilot.press("escape")
        [command] = await here.until(lambda: here.said(Composer.Command))
        assert command.line == "/rewind"
        here.happen(TurnStarted(1))
        await here.pilot.press("escape", "escape", "escape")
        assert len(here.said(Composer.Command)) == 1


async def test_former_prompts_are_searched(tmp_path: Path) -> None:
    async with desk(tmp_path) as here:
        await here.pilot.press(*"first", "enter", *"second", "enter", "ctrl+r")
        assert "second" in screen_text(here.host) and "first" in screen_text(here.host)
        await here.pilot.press("down", "enter")
        assert here.text == "first"


async def test_commands_and_shell_lines_go_upward_as_such(tmp_path: Path) -> None:
    async with desk(tmp_path) as here:
        await here.pilot.press(*"/mode plan now", "enter")
        [command] = await here.until(lambda: here.said(Composer.Command))
        assert command.line == "/mode plan now"
        await here.pilot.press("!")
        await here.until(lambda: here.composer.has_class("-shell"))
        await here.pilot.press(*"git status", "enter")
        [shell] = await here.until(lambda: here.said(Composer.Shell))
        assert shell.line == "git status" and not here.composer.has_class("-shell")
        await here.pilot.press(*"/usr/bin/env is what?", "enter")
        [sent] = await here.until(lambda: here.said(Composer.Sent))
        assert sent.text == "/usr/bin/env is what?"
        await here.pilot.press("up", "up")
        assert here.text == "!git status"


async def test_one_line_behind_a_hash_and_a_blank_is_remembered(tmp_path: Path) -> None:
    async with desk(tmp_path) as here:
        await here.type("# deploys run on Fridays ")
        await here.until(lambda: "Enter remembers this" in screen_text(here.host))
        assert here.composer.has_class("-fact")
        await here.pilot.press("enter")
        [command] = await here.until(lambda: here.said(Composer.Command))
        assert command.line == "/memory add workspace deploys run on Fridays" and here.said(Composer.Sent) == []
        assert not here.composer.has_class("-fact") and "remembers" not in screen_text(here.host)
        await here.pilot.press("up")
        assert here.text == "# deploys run on Fridays "


@pytest.mark.parametrize(
    "text", [" # behind a blank", "#", "# ", "## two", "#!/bin/sh", "#tag it", "# one\ntwo", "a # b"]
)
async def test_other_texts_with_a_hash_are_messages(tmp_path: Path, text: str) -> None:
    async with desk(tmp_path) as here:
        here.composer.offer(text)
        await here.pilot.pause()
        assert not here.composer.has_class("-fact")
        await here.pilot.press("enter")
        [sent] = await here.until(lambda: here.said(Composer.Sent))
        assert sent.text == text.rstrip() and here.said(Composer.Command) == []


@pytest.mark.parametrize("end", ["send", "escape", "other", "leave"])
@pytest.mark.parametrize(
    "text", ["# the code is xyzzy", "/memory add the code is xyzzy", "/memory edit 1a2b the code is xyzzy"]
)
async def test_what_memory_was_told_stands_in_no_file(tmp_path: Path, text: str, end: str) -> None:
    async with desk(tmp_path) as here:
        await here.type(text)
        await here.pilot.press("escape")  # put aside before it was sent
        here.composer.offer(text)
        await here.pilot.press("enter")
        await here.until(lambda: here.said(Composer.Command))
        await here.type("half a thought")
        await here.pilot.press("up")
        assert here.text == text
        if end == "send":
            await here.pilot.press("enter")
        elif end == "escape":
            await here.pilot.press("escape")
        elif end == "other":
            here.composer.open("another")
            assert here.text == ""
            await here.pilot.press("ctrl+s")
            await here.until(lambda: here.text == text)  # nothing is lost while the program runs
    kept = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    assert b"xyzzy" not in kept and (b"half a thought" in kept or end in ("other", "leave"))


async def test_keys_for_mode_and_effort_where_nothing_is_to_complete(tmp_path: Path) -> None:
    async with desk(tmp_path) as here:
        await here.pilot.press("tab")
        await here.until(lambda: "Shift+Tab switches the mode" in screen_text(here.host))
        await here.pilot.press("shift+tab", "alt+i")
        assert len(here.said(Composer.ModeCycled)) == 1 and len(here.said(Composer.EffortCycled)) == 1


async def test_every_key_of_the_composer_does_something(tmp_path: Path) -> None:
    rows = [row for row in ACTIONS if row.panel == "composer"]
    async with desk(tmp_path) as here:
        assert all(callable(getattr(here.composer, f"action_{row.name}")) for row in rows)
        assert all(callable(getattr(here.composer.queue, f"action_{r.name}")) for r in ACTIONS if r.panel == "queue")


async def test_a_draft_is_on_disk_at_every_key_and_comes_back(tmp_path: Path) -> None:
    async with desk(tmp_path) as here:
        await here.type("half a thou")
        drafts = Drafts(Folder(str(tmp_path), str(tmp_path)))
        assert drafts.load(here.session).text == "half a thou"
        files = [path for path in (tmp_path / "composer").rglob("*") if path.is_file()]
        assert files and all(stat.S_IMODE(path.stat().st_mode) == 0o600 for path in files)
    async with desk(tmp_path) as here:
        assert here.text == "half a thou"
        assert "draft restored" in screen_text(here.host)
        await here.pilot.press("enter")
        assert drafts.load(here.session) == Draft()


async def test_what_is_typed_before_there_is_a_session_stays(tmp_path: Path) -> None:
    Drafts(Folder(str(tmp_path), str(tmp_path))).save("later", Draft("stored"))
    async with desk(tmp_path, session="") as here:
        await here.type("early")
        here.composer.open("later")
        await here.pilot.pause()
        assert here.text == "early"
        await here.pilot.press("ctrl+u", "ctrl+s")
        assert here.text == "stored"


async def test_another_session_has_its_own_draft(tmp_path: Path) -> None:
    async with desk(tmp_path) as here:
        await here.type("for one")
        here.composer.open("another")
        await here.pilot.pause()
        assert here.text == ""
        await here.type("for two")
        here.composer.open(here.session)
        await here.pilot.pause()
        assert here.text == "for one"


async def test_what_could_not_be_sent_stands_here_again(tmp_path: Path) -> None:
    async with desk(tmp_path) as here:
        await here.pilot.press(*"lost?", "enter")
        [sent] = await here.until(lambda: here.said(Composer.Sent))
        here.composer.give_back(sent.draft)
        await here.pilot.pause()
        assert here.text == "lost?"
        here.composer.give_back(Draft("another"))
        await here.pilot.press("ctrl+u", "ctrl+s")
        assert here.text == "another"


async def test_a_command_is_offered_for_editing(tmp_path: Path) -> None:
    async with desk(tmp_path) as here:
        await here.type("mine")
        here.composer.offer("rm -r build")
        await here.pilot.pause()
        assert here.text == "rm -r build"
        await here.pilot.press("ctrl+u", "ctrl+s")
        assert here.text == "mine"


async def test_other_colours_and_languages(tmp_path: Path) -> None:
    async with desk(tmp_path) as here:
        here.waiting = [QueuedRow("x", "queue")]
        here.happen(TurnStarted(1), Queued("x", 1))
        here.composer.repaint(here.host.palette)
        await here.until(lambda: "queued: x" in screen_text(here.host))
    assert all(Words(language)("composer.placeholder") for language in LANGUAGES)
