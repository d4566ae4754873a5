"""Sessions at rest, for listings and exports: no engine is started and no log is locked."""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence

from codewhale.lib.clock import SystemClock
from codewhale.process.artifacts import ArtifactStore
from codewhale.protocol.events import (
    LOG_VERSION,
    CallFinished,
    ContextAppended,
    Envelope,
    Event,
    MessageAdded,
    SessionOpened,
    TitleSet,
)
from codewhale.protocol.messages import Image, Message, ResultPart, Text
from codewhale.protocol.views import SessionSummary
from codewhale.session.export import Format, exported
from codewhale.session.listing import checked_title
from codewhale.session.redaction import Redactor
from codewhale.session.state import SessionState
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


def rename(home: str, session: str, title: str) -> None:
    """Give a session a title. Raises SessionError, SessionBusyError when it is open."""
    checked = checked_title(title)
    log = _store(home).open(session)
    try:
        log.append([TitleSet(checked)])
    finally:
        log.close()


def fork(home: str, session: str) -> str:
    """The id of a copy of a session, which goes on by itself. Raises SessionError."""
    store, state = _store(home), SessionState()
    for envelope in store.read(session):
        state.apply(envelope.event)
    opened = SessionOpened(LOG_VERSION, state.workspace, state.mode, state.provider, state.model)
    log = store.fork(session, opened)
    log.close()
    return log.session


def export(home: str, session: str, form: Format, environ: Mapping[str, str]) -> bytes:
    """A session as a document, without what the environment says to be secret. Raises SessionError."""
    store = _store(home)
    events = (envelope.event for envelope in store.read(session))
    return exported(store.summary(session), events, form, Redactor(environ).text)


def remove(home: str, sessions: Sequence[str]) -> None:
    """Remove sessions by their whole ids. Raises SessionBusyError when one is open, and then none is removed."""
    _store(home).remove(sessions)


def _store(home: str) -> SessionStore:
    return SessionStore(home, SystemClock())
