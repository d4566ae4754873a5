"""A session's events as the blocks of its transcript. Settled blocks depend on the durable events alone, so that a
record gives the same blocks again; what is still on its way stands behind them, in `live`."""

import re
from collections import deque
from collections.abc import Callable
from datetime import datetime
from typing import Any

import msgspec

from codewhale.display.transcript.blocks import (
    ASKING,
    DONE,
    FAILED,
    RUNNING,
    AskRecord,
    CallCard,
    Countdown,
    Explored,
    NoteBlock,
    Receipt,
    TextBlock,
    TextParts,
    TranscriptBlock,
    Work,
    Writing,
    note_of,
    parts_of,
)
from codewhale.lib.text import one_line
from codewhale.protocol.blocks import TerminalBlock
from codewhale.protocol.events import (
    AnswerDropped,
    AnswerStreamed,
    ApprovalAnswered,
    ApprovalAsked,
    CallFinished,
    CallProgress,
    CallStarted,
    CallStreamed,
    ChildClosed,
    ChildOpened,
    ChildProgress,
    Envelope,
    FileChanged,
    JobEnded,
    JobOutput,
    JobStarted,
    MessageAdded,
    QuestionAnswered,
    QuestionAsked,
    ReasoningStreamed,
    RepairRecorded,
    RequestSent,
    RetryCountdown,
    Rewound,
    SessionResumed,
    ShellOutput,
    ShellRan,
    TextStreamed,
    TurnFinished,
    TurnStarted,
    whole_output,
)
from codewhale.protocol.messages import Image, Message, Reasoning, Text, ToolCall
from codewhale.protocol.tools import ChildSubject, CommandSubject, JobSubject, PathSubject, Subject, UrlSubject

# Lines that a running call keeps, and how long each may be.
TAIL_LINES = 200
TAIL_CHARS = 2_000
# Characters of results and displays that all cards together keep; the oldest are shortened beyond it.
MOST_KEPT = 48_000_000
_SHORT = 400
_MOST_ARGUMENTS = 4_000
# Tools that only look: neighbouring calls of them are shown as one.
EXPLORING = frozenset({"read_file", "list_dir", "grep_files", "file_search", "codebase_search", "code_symbols"})
# What came of a call, by the name in its metadata.
_COUNTS = (
    ("total_matches", "hits"), ("results", "hits"), ("total", "matching"), ("entries", "entries"), ("lines", "lines")
)  # fmt: skip
_SENTENCE = re.compile(r"\.\s|\n")
_ABOUT = (
    "command", "cmd", "path", "file_path", "pattern", "query", "url", "name", "objective", "prompt", "question", "title"
)  # fmt: skip
_MOST_SUBJECT = 300
_MOST_LATEST = 400
_MOST_SHELL = 160_000


