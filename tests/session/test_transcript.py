"""A conversation as plain text."""

from codewhale.protocol.events import CallFinished, Compacted, ContextAppended, MessageAdded, TurnStarted
from codewhale.protocol.messages import Message, Reasoning, Text, ToolCall
from codewhale.session.transcript import transcript


def test_everything_said_stands_under_a_line_of_its_own() -> None:
    events = [
        TurnStarted(1),
        MessageAdded(Message("user", (Text("Hello"), Text("there")))),
        ContextAppended("mode", "Mode: plan."),
        MessageAdded(Message("assistant", (Reasoning("hm"), Text("Yes.", "model"), ToolCall("c1", "x", "{}", "read")))),
        CallFinished("c1", "read", False, "gone"),
        Compacted(1, "full", ()),
    ]
    assert transcript(events).split("\n") == [
        "=== 1 developer", "Hello", "there", "=== from CodeWhale: mode", "Mode: plan.", "=== 2 assistant",
        "(thought) hm", "Yes.", "call read {} (c1)", "=== result of read (c1, failed)", "gone", "=== compaction 1",
    ]  # fmt: skip
