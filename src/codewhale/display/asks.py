"""What waits for the person's answer, in the order in which it was asked: a fold of events."""

from codewhale.protocol.events import (
    ApprovalAnswered,
    ApprovalAsked,
    Envelope,
    MessageAdded,
    QuestionAnswered,
    QuestionAsked,
    RepairRecorded,
    SessionResumed,
    TurnFinished,
)
from codewhale.protocol.messages import ToolCall

MOST_CALLS = 200


class Asks:
    """The open asks of all sessions that are followed."""

    def __init__(self) -> None:
        self._open: dict[str, Envelope] = {}
        self._arguments: dict[tuple[str, str], str] = {}

    def take(self, envelope: Envelope) -> bool:
        """Count an event in; whether anything has changed."""
        match envelope.event:
            case MessageAdded(message=message):
                for part in message.parts:
                    if isinstance(part, ToolCall):
                        self._note(envelope.session, part.id, part.sent_arguments)
            case RepairRecorded(call_id=call, arguments=arguments):
                self._note(envelope.session, call, arguments)
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

    def arguments(self, session: str, call: str) -> str:
        """What a call was written with, "" where that was not seen."""
        return self._arguments.get((session, call), "")

    def _note(self, session: str, call: str, arguments: str) -> None:
        self._arguments[session, call] = arguments
        if len(self._arguments) > MOST_CALLS:
            del self._arguments[next(iter(self._arguments))]

    @property
    def first(self) -> Envelope | None:
        """The one that has waited longest."""
        return next(iter(self._open.values()), None)

    def __len__(self) -> int:
        return len(self._open)