class TranscriptModel:
    """Takes each event once, in order. `settled` blocks have their place as their id, `touched` are the ids of those
    that changed. Those of `live` have negative ids and go when what they stand for is settled, which `became` tells:
    (live id, settled id) of the same words. Settled calls keep at most `most_kept` characters."""

    def __init__(self, most_kept: int = MOST_KEPT) -> None:
        self.settled: list[TranscriptBlock] = []
        self.touched: set[int] = set()
        self.turn = 0
        self.open_calls: dict[str, CallCard] = {}
        self.checked = ("", "")
        self.last_file = ""
        self._asked: dict[str, AskRecord] = {}
        self._askers: dict[str, str] = {}
        self._late: dict[str, CallCard] = {}
        self._lost: dict[str, CallCard] = {}
        self._kept: deque[tuple[CallCard, int]] = deque()
        self._kept_size = 0
        self._most_kept = most_kept
        self.live: list[TranscriptBlock] = []
        self.became: list[tuple[int, int]] = []
        self.turn_starts: list[int] = []
        self.cut = 0  # how many settled blocks are as they were when this was last set to their number
        self._unsettled: list[str] | None = None  # text of the open turn that is in no message yet
        self._taken: list[tuple[int, list[TranscriptBlock], list[int]]] = []
        self._streams: dict[str, TextParts] = {}
        self._next_live = -1
        self._turn_began = 0.0
        self.work: dict[str, Work] = {}
        self._children: dict[str, str] = {}
        self._used: dict[str, int] = {}  # tokens, by child, when its last task had ended
        self._shell: CallCard | None = None
        self._exploring: Explored | None = None
        self._thoughts: list[TextBlock] = []
        self._folds: dict[type, Callable[[Any, Envelope], None]] = {
            TextStreamed: lambda event, envelope: self._stream("model", event.text, envelope),
            ReasoningStreamed: lambda event, envelope: self._stream("thought", event.text, envelope),
            CallStreamed: self._call_streamed,
            RetryCountdown: self._retry,
            RequestSent: self._request,
            AnswerDropped: self._dropped,
            MessageAdded: self._message,
            TurnStarted: self._turn_started,
            TurnFinished: self._turn_finished,
            SessionResumed: self._resumed,
            Rewound: self._rewound,
            AnswerStreamed: self._answer_streamed,
            ChildOpened: self._child_opened,
            ChildProgress: self._child_progress,
            ChildClosed: self._child_closed,
            JobStarted: self._job_started,
            JobOutput: lambda event, _: self._told(f"job {event.job_id}", event.text),
            JobEnded: self._job_ended,
            ShellOutput: self._shell_output,
            ShellRan: self._shell_ran,
            CallStarted: self._call_started,
            CallProgress: self._call_progress,
            CallFinished: self._call_finished,
            RepairRecorded: self._repaired,
            FileChanged: self._file_changed,
            ApprovalAsked: self._approval_asked,
            ApprovalAnswered: self._approval_answered,
            QuestionAsked: self._question_asked,
            QuestionAnswered: self._question_answered,
        }

    def take(self, envelope: Envelope) -> None:
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
        self.settle(NoteBlock(text=text, level=level, asked=True))

    @property
    def blocks(self) -> list[TranscriptBlock]:
        return [*self.settled, *self.live]

    def find(self, block_id: int) -> TranscriptBlock | None:
        """The block of an id, None when it is gone."""
        if block_id >= 0:
            return self.settled[block_id] if block_id < len(self.settled) else None
        return next((block for block in self.live if block.id == block_id), None)

    # ------------------------------------------------------------------ what is on its way

    def _put_live(self, block: TranscriptBlock) -> None:
        block.id, block.turn = self._next_live, self.turn
        self._next_live -= 1
        self.live.append(block)

    def _stream(self, who: str, text: str, envelope: Envelope) -> None:
        self._drop_live(Countdown)
        stream = self._streams.get(who)
        if stream is None:
            if who != "thought":
                self._thought_ends(envelope)
            stream = self._streams[who] = TextParts(who)
            self._put_live(stream.parts[0])
            stream.parts[0].whole = stream.parts[0].id
            stream.parts[0].began = seconds_of(envelope.at)
        had = len(stream.parts)
        stream.feed(text)
        for part in stream.parts[had:]:
            self._put_live(part)
            part.whole = stream.parts[0].id
            # The parts of one text stand together, whatever has come between them.
            self.live.remove(part)
            self.live.insert(1 + max(at for at, block in enumerate(self.live) if block in stream.parts), part)

    def _thought_ends(self, envelope: Envelope) -> None:
        thought = self._streams.get("thought")
        if thought is not None and not thought.parts[0].seconds:
            thought.parts[0].seconds = max(0.1, seconds_of(envelope.at) - thought.parts[0].began)
            thought.parts[0].version += 1

    def _call_streamed(self, event: CallStreamed, envelope: Envelope) -> None:
        self._drop_live(Countdown)
        self._thought_ends(envelope)
        self._put_live(Writing(name=event.name))

    def _retry(self, event: RetryCountdown, envelope: Envelope) -> None:
        self._drop_live(Countdown)
        until = seconds_of(envelope.at) + event.delay
        put = Countdown(attempt=event.attempt, attempts=event.attempts, delay=event.delay, until=until)
        put.reason, put.broke = event.reason, event.broke
        self._put_live(put)

    def _drop_live(self, kind: type[TranscriptBlock]) -> None:
        if any(isinstance(block, kind) for block in self.live):
            self.live = [block for block in self.live if not isinstance(block, kind)]

    def _dropped(self, event: AnswerDropped, envelope: Envelope) -> None:
        if event.purpose:
            return
        self._drop_words()
        self._drop_unsettled()
        if (note := note_of(event)) is not None:
            self.settle(note)

    def _answer_streamed(self, event: AnswerStreamed, envelope: Envelope) -> None:
        if self._unsettled is not None:
            self._unsettled.append(event.text)

    def _request(self, event: RequestSent, envelope: Envelope) -> None:
        if not event.purpose:
            self._drop_unsettled()
            self._drop_words()

    def _drop_unsettled(self) -> None:
        if self._unsettled is not None:
            self._unsettled = []

    def _drop_words(self) -> None:
        if not self.live:
            return
        self._streams.clear()
        self.live = [block for block in self.live if isinstance(block, CallCard)]

    # ------------------------------------------------------------------ messages

    def _message(self, event: MessageAdded, envelope: Envelope) -> None:
        message = event.message
        if message.role == "assistant":
            streamed = {who: stream.parts for who, stream in self._streams.items()}
            first = len(self.settled)
            self._drop_words()
            self._drop_unsettled()
            for part in message.parts:
                self._assistant_part(part, streamed)
            thought = next((block for block in self.settled[first:] if _is_thought(block)), None)
            if isinstance(thought, TextBlock):
                thought.seconds = event.thought
        elif event.child:
            name = self._children.get(event.child, "")
            self.settle(NoteBlock(key="reported", values={"name": name}, detail=message.text))
        elif message.role == "user":
            self._user_message(message)

    def _assistant_part(self, part: Any, streamed: dict[str, list[TextBlock]]) -> None:
        match part:
            case Text(text=text) if text.strip():
                self._settle_words("model", text, streamed)
            case Reasoning(text=text) if text.strip():
                self._settle_words("thought", text, streamed)
            case ToolCall():
                self.add_call(part)
            case Image():
                self._image(part)

    def _settle_words(self, who: str, text: str, streamed: dict[str, list[TextBlock]]) -> None:
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
        self.settle(
            NoteBlock(key="image", values={"type": one_line(image.media_type, 40), "bytes": f"{image.bytes:,}"})
        )

    # ------------------------------------------------------------------ turns

    def _turn_started(self, event: TurnStarted, envelope: Envelope) -> None:
        self.turn = event.turn
        self._taken.clear()
        self._unsettled = []
        self.uncheck()
        self._turn_began = seconds_of(envelope.at)
        self.turn_starts.append(len(self.settled))

    def _turn_finished(self, event: TurnFinished, envelope: Envelope) -> None:
        self._drop_words()
        self._unsettled = None
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

    def _rewound(self, event: Rewound, envelope: Envelope) -> None:
        """What was said since the turn goes out of sight, until that is undone."""
        if not event.back:
            at = next((n for n, block in enumerate(self.settled) if block.turn >= event.turn), len(self.settled))
            self._taken.append((at, self.settled[at:], self.turn_starts))
            blocks = list[TranscriptBlock]()
            starts = [start for start in self.turn_starts if start < at]
        elif self._taken:
            at, blocks, starts = self._taken.pop()
        else:
            return
        self.settled[at:], self.turn_starts = blocks, starts
        self.cut = min(self.cut, at)
        self.touched = {block_id for block_id in self.touched if block_id < at}
        self.turn = self.settled[-1].turn if self.settled else 0
        self.settle(NoteBlock(key="rewind_undone" if event.back else "rewound"))

    def _resumed(self, event: SessionResumed, envelope: Envelope) -> None:
        """What an earlier process left open will not end any more; what became of its calls nobody knows. What it
        had heard of an answer is marked."""
        self._lost = dict(self.open_calls)
        self.close_calls("lost")
        if self._unsettled is not None:
            text = "".join(self._unsettled)
            if text.strip():
                self._settle_words("model", text, {})
            self.settle(NoteBlock(key="killed_partial" if text.strip() else "killed", level="warning"))
            self._unsettled = None
        for work in self.work.values():
            work.status = "stale"
            self.touch(work)
        self.work.clear()
        if (note := note_of(event)) is not None:
            self.settle(note)

    # ------------------------------------------------------------------ beside the turn

    def _child_opened(self, event: ChildOpened, envelope: Envelope) -> None:
        text = one_line(event.objective, 200)
        self._children[event.child] = event.name
        self._begin_work(Work(kind="child", key=event.child, name=event.name, text=text, role=event.role), envelope)

    def _child_progress(self, event: ChildProgress, envelope: Envelope) -> None:
        work = self.work.get(f"child {event.child}")
        if work is not None:
            if event.tool:
                work.call = CallCard(name=event.tool, status=RUNNING)
                _set_arguments(work.call, event.arguments)
            self._count_child(work, event)

    def _count_child(self, work: Work, event: ChildProgress | ChildClosed) -> None:
        work.steps = event.steps
        work.tokens = event.usage.input + event.usage.output - self._used.get(event.child, 0)
        self.touch(work)

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
            work.status, work.latest, work.call = event.status, one_line(event.summary, _MOST_LATEST), None
            work.seconds = max(0.0, seconds_of(envelope.at) - work.started)
            self._count_child(work, event)
            self._used[event.child] = event.usage.input + event.usage.output

    def _job_ended(self, event: JobEnded, envelope: Envelope) -> None:
        work = self.work.pop(f"job {event.job_id}", None)
        if work is not None:
            work.status, work.exit_code, work.seconds, work.latest = event.status, event.exit_code, event.seconds, ""
            self.touch(work)

    def _shell_output(self, event: ShellOutput, envelope: Envelope) -> None:
        if self._shell is None:
            self._shell = CallCard(name="!", status="running", started=seconds_of(envelope.at))
            self._put_live(self._shell)
        self.add_tail(self._shell, event.text)

    def _shell_ran(self, event: ShellRan, envelope: Envelope) -> None:
        if self._shell is not None:
            self.live.remove(self._shell)
            self._shell = None
        status = "done" if event.exit_code == 0 else "failed"
        shown = TerminalBlock(event.command, event.output[-_MOST_SHELL:], event.exit_code)
        subject = one_line(event.command, 300)
        took = int(event.seconds * 1000)
        self.settle(CallCard(name="!", subject=subject, status=status, ms=took, display=(shown,), kept=event.kept))

    @property
    def running(self) -> bool:
        """Whether something on the screen counts seconds."""
        return bool(self.work or self.open_calls or self._shell or any(map(counts_seconds, self.live)))

    @property
    def asking(self) -> bool:
        """Whether a call waits for the person."""
        return any(card.status == ASKING for card in self.open_calls.values())

    # ------------------------------------------------------------------ blocks

    def settle(self, block: TranscriptBlock) -> None:
        block.id, block.turn = len(self.settled), self.turn
        self.settled.append(block)
        if isinstance(block, TextBlock) and _is_thought(block):
            self._thoughts.append(block)
        elif isinstance(block, CallCard) and block.name in EXPLORING and block.call_id:
            self._explore(block)
        elif not isinstance(block, Explored) and not (isinstance(block, NoteBlock) and block.key == "told"):
            self._exploring = None

    def touch(self, block: TranscriptBlock) -> None:
        """Note that a block has changed, and with it the group that it is shown in."""
        block.version += 1
        if 0 <= block.id < len(self.settled) and self.settled[block.id] is block:
            self.touched.add(block.id)
        if block.group >= 0:
            self.touch(self.settled[block.group])

    # ------------------------------------------------------------------ groups

    def _explore(self, card: CallCard) -> None:
        """Show a call with its neighbours; what was thought between two of them is shown there as well."""
        group = self._exploring
        if group is None:
            return
        for block in (*self._thoughts, card):
            block.group = group.id
            self.touch(block)
        group.cards.append(card)
        self._thoughts.clear()

    def _stand_alone(self, card: CallCard) -> None:
        """What failed, or is asked about, is shown by itself."""
        if card.group >= 0:
            group = self.settled[card.group]
            assert isinstance(group, Explored)
            group.cards.remove(card)
            self.touch(card)
            card.group = -1

    # ------------------------------------------------------------------ calls

    def add_call(self, call: ToolCall) -> CallCard:
        """The card of a call that the model asked for."""
        card = CallCard(call_id=call.id, name=call.sent_name)
        _set_arguments(card, call.sent_arguments)
        if card.name in EXPLORING and self._exploring is None:
            self._thoughts.clear()
            self.settle(group := Explored())
            self._exploring = group
        self.settle(card)
        self.open_calls[call.id] = card
        return card

    def close_calls(self, error: str = "interrupted") -> None:
        """The turn is over: a call without a result will have none."""
        for card in self.open_calls.values():
            card.status, card.tail, card.error = FAILED, (), error
            self._stand_alone(card)
            self.touch(card)
        self.open_calls.clear()
        self._late.clear()

    def _card(self, call_id: str, name: str) -> CallCard:
        return self.open_calls.get(call_id) or self.add_call(ToolCall(call_id, name, ""))

    def _call_started(self, event: CallStarted, envelope: Envelope) -> None:
        card = self._card(event.call_id, event.name)
        card.name, card.status, card.started = event.name, RUNNING, seconds_of(envelope.at)
        _set_arguments(card, event.arguments)
        self.touch(card)

    def _call_progress(self, event: CallProgress, envelope: Envelope) -> None:
        card = self.open_calls.get(event.call_id)
        if card is not None:
            self.add_tail(card, event.text)

    def add_tail(self, card: CallCard, text: str) -> None:
        """Lines that a running call told."""
        lines = text.rstrip("\n").rsplit("\n", TAIL_LINES)[-TAIL_LINES:]
        card.tail = (*card.tail, *(line[:TAIL_CHARS] for line in lines))[-TAIL_LINES:]
        self.touch(card)

    def _call_finished(self, event: CallFinished, envelope: Envelope) -> None:
        if self._lost.pop(event.call_id, None) is not None and event.error == "interrupted":
            return
        card = self._card(event.call_id, event.name)
        del self.open_calls[event.call_id]
        self._late[event.call_id] = card
        card.name, card.status, card.ms = event.name, DONE if event.ok else FAILED, event.ms
        card.tail, card.said, card.display, card.error = (), event.content, event.display, event.error
        card.kept = whole_output(event)
        _set_facts(card, event.metadata)
        if not event.ok:
            self._stand_alone(card)
        self._keep(card)
        self.touch(card)
        if "workspace_tree_sha256" in event.metadata:
            said = one_line(str(event.metadata.get("summary") or event.name), 80)
            self.checked = (said, "") if event.ok and event.metadata.get("tests_ran") else ("", "")

    def _repaired(self, event: RepairRecorded, envelope: Envelope) -> None:
        card = self._card(event.call_id, event.name)
        card.repairs, card.lossy = event.codes, event.lossy
        self.touch(card)

    def _file_changed(self, event: FileChanged, envelope: Envelope) -> None:
        self.last_file = event.change.path
        self.uncheck()
        card = self._late.get(event.call_id) or self.open_calls.get(event.call_id)
        if card is not None and event.change.path not in card.files:
            card.files = (*card.files, event.change.path)
            self.touch(card)

    def uncheck(self) -> None:
        """What was checked may be another tree than the one that is there now."""
        verified, stale = self.checked
        self.checked = ("", verified or stale)

    def _keep(self, card: CallCard) -> None:
        """Count what a card holds; shorten the oldest where it is too much."""
        size = len(card.said) + sum(_size(display) for display in card.display)
        self._kept.append((card, size))
        self._kept_size += size
        while self._kept_size > self._most_kept and len(self._kept) > 1:
            old, held = self._kept.popleft()
            self._kept_size -= held
            if held > _SHORT:
                old.said, old.display, old.shortened = old.said[:_SHORT], (), held - _SHORT
                self.touch(old)

    # ------------------------------------------------------------------ asked of the person

    def _approval_asked(self, event: ApprovalAsked, envelope: Envelope) -> None:
        rows = tuple(_subject_row(subject) for subject in event.subjects)
        asked = AskRecord(
            request_id=event.request_id, kind="approval", subject=event.tool, reason=event.reason, rows=rows
        )
        asked.asker = event.asker
        if event.kind == "elevation":
            asked.kind = "elevation"
        card = None if event.asker else self.open_calls.get(event.call_id)  # whose ids are others
        asked.card = card is not None
        self._ask(asked)
        if card is not None:
            card.status = ASKING
            self._stand_alone(card)
            self._askers[event.request_id] = event.call_id
            self.touch(card)

    def _ask(self, asked: AskRecord) -> None:
        self.settle(asked)
        self._asked[asked.request_id] = asked

    def _approval_answered(self, event: ApprovalAnswered, envelope: Envelope) -> None:
        state = ("allowed" if event.allowed else "denied") if event.by == "person" else event.by
        state = f"{state}_{event.remember}" if event.allowed and event.remember else state
        state = "changed" if event.allowed and event.command else state
        self._answer(event.request_id, state)
        card = self.open_calls.get(self._askers.pop(event.request_id, ""))
        if card is not None:
            card.status, card.answer = RUNNING if event.allowed and card.started else "waiting", state
            self.touch(card)

    def _answer(self, request_id: str, state: str) -> AskRecord | None:
        asked = self._asked.pop(request_id, None)
        if asked is not None:
            asked.state = state
            self.touch(asked)
        return asked

    def _question_asked(self, event: QuestionAsked, envelope: Envelope) -> None:
        rows = tuple((str(row.get("question") or row.get("header") or ""), "") for row in event.questions)
        asked = AskRecord(request_id=event.request_id, kind="question", rows=rows)
        asked.subject, asked.asker = "\n".join(str(row.get("id", "")) for row in event.questions), event.asker
        self._ask(asked)

    def _question_answered(self, event: QuestionAnswered, envelope: Envelope) -> None:
        asked = self._answer(event.request_id, "answered" if event.by == "person" else event.by)
        if asked is not None:
            said = {str(row.get("id", "")): _answer_text(row) for row in event.answers}
            ids = asked.subject.split("\n")
            asked.rows = tuple((row[0], said.get(key, "")) for row, key in zip(asked.rows, ids, strict=False))


