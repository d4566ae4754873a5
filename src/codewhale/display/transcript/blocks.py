"""What a transcript is made of: a struct for each kind of block. A block's id never changes, its version counts what
happened to it, and none but a group refers to another."""

from collections.abc import Callable, Sequence
from typing import Any

from msgspec import Struct, field

from codewhale.display.text import clean, one_row
from codewhale.display.transcript.splitting import Opening, Splitter
from codewhale.display.words import Words
from codewhale.lib.text import one_line
from codewhale.protocol.blocks import Block as Display
from codewhale.protocol.events import (
    AnswerDropped,
    ApprovalChanged,
    BudgetChanged,
    Compacted,
    CompactionUndone,
    ContextAppended,
    EffortChanged,
    FactDecided,
    FactProposed,
    FolderAdded,
    FolderRemoved,
    ModeChanged,
    ModelChanged,
    Notice,
    PrefixInvalidated,
    ResultsPruned,
    SessionOpened,
    SessionResumed,
    SkillActivated,
    SkillReleased,
    SourceRead,
    ToolActivated,
    UnknownEvent,
)

WAITING, ASKING, RUNNING, DONE, FAILED = "waiting", "asking", "running", "done", "failed"
# A part ends with the first piece of markdown that reaches so far, in characters.
PART = 6_000
# Reasons of edges whose own event has a line.
_TOLD = frozenset({"rewind", "pruned", "compaction", "compaction undone", "model", "effort", "activation"})
_MOST_DETAIL, _FEW, _FEW_CHARS = 20_000, 4, 160


class TranscriptBlock(Struct, gc=False):
    """Base of all blocks. `turn` is the turn it belongs to, 0 before the first; `group` the id of the group that it is
    shown in, -1 for none."""

    id: int = 0
    version: int = 0
    turn: int = 0
    group: int = -1


class TextBlock(TranscriptBlock, gc=False):
    """Words, or a part of long ones: `who` is person, model, thought or told (by the harness to the model). `part`
    counts from 0 and `opening` is how markdown stands where it begins; `whole` is the id of the first part. `size` is
    that of all parts, in characters. A thought `began` at that time, in seconds since the epoch, and took `seconds` (0
    while it goes on, or where nobody knows)."""

    who: str = "model"
    text: str = ""
    part: int = 0
    opening: Opening | None = None
    whole: int = 0
    size: int = 0
    label: str = ""
    began: float = 0.0
    seconds: float = 0.0


class CallCard(TranscriptBlock, gc=False):
    """A tool call. `subject` is what it is about, in a few words, `where` the path that it looks in; `tail` are the
    last lines it told while running, `said` what the model was answered, `why` in one sentence why it failed. `started`
    is in seconds since the epoch. `shortened` counts the characters that are no longer kept here; `answer` is how the
    person (or a rule) answered when it was asked about. `count` is what came of it, as a unit and a number, `summary`
    what a test run says of itself; `background`: it goes on behind the turn; `kept` is the sha256 of all that it
    printed where that is more than is here."""

    call_id: str = ""
    name: str = ""
    subject: str = ""
    arguments: str = ""
    status: str = WAITING
    started: float = 0.0
    ms: int = 0
    tail: tuple[str, ...] = ()
    shortened: int = 0
    display: tuple[Display, ...] = ()
    said: str = ""
    error: str = ""
    repairs: tuple[str, ...] = ()
    lossy: bool = False
    files: tuple[str, ...] = ()
    answer: str = ""
    where: str = ""
    why: str = ""
    count: tuple[str, int] = ("", 0)
    summary: str = ""
    background: bool = False
    kept: str = ""


class Explored(TranscriptBlock, gc=False):
    """Neighbouring calls that only look, and went well so far, as one: their cards carry its id."""

    cards: list[CallCard] = field(default_factory=list)


class AskRecord(TranscriptBlock, gc=False):
    """An approval or a question, as a line in the record, with its answer. `state` is open, or how it was answered;
    `rows` are the subjects, or the questions with their answers. One with a `card` is told there until it is
    unfolded."""

    request_id: str = ""
    kind: str = "approval"
    subject: str = ""
    reason: str = ""
    state: str = "open"
    rows: tuple[tuple[str, str], ...] = ()
    card: bool = False
    asker: str = ""


