"""Sessions as people read them."""

import pytest

from codewhale.display.lines import read_aloud
from codewhale.protocol.events import CallFinished, ContextAppended, Event, MessageAdded, RepairRecorded, TurnStarted
from codewhale.protocol.messages import Image, Message, Opaque, Reasoning, Text, ToolCall

CALL = ToolCall("c", "ReadFile", '{"path": "a",}', "read_file", '{"path":"a"}')
PICTURE = Image("image/png", "0" * 64, 3)


@pytest.mark.parametrize(
    ("event", "lines"),
    [
        (TurnStarted(1), []),
        (MessageAdded(Message("user", (Text("hi\x1b[2J"), Text("mode", source="harness"), PICTURE))),
         ["[user] hi\\x1b[2J", "[for the model] mode", "[part without text]"]),
        (MessageAdded(Message("assistant", (Reasoning("hm"), Text("so\n", source="model"), CALL, Opaque("p", "{}")))),
         ["[thought] hm", "[assistant] so", '[call] read_file {"path":"a"}', "[part without text]"]),
        (ContextAppended("mode", "agent"), ["[for the model] agent"]),
        (CallFinished("c", "read_file", True, "one\ntwo\n", images=(PICTURE,)),
         ["[result] one", "two", "[part without text]"]),
        (CallFinished("c", "read_file", False, "none"), ["[result, failed] none"]),
        (RepairRecorded("c", ("N1", "P1"), False, "ReadFile", '{"path": "a",}'),
         ['[repaired N1 P1] received as ReadFile {"path": "a",}']),
        (RepairRecorded("c", ("P8",), True, "x", "y"),
         ["[repaired P8, one of several readings] received as x y"]),
    ],
)  # fmt: skip
def test_each_event_is_said_in_safe_lines(event: Event, lines: list[str]) -> None:
    assert read_aloud(event) == "".join(line + "\n" for line in lines)
