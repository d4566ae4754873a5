"""A session as people read it: what was said and told, which calls were made and what they answered."""

from codewhale.lib.text import sanitise
from codewhale.protocol.events import CallFinished, ContextAppended, Event, MessageAdded, RepairRecorded
from codewhale.protocol.messages import Message, Reasoning, Text, ToolCall


def read_aloud(event: Event) -> str:
    """Lines that are safe to print, "" for an event that is no part of the conversation."""
    match event:
        case MessageAdded(message=message):
            lines = _message(message)
        case ContextAppended(text=text):
            lines = [f"[told] {text}"]
        case CallFinished(ok=ok, content=content, images=images):
            lines = [f"[result{'' if ok else ', failed'}] {content}", *["[part without text]" for _ in images]]
        case RepairRecorded(codes=codes, lossy=lossy, name=name, arguments=arguments):
            chosen = ", read in one of several ways" if lossy else ""
            lines = [f"[mended {' '.join(codes)}{chosen}] it came as {name} {arguments}"]
        case _:
            lines = []
    return "".join(sanitise(line).rstrip("\n") + "\n" for line in lines)


def _message(message: Message) -> list[str]:
    lines = []
    for part in message.parts:
        match part:
            case Text(source="harness"):
                lines.append(f"[told] {part.text}")
            case Text():
                lines.append(f"[{message.role}] {part.text}")
            case Reasoning():
                lines.append(f"[thought] {part.text}")
            case ToolCall():
                lines.append(f"[call] {part.sent_name} {part.sent_arguments}")
            case _:
                lines.append("[part without text]")
    return lines
