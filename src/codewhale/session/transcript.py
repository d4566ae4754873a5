"""A whole conversation as plain text: what stays readable by tool after a compaction."""

from collections.abc import Iterable, Iterator

from codewhale.protocol.events import CallFinished, Compacted, ContextAppended, Event, MessageAdded
from codewhale.protocol.messages import Message, Reasoning, Text, ToolCall


def transcript(events: Iterable[Event]) -> str:
    """Every message, call and result of a log in order, each under a line that begins with ===."""
    return "\n".join(_lines(events))


def _lines(events: Iterable[Event]) -> Iterator[str]:
    number = 0
    for event in events:
        match event:
            case MessageAdded(message=message):
                number += 1
                yield f"=== {number} {'developer' if message.role == 'user' else message.role}"
                yield from _said(message)
            case CallFinished():
                yield f"=== result of {event.name} ({event.call_id}, {'ok' if event.ok else 'failed'})"
                yield event.content
            case ContextAppended():
                yield f"=== told by the harness: {event.kind}"
                yield event.text
            case Compacted():
                yield f"=== compaction {event.number}"


def _said(message: Message) -> Iterator[str]:
    for part in message.parts:
        match part:
            case Text(text=text):
                yield text
            case Reasoning(text=text):
                yield f"(thought) {text}"
            case ToolCall():
                yield f"call {part.sent_name} {part.sent_arguments} ({part.id})"