def seconds_of(at: str) -> float:
    """The time of an envelope in seconds since the epoch; 0 when it cannot be read."""
    try:
        return datetime.fromisoformat(at).timestamp()
    except ValueError:
        return 0.0


def subject_of(arguments: str) -> str:
    """What a call is about, in a few words: its command, path, pattern or the first text that it was given."""
    try:
        given = msgspec.json.decode(arguments or "{}")
    except (msgspec.DecodeError, ValueError):
        return one_line(arguments, _MOST_SUBJECT)
    if not isinstance(given, dict):
        return one_line(arguments, _MOST_SUBJECT)
    texts = [given[key] for key in _ABOUT if isinstance(given.get(key), str) and given[key]]
    texts = texts or [value for value in given.values() if isinstance(value, str) and value]
    return one_line(texts[0][: _MOST_SUBJECT * 2], _MOST_SUBJECT) if texts else ""


def _set_arguments(card: CallCard, arguments: str) -> None:
    if arguments and (arguments != card.arguments or not card.subject):
        card.subject, card.where = subject_of(arguments), ""
        if card.name in EXPLORING and card.name not in ("read_file", "list_dir"):
            card.subject, card.where = _sought(arguments) or (card.subject, "")
        card.arguments = arguments[:_MOST_ARGUMENTS]


