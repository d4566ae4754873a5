"""What a person sends: messages that wait for a turn, and what they carry."""

import asyncio
from collections import deque
from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from codewhale.agent.turn import Turn
from codewhale.lib.text import counted
from codewhale.protocol.errors import SessionError
from codewhale.protocol.events import MessageAdded, QueueChanged, Queued, QueueKept, ShellRan
from codewhale.protocol.messages import Image, Message, Part, Text
from codewhale.protocol.modes import Authority
from codewhale.protocol.ops import EditQueue, SendMessage
from codewhale.protocol.views import QueuedRow
from codewhale.session.session import Session
from codewhale.session.transcript import shell_text

MOST_WAITING = 100
KEPT = "Still queued from before: {}. They are sent after your next message; /queue shows, changes and drops them."


class QueuedMessage(Struct, frozen=True):
    """A message on its way: the operation, the images of its attachments, and the key under which it waits."""

    op: SendMessage
    images: tuple[Image, ...] = ()
    key: str = ""

    def joins(self, session: Session) -> MessageAdded:
        """It as part of the conversation, with what the person's own commands printed before it."""
        op = self.op
        texts = [Text(text) for text in (op.text, op.context) if text] or [Text(op.text)]
        commands: Sequence[ShellRan] = session.state.person_commands
        if commands:
            texts.append(Text("\n\n".join(map(shell_text, commands)), "harness"))
        parts: tuple[Part, ...] = (*texts, *self.images)
        return MessageAdded(Message("user", parts), queued=self.key)


class MessageQueue:
    """What waits in a session: steers for the turn's next step, other messages for its end."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._steers: deque[QueuedMessage] = deque()
        self._later: deque[QueuedMessage] = deque()
        self._reports: deque[MessageAdded] = deque()
        self._came = asyncio.Event()
        if session.rights.authority is Authority.PERSON:
            self._restore()

    def _restore(self) -> None:
        """What waited when an earlier process ended waits again, for the person to send, change or drop."""
        session = self._session
        for kept in session.state.waiting.values():
            op = SendMessage(session.id, kept.text, kept.context, "queue")
            self._later.append(QueuedMessage(op, kept.images, kept.key))
        if self._later:
            session.notice("info", KEPT.format(counted(len(self._later), "message")), "queue_kept")

    def _keep(self, message: QueuedMessage) -> QueuedMessage:
        """Let a message outlive the process as it is now."""
        key = message.key or f"q{self._session.log.seq + 1}"
        self._session.emit(QueueKept(key, message.op.text, message.op.context, message.images))
        return replace(message, key=key)

    def __len__(self) -> int:
        return len(self._later) + len(self._steers)

    @property
    def steers_wait(self) -> bool:
        """Whether something waits that joins the turn at its next step."""
        return bool(self._steers) or any(map(self._is_news, self._reports))

    # ------------------------------------------------------------------ what children came to

    def report(self, message: MessageAdded) -> None:
        """Let a child's end join the conversation at the next step, or begin a turn."""
        self._reports.append(message)
        self._came.set()

    async def changed(self) -> None:
        """Return once a report or a steer came, or `nudge` was called."""
        self._came.clear()
        await self._came.wait()

    def nudge(self) -> None:
        """Let whoever waits look again."""
        self._came.set()

    def next_report(self) -> MessageAdded | None:
        """The next report of an end that the conversation does not hold yet."""
        while self._reports:
            if self._is_news(report := self._reports.popleft()):
                return report
        return None

    def _is_news(self, report: MessageAdded) -> bool:
        child = self._session.state.children.get(report.child)
        return child is not None and not child.reported

    def enqueue(self, message: QueuedMessage, turn: Turn) -> None:
        """Keep a message until the turn's end, or as a steer for its next step. One sent after the end of an
        interrupted turn goes first: it says go on. Raises SessionError when too many wait."""
        if len(self) >= MOST_WAITING:
            raise SessionError(f"{MOST_WAITING} messages are already queued; edit or drop one (/queue)")
        if message.op.delivery == "steer" and not turn.winding_up:
            self._steers.append(self._keep(message))
            self._came.set()
            self.tell()
            return
        message = self._keep(message)
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
            self._session.emit(QueueKept(former.key))
            del place[index]
        else:
            changed = self._keep(replace(former, op=replace(former.op, text=op.text, delivery=delivery)))
            if not op.delivery or other is place:
                place[index] = changed
            else:
                del place[index]
                other.append(changed)
        self.tell()
        return former.op.text

    def take_reports(self) -> None:
        while (report := self.next_report()) is not None:
            self._session.emit(report)

    def take_steers(self, turn: Turn) -> list[str]:
        """Let what waits for the next step join the conversation; the texts of the person among it."""
        self.take_reports()
        if not self._steers:
            return []
        texts = [message.op.text for message in self._steers]
        while self._steers:
            message = self._steers.popleft()
            turn.asked = message.op.text
            self._session.emit(message.joins(self._session))
        self.tell()
        return texts

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
