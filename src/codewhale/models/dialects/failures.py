"""What went wrong at a provider, told from its status, headers and error text: one kind, one line, and whether
the same request may succeed later."""

import re
from collections.abc import Mapping
from typing import Any, get_args

import msgspec
from msgspec import Struct

from codewhale.lib.text import one_line
from codewhale.protocol.stream import FailureKind

KINDS: tuple[str, ...] = get_args(FailureKind)
RETRYABLE: frozenset[str] = frozenset({"connect", "timeout", "rate_limit", "server", "malformed", "interrupted"})
_MESSAGE_LIMIT = 400


class Failure(Struct, frozen=True):
    """A failed request. `retry_after` is the server's wish in seconds, None when it has none; `window` how many tokens
    it says that the model reads (0: it does not say); `no_such_place` tells that nothing answers at the address."""

    kind: FailureKind
    message: str
    retryable: bool
    retry_after: float | None = None
    window: int = 0
    no_such_place: bool = False


class ProviderFailure(Exception):
    """Carries a Failure from where it was noticed to where it becomes the stream's last event."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.message)
        self.failure = failure


def failure(kind: FailureKind, message: str) -> ProviderFailure:
    """An exception of `kind`, retryable as that kind usually is."""
    return ProviderFailure(Failure(kind, one_line(message, _MESSAGE_LIMIT), kind in RETRYABLE))


# Signs in error texts; compiled when the first failure comes.
_QUOTA = (
    r"insufficient[ _]?(?:quota|balance|credit|funds)|exceeded your current quota|credit balance|out of credits"
    r"|billing|payment required"
)
_CONTEXT = (
    r"context_length|context[ _](?:length|window|size|limit)|maximum context|prompt is too long|input is too long"
    r"|too many (?:input )?tokens|reduce the length|string_above_max_length|request too large|max(?:imum)? prompt"
)
_TOO_LONG = r"exceed_context_size|exceeds the available context"  # Said with any status.
_COUNT = r"(\d{1,3}(?:,\d{3})+|\d{3,9})"
_WINDOW = (
    rf'"n_ctx\W{{1,3}} *{_COUNT}|(?:maximum|model.s|available) context (?:length|window|size)\D{{0,24}}{_COUNT}'
    rf"|(?:context|token|model) (?:length|window|size|limit) (?:of|is)(?: only)? {_COUNT}|\d tokens? > {_COUNT} max"
    rf"|\d \+ \d+ > {_COUNT}|token count.{{0,40}}exceeds the maximum\D{{0,40}}{_COUNT}|must be <= {_COUNT}"
)
_NO_SUCH_PLACE = (404, 405, 501)
# Some servers say it with a status of 200.
_NO_ENDPOINT = r"(?:unexpected|unknown|no such) (?:endpoint|route|url|path)"
_POLICY = (
    r"content[ _](?:filter|policy)|content management policy|content exists risk|data_inspection|responsible ?ai"
    r"|safety (?:system|policy|filter)|moderation|usage polic|(?:bio|cyber)_policy|policy_violation"
)
# The server read the answer as a call and could make none of it: the model's fault, not the request's.
_LOST_CALL = r"tool_use_failed|failed_generation|failed to call a function|tool call validation failed"
_SEALED = r"encrypted[_ ]content|invalid\W{1,3}signature"
_MODEL = (
    r"model_not_found|model not (?:exist|found)|(?:unknown|invalid|no such|unsupported) model"
    r"|model\b.{0,120}\b(?:does not exist|not found|not supported|is not available)"
)
_BOUND = r"invalid `?signature`? in `?(?:redacted_)?thinking"
_AUTH = (
    r"invalid_api_key|(?:incorrect|invalid|missing|no) api[ _-]?key|authentication|unauthori[sz]ed|permission_denied"
)
_BUSY = r"rate[ _]?limit|too many requests"
_ASKED_WRONG = r"invalid|bad[ _]request|unsupported|not supported|unknown (?:field|parameter)|required|not[ _]found"
_SERVER = (
    r"overloaded|server_error|internal[ _]error|internal server error|unavailable|insufficient_system_resource"
    r"|try again later|bad gateway|timed? ?out"
)


def from_status(status: int, headers: Mapping[str, str], body: bytes, retry_after: float | None = None) -> Failure:
    """The failure that an answer other than 200 means. `headers` are lower-case, `body` may be cut."""
    if 300 <= status < 400:
        target = re.sub(r"[?#].*", "", headers.get("location", "elsewhere"))
        text = f"the server redirects to {target}; redirects are not followed, set base_url to the final address"
        return Failure("bad_request", one_line(f"HTTP {status}: {text}", _MESSAGE_LIMIT), False)
    said, words = _said(body, headers.get("content-type", ""))
    kind = _kind(status, words.lower())
    message = one_line(f"HTTP {status}: {said}" if said.strip() else f"HTTP {status}", _MESSAGE_LIMIT)
    if kind == "bad_request" and re.search(_BOUND, words.lower()):
        message += " (set facts.binds_thinking = true, choose the model again)"
    elif kind == "bad_request" and re.search(_SEALED, words.lower()):
        message += (
            " (another account sealed the reasoning: set facts.replays_reasoning = false, choose the model again)"
        )
    elif status in _NO_SUCH_PLACE and kind in ("bad_request", "server"):
        return Failure("bad_request", message + " (check base_url and path)", False, no_such_place=True)
    window = _window_said(body.decode("utf-8", "replace")) if kind == "context_length" else 0
    return Failure(kind, message, kind in RETRYABLE, retry_after or _wait_said(words), window)


def from_error(error: Any) -> Failure:
    """The failure that an `error` value inside an answer means."""
    said, words = _error_text(error)
    code = str(error.get("code")) if isinstance(error, dict) else ""
    status = int(code) if re.fullmatch(r"[45]\d\d", code, re.ASCII) else 0
    kind = _kind(status, words.lower())
    message = one_line(said, _MESSAGE_LIMIT) or "the provider reported an error without a message"
    if re.search(_NO_ENDPOINT, words.lower()):
        return Failure("bad_request", message, False, no_such_place=True)
    window = _window_said(msgspec.json.encode(error).decode()) if kind == "context_length" else 0
    return Failure(kind, message, kind in RETRYABLE, _wait_said(words), window)


def headline(name: str, model: str, kind: str, message: str) -> str:
    """What a failure of a provider means, as the beginning of what people are told; "" where the message alone says
    it."""
    status = re.match(r"HTTP (\d{3})\b", message)
    code = f" ({status[1]})" if status is not None else ""
    match kind:
        case "auth":
            return f"{name} rejected the key{code}"
        case "no_model":
            return f"{name} does not serve {model}{code}"
        case "connect" | "timeout":
            return f"{name} does not answer"
    return ""


def retry_after(headers: Mapping[str, str], now: float) -> float | None:
    """Seconds that the server asks to wait (milliseconds, seconds or an HTTP date), None where it does not say.
    `now` is in seconds since the epoch."""
    try:
        if "retry-after-ms" in headers:
            seconds = float(headers["retry-after-ms"]) / 1000
        elif "retry-after" not in headers:
            return None
        elif headers["retry-after"][:1].isdigit():
            seconds = float(headers["retry-after"])
        else:
            from email.utils import parsedate_to_datetime

            seconds = parsedate_to_datetime(headers["retry-after"]).timestamp() - now
    except (ValueError, TypeError, OverflowError):
        return None
    return max(0.0, seconds) if seconds < 1e9 else None


def _wait_said(words: str) -> float | None:
    """Seconds that an error text asks to wait, None where it does not."""
    match = re.search(r"(?i)try again in (\d{1,6}(?:\.\d+)?) ?(ms|s|m)\b", words)
    return float(match[1]) * {"ms": 0.001, "s": 1.0, "m": 60.0}[match[2].lower()] if match is not None else None


def _window_said(text: str) -> int:
    """How many tokens the model reads, as an error says it; 0 where it does not."""
    match = re.search(_WINDOW, text, re.IGNORECASE)
    count = next(filter(None, match.groups()), "") if match is not None else ""
    return int(count.replace(",", "")) if count else 0


def page_line(body: bytes) -> str:
    """An HTML page as one line: its title, else its first words."""
    text = body.decode("utf-8", "replace")
    title = re.search(r"<title[^>]*>(.*?)</title>", text, re.IGNORECASE | re.DOTALL)
    if title is None or not title.group(1).strip():
        text = re.sub(r"<(script|style)\b.*?</\1>", " ", text, flags=re.IGNORECASE | re.DOTALL)
        words = re.sub(r"<[^>]*>", " ", text)
    else:
        words = title.group(1)
    return f"{one_line(words, 160).strip() or 'no text'} (an HTML page, not an API answer)"


def _kind(status: int, words: str) -> FailureKind:
    if status in (0, 400) and re.search(_LOST_CALL, words):
        return "lost_call"
    if status == 402 or (re.search(_QUOTA, words) and status in (0, 400, 403, 429)):
        return "quota"
    if status == 429:
        return "rate_limit"
    if status == 408:
        return "timeout"
    if status in (409, 425):
        return "server"
    if status >= 500 and not re.search(_TOO_LONG, words):
        return "server"
    if status == 413 or re.search(_CONTEXT, words):
        return "context_length"
    if re.search(_POLICY, words):
        return "content_policy"
    if status in (401, 403) or re.search(_AUTH, words):
        return "auth"
    if re.search(_MODEL, words):
        return "no_model"
    if status == 0:
        # An error inside an answer: the request was taken, so that one of no known kind is the server's own.
        asked_wrong = re.search(_ASKED_WRONG, words) and not re.search(_SERVER, words)
        return "rate_limit" if re.search(_BUSY, words) else "bad_request" if asked_wrong else "server"
    return "bad_request"


def _said(body: bytes, content_type: str) -> tuple[str, str]:
    """(what to show, what to search for signs) in an error body."""
    if "html" in content_type or body.lstrip()[:1] == b"<":
        line = page_line(body)
        return line, ""
    try:
        answer = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        text = body.decode("utf-8", "replace")
        return text, text
    if isinstance(answer, list) and answer:
        answer = answer[0]
    if isinstance(answer, dict):
        for key in ("error", "detail", "message", "msg"):
            if answer.get(key):
                return _error_text(answer[key] if key == "error" else answer | {"message": answer[key]})
    return _error_text(answer)


def _error_text(error: Any) -> tuple[str, str]:
    if isinstance(error, str):
        return error, error
    if not isinstance(error, dict):
        text = msgspec.json.encode(error).decode()
        return text, text
    message = error.get("message") or error.get("msg") or error.get("detail") or ""
    if not isinstance(message, str):
        message = msgspec.json.encode(message).decode()
    signs = [str(error[key]) for key in ("code", "type", "status") if error.get(key) not in (None, "")]
    said = message or " ".join(signs) or msgspec.json.encode(error).decode()
    return said, " ".join((message, *signs))
