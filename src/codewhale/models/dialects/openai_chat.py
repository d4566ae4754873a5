"""The OpenAI chat dialect: a conversation as canonical request bytes.

Pure, and append-only by construction: only what may change stands behind the messages, so the body of the next
request begins with this one's bytes up to the end of its messages. How answers are read is `openai_stream`.
"""

import base64
import hashlib
from collections.abc import Iterable, Sequence
from typing import Any

from codewhale.models.dialects.base import Buffer, LoadImage, ProviderSettings, RequestOptions
from codewhale.models.dialects.jsontext import encode
from codewhale.models.dialects.openai_stream import ChatParser
from codewhale.models.dialects.schemas import written_schema
from codewhale.protocol.messages import Image, Message, Reasoning, ResultPart, Text, ToolCall
from codewhale.protocol.tools import ToolSpec

OMITTED = "(reasoning omitted)"


class OpenAIChat:
    """Requests as POST /chat/completions reads them.

    Facts that change the bytes: `replays_reasoning` (send stored reasoning back, in the fields `reasoning_field`),
    `reasoning_placeholder` (say of a call without reasoning that it was left out; True unless told), `images` (False:
    this model reads none), `system_role` (developer or user in place of system), `max_completion_tokens` (the newer
    name of the field), `stream` and `stream_options` (False: the endpoint refuses them), `schemas` (a way of writing
    tool schemas: see `schemas`), `call_id_length` (ids of calls are that many letters and digits), `extra_body` and
    `effort_default`, `effort_off` ... `effort_max`: members of the body as JSON text, sent always or at that effort.
    """

    name = "openai-chat"
    path = "/chat/completions"

    def __init__(self, settings: ProviderSettings) -> None:
        facts = self._facts = settings.facts
        self._reasoning = str(facts.get("reasoning_field", "reasoning_content")).split()
        self._replays = bool(facts.get("replays_reasoning", False))
        self._placeholder = bool(facts.get("reasoning_placeholder", True))
        self._id_length = int(facts.get("call_id_length", 0))
        self._limit_field = "max_completion_tokens" if facts.get("max_completion_tokens", False) else "max_tokens"
        self._stream = b',"stream":false'
        if facts.get("stream", True):
            self._stream = b',"stream":true'
            if facts.get("stream_options", True):
                self._stream += b',"stream_options":{"include_usage":true}'
        self._written = written_schema(str(facts.get("schemas", "")))

    def tools_json(self, specs: Sequence[ToolSpec]) -> str:
        """The exact `tools` value for these catalog rows, in this order."""
        return encode([_function(spec, self._written(spec.parameters)) for spec in specs]).decode()

    def system(self, text: str) -> bytes:
        """The system text as the first wire message; b"" for an empty text."""
        return encode({"role": self._facts.get("system_role", "system"), "content": text}) if text else b""

    def message(self, message: Message, load_image: LoadImage) -> bytes:
        """One message as comma-joined wire objects, b"" when it has nothing to say: an assistant without text, calls
        and reasoning that is replayed, a user without text and images. Images of a tool message follow all of its
        results."""
        if message.role == "assistant":
            return self._assistant(message)
        wire = [self._result(part) for part in message.parts if isinstance(part, ResultPart)]
        content = self._content(message, load_image)
        if content:
            wire.append(encode({"role": "user", "content": content}))
        return b",".join(wire)

    def body(
        self, model: str, system: str, tools_json: str, messages: Sequence[Buffer], options: RequestOptions
    ) -> bytes:
        """A whole request body around comma-joined wire messages, which may come in several pieces. An empty
        `tools_json` ("" or "[]") and a `max_tokens` of 0 leave their fields out."""
        parts: list[Buffer] = [b'{"model":', encode(model), self._stream]
        if tools_json not in ("", "[]"):
            parts += (b',"tools":', tools_json.encode())
        head = self.system(system)
        parts += (b',"messages":[', head, b"," if head and any(messages) else b"", *messages, b"]")
        if options.max_tokens > 0:
            parts.append(f',"{self._limit_field}":{options.max_tokens}'.encode())
        if options.temperature is not None:
            parts.append(f',"temperature":{options.temperature:g}'.encode())
        for name in ("effort_" + (options.effort or "default"), "extra_body"):
            if members := self._facts.get(name):
                parts += (b",", str(members).encode())
        parts.append(b"}")
        return b"".join(parts)

    def headers(self, api_key: str) -> dict[str, str]:
        """The headers that carry the key; none without one."""
        return {"authorization": f"Bearer {api_key}"} if api_key else {}

    def parser(self) -> ChatParser:
        """A parser for one answer."""
        return ChatParser()

    def _assistant(self, message: Message) -> bytes:
        text, calls, thought = message.text, message.calls, ""
        if self._replays:
            thoughts = (part.text for part in message.parts if isinstance(part, Reasoning))
            thought = "\n".join(text for text in thoughts if text and text.strip() != OMITTED)  # Some echo it.
            thought = thought or (OMITTED if calls and self._placeholder else "")
        if not (text or calls or thought):
            return b""
        wire: dict[str, Any] = {"role": "assistant", "content": text}
        if thought:
            wire |= dict.fromkeys(self._reasoning, thought)
        if calls:
            wire["tool_calls"] = [self._call(call) for call in calls]
        return encode(wire)

    def _call(self, call: ToolCall) -> dict[str, Any]:
        function = {"name": call.sent_name, "arguments": call.sent_arguments or "{}"}
        return {"id": self._id(call.id), "type": "function", "function": function}

    def _result(self, part: ResultPart) -> bytes:
        return encode({"role": "tool", "tool_call_id": self._id(part.call_id), "content": part.content})

    def _id(self, call_id: str) -> str:
        """The id of a call in the form that the endpoint takes; another provider's, or ours, may have another."""
        length = self._id_length
        if not length or (len(call_id) == length and call_id.isascii() and call_id.isalnum()):
            return call_id
        return hashlib.sha256(call_id.encode(errors="replace")).hexdigest()[:length]

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
        if not self._facts.get("images", True):
            return {"type": "text", "text": f"[{image.media_type} image left out: this model reads no images]"}
        try:
            data = load_image(image)
        except (KeyError, OSError):
            return {"type": "text", "text": f"[{image.media_type} image of {image.bytes} bytes is no longer stored]"}
        url = f"data:{image.media_type};base64,{base64.b64encode(data).decode()}"
        return {"type": "image_url", "image_url": {"url": url}}


class ScriptedDialect(OpenAIChat):
    """The same bytes under the name of the scripted provider."""

    name = "scripted"


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


def _function(spec: ToolSpec, parameters: dict[str, Any]) -> dict[str, Any]:
    function = {"name": spec.name, "description": spec.description, "parameters": parameters}
    return {"type": "function", "function": function}
