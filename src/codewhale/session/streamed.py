"""What a model streams, on its way to the listeners and, so that a kill leaves it behind, to the log."""

from codewhale.protocol.events import AnswerStreamed, Event, RetryCountdown, TextStreamed
from codewhale.session.session import Session

KEEP_SECONDS = 0.5


class StreamKept:
    """Passes on what a model streams, and has its text in the log every moment: whoever comes after a kill sees it."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._text = ""
        self._kept = session.clock.monotonic()

    def tell(self, event: Event) -> None:
        self._session.emit(event)
        if isinstance(event, RetryCountdown) and event.broke:
            self._text = ""
        if not isinstance(event, TextStreamed):
            return
        self._text += event.text
        now = self._session.clock.monotonic()
        if now - self._kept < KEEP_SECONDS:
            return
        # Up to the last space: a secret that is still being written is hidden whole or not written.
        cut = max(self._text.rfind(" "), self._text.rfind("\n")) + 1
        if cut:
            self._session.emit(AnswerStreamed(self._text[:cut]))
            self._text, self._kept = self._text[cut:], now