class Work(TranscriptBlock, gc=False):
    """What goes on beside the turn, in one line: `kind` is child or job. `latest` is what it told last; a child has a
    `role`, the call that it makes, and counts."""

    kind: str = "child"
    key: str = ""
    name: str = ""
    text: str = ""
    latest: str = ""
    status: str = RUNNING
    started: float = 0.0
    seconds: float = -1.0
    exit_code: int | None = None
    role: str = ""
    call: CallCard | None = None
    steps: int = 0
    tokens: int = 0


class NoteBlock(TranscriptBlock, gc=False):
    """One line that says what changed. `key` names its words, and "" is for text as it came; `also` are further words
    of the line, by key, with what they are about; `detail` is folded. What was `asked` for by the person is folded only
    where it is very long."""

    key: str = ""
    values: dict[str, Any] = field(default_factory=dict)
    also: tuple[tuple[str, str], ...] = ()
    text: str = ""
    level: str = "info"
    code: str = ""
    detail: str = ""
    asked: bool = False


class Receipt(TranscriptBlock, gc=False):
    """The end of a turn: what it took and whether what it did was checked. `verified` is the name of the last check
    that passed on the files as they now stand, `stale` one that passed before the last change."""

    status: str = "done"
    reason: str = ""
    seconds: float = 0.0
    usage: dict[str, Any] = field(default_factory=dict)
    verified: str = ""
    stale: str = ""
    changed: int = 0


class Writing(TranscriptBlock, gc=False):
    """A call that the model is writing."""

    name: str = ""


class Countdown(TranscriptBlock, gc=False):
    """A model call that will be sent again at `until`, seconds since the epoch, for its answer `broke` or none came."""

    attempt: int = 0
    attempts: int = 0
    delay: float = 0.0
    until: float = 0.0
    reason: str = ""
    broke: bool = False


class TextParts:
    """The parts of a text that grows; the last of them is open. Parts before it never change again."""

    def __init__(self, who: str, label: str = "") -> None:
        self.parts = [TextBlock(who=who, label=label, opening=Opening())]
        self._who = who
        self._label = label
        self._splitter = Splitter()
        self._start = 0
        self._seen = 0
        self._size = 0

    def feed(self, text: str) -> None:
        last = self.parts[-1]
        last.text += text
        last.version += 1
        self._size += len(text)
        self.parts[0].size = self._size
        self._splitter.feed(text)
        for piece in self._splitter.pieces[self._seen :]:
            if piece.then is not None and self._start + PART <= piece.end < self._size:
                self._cut(piece.end, piece.then)
        self._seen = len(self._splitter.pieces)

    def _cut(self, end: int, then: Opening) -> None:
        last = self.parts[-1]
        kept = end - self._start
        self.parts.append(
            TextBlock(who=self._who, label=self._label, text=last.text[kept:], part=len(self.parts), opening=then)
        )
        last.text = last.text[:kept]
        self._start = end


def parts_of(who: str, text: str, label: str = "") -> list[TextBlock]:
    """A whole text as its parts."""
    if len(text) < PART:
        return [TextBlock(who=who, text=text, label=label, size=len(text), opening=Opening())]
    parts = TextParts(who, label)
    parts.feed(text)
    return parts.parts


def note_of(event: Any) -> NoteBlock | None:
    """The line of an event, None for one that has no line of its own."""
    make = _NOTES.get(type(event))
    return None if make is None else make(event)


def note_text(words: Words, block: NoteBlock) -> str:
    """What the line of a note says, in words."""
    if not block.key:
        return clean(block.text)
    safe = {name: one_row(value) if isinstance(value, str) else value for name, value in block.values.items()}
    also = (words(f"transcript.note_{key}", what=what or words("transcript.nothing")) for key, what in block.also)
    return words(f"transcript.note_{block.key}", **safe) + "".join(also)


def _opened(event: SessionOpened) -> NoteBlock:
    values = {"model": event.model, "provider": event.provider, "folder": event.workspace}
    if event.parent:
        return NoteBlock(key="forked", values={**values, "parent": event.parent, "seq": event.parent_seq})
    return NoteBlock(key="opened", values=values)


def _resumed(event: SessionResumed) -> NoteBlock:
    if event.cut_bytes or event.skipped_lines:
        return NoteBlock(
            key="repaired", values={"bytes": event.cut_bytes, "lines": event.skipped_lines}, level="warning"
        )
    return NoteBlock(key="resumed")


def _edge(event: PrefixInvalidated) -> NoteBlock | None:
    return None if event.reason in _TOLD else NoteBlock(key="edge", values={"reason": one_line(event.reason, 80)})