def _sought(arguments: str) -> tuple[str, str] | None:
    """What a search looks for, and where; None where its arguments do not say."""
    try:
        given = msgspec.json.decode(arguments)
        what = given.get("pattern") or given.get("query") or given.get("name")
        return one_line(str(what)[: _MOST_SUBJECT * 2], _MOST_SUBJECT), one_line(str(given.get("path") or ""), 120)
    except (msgspec.DecodeError, ValueError, AttributeError):
        return None


def _set_facts(card: CallCard, metadata: dict[str, Any]) -> None:
    """What came of a call, as its metadata says for programs."""
    named = ((unit, metadata.get(key)) for key, unit in _COUNTS)
    card.count = next(((unit, value) for unit, value in named if type(value) is int), ("", 0))
    card.background = metadata.get("backgrounded") is True
    if "workspace_tree_sha256" in metadata:
        card.summary = one_line(str(metadata.get("summary") or ""), 200)
    error = metadata.get("error")
    if isinstance(error, dict) and isinstance(message := error.get("message"), str):
        card.why = one_line(_SENTENCE.split(message.strip(), maxsplit=1)[0].removesuffix("."), 300)


def _is_thought(block: TranscriptBlock) -> bool:
    return isinstance(block, TextBlock) and block.who == "thought"


