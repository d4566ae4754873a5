"""What a person sends: messages that wait for a turn, what they carry, and what the person's own commands printed since
the last one."""

from collections import deque
from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from codewhale.agent.turn import Turn
from codewhale.lib.text import fenced, head_tail
from codewhale.protocol.errors import SessionError
from codewhale.protocol.events import Compacted, MessageAdded, QueueChanged, Queued, ShellRan, TurnStarted
from codewhale.protocol.messages import Image, Message, Part, Text
from codewhale.protocol.ops import EditQueue, SendMessage
from codewhale.protocol.views import QueuedRow
from codewhale.session.session import Session
from codewhale.session.standing import of_conversation

MOST_WAITING = 100
TOLD_EACH = 16 << 10


class QueuedMessage(Struct, frozen=True):
    """A message on its way: the operation, and the images that its attachments came to."""

    op: SendMessage
    images: tuple[Image, ...] = ()

    def joins(self, session: Session) -> MessageAdded:
        """It as part of the conversation, with what the person's own commands printed before it."""
        op = self.op
        texts = [Text(text) for text in (op.text, op.context) if text] or [Text(op.text)]
        commands: Sequence[ShellRan] = session.state.person_commands
        if commands:
            texts.append(Text("\n\n".join(map(shell_text, commands)), "harness"))
        parts: tuple[Part, ...] = (*texts, *self.images)
        return MessageAdded(Message("user", parts))


class MessageQueue:
    """What waits in a session: steers for the turn's next step, other messages for its end."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._steers: deque[QueuedMessage] = deque()
        self._later: deque[QueuedMessage] = deque()

    def __len__(self) -> int:
        return len(self._later) + len(self._steers)

    @property
    def steers_wait(self) -> bool:
        return bool(self._steers)

    def enqueue(self, message: QueuedMessage, turn: Turn) -> None:
        """Keep a message until the turn's end, or as a steer for its next step. One sent after the end of an
        interrupted turn goes first: it says go on. Raises SessionError when too many wait."""
        if len(self) >= MOST_WAITING:
            raise SessionError(f"{MOST_WAITING} messages are already queued; edit or drop one (/queue)")
        if message.op.delivery == "steer" and not turn.winding_up:
            self._steers.append(message)
            self.tell()
            return
        if turn.winding_up and turn.stop_reason and not turn.goes_on:
            turn.goes_on = True
            self._later.appendleft(message)
        else:
            self._later.append(message)
        self._session.emit(Queued(message.op.text, len(self._later)))

    def rows(self) -> tuple[QueuedRow, ...]:
        rows = [QueuedRow(one.op.text, "steer", len(one.images)) for one in self._steers]
        return (*rows, *(QueuedRow(one.op.text, "queue", len(one.images)) for one in self._later))

    def edit(self, op: EditQueue, turn: Turn) -> str:
        """Change, move or drop a waiting message; its former text, "" when it is no longer there."""
        place, index = self._steers, op.index
        if index >= len(place):
            place, index = self._later, index - len(place)
        if not 0 <= index < len(place) or (op.was and place[index].op.text != op.was):
            return ""
        former = place[index]
        delivery = op.delivery or former.op.delivery
        other = self._steers if delivery == "steer" and not turn.winding_up else self._later
        if not op.text:
            del place[index]
        elif not op.delivery or other is place:
            place[index] = QueuedMessage(replace(former.op, text=op.text), former.images)
        else:
            del place[index]
            other.append(QueuedMessage(replace(former.op, text=op.text, delivery=delivery), former.images))
        self.tell()
        return former.op.text

    def take_steers(self, turn: Turn) -> None:
        if not self._steers:
            return
        while self._steers:
            message = self._steers.popleft()
            turn.asked = message.op.text
            self._session.emit(message.joins(self._session))
        self.tell()

    def next(self, turn: Turn) -> QueuedMessage | None:
        """The message that begins the turn after `turn`; steers that came too late are turns of their own."""
        while self._steers:
            self._later.appendleft(self._steers.pop())
        if not self._later or (turn.stop_reason and not turn.goes_on):
            return None
        return self._later.popleft()

    def clear(self) -> None:
        self._steers.clear()
        self._later.clear()

    def tell(self) -> None:
        self._session.emit(QueueChanged(len(self)))


def last_asked(session: Session) -> tuple[Message | None, bool]:
    """The message that began the last turn, without what the harness added, and whether the conversation still ends
    with it: nothing has answered it yet."""
    asked, ends, began = None, False, False
    for event in of_conversation(session.log, session.state.rewound):
        if isinstance(event, TurnStarted):
            began = True
        elif isinstance(event, MessageAdded):
            ends = began and event.message.role == "user"
            if ends:
                asked = event.message
            began = False
        elif isinstance(event, Compacted):
            ends = False
    if asked is None:
        return None, False
    kept = tuple(part for part in asked.parts if not isinstance(part, Text) or part.source == "person")
    return Message("user", kept), ends


def shell_text(ran: ShellRan) -> str:
    end = "ended by a signal" if ran.exit_code is None else f"exit code {ran.exit_code}"
    head, tail, cut = head_tail(ran.output, TOLD_EACH)
    output = f"{head}\n[... {cut} bytes left out ...]\n{tail}" if cut else head
    shown = fenced(f"$ {ran.command}\n{output}")
    return f"The person ran a command of their own in the workspace ({end}, {ran.seconds:.1f} s):\n{shown}"
