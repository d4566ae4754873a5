"""What a recursive session can be opened over besides files: the parts of a conversation, as texts under short names.

Thoughts stand in them as their size and hash alone, large results with their beginning.
"""

import hashlib
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec
from msgspec import Struct

from codewhale.protocol.events import CallFinished, Event, MessageAdded
from codewhale.protocol.messages import Message, Reasoning, Text, ToolCall
from codewhale.session.session import Session
from codewhale.session.standing import of_conversation, standing

ACTIVE = "session://active/"
_LONG_RESULT, _BEGINNING = 2_000, 500
_MOST_CARDS = 50


class SessionObject(Struct, frozen=True):
    """One of them: `id` is its address."""

    id: str
    kind: str
    title: str
    text: str


class ObjectCard(Struct, frozen=True):
    """What tells of an object without its text."""

    id: str
    kind: str
    title: str
    length: int
    preview_500: str
    sha256: str


def session_objects(session: Session) -> Iterator[SessionObject]:
    """All of a session's: its facts, system text, transcript, latest message of the user, then each message."""
    state, entries = session.state, list(_entries(session))
    facts = {
        "session": session.id, "workspace": state.workspace, "mode": str(state.mode), "provider": state.provider,
        "model": state.model, "turns": state.turns, "messages": len(entries), "title": state.title,
    }  # fmt: skip
    yield SessionObject(f"{ACTIVE}session", "session", "Facts of this session", _json(facts))
    if state.header is not None:
        yield SessionObject(f"{ACTIVE}system_prompt", "system_prompt", "System text", state.header.system)
    whole = _written(entries)
    yield SessionObject(f"{ACTIVE}transcript", "transcript", f"Transcript, {len(entries)} entries (JSON lines)", whole)
    said = [entry for entry in entries if entry["role"] == "user"]
    if said:
        yield SessionObject(f"{ACTIVE}latest_user", "message", "Latest message of the user", said[-1]["text"])
    for number, entry in enumerate(entries):
        text = entry.get("text") or _json(entry)
        yield SessionObject(f"{ACTIVE}messages/{number}", "message", f"{entry['role']}, entry {number}", text)


def transcript_of(events: Iterable[Event]) -> str:
    """The transcript that the events of a log make, as JSON lines."""
    return _written([entry for event in standing(events) for entry in _entry(event)])


def object_cards(session: Session) -> tuple[list[ObjectCard], int]:
    """A card for each object, of messages for the latest; and how many messages were left out."""
    objects = list(session_objects(session))
    messages = [one for one in objects if "/messages/" in one.id]
    omitted = max(0, len(messages) - _MOST_CARDS)
    shown = [one for one in objects if one not in messages[:omitted]] if omitted else objects
    rows = []
    for one in shown:
        sha = hashlib.sha256(one.text.encode("utf-8", "replace")).hexdigest()
        rows.append(ObjectCard(one.id, one.kind, one.title, len(one.text), one.text[:_BEGINNING], sha))
    return rows, omitted


def _entries(session: Session) -> Iterator[dict[str, Any]]:
    for event in of_conversation(session.log, session.state):
        yield from _entry(event)


def _entry(event: Event) -> Iterator[dict[str, Any]]:
    match event:
        case MessageAdded(message=message):
            yield _message(message)
        case CallFinished(call_id=call, name=name, ok=ok, content=content):
            row: dict[str, Any] = {"role": "tool", "call_id": call, "name": name, "ok": ok}
            if len(content) <= _LONG_RESULT:
                yield {**row, "text": content}
            else:
                cut = {"content": None, "chars": len(content), "sha256": _sha(content), "preview": content[:_BEGINNING]}
                yield {**row, **cut}


def _written(entries: list[dict[str, Any]]) -> str:
    return "".join(f"{_json(entry)}\n" for entry in entries)


def _message(message: Message) -> dict[str, Any]:
    row: dict[str, Any] = {"role": message.role, "text": ""}
    texts, thoughts, calls = [], [], []
    for part in message.parts:
        match part:
            case Text(text=text):
                texts.append(text)
            case Reasoning(text=text):
                thoughts.append({"redacted": True, "chars": len(text), "sha256": _sha(text)})
            case ToolCall():
                calls.append({"call_id": part.id, "name": part.sent_name, "arguments": part.sent_arguments})
    row["text"] = "\n".join(texts)
    return row | ({"thinking": thoughts} if thoughts else {}) | ({"calls": calls} if calls else {})


def _sha(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()
