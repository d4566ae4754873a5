"""The Anthropic Messages dialect: a conversation as canonical request bytes, for Claude and for endpoints that speak
its wire. How answers are read is `anthropic_stream`.

Append-only: cache markers stand on the system text and behind the messages (automatic caching), never in a message.
"""

import base64
import contextlib
import hashlib
import re
from collections.abc import Sequence
from typing import Any

import msgspec

from codewhale.models.dialects.anthropic_stream import NAME, MessagesParser
from codewhale.models.dialects.base import Buffer, LoadImage, ProviderSettings, RequestOptions
from codewhale.models.dialects.jsontext import decode, encode
from codewhale.protocol.messages import Image, Message, Opaque, Reasoning, ResultPart, Text, ToolCall
from codewhale.protocol.tools import ToolSpec

OMITTED = "(reasoning omitted)"
MAX_TOKENS = 32_000  # Asked for where nothing else says a bound: this wire knows no request without one.
_BUDGETS = {"low": 4_096, "medium": 10_240, "high": 20_480, "max": 32_768}
_LEAST_BUDGET = 1_024
_IMAGES = frozenset({"image/jpeg", "image/png", "image/gif", "image/webp"})


class AnthropicMessages:
    """Requests as POST /v1/messages reads them.

    Facts that change the bytes: `thinking` (how the model is told to think: adaptive; always or between_tools, which
    cannot be switched off; budget, the older form; none), `effort` (False: no `output_config`), `binds_thinking` (the
    model refuses thinking whose past has changed, unless told to drop it), `replays_reasoning` (unsigned reasoning
    goes back too, and no call goes without), `seal` (a name for who alone can read its own blocks: what came under
    another stays here), `cache_control` and `images` (False: not taken), `stream` (False: refused), `max_tokens` (the
    bound where nothing else says one). `bearer` sends the key as a bearer token.
    """

    name = NAME
    path = "/v1/messages"

    def __init__(self, settings: ProviderSettings) -> None:
        facts = settings.facts
        self._mode = facts.get("thinking", "adaptive")
        self._effort = facts.get("effort", self._mode != "budget")
        self._binds = facts.get("binds_thinking", False)
        self._replays = facts.get("replays_reasoning", False)
        seal = facts.get("seal", "unsigned" if self._replays else "")
        self._seal = f"{NAME}:{seal}" if seal else NAME
        self._images = bool(facts.get("images", True))
        self._bearer = facts.get("bearer", False)
        self._bound = int(facts.get("max_tokens", MAX_TOKENS))
        self._stream = b',"stream":true' if facts.get("stream", True) else b""
        self._marker = {"cache_control": {"type": "ephemeral"}} if facts.get("cache_control", True) else {}

    def tools_json(self, specs: Sequence[ToolSpec]) -> str:
        """The exact `tools` value for these catalog rows, in this order."""
        rows = [{"name": row.name, "description": row.description, "input_schema": row.parameters} for row in specs]
        return encode(rows).decode()

    def system(self, text: str) -> bytes:
        """b"": the system text is a field of the body."""
        return b""

    def message(self, message: Message, load_image: LoadImage) -> bytes:
        """One message as a wire object, b"" when it has nothing to say. The results of one assistant message stay one
        message, and stand before anything else in it."""
        if message.role == "assistant":
            said = b",".join(self._said(message))
            return b'{"role":"assistant","content":[' + said + b"]}" if said else b""
        blocks = [_result(part) for part in message.parts if isinstance(part, ResultPart)]
        blocks += self._shown(message, load_image)
        return encode({"role": "user", "content": blocks}) if blocks else b""

    def body(
        self, model: str, system: str, tools_json: str, messages: Sequence[Buffer], options: RequestOptions
    ) -> bytes:
        """A whole request body around comma-joined wire messages, which may come in several pieces."""
        parts: list[Buffer] = [b'{"model":', encode(model), self._stream]
        if tools_json not in ("", "[]"):
            parts += (b',"tools":', tools_json.encode())
        if system.strip():
            parts += (b',"system":', encode([{**_text(system), **self._marker}]))
        bound = options.max_tokens or self._bound
        behind = {"max_tokens": bound, **self._marker, **self._thinking(options.effort, bound)}
        if options.temperature is not None and behind.get("thinking", {}).get("type") in (None, "disabled"):
            behind["temperature"] = options.temperature  # one that thinks takes none
        parts += (b',"messages":[', *messages, b"],", encode(behind)[1:])
        return b"".join(parts)

    def headers(self, api_key: str) -> dict[str, str]:
        """The version of the wire, and the key where there is one."""
        headers = {"anthropic-version": "2023-06-01"}
        if self._binds:
            headers["anthropic-beta"] = "thinking-binding-controls-2026-08-01"
        if api_key:
            headers |= {"authorization": f"Bearer {api_key}"} if self._bearer else {"x-api-key": api_key}
        return headers

    def parser(self) -> MessagesParser:
        """A parser for one answer."""
        return MessagesParser(self._seal)

    def _thinking(self, effort: str, bound: int) -> dict[str, Any]:
        """The fields that ask for an effort; none for the provider's own. Bound thinking is never switched off: a
        request without it cannot have stale blocks dropped."""
        if self._mode == "none" or not (effort or self._binds):
            return {}
        if effort == "off" and self._mode != "always" and not self._binds:
            return {"thinking": {"type": "between_tools" if self._mode == "between_tools" else "disabled"}}
        level = "low" if effort == "off" else effort
        asked = {"output_config": {"effort": level}} if self._effort and level else {}
        if self._mode == "budget":
            budget = min(_BUDGETS.get(level, 0), bound - _LEAST_BUDGET)
            enough = budget >= _LEAST_BUDGET
            return {"thinking": {"type": "enabled", "budget_tokens": budget}, **asked} if enough else asked
        adaptive: dict[str, Any] = {"type": "adaptive", "display": "summarized"}
        if self._binds:
            adaptive["block_binding"] = {"prefix_mismatch_behavior": "drop_block"}
        return {"thinking": adaptive, **asked}

    def _said(self, message: Message) -> list[bytes]:
        """The blocks of an assistant message in their order, thinking exactly as it came or what stands for it.
        Thinking that nothing follows is left out: it is refused as an end."""
        signed = any(isinstance(part, Opaque) and part.provider == self._seal for part in message.parts)
        thought = signed or any(isinstance(part, Reasoning) for part in message.parts)
        blocks = [_unsigned(OMITTED)] if self._replays and message.calls and not thought else []
        end = 0
        for part in message.parts:
            if isinstance(part, Opaque) and part.provider == self._seal:
                blocks.append(part.json.encode())
                end = end if _is_thinking(part) else len(blocks)
            elif isinstance(part, Reasoning) and self._replays and not signed:
                blocks.append(_unsigned(part.text))
            elif isinstance(part, ToolCall) or (isinstance(part, Text) and part.text.strip()):
                blocks.append(_call(part) if isinstance(part, ToolCall) else encode(_text(part.text)))
                end = len(blocks)
        return blocks[:end]

    def _shown(self, message: Message, load_image: LoadImage) -> list[dict[str, Any]]:
        """A user's words, neighbouring ones as one block, and images."""
        shown: list[dict[str, Any]] = []
        for part in message.parts:
            if not isinstance(part, Image) and not (isinstance(part, Text) and part.text.strip()):
                continue
            block = self._image(part, load_image) if isinstance(part, Image) else _text(part.text)
            if shown and block["type"] == shown[-1]["type"] == "text":
                shown[-1]["text"] += "\n" + block["text"]
            else:
                shown.append(block)
        return shown

    def _image(self, image: Image, load_image: LoadImage) -> dict[str, Any]:
        """An image, or words in its place."""
        if not self._images or image.media_type not in _IMAGES:
            return _text(f"[{image.media_type} image left out: this model does not read it]")
        try:
            data = base64.b64encode(load_image(image)).decode()
        except (KeyError, OSError):
            return _text(f"[{image.media_type} image of {image.bytes} bytes is no longer stored]")
        return {"type": "image", "source": {"type": "base64", "media_type": image.media_type, "data": data}}


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def _is_thinking(part: Opaque) -> bool:
    return decode(part.json).get("type") in ("thinking", "redacted_thinking")


