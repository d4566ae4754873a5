"""Filling in the middle: the endpoints that take what stands before a gap and behind it, and answer in one piece.

Which one a provider has is its fact `fim`, a row of `SHAPES`; `fim_path` names another path, `fim_model` another model.
"""

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import msgspec

from codewhale.models.dialects.base import Provider
from codewhale.models.dialects.failures import failure
from codewhale.protocol.errors import ToolError
from codewhale.protocol.stream import Finished, StreamEvent, TextDelta, Usage, UsageReport

_VERSION = re.compile(r"/(?:v1|beta|anthropic)/?$")
_CUT = frozenset({"length", "limit"})
_GAP_BYTES, _BYTES_A_TOKEN, _MARGIN = 196_608, 3, 256


class _Shape(NamedTuple):
    """One endpoint. `path` stands behind the base URL, without its version if `root`; `prefix`, `suffix` and `limit`
    are fields of the request, the others dotted places in the answer."""

    path: str
    root: bool = False
    prefix: str = "prompt"
    suffix: str = "suffix"
    limit: str = "max_tokens"
    text: str = "choices.0.text"
    reason: str = "choices.0.finish_reason"
    asked: str = "usage.prompt_tokens"
    answered: str = "usage.completion_tokens"


SHAPES: Mapping[str, _Shape] = MappingProxyType(
    {
        "completions": _Shape("/completions"),
        "deepseek": _Shape("/beta/completions", True),
        "mistral": _Shape("/fim/completions", text="choices.0.message.content"),
        "llama-cpp": _Shape("/infill", True, "input_prefix", "input_suffix", "n_predict", "content", "stop_type",
                            "tokens_evaluated", "tokens_predicted"),
        "ollama": _Shape("/api/generate", True, "prompt", "suffix", "num_predict", "response", "done_reason",
                         "prompt_eval_count", "eval_count"),
    }
)  # fmt: skip


def fim_request(provider: Provider, model: str, prefix: str, suffix: str, max_tokens: int) -> tuple[Provider, bytes]:
    """Who to ask for what stands between, and the body to ask with. Raises KeyError for a provider without the fact."""
    settings = provider.settings
    shape = SHAPES[str(settings.facts.get("fim", ""))]
    body: dict[str, Any] = {"model": settings.facts.get("fim_model") or model}
    body |= {shape.prefix: prefix, shape.suffix: suffix, "stream": False}
    sampling = {shape.limit: max_tokens, "temperature": 0}
    body |= {"options": sampling} if shape.limit == "num_predict" else sampling
    beside = getattr(provider, "beside", None)
    if beside is None:
        return provider, msgspec.json.encode(body)
    base = _VERSION.sub("", settings.base_url) if shape.root else settings.base_url
    path = str(settings.facts.get("fim_path") or shape.path)
    there: Provider = beside(msgspec.structs.replace(settings, base_url=base, path=path), _FimDialect(shape))
    return there, msgspec.json.encode(body)


class _FimDialect:
    """How one shape is spoken over HTTP; it makes a reader of its own for each answer."""

    def __init__(self, shape: _Shape) -> None:
        self.path = shape.path
        self.ended, self.done, self.size = False, False, 0
        self._shape = shape
        self._last: list[StreamEvent] = []

    def headers(self, api_key: str) -> dict[str, str]:
        """The headers that carry the key; none without one."""
        return {"authorization": f"Bearer {api_key}"} if api_key else {}

    def parser(self) -> "_FimDialect":
        """A reader of one answer."""
        return _FimDialect(self._shape)

    def feed(self, name: str, data: str, out: list[StreamEvent]) -> None:
        """An answer in events was not asked for. Raises ProviderFailure."""
        raise failure("protocol", "the server streamed an answer, though streaming was off")

    def whole(self, data: bytes, out: list[StreamEvent]) -> None:
        """Read the answer. Raises ProviderFailure for one without text."""
        try:
            answer = msgspec.json.decode(data)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise failure("protocol", f"the server's answer is not JSON: {error}")
        text = _at(answer, self._shape.text)
        if not isinstance(text, str):
            raise failure("protocol", f"the server's answer has no text at {self._shape.text}")
        asked, answered, hit = (
            count if isinstance(count := _at(answer, place), int) else 0
            for place in (self._shape.asked, self._shape.answered, "usage.prompt_cache_hit_tokens")
        )
        if asked or answered:
            usage = Usage(input=asked, output=answered, cache_hit=hit, cache_miss=asked - hit)
            self._last.append(UsageReport(usage))
        self._last.append(Finished("length" if _at(answer, self._shape.reason) in _CUT else "stop"))
        self.ended, self.done, self.size = True, True, len(text)
        if text:
            out.append(TextDelta(text))

    def report(self, out: list[StreamEvent]) -> None:
        """Nothing is known before the answer is there."""

    def finish(self, out: list[StreamEvent]) -> None:
        """Append usage and Finished."""
        out.extend(self._last)


def _at(value: Any, place: str) -> Any:
    """What stands at a dotted place, None where nothing does."""
    for key in place.split("."):
        if isinstance(value, list):
            value = value[0] if key == "0" and value else None
        else:
            value = value.get(key) if isinstance(value, dict) else None
    return value


def nearest(prefix: str, suffix: str, window: int, max_tokens: int) -> tuple[str, str]:
    """As much of the two texts as the model reads, whole lines nearest to the gap: two thirds of it before, one third
    behind, and what one does not need is the other's. Raises ToolError where nothing fits."""
    room = min(_GAP_BYTES, (window - max_tokens - _MARGIN) * _BYTES_A_TOKEN)
    if room < 1024:
        raise ToolError(
            "invalid_input",
            f"max_tokens {max_tokens} leaves no room for the file in a window of {window} tokens.",
            field="max_tokens",
            expected=f"at most {max(1, window // 2)}",
            received=str(max_tokens),
        )
    before, behind = prefix.encode(), suffix.encode()
    if len(before) + len(behind) <= room:
        return prefix, suffix
    part = max(room // 3, room - len(before))
    behind = _whole_lines(behind, part, before=False)
    before = _whole_lines(before, room - len(behind), before=True)
    return before.decode("utf-8", "ignore"), behind.decode("utf-8", "ignore")


def _whole_lines(text: bytes, size: int, *, before: bool) -> bytes:
    if len(text) <= size:
        return text
    near = text[-size:] if before else text[:size]
    at = near.find(b"\n") if before else near.rfind(b"\n")
    if at < 0:
        return near
    return near[at + 1 :] if before else near[: at + 1]