def _compacted(event: Compacted) -> NoteBlock:
    values = {
        "number": event.number,
        "reason": one_line(event.reason, 80),
        "before": f"{event.tokens_before:,}",
        "after": f"{event.tokens_after:,}",
    }
    detail = "\n\n".join(message.text for message in event.messages)
    return NoteBlock(key="compacted", values=values, detail=detail[:_MOST_DETAIL])


def _dropped(event: AnswerDropped) -> NoteBlock:
    """An answer that broke: what had come of it is folded behind the line, and void."""
    values = {"attempt": event.attempt, "attempts": event.attempts, "reason": one_line(event.reason, 300)}
    came = "\n\n".join(filter(None, (event.text, ", ".join(event.calls))))
    key = "dropped" if event.attempt else "dropped_last"
    return NoteBlock(key=key, values=values, detail=came[:_MOST_DETAIL], level="warning")


def _budget(event: BudgetChanged) -> NoteBlock:
    limits = event.limits
    bounds = {"turns": limits.turns, "tokens": limits.tokens, "s": limits.seconds, "cost": limits.cost}
    said = ", ".join(f"{value:g} {name}" for name, value in bounds.items() if value is not None)
    return NoteBlock(key="budget", values={"limits": said}) if said else NoteBlock(key="unbounded")


def _few(names: Sequence[str]) -> str:
    more = f", +{len(names) - _FEW}" if len(names) > _FEW else ""
    return one_line(", ".join(names[:_FEW]), _FEW_CHARS) + more


def _skill(event: SkillActivated) -> NoteBlock:
    """A skill has its file named SKILL.md; a rule any other name."""
    also = []
    if event.scope is not None:
        also.append((f"restricts_{event.lasts}", _few(event.scope.shown)))
    if event.approved:
        also.append(("approves", _few([rule.shown for rule in event.approved])))
    values = {"name": one_line(event.name, 130), "path": one_line(event.path, 300)}
    kind = "skill" if event.path.endswith("SKILL.md") else "rule"
    return NoteBlock(key=kind, values=values, also=tuple(also))


def _proposed(event: FactProposed) -> NoteBlock:
    values = {"id": event.id[:4], "text": one_line(event.text, 300), "origin": one_line(event.origin)}
    return NoteBlock(key="proposed_from" if event.origin else "proposed", values=values)


_NOTES: dict[type, Callable[[Any], NoteBlock | None]] = {
    SessionOpened: _opened,
    SessionResumed: _resumed,
    PrefixInvalidated: _edge,
    Compacted: _compacted,
    BudgetChanged: _budget,
    AnswerDropped: _dropped,
    CompactionUndone: lambda event: NoteBlock(key="restored", values={"number": event.number}),
    ResultsPruned: lambda event: NoteBlock(key="pruned", values={"n": len(event.results)}),
    ModeChanged: lambda event: NoteBlock(key="mode", values={"mode": str(event.mode), "previous": str(event.previous)}),
    ApprovalChanged: lambda event: NoteBlock(key=f"approval_{event.approval}"),
    ModelChanged: lambda event: NoteBlock(key="model", values={"model": event.model, "provider": event.provider}),
    FolderAdded: lambda event: NoteBlock(key="folder_added", values={"path": one_line(event.path, 300)}),
    FolderRemoved: lambda event: NoteBlock(key="folder_removed", values={"path": one_line(event.path, 300)}),
    SourceRead: lambda event: NoteBlock(
        key="source_read" if event.sha256 else "source_unknown",
        values={"name": one_line(event.name, 130), "version": event.sha256[:12]},
    ),
    SkillActivated: _skill,
    FactProposed: _proposed,
    FactDecided: lambda event: NoteBlock(
        key=f"fact_{event.decision}", values={"id": event.id[:4], "text": one_line(event.text, 300)}
    ),
    SkillReleased: lambda event: NoteBlock(key="skill_released", values={"name": one_line(event.name, 130)}),
    EffortChanged: lambda event: NoteBlock(
        key="effort" if event.effort else "own_effort", values={"effort": event.effort}
    ),
    ToolActivated: lambda event: NoteBlock(key="activated", values={"name": event.name, "bytes": f"{event.bytes:,}"}),
    ContextAppended: lambda event: NoteBlock(
        key="told", values={"kind": one_line(event.kind, 40)}, detail=event.text[:_MOST_DETAIL]
    ),
    Notice: lambda event: NoteBlock(text=event.text[:_MOST_DETAIL], level=event.level, code=event.code),
    UnknownEvent: lambda event: NoteBlock(key="unknown", values={"type": one_line(event.type, 60)}),
}
