"""The one output pipeline: redact, then cut to the inline limit with the whole kept as an artifact.

Tools return everything within their own caps; what the model reads of it is decided here and nowhere else.
"""

from collections.abc import Callable
from typing import Protocol

import msgspec

from codewhale.lib.text import head_tail, one_line, scrub_surrogates
from codewhale.protocol.errors import SessionError, ToolError
from codewhale.protocol.tools import OutputKept
from codewhale.session.redaction import Redactor

INLINE_LIMIT = 16_384
INLINE_LIMIT_LARGE = 49_152
LARGE_WINDOW = 500_000
FETCH_LIMIT = 262_144
_LONGEST_CALL = 8000
_NOTICE = 320
_LARGE_SHARE = 0.3
_BYTES_A_TOKEN = 4


class Keeper(Protocol):
    """Where whole outputs are kept."""

    def put(self, data: bytes) -> str:
        """Keep bytes; their sha256 in hex."""

    def remember(self, session: str, call_id: str, sha: str) -> None:
        """Let a call's id stand for its kept output."""


def inline_limit(context_window: int) -> int:
    """Bytes of one result that a model with this window reads."""
    return INLINE_LIMIT_LARGE if context_window >= LARGE_WINDOW else INLINE_LIMIT


class Outputs:
    """Turns what a tool returned into what the model reads."""

    def __init__(self, keeper: Keeper, redactor: Redactor, of: Callable[[str], Redactor] | None = None) -> None:
        """`of` gives the redactor of a session, where sessions have their own."""
        self._keeper = keeper
        self._of = of or (lambda session: redactor)

    def fit(
        self, session: str, call_id: str, text: str, limit: int, kept: OutputKept | None = None, window: int = 0
    ) -> tuple[str, dict[str, object]]:
        """`text` within `limit` bytes and the metadata that says what was cut: artifact_id, artifact_sha256,
        artifact_bytes, omitted_bytes; empty when nothing was. Where the whole cannot be kept, head and tail are all
        there is: `kept` False and `keep_error`. The call's id stands for `kept`, all that its program
        printed, where the tool has kept that, else for `text`. What is larger than 30 % of a `window` of so many
        tokens is better worked on than read: then the notice names rlm_open."""
        if kept is not None:
            self._keeper.remember(session, call_id, kept.sha256)
        clean = self._of(session).text(scrub_surrogates(text))
        data = clean.encode()
        if len(data) <= limit:
            return clean, {}
        head, tail, omitted = head_tail(clean, limit - _NOTICE)
        metadata: dict[str, object]
        try:
            sha = self._keeper.put(data)
        except SessionError as error:
            way = "they could not be kept; if they matter, call again for less at a time"
            metadata = {"omitted_bytes": omitted, "kept": False, "keep_error": str(error)}
        else:
            if kept is None:
                self._keeper.remember(session, call_id, sha)
            ref = f"art_{sha[:16]}"
            way = f'to read them call retrieve_tool_result {{"ref": "{ref}", "mode": "lines", "lines": "1-200"}}'
            whole = kept if kept is not None and kept.bytes > len(data) else OutputKept(sha, len(data))
            if 0 < window < whole.bytes / (_BYTES_A_TOKEN * _LARGE_SHARE):
                opening = f'{{"session_object": "art_{whole.sha256[:16]}"}}'
                way += f", to work by code on all of the {whole.bytes} bytes rlm_open {opening}"
            metadata = {"artifact_id": ref, "artifact_sha256": sha, "artifact_bytes": len(data)}
            metadata["omitted_bytes"] = omitted
        middle = f"[... {omitted} of {len(data)} bytes left out here; {way} ...]"
        joint = "" if head.endswith("\n") else "\n"
        return f"{head}{joint}{middle}\n{tail}", metadata


def render_error(tool: str, error: ToolError) -> str:
    """A failed call as the model reads it: kind, tool, what is wrong (the field, what it must be and what came, where
    the message leaves one out), the next call."""
    advice = {
        "timeout": " Narrow the scope or raise the timeout.",
        "permission_denied": "",
        "not_available": "",
    }.get(error.kind, "")
    text = f"Error ({error.kind}) in {tool}: {error.message}{advice}{_facts(error)}"
    if error.look is not None:
        text += f"\nTo see what is there: {error.look.name} {msgspec.json.encode(error.look.arguments).decode()}"
    if error.fix is not None:
        text += f"\nNext call: {error.fix.name} {_shown(error.fix.arguments)}"
    return text


def _shown(arguments: dict[str, object]) -> str:
    """Arguments as JSON; of texts that are long altogether only how long they are, for whoever sent them has them."""
    said = msgspec.json.encode(arguments)
    if len(said) > _LONGEST_CALL:
        long = {key: item for key, item in arguments.items() if isinstance(item, str) and len(item) > 200}
        short = {key: f"[{len(item):,} characters, as you sent them]" for key, item in long.items()}
        said = msgspec.json.encode({**arguments, **short})
    return said.decode()


def _facts(error: ToolError) -> str:
    if not error.field or all(fact in error.message for fact in (error.field, error.expected, _received(error))):
        return ""
    return f"\n`{error.field}`: wanted {error.expected}, got {one_line(_received(error))}."


def _received(error: ToolError) -> str:
    return error.received or ("an empty string" if error.field else "")


def error_fields(error: ToolError) -> dict[str, object]:
    """The same for programs."""
    fix = None if error.fix is None else {"name": error.fix.name, "arguments": error.fix.arguments}
    return {
        "code": error.kind,
        "message": error.message,
        "field": error.field,
        "expected": error.expected,
        "received": _received(error),
        "fix": fix,
    }


def error_metadata(error: ToolError) -> dict[str, object]:
    return {**error.metadata, "error": error_fields(error)}
