"""Ctrl+Z in a real shell: the terminal is given back, `fg` draws everything again, a turn that ran goes on."""

import shlex
import signal
import time

from codewhale.protocol.events import TurnFinished, TurnStarted
from support.terminal import Terminal, environment
from support.ttyworld import PROGRAM, World

LEAVING, ENTERING = b"\x1b[?1049l", b"\x1b[?1049h"


def in_shell(world: World) -> Terminal:
    """A shell with job control, and the program in its foreground."""
    env = environment(world.home, PS1="shell> ", HISTFILE="/dev/null")
    term = Terminal(["bash", "--norc", "--noprofile", "-i"], env, cwd=world.work, size=(100, 30))
    world.opened.append(term)
    term.sees("shell>")
    term.type(shlex.join(PROGRAM) + "\n")
    term.sees("scripted/m")
    return term


def at_shell(term: Terminal, word: str) -> None:
    """The shell answers: what is typed is shown, and not by the program."""
    term.type(f'echo {word[:2]}""{word[2:]}; stty -a | tr ";" "\\n" | grep -c "^.*[^-]icanon"\n')
    term.sees(f"\n{word}")


def test_the_terminal_is_given_back_and_drawn_again(world: World) -> None:
    world.says({"text": "Nothing to do."})
    term = in_shell(world)
    term.type("a half-written thought")
    term.sees("a half-written thought")
    for word in ("once", "again"):
        mark = len(term.raw)
        term.type("\x1a")
        term.sees("Stopped", "fg brings it back")
        gone = bytes(term.raw[mark:])
        assert all(end in gone for end in (LEAVING, b"\x1b[?25h", b"\x1b[?2004l")), gone
        at_shell(term, word)
        mark = len(term.raw)
        term.type("fg\n")
        term.sees("a half-written thought", "scripted/m")
        term.until_raw(ENTERING, mark)
        term.until_raw(b"half-written thought", bytes(term.raw).index(ENTERING, mark))
        term.type("!")
        term.sees("a half-written thought!")
        term.type("\x7f")
        term.until(lambda text: "thought!" not in text)


def test_a_key_that_is_held_down_suspends_once(world: World) -> None:
    world.says({"text": "Nothing."})
    term = in_shell(world)
    term.type("kept words")
    term.sees("kept words")
    term.type("\x1a\x1a\x1a")
    term.sees("Stopped", "fg brings it back")
    term.type("fg\n")
    term.sees("kept words", "scripted/m")
    term.type("!")
    term.sees("kept words!")
    term.type("\x1a")
    term.sees("Stopped")


def test_a_turn_that_ran_goes_on_after_fg(world: World) -> None:
    world.says({"text": "The answer came late.", "delay": 3})
    term = in_shell(world)
    term.type("Think\r")
    world.until_recorded(TurnStarted)
    term.type("\x1a")
    term.sees("Stopped", "The turn waits until then")
    time.sleep(4)  # longer than the answer takes: it waits all the same
    assert not any(isinstance(event, TurnFinished) for event in world.events())
    term.type("fg\n")
    term.sees("The answer came late.")
    world.until_recorded(TurnFinished)


def test_continued_in_the_background_it_stops_again(world: World) -> None:
    world.says({"text": "Nothing."})
    term = in_shell(world)
    term.type("kept words")
    term.sees("kept words")
    term.type("\x1a")
    term.sees("Stopped")
    term.type("bg\n")
    at_shell(term, "still")
    term.type("fg\n")
    term.sees("kept words", "scripted/m")


def test_where_no_shell_could_bring_it_back_it_stays(world: World) -> None:
    world.says({"text": "I am here."})
    term = world.open()
    term.type("\x1a")
    term.type("Are you?\r")
    term.sees("I am here.")
    term.child.send_signal(signal.SIGTSTP)
    term.type("Still?\r")
    term.sees("Still?")
