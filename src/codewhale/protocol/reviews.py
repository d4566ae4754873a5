"""Reviews as data: what is to be reviewed, and what was found."""

from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from codewhale.protocol.requests import Op

Severity = Literal["critical", "high", "medium", "low"]
SEVERITIES: tuple[Severity, ...] = ("critical", "high", "medium", "low")
REVIEW_SECONDS = 900.0


class Review(Op["ReviewResult"], frozen=True, tag="review", omit_defaults=True):
    """Let the session's model review a change, with plan mode's rights: `text` as it is, else the staged changes, else
    those since `base`, else `target` ("" or diff is what is not committed; a branch, a commit, a range), only below
    `path`. At most `max_chars` of it are read, and each answer takes `max_seconds` at most. Raises SessionError."""

    session: str
    target: str = ""
    text: str = ""
    staged: bool = False
    base: str = ""
    path: str = ""
    max_chars: int = 200_000
    max_seconds: float = REVIEW_SECONDS


class ReviewFinding(Struct, frozen=True):
    """Something wrong; `line` is that of the new file, 0 for none."""

    file: Annotated[str, Meta(min_length=1, max_length=1_000)]
    severity: Severity
    title: Annotated[str, Meta(min_length=1, max_length=1_000)]
    line: Annotated[int, Meta(ge=0)] = 0
    detail: Annotated[str, Meta(max_length=20_000)] = ""


class ReviewResult(Struct, frozen=True):
    """What came of a review, the gravest first; `status` and `exit_code` are those of a turn, `cut` says what was not
    read, `session` is where it was done ("" where nothing was asked), `text` says all of it as
    a list."""

    status: str
    exit_code: int
    target: str
    summary: str = ""
    findings: tuple[ReviewFinding, ...] = ()
    cut: tuple[str, ...] = ()
    session: str = ""
    usage: dict[str, Any] = {}
    error: str = ""
    text: str = ""
