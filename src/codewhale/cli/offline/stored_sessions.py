"""Sessions at rest, for listings and exports: no engine is started and no log is locked."""

import os
from collections.abc import Iterable, Iterator, Sequence

from codewhale.lib.clock import SystemClock
from codewhale.process.artifacts import ArtifactStore
from codewhale.protocol.events import CallFinished, ContextAppended, Envelope, Event, MessageAdded
from codewhale.protocol.messages import Image, Message, ResultPart, Text
from codewhale.protocol.views import SessionSummary
from codewhale.session.store import SessionStore


def summaries(home: str, workspace: str = "", *, owned: bool = False) -> list[SessionSummary]:
    """The rows of a listing; with `owned` those that work for another one behind it, or behind all where it is gone."""
    store = _store(home)
    roots = store.summaries(workspace)
    if not owned:
        return roots
    every = store.summaries(owned=True)
    rows = [row for root in roots for row in (root, *_works_for(root.id, every))]
    known = {row.id for row in every}
    return [*rows, *(row for row in every if row.kind and row.owner not in known)]


def _works_for(owner: str, rows: Sequence[SessionSummary]) -> Iterator[SessionSummary]:
    """Of rows, newest first, those that work for a session, each before those that work for it, oldest first."""
    for row in reversed(rows):
        if row.owner == owner:
            yield row
            yield from _works_for(row.id, rows)


def resolve(home: str, name: str) -> str:
    return _store(home).resolve(name)


def envelopes(home: str, session: str) -> Iterator[Envelope]:
    return _store(home).read(session)


def messages(events: Iterable[Event]) -> Iterator[Message]:
    """The conversation in no provider's dialect: what was said, what calls answered, what the harness told."""
    for event in events:
        match event:
            case MessageAdded():
                yield event.message
            case CallFinished():
                yield Message("tool", (ResultPart(event.call_id, event.content, event.ok), *event.images))
            case ContextAppended():
                yield Message("user", (Text(event.text, source="harness"),))


def request_body(home: str, session: str, number: int) -> bytes | None:
    """The exact body of model request `number` of a session, None when it was never sent. Raises SessionError."""
    from codewhale.session import projection

    artifacts = ArtifactStore(os.path.join(home, "artifacts"))

    def load(image: Image) -> bytes:
        return artifacts.get(image.artifact)

    return projection.request_body([envelope.event for envelope in envelopes(home, session)], number, load)


def remove(home: str, sessions: Sequence[str]) -> None:
    """Remove sessions by their whole ids, and all that work for them. Raises SessionBusyError when one is open: then
    none is removed."""
    store = _store(home)
    every = store.summaries(owned=True)
    below = [row.id for session in sessions for row in _works_for(session, every)]
    store.remove(list(dict.fromkeys((*sessions, *below))))


def _store(home: str) -> SessionStore:
    return SessionStore(home, SystemClock())
