"""What is made of a session at rest: a title, a copy, a document. No engine is started."""

from collections.abc import Mapping

from codewhale.lib.clock import SystemClock
from codewhale.protocol.events import LOG_VERSION, SessionOpened, TitleSet
from codewhale.session.export import exported, format_of, write_export
from codewhale.session.listing import checked_title
from codewhale.session.redaction import Redactor
from codewhale.session.state import SessionState
from codewhale.session.store import SessionStore


def rename(home: str, session: str, title: str) -> None:
    """Give a session a title. Raises SessionError, SessionBusyError when it is open."""
    checked = checked_title(title)
    log = SessionStore(home, SystemClock()).open(session)
    try:
        log.append([TitleSet(checked)])
    finally:
        log.close()


def fork(home: str, session: str) -> str:
    """The id of a copy of a session, which goes on by itself. Raises SessionError."""
    store, state = SessionStore(home, SystemClock()), SessionState()
    for envelope in store.read(session):
        state.apply(envelope.event)
    log = store.fork(session, SessionOpened(LOG_VERSION, state.workspace, state.mode, state.provider, state.model))
    log.close()
    return log.session


def export(home: str, session: str, target: tuple[str, str, bool], environ: Mapping[str, str]) -> bytes:
    """A session as a document, without what the environment says to be secret, also written to a file where `target`
    (path, format, whether to replace what is there) names one. Raises SessionError."""
    path, form, force = target
    store, kind = SessionStore(home, SystemClock()), format_of(path, form)
    events = (envelope.event for envelope in store.read(session))
    data = exported(store.summary(session), events, kind, Redactor(environ).text)
    if path:
        write_export(path, data, force)
    return data