def _unsigned(text: str) -> bytes:
    return encode({"type": "thinking", "thinking": text, "signature": ""})


def _call(call: ToolCall) -> bytes:
    given = {"id": _sound(call.id), "name": call.sent_name, "input": _input(call.sent_arguments)}
    return encode({"type": "tool_use", **given})


def _input(arguments: str) -> Any:
    """Arguments exactly as they were sent, where they are a JSON object; this wire cannot say anything else."""
    with contextlib.suppress(msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        msgspec.json.decode(arguments, type=dict)
        return msgspec.Raw(arguments.encode())
    with contextlib.suppress(ValueError):
        value = decode(arguments)
        return value if isinstance(value, dict) else {}
    return {}


def _result(part: ResultPart) -> dict[str, Any]:
    block: dict[str, Any] = {"type": "tool_result", "tool_use_id": _sound(part.call_id), "content": part.content}
    if not part.ok:
        block |= {"content": part.content if part.content.strip() else "The call failed.", "is_error": True}
    return block


def _sound(call_id: str) -> str:
    """An id of letters, digits, _ and -, which is all that this wire takes: others are spelled anew, each its way."""
    if re.fullmatch(r"[A-Za-z0-9_-]+", call_id):
        return call_id
    mark = hashlib.sha256(call_id.encode("utf-8", "surrogatepass")).hexdigest()[:12]
    return f"{re.sub(r'[^A-Za-z0-9_-]', '_', call_id)[:40]}_{mark}"
