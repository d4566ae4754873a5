"""Reviews as data: what is to be reviewed, how much of it is read, what was found, and how that reads."""

import re
from collections.abc import Sequence
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct

from codewhale.lib.text import one_line
from codewhale.protocol.blocks import DiffBlock
from codewhale.protocol.requests import Op

Severity = Literal["critical", "high", "medium", "low"]
SEVERITIES: tuple[Severity, ...] = ("critical", "high", "medium", "low")
MOST_FINDINGS, NAMED = 200, 10
_FENCE = re.compile(r"```(?:json)?\s*\n(.*?)```", re.DOTALL)


class Review(Op["ReviewResult"], frozen=True, tag="review", omit_defaults=True):
    """Let the session's model review a change, with plan mode's rights: `text` as it is, else the staged changes, else
    those since `base`, else `target` ("" or diff is what is not committed; a branch, a commit, a range), only below
    `path`. At most `max_chars` of it are read. Raises SessionError."""

    session: str
    target: str = ""
    text: str = ""
    staged: bool = False
    base: str = ""
    path: str = ""
    max_chars: int = 200_000


class ReviewFinding(Struct, frozen=True):
    """Something wrong; `line` is that of the new file, 0 for none."""

    file: Annotated[str, Meta(min_length=1, max_length=1_000)]
    severity: Severity
    title: Annotated[str, Meta(min_length=1, max_length=1_000)]
    line: Annotated[int, Meta(ge=0)] = 0
    detail: Annotated[str, Meta(max_length=20_000)] = ""


class ReviewAnswer(Struct, frozen=True):
    """What a model answers."""

    findings: tuple[ReviewFinding, ...]
    summary: str = ""

    def sorted(self) -> tuple[ReviewFinding, ...]:
        """The gravest first."""
        rank = SEVERITIES.index
        return tuple(sorted(self.findings[:MOST_FINDINGS], key=lambda one: (rank(one.severity), one.file, one.line)))


class ReviewResult(Struct, frozen=True):
    """What came of a review, the gravest first; `status` and `exit_code` are those of a turn, `cut` says what was not
    read, `session` is where it was done ("" where nothing was asked)."""

    status: str
    exit_code: int
    target: str
    summary: str = ""
    findings: tuple[ReviewFinding, ...] = ()
    cut: tuple[str, ...] = ()
    session: str = ""
    usage: dict[str, Any] = {}
    error: str = ""

    def as_text(self) -> str:
        """A review as a list."""
        count = "1 finding" if len(self.findings) == 1 else f"{len(self.findings)} findings"
        lines = [f"{count} in {self.target}.", *([self.summary] if self.summary else [])]
        for one in self.findings:
            place = f"{one_line(one.file, 200)}:{one.line}" if one.line else one_line(one.file, 200)
            lines += ["", f"{one.severity:<8} {place}  {one_line(one.title, 300)}"]
            lines += [f"  {one_line(line, 1_000)}" for line in one.detail.splitlines() if line.strip()]
        lines += ["", "Left out for its size:", *(f"  {line}" for line in self.cut)] if self.cut else []
        return "\n".join(lines)


def decode(text: str) -> ReviewAnswer:
    """The review in an answer, bare or fenced or among words. Raises ValueError with what is wrong."""
    start, end = text.find("{"), text.rfind("}")
    pieces = [text.strip(), *_FENCE.findall(text), text[start : end + 1] if start >= 0 else ""]
    wrong = "it holds no JSON object"
    for piece in filter(None, pieces):
        try:
            return msgspec.json.decode(piece.encode("utf-8", "replace"), type=ReviewAnswer)
        except msgspec.ValidationError as error:
            wrong = str(error)
        except (msgspec.DecodeError, RecursionError):
            continue
    raise ValueError(wrong)


def bounded(blocks: Sequence[DiffBlock], room: int) -> tuple[str, tuple[str, ...]]:
    """As much of a change as there is room for, and a line for each file of which something is left out."""
    kept, cut = list[str](), list[str]()
    for block in blocks:
        text, name = block.diff.rstrip("\n"), block.path or "the text"
        if len(text) <= room:
            kept.append(text)
        elif room > 0:
            kept.append(f"{text[:room]}\n(the rest of {name} is left out)")
            cut.append(f"{one_line(name, 200)}: {room:,} of {len(text):,} characters were read")
        else:
            cut.append(f"{one_line(name, 200)}: not read")
        room -= min(room, len(text))
    if len(cut) > NAMED:
        cut[NAMED:] = [f"{len(cut) - NAMED} more files: not read"]
    return "\n".join(kept), tuple(cut)
