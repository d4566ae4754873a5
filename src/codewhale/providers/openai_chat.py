"""The OpenAI chat dialect: a conversation as canonical request bytes.

Pure, and append-only by construction: only what may change stands behind the messages, so the body of the next
request begins with this one's bytes up to the end of its messages. How answers are read is `openai_stream`.
"""

import base64
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from codewhale.lib.text import scrub_surrogates
from codewhale.protocol.messages import Image, Message, Reasoning, ResultPart, Text, ToolCall
from codewhale.protocol.tools import ToolSpec
from codewhale.providers.base import Buffer, LoadImage, ProviderSettings, RequestOptions
from codewhale.providers.openai_stream import ChatParser

OMITTED = "(reasoning omitted)"


class OpenAIChat:
    """Requests as POST /chat/completions reads them.

    Facts that change the bytes: `replays_reasoning` (send stored reasoning back), `images` (False: this model
    reads none), `max_completion_tokens` (the newer name of the field), `stream` and `stream_options` (False: the
    endpoint refuses them).
    """

    name = "openai-chat"
    path = "/chat/completions"

    def __init__(self, settings: ProviderSettings) -> None:
        facts = settings.facts
        self._replays_reasoning = facts.get("replays_reasoning", False)
        self._images = facts.get("images", True)
        self._limit_field = "max_completion_tokens" if facts.get("max_completion_tokens", False) else "max_tokens"
        self._stream = b',"stream":false'
        if facts.get("stream", True):
            self._stream = b',"stream":true'
            if facts.get("stream_options", True):
                self._stream += b',"stream_options":{"include_usage":true}'

    def tools_json(self, specs: Sequence[ToolSpec]) -> str:
        """The exact `tools` value for these catalog rows, in this order."""
        return _json([_function(spec) for spec in specs]).decode()

    def system(self, text: str) -> bytes:
        """The system text as the first wire message; b"" for an empty text."""
        return _json({"role": "system", "content": text}) if text else b""

    def message(self, message: Message, load_image: LoadImage) -> bytes:
        """One message as comma-joined wire objects, b"" when it has nothing to say: an assistant without text and
        calls, a user without text and images. Images of a tool message follow all of its results."""
        if message.role == "assistant":
            return self._assistant(message)
        wire = [_result(part) for part in message.parts if isinstance(part, ResultPart)]
        content = self._content(message, load_image)
        if content:
            wire.append(_json({"role": "user", "content": content}))
        return b",".join(wire)

    def body(
        self, model: str, system: str, tools_json: str, messages: Sequence[Buffer], options: RequestOptions
    ) -> bytes:
        """A whole request body around comma-joined wire messages, which may come in several pieces. An empty
        `tools_json` ("" or "[]") and a `max_tokens` of 0 leave their fields out."""
        parts: list[Buffer] = [b'{"model":', _json(model), self._stream]
        if tools_json not in ("", "[]"):
            parts += (b',"tools":', tools_json.encode())
        head = self.system(system)
        parts += (b',"messages":[', head, b"," if head and any(messages) else b"", *messages, b"]")
        if options.max_tokens > 0:
            parts.append(f',"{self._limit_field}":{options.max_tokens}'.encode())
        parts.append(b"}")
        return b"".join(parts)

    def headers(self, api_key: str) -> dict[str, str]:
        """The headers that carry the key; none without one."""
        return {"authorization": f"Bearer {api_key}"} if api_key else {}

    def parser(self) -> ChatParser:
        """A parser for one answer."""
        return ChatParser()

    def _assistant(self, message: Message) -> bytes:
        text, calls = message.text, message.calls
        if not text and not calls:
            return b""
        wire: dict[str, Any] = {"role": "assistant", "content": text}
        if self._replays_reasoning:
            thought = "\n".join(part.text for part in message.parts if isinstance(part, Reasoning) and part.text)
            if thought or calls:
                wire["reasoning_content"] = thought or OMITTED
        if calls:
            wire["tool_calls"] = [_call(call) for call in calls]
        return _json(wire)

    def _content(self, message: Message, load_image: LoadImage) -> str | list[dict[str, Any]]:
        """A user's content: a string, or a list of parts where there are images to send."""
        if not any(isinstance(part, Image) for part in message.parts):
            return message.text
        content: list[dict[str, Any]] = []
        for part in message.parts:
            if isinstance(part, Text) and part.text:
                content.append({"type": "text", "text": part.text})
            elif isinstance(part, Image):
                content.append(self._image(part, load_image))
        return _merged(content)

    def _image(self, image: Image, load_image: LoadImage) -> dict[str, Any]:
        if not self._images:
            return {"type": "text", "text": f"[{image.media_type} image left out: this model reads no images]"}
        try:
            data = load_image(image)
        except (KeyError, OSError):
            return {"type": "text", "text": f"[{image.media_type} image of {image.bytes} bytes is no longer stored]"}
        url = f"data:{image.media_type};base64,{base64.b64encode(data).decode()}"
        return {"type": "image_url", "image_url": {"url": url}}


def _merged(content: Iterable[dict[str, Any]]) -> str | list[dict[str, Any]]:
    """Neighbouring texts as one; a string when nothing but text is left."""
    merged: list[dict[str, Any]] = []
    for part in content:
        if merged and part["type"] == merged[-1]["type"] == "text":
            merged[-1] = {"type": "text", "text": merged[-1]["text"] + "\n" + part["text"]}
        else:
            merged.append(part)
    if len(merged) == 1 and merged[0]["type"] == "text":
        return str(merged[0]["text"])
    return merged


def _function(spec: ToolSpec) -> dict[str, Any]:
    function = {"name": spec.name, "description": spec.description, "parameters": spec.parameters}
    return {"type": "function", "function": function}


def _call(call: ToolCall) -> dict[str, Any]:
    function = {"name": call.sent_name, "arguments": call.sent_arguments or "{}"}
    return {"id": call.id, "type": "function", "function": function}


def _result(part: ResultPart) -> bytes:
    return _json({"role": "tool", "tool_call_id": part.call_id, "content": part.content})


def _json(value: Any) -> bytes:
    """Compact JSON in insertion order; lone surrogates, which no wire can carry, become U+FFFD."""
    try:
        return msgspec.json.encode(value)
    except UnicodeEncodeError:
        return msgspec.json.encode(_scrubbed(value))


def _scrubbed(value: Any) -> Any:
    if isinstance(value, str):
        return scrub_surrogates(value)
    if isinstance(value, dict):
        return {_scrubbed(key): _scrubbed(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_scrubbed(item) for item in value]
    return value
