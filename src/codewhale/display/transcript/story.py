"""The fold of a session's events into the blocks of its transcript. What is settled depends on the durable events
alone, so that a record gives the same blocks again; what is still on its way stands behind it, in `live`."""

from collections.abc import Callable
from typing import Any

from codewhale.display.transcript.blocks import (
    ASKING,
    Block,
    Card,
    Countdown,
    Note,
    Receipt,
    Said,
    Work,
    Writing,
)
from codewhale.display.transcript.callstory import CallStory, seconds_of
from codewhale.display.transcript.notes import note_of
from codewhale.display.transcript.parts import Parts, parts_of
from codewhale.lib.text import one_line
from codewhale.protocol.blocks import TerminalBlock
from codewhale.protocol.events import (
    AnswerDropped,
    CallStreamed,
    ChildClosed,
    ChildOpened,
    ChildProgress,
    Envelope,
    JobEnded,
    JobOutput,
    JobStarted,
    MessageAdded,
    ReasoningStreamed,
    RequestSent,
    RetryCountdown,
    SessionResumed,
    ShellOutput,
    ShellRan,
    TextStreamed,
    TurnFinished,
    TurnStarted,
)
from codewhale.protocol.messages import Image, Message, Reasoning, Text, ToolCall

_MOST_LATEST = 400
_MOST_SHELL = 65_536