def counts_seconds(block: TranscriptBlock) -> bool:
    """Whether a block that is on its way shows how long it has been."""
    return isinstance(block, Countdown | CallCard) or (_is_thought(block) and not getattr(block, "seconds", 0))


def _subject_row(subject: Subject) -> tuple[str, str]:
    match subject:
        case CommandSubject(command=command, cwd=cwd, stdin=stdin):
            about = f"{command} <<< {stdin}" if stdin else command
            return "command", about if cwd == "." else f"{about}  ({cwd})"
        case PathSubject(path=path, write=write):
            return ("write" if write else "read"), path
        case UrlSubject(url=url):
            return "url", url
        case JobSubject(id=job, text=text):
            return "job", f"{job} {text}".rstrip()
        case ChildSubject(role=role, objective=objective):
            return role, objective


def _answer_text(row: dict[str, Any]) -> str:
    for key in ("value", "answer", "text", "label", "answers", "labels", "selected"):
        value = row.get(key)
        if value:
            return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
    return ""


def _size(display: Any) -> int:
    return sum(len(value) if isinstance(value, str) else 100 * len(value or ()) for value in _values(display))


def _values(display: Any) -> list[Any]:
    return [value for value in msgspec.structs.astuple(display) if isinstance(value, str | tuple)]
