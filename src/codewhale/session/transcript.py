"""A conversation, and what the person ran beside it, as plain text: what stays readable by tool after a compaction."""

from collections.abc import Iterable, Iterator

from codewhale.lib.text import fenced, head_tail
from codewhale.protocol.events import CallFinished, Compacted, ContextAppended, Event, MessageAdded, ShellRan
from codewhale.protocol.messages import Message, Reasoning, Text, ToolCall

TOLD_EACH = 16 << 10


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
                yield f"=== from CodeWhale: {event.kind}"
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


def shell_text(ran: ShellRan) -> str:
    end = "ended by a signal" if ran.exit_code is None else f"exit code {ran.exit_code}"
    head, tail, cut = head_tail(ran.output, TOLD_EACH)
    output = f"{head}\n[... {cut} bytes left out ...]\n{tail}" if cut else head
    shown = fenced(f"$ {ran.command}\n{output}")
    return f"The user ran a command in the workspace ({end}, {ran.seconds:.1f} s):\n{shown}"
