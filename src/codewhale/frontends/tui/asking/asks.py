"""What waits for the person's answer, in the order in which it was asked: a fold of events."""

from codewhale.protocol.events import (
    ApprovalAnswered,
    ApprovalAsked,
    Envelope,
    QuestionAnswered,
    QuestionAsked,
    SessionResumed,
    TurnFinished,
)


class Asks:
    """The open asks of all sessions that are followed."""

    def __init__(self) -> None:
        self._open: dict[str, Envelope] = {}

    def take(self, envelope: Envelope) -> bool:
        """Count an event in; whether anything has changed."""
        match envelope.event:
            case ApprovalAsked(request_id=request) | QuestionAsked(request_id=request):
                self._open[request] = envelope
                return True
            case ApprovalAnswered(request_id=request) | QuestionAnswered(request_id=request):
                return self.drop(request)
            case TurnFinished() | SessionResumed():
                # Nobody waits any more for what a turn that is over has asked.
                gone = [key for key, asked in self._open.items() if asked.session == envelope.session]
                for key in gone:
                    self.drop(key)
                return bool(gone)
        return False

    def drop(self, request: str) -> bool:
        """Forget an ask; whether there was one."""
        return self._open.pop(request, None) is not None

    @property
    def first(self) -> Envelope | None:
        """The one that has waited longest."""
        return next(iter(self._open.values()), None)

    def __len__(self) -> int:
        return len(self._open)
