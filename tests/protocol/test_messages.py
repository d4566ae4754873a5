"""Messages keep their parts in order, and a call keeps what was sent beside what will be."""

import msgspec
import pytest

from codewhale.protocol.messages import Message, Part, Reasoning, Text, ToolCall
from support.samples import sample


@pytest.mark.parametrize("kind", Part.__args__, ids=lambda kind: kind.__name__)
def test_a_part_survives_json(kind: type) -> None:
    message = Message("assistant", (sample(kind),))
    assert msgspec.json.decode(msgspec.json.encode(message), type=Message) == message


def test_text_and_calls_are_found_in_order() -> None:
    one, two = ToolCall("1", "list_dir", "{}"), ToolCall("2", "read_file", "{}")
    message = Message("assistant", (Reasoning("hm"), Text("a"), one, Text("b"), two))
    assert message.text == "a\nb"
    assert message.calls == (one, two)


def test_a_call_is_replayed_in_its_wire_form_when_it_has_one() -> None:
    damaged = ToolCall("1", "Read-File", "{path: a}", "read_file", '{"path":"a"}')
    assert (damaged.sent_name, damaged.sent_arguments) == ("read_file", '{"path":"a"}')
    assert (damaged.name, damaged.arguments) == ("Read-File", "{path: a}")
    sound = ToolCall("2", "read_file", '{"path":"a"}')
    assert (sound.sent_name, sound.sent_arguments) == ("read_file", '{"path":"a"}')
