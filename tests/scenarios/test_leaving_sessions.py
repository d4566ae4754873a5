"""A session is left, killed and taken up again on a real terminal: what is said at the end, what is there at the next
start, and going back by Esc Esc."""

import os
import signal

from codewhale.protocol.events import QueueKept, RequestSent, Rewound
from support.machine import MAKES_FILES
from support.ttyworld import World

WRITE = {"name": "write_file", "arguments": {"path": "made.txt", "content": "one\ntwo\n"}}


@MAKES_FILES
def test_back_by_two_keys_and_a_summary_at_the_end(world: World) -> None:
    world.says({"text": "Hello."}, {"calls": [WRITE]}, {"text": "Written."})
    term = world.open("--approval", "auto")
    term.type("first words\r")
    term.sees("Hello.")
    term.type("write it\r")
    term.sees("Written.")
    term.until(lambda text: "made.txt" in text)
    term.type("\x1b")
    term.sees("Esc again")
    term.type("\x1b")
    term.sees("Go back to a message", "removed: made.txt")
    term.type("\r")
    term.sees("Conversation and files")
    term.type("\r")
    term.until(lambda text: "Written." not in text and "write it" in text)
    assert not (world.work / "made.txt").exists()
    world.until_recorded(Rewound)
    term.type("\x13/rewind back\r")
    term.until(lambda text: "Written." in text and (world.work / "made.txt").exists())
    assert (world.work / "made.txt").read_text() == "one\ntwo\n"
    term.type("/quit\r")
    assert term.wait() == 0
    term.sees("first words", "2 turns · 1 file +2 -0", "codewhale --resume ")


def test_a_killed_turn_and_what_waited_are_there_at_the_next_start(world: World) -> None:
    world.says({"text": "Too late.", "delay": 600})
    term = world.open()
    term.type("begin\r")
    world.until_recorded(RequestSent)
    term.type("for later\r")
    world.until_recorded(QueueKept)
    os.kill(term.child.pid, signal.SIGKILL)
    term.wait()
    world.says({"text": "Taken up again."}, {"text": "The queued one."})
    empty = world.open()
    empty.until(lambda text: "for later" not in text)
    os.kill(empty.child.pid, signal.SIGKILL)
    empty.wait()
    again = world.open("--continue")
    again.sees("begin", "CodeWhale was stopped during this turn", "for later")
    again.type("go on\r")
    again.sees("Taken up again.", "The queued one.")
    again.type("/quit\r")
    assert again.wait() == 0
