"""What a person sends: messages that wait for a turn, what they carry, and what the person's own commands printed since
the last one."""

from collections.abc import Sequence

from msgspec.structs import replace

from codewhale.lib.text import fenced, head_tail
from codewhale.protocol.errors import SessionError
from codewhale.protocol.events import Compacted, MessageAdded, QueueChanged, ShellRan, TurnStarted
from codewhale.protocol.messages import Message, Part, Text
from codewhale.protocol.ops import EditQueue
from codewhale.protocol.views import QueuedRow
from codewhale.session.session import Letter, Session

MOST_WAITING = 100
TOLD_EACH = 16 << 10


def letter_message(session: Session, letter: Letter) -> MessageAdded:
    """The message of a letter, with what the person's own commands printed before it."""
    op = letter.op
    texts = [Text(text) for text in (op.text, op.context) if text] or [Text(op.text)]
    ran: Sequence[ShellRan] = session.state.ran
    if ran:
        texts.append(Text("\n\n".join(map(shell_text, ran)), "harness"))
    parts: tuple[Part, ...] = (*texts, *letter.images)
    return MessageAdded(Message("user", parts))


def last_asked(session: Session) -> tuple[Message | None, bool]:
    """The message that began the last turn, without what the harness added, and whether the conversation still ends
    with it: nothing has answered it yet."""
    asked, ends, began = None, False, False
    for envelope in session.log.read():
        event = envelope.event
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
    """What the model reads of a command that the person ran."""
    end = "ended by a signal" if ran.exit_code is None else f"exit code {ran.exit_code}"
    head, tail, cut = head_tail(ran.output, TOLD_EACH)
    output = f"{head}\n[... {cut} bytes left out ...]\n{tail}" if cut else head
    told = fenced(f"$ {ran.command}\n{output}")
    return f"The person ran a command of their own in the workspace ({end}, {ran.seconds:.1f} s):\n{told}"


def post(session: Session, letter: Letter) -> bool:
    """Keep a letter until the turn's end, or as a steer for its next step; whether it waits in the queue. One sent
    after the end of an interrupted turn goes first: it says go on. Raises SessionError when too many wait."""
    if len(session.queue) + len(session.steers) >= MOST_WAITING:
        raise SessionError(f"{MOST_WAITING} messages wait already; edit or drop one of them (/queue)")
    if letter.op.delivery == "steer" and not session.ending:
        session.steers.append(letter)
        return False
    if session.ending and session.stop_reason:
        session.stop_reason = ""
        session.queue.appendleft(letter)
    else:
        session.queue.append(letter)
    return True


def queued(session: Session) -> tuple[QueuedRow, ...]:
    """What waits, steers first."""
    rows = [QueuedRow(one.op.text, "steer", len(one.images)) for one in session.steers]
    return (*rows, *(QueuedRow(one.op.text, "queue", len(one.images)) for one in session.queue))


def edit(session: Session, op: EditQueue) -> str:
    """Change, move or drop a waiting message; its former text, "" when it is no longer there."""
    place, index = session.steers, op.index
    if index >= len(place):
        place, index = session.queue, index - len(place)
    if not 0 <= index < len(place) or (op.was and place[index].op.text != op.was):
        return ""
    former = place[index]
    delivery = op.delivery or former.op.delivery
    other = session.steers if delivery == "steer" and not session.ending else session.queue
    if not op.text:
        del place[index]
    elif not op.delivery or other is place:
        place[index] = Letter(replace(former.op, text=op.text), former.images)
    else:
        del place[index]
        other.append(Letter(replace(former.op, text=op.text, delivery=delivery), former.images))
    tell_queue(session)
    return former.op.text


def tell_queue(session: Session) -> None:
    """Let listeners know that what waits has changed."""
    session.emit(QueueChanged(len(session.queue) + len(session.steers)))


def take_steers(session: Session) -> None:
    """Let steers join the turn."""
    if not session.steers:
        return
    while session.steers:
        letter = session.steers.popleft()
        session.asked = letter.op.text
        session.emit(letter_message(session, letter))
    tell_queue(session)
