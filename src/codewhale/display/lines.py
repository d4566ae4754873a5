"""What the command line prints: envelopes and values as JSON lines; sessions, replays and imports to be read."""

from typing import Any

import msgspec
from msgspec import Struct

from codewhale.lib.text import ascii_json, one_line, sanitise
from codewhale.protocol.events import (
    CallFinished,
    ContextAppended,
    Envelope,
    Event,
    KnownEvent,
    MessageAdded,
    RepairRecorded,
    UnknownEvent,
)
from codewhale.protocol.messages import Message, Reasoning, Text, ToolCall
from codewhale.protocol.replays import Imported, Replayed, ReplayedSource

WIRE_VERSION = 1


class _Line(Struct, frozen=True):
    v: int
    seq: int
    session: str
    at: str
    event: KnownEvent | msgspec.Raw


def envelope_line(envelope: Envelope) -> str:
    """`{"v":1,"seq","session","at","event":{"type",...}}` in ASCII, without the newline. An event of a later
    version keeps its own bytes."""
    event = envelope.event.raw if isinstance(envelope.event, UnknownEvent) else envelope.event
    line = _Line(WIRE_VERSION, envelope.seq, envelope.session, envelope.at, event)
    return ascii_json(msgspec.json.encode(line))


def object_line(value: Any) -> str:
    """Any JSON-able value in ASCII, without a newline."""
    return ascii_json(msgspec.json.encode(value))


def read_aloud(event: Event) -> str:
    """Lines that are safe to print, "" for an event that is no part of the conversation."""
    match event:
        case MessageAdded(message=message):
            lines = _message(message)
        case ContextAppended(text=text):
            lines = [f"[for the model] {text}"]
        case CallFinished(ok=ok, content=content, images=images):
            lines = [f"[result{'' if ok else ', failed'}] {content}", *["[part without text]" for _ in images]]
        case RepairRecorded(codes=codes, lossy=lossy, name=name, arguments=arguments):
            chosen = ", one of several readings" if lossy else ""
            lines = [f"[repaired {' '.join(codes)}{chosen}] received as {name} {arguments}"]
        case _:
            lines = []
    return "".join(sanitise(line).rstrip("\n") + "\n" for line in lines)


def _message(message: Message) -> list[str]:
    lines = []
    for part in message.parts:
        match part:
            case Text(source="harness"):
                lines.append(f"[for the model] {part.text}")
            case Text():
                lines.append(f"[{message.role}] {part.text}")
            case Reasoning():
                lines.append(f"[thought] {part.text}")
            case ToolCall():
                lines.append(f"[call] {part.sent_name} {part.sent_arguments}")
            case _:
                lines.append("[part without text]")
    return lines


def call_text(number: int, told: Replayed) -> str:
    """A replayed call in a few lines, safe to print."""
    same = told.canonical == told.name
    state = f" ({told.state})" if told.state else ""
    rows = [f"{number}. {one_line(told.name)}{state}{'' if same else ' -> ' + one_line(told.canonical)}"]
    if told.arguments is not None:
        rows.append(f"arguments  {one_line(msgspec.json.encode(told.arguments).decode(), 400)}")
    if told.repairs:
        rows.append(
            f"repaired   {' '.join(told.repairs)}{', read in one of several possible ways' if told.lossy else ''}"
        )
    if told.error is not None:
        rows.append(f"refused    {told.error['code']}: {one_line(told.error['message'], 400)}")
        fix = told.error["fix"]
        if fix is not None:
            rows.append(f"next call  {fix['name']} {one_line(msgspec.json.encode(fix['arguments']).decode(), 200)}")
    if told.then is None:
        rows.append("then       no result was recorded")
    else:
        rows.append(f"then       {'ok' if told.then.ok else 'failed'}: {one_line(told.then.content)}")
    if told.now is not None:
        alike = "the same" if told.now.same else ("ok" if told.now.ok else "failed")
        rows.append(f"now        {alike}{'' if told.now.same else ': ' + one_line(told.now.content)}")
    elif told.not_run:
        rows.append(f"now        not run: {one_line(told.not_run)}")
    if told.drift:
        rows.append(f"unlike     {one_line(told.drift, 400)}")
    return rows[0] + "\n" + "".join(f"   {row}\n" for row in rows[1:])


def source_text(told: ReplayedSource) -> str:
    """An attached source that a replayed session read, safe to print."""
    version = f"read as {told.sha256[:12]}" if told.sha256 else "read in an unknown version"
    return f"source {one_line(told.source)} ({one_line(told.path, 300)}): {version}; {told.changed or 'the same now'}\n"


def import_lines(told: Imported) -> list[str]:
    """What an import took over and what it did not, each a line."""
    lines = [f"codewhale: imported {told.messages} messages with {told.calls} calls; nothing was run"]
    for sentence, counts in (("under today's names", told.renamed), ("of tools that are not here", told.unknown)):
        if counts:
            lines.append(f"{sentence}: {', '.join(f'{name} ({count})' for name, count in sorted(counts.items()))}")
    if told.left_out:
        lines.append(f"parts left out, not importable (system texts, results without a call): {told.left_out}")
    return lines
