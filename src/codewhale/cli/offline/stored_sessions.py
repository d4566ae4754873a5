"""Sessions at rest, for listings and exports: no engine is started and no log is locked."""

import os
from collections.abc import Iterable, Iterator, Sequence

from codewhale.lib.clock import SystemClock
from codewhale.process.artifacts import ArtifactStore
from codewhale.protocol.events import CallFinished, ContextAppended, Envelope, Event, MessageAdded
from codewhale.protocol.messages import Image, Message, ResultPart, Text
from codewhale.protocol.views import SessionSummary
from codewhale.session.store import SessionStore


def summaries(home: str, workspace: str = "") -> list[SessionSummary]:
    return _store(home).summaries(workspace)


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
    """Remove sessions by their whole ids. Raises SessionBusyError when one is open, and then none is removed."""
    _store(home).remove(sessions)


def _store(home: str) -> SessionStore:
    return SessionStore(home, SystemClock())