class Story(CallStory):
    """Takes each event once, in order. `settled` blocks have their place as their id; those of `live` have negative
    ids and go when what they stand for is settled, which `became` tells: (live id, settled id) of the same words."""

    def __init__(self) -> None:
        super().__init__()
        self.live: list[Block] = []
        self.became: list[tuple[int, int]] = []
        self.turn_starts: list[int] = []
        self._streams: dict[str, Parts] = {}
        self._next_live = -1
        self._turn_began = 0.0
        self.work: dict[str, Work] = {}
        self._shell: Card | None = None
        self._folds: dict[type, Callable[[Any, Envelope], None]] = {
            TextStreamed: lambda event, _: self._stream("model", event.text),
            ReasoningStreamed: lambda event, _: self._stream("thought", event.text),
            CallStreamed: self._call_streamed,
            RetryCountdown: self._retry,
            RequestSent: self._request,
            AnswerDropped: self._dropped,
            MessageAdded: self._message,
            TurnStarted: self._turn_started,
            TurnFinished: self._turn_finished,
            SessionResumed: self._resumed,
            ChildOpened: self._child_opened,
            ChildProgress: lambda event, _: self._told(f"child {event.child}", event.text),
            ChildClosed: self._child_closed,
            JobStarted: self._job_started,
            JobOutput: lambda event, _: self._told(f"job {event.job_id}", event.text),
            JobEnded: self._job_ended,
            ShellOutput: self._shell_output,
            ShellRan: self._shell_ran,
            **self.call_folds(),
        }

    def take(self, envelope: Envelope) -> None:
        """Add one event."""
        event = envelope.event
        fold = self._folds.get(type(event))
        if fold is not None:
            fold(event, envelope)
            return
        note = note_of(event)
        if note is not None:
            self.settle(note)

    def say(self, text: str, level: str = "info") -> None:
        """Add a line that is no event of the session."""
        self.settle(Note(text=text, level=level, asked=True))

    @property
    def blocks(self) -> list[Block]:
        """All blocks in order."""
        return [*self.settled, *self.live]

    def find(self, block_id: int) -> Block | None:
        """The block of an id, None when it is gone."""
        if block_id >= 0:
            return self.settled[block_id] if block_id < len(self.settled) else None
        return next((block for block in self.live if block.id == block_id), None)

    # ------------------------------------------------------------------ what is on its way

    def _put_live(self, block: Block) -> None:
        block.id, block.turn = self._next_live, self.turn
        self._next_live -= 1
        self.live.append(block)

    def _stream(self, who: str, text: str) -> None:
        self._drop_live(Countdown)
        stream = self._streams.get(who)
        if stream is None:
            stream = self._streams[who] = Parts(who)
            self._put_live(stream.parts[0])
            stream.parts[0].whole = stream.parts[0].id
        had = len(stream.parts)
        stream.feed(text)
        for part in stream.parts[had:]:
            self._put_live(part)
            part.whole = stream.parts[0].id
            # The parts of one text stand together, whatever has come between them.
            self.live.remove(part)
            self.live.insert(1 + max(at for at, block in enumerate(self.live) if block in stream.parts), part)

    def _call_streamed(self, event: CallStreamed, envelope: Envelope) -> None:
        self._drop_live(Countdown)
        self._put_live(Writing(name=event.name))

    def _retry(self, event: RetryCountdown, envelope: Envelope) -> None:
        self._drop_live(Countdown)
        until = seconds_of(envelope.at) + event.delay
        put = Countdown(0, 0, 0, event.attempt, event.attempts, event.delay, until, event.reason, event.broke)
        self._put_live(put)

    def _drop_live(self, kind: type[Block]) -> None:
        if any(isinstance(block, kind) for block in self.live):
            self.live = [block for block in self.live if not isinstance(block, kind)]

    def _dropped(self, event: AnswerDropped, envelope: Envelope) -> None:
        if event.purpose:
            return
        self._drop_words()
        if (note := note_of(event)) is not None:
            self.settle(note)

    def _request(self, event: RequestSent, envelope: Envelope) -> None:
        if not event.purpose:
            self._drop_words()

    def _drop_words(self) -> None:
        if not self.live:
            return
        self._streams.clear()
        self.live = [block for block in self.live if isinstance(block, Card)]

    # ------------------------------------------------------------------ messages

    def _message(self, event: MessageAdded, envelope: Envelope) -> None:
        message = event.message
        if message.role == "assistant":
            streamed = {who: stream.parts for who, stream in self._streams.items()}
            self._drop_words()
            for part in message.parts:
                self._assistant_part(part, streamed)
        elif message.role == "user":
            self._user_message(message)

    def _assistant_part(self, part: Any, streamed: dict[str, list[Said]]) -> None:
        match part:
            case Text(text=text) if text.strip():
                self._settle_words("model", text, streamed)
            case Reasoning(text=text) if text.strip():
                self._settle_words("thought", text, streamed)
            case ToolCall():
                self.add_call(part)
            case Image():
                self._image(part)

    def _settle_words(self, who: str, text: str, streamed: dict[str, list[Said]]) -> None:
        parts = parts_of(who, text)
        first = len(self.settled)
        for part in parts:
            self.settle(part)
            part.whole = first
        parts[0].size = len(text)
        for old, new in zip(streamed.get(who, ()), parts, strict=False):
            if old.text == new.text:
                self.became.append((old.id, new.id))

    def _user_message(self, message: Message) -> None:
        for part in message.parts:
            match part:
                case Text(source="person", text=text):
                    self._settle_words("person", text, {})
                case Text(text=text) if text.strip():
                    self._settle_words("told", text, {})
                case Image():
                    self._image(part)

    def _image(self, image: Image) -> None:
        self.settle(Note(key="image", values={"type": one_line(image.media_type, 40), "bytes": f"{image.bytes:,}"}))

    # ------------------------------------------------------------------ turns

    def _turn_started(self, event: TurnStarted, envelope: Envelope) -> None:
        self.turn = event.turn
        self.uncheck()
        self._turn_began = seconds_of(envelope.at)
        self.turn_starts.append(len(self.settled))

    def _turn_finished(self, event: TurnFinished, envelope: Envelope) -> None:
        self._drop_words()
        self.close_calls()
        result = event.result
        changes, usage = result.get("changes"), result.get("usage")
        receipt = Receipt(
            status=event.status,
            reason=event.reason,
            seconds=max(0.0, seconds_of(envelope.at) - self._turn_began) if self._turn_began else 0.0,
            usage=usage if isinstance(usage, dict) else {},
            changed=len(changes) if isinstance(changes, list) else 0,
        )
        receipt.verified, receipt.stale = self.checked
        self.settle(receipt)

    def _resumed(self, event: SessionResumed, envelope: Envelope) -> None:
        """What an earlier process left open will not end any more."""
        self.close_calls()
        for work in self.work.values():
            work.status = "stale"
            self.touch(work)
        self.work.clear()
        if (note := note_of(event)) is not None:
            self.settle(note)

    # ------------------------------------------------------------------ beside the turn

    def _child_opened(self, event: ChildOpened, envelope: Envelope) -> None:
        text = one_line(event.objective, 200)
        self._begin_work(Work(kind="child", key=event.child, name=event.name, text=text), envelope)

    def _job_started(self, event: JobStarted, envelope: Envelope) -> None:
        text = one_line(event.command, 200)
        self._begin_work(Work(kind="job", key=event.job_id, name=event.job_id, text=text), envelope)

    def _begin_work(self, work: Work, envelope: Envelope) -> None:
        work.started = seconds_of(envelope.at)
        self.settle(work)
        self.work[f"{work.kind} {work.key}"] = work

    def _told(self, key: str, text: str) -> None:
        work = self.work.get(key)
        if work is not None:
            last = text.rstrip().rpartition("\n")[2]
            work.latest = one_line(last[-_MOST_LATEST:], _MOST_LATEST)
            self.touch(work)

    def _child_closed(self, event: ChildClosed, envelope: Envelope) -> None:
        work = self.work.pop(f"child {event.child}", None)
        if work is not None:
            work.status, work.latest = event.status, one_line(event.summary, _MOST_LATEST)
            work.seconds = max(0.0, seconds_of(envelope.at) - work.started)
            self.touch(work)

    def _job_ended(self, event: JobEnded, envelope: Envelope) -> None:
        work = self.work.pop(f"job {event.job_id}", None)
        if work is not None:
            work.status, work.exit_code, work.seconds, work.latest = event.status, event.exit_code, event.seconds, ""
            self.touch(work)

    def _shell_output(self, event: ShellOutput, envelope: Envelope) -> None:
        if self._shell is None:
            self._shell = Card(name="!", status="running", started=seconds_of(envelope.at))
            self._put_live(self._shell)
        self.add_tail(self._shell, event.text)

    def _shell_ran(self, event: ShellRan, envelope: Envelope) -> None:
        if self._shell is not None:
            self.live.remove(self._shell)
            self._shell = None
        status = "done" if event.exit_code == 0 else "failed"
        shown = TerminalBlock(event.command, event.output[-_MOST_SHELL:], event.exit_code)
        subject = one_line(event.command, 300)
        self.settle(Card(name="!", subject=subject, status=status, ms=int(event.seconds * 1000), display=(shown,)))

    @property
    def running(self) -> bool:
        """Whether something on the screen counts seconds."""
        return bool(self.work or self.open_calls or self._shell or any(isinstance(b, Countdown) for b in self.live))

    @property
    def asking(self) -> bool:
        """Whether a call waits for the person."""
        return any(card.status == ASKING for card in self.open_calls.values())
