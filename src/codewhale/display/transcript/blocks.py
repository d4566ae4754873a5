"""What a transcript is made of: one struct for each kind of block. A block's id never changes; its version counts what
happened to it. No block refers to another, so none needs to be looked at for garbage."""

from typing import Any

from msgspec import Struct, field

from codewhale.display.transcript.splitting import Opening
from codewhale.protocol.blocks import Block as Display

WAITING, ASKING, RUNNING, DONE, FAILED = "waiting", "asking", "running", "done", "failed"


class Block(Struct, gc=False):
    """Base of all blocks. `turn` is the turn it belongs to, 0 before the first."""

    id: int = 0
    version: int = 0
    turn: int = 0


class Said(Block, gc=False):
    """Words, or a part of long ones: `who` is person, model, thought or told (by the harness to the model). `part`
    counts from 0 and `opening` is how markdown stands where it begins; `whole` is the id of the first part. `size` is
    that of all parts, in characters."""

    who: str = "model"
    text: str = ""
    part: int = 0
    opening: Opening | None = None
    whole: int = 0
    size: int = 0
    label: str = ""


class Card(Block, gc=False):
    """A tool call. `subject` is what it is about, in a few words; `tail` are the last lines it told while running,
    `said` what the model was answered. `started` is in seconds since the epoch. `shortened` counts the characters that
    are no longer kept here; `answer` is how the person (or a rule) answered when it was asked about."""

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


class Asked(Block, gc=False):
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


class Work(Block, gc=False):
    """What goes on beside the turn, in one line: `kind` is child or job. `latest` is what it told last."""

    kind: str = "child"
    key: str = ""
    name: str = ""
    text: str = ""
    latest: str = ""
    status: str = RUNNING
    started: float = 0.0
    seconds: float = -1.0
    exit_code: int | None = None


class Note(Block, gc=False):
    """One line that says what changed. `key` names its words, and "" is for text as it came; `detail` is folded. What
    was `asked` for by the person is folded only where it is very long."""

    key: str = ""
    values: dict[str, Any] = field(default_factory=dict)
    text: str = ""
    level: str = "info"
    code: str = ""
    detail: str = ""
    asked: bool = False


class Receipt(Block, gc=False):
    """The end of a turn: what it took and whether what it did was checked. `verified` is the name of the last check
    that passed on the files as they now stand, `stale` one that passed before the last change."""

    status: str = "done"
    reason: str = ""
    seconds: float = 0.0
    usage: dict[str, Any] = field(default_factory=dict)
    verified: str = ""
    stale: str = ""
    changed: int = 0


class Writing(Block, gc=False):
    """A call that the model is writing."""

    name: str = ""


class Countdown(Block, gc=False):
    """A model call that will be sent again at `until`, seconds since the epoch, for its answer `broke` or none came."""

    attempt: int = 0
    attempts: int = 0
    delay: float = 0.0
    until: float = 0.0
    reason: str = ""
    broke: bool = False
