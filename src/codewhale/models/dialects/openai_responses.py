"""The OpenAI Responses dialect: a conversation as items of a stateless POST /responses.

Nothing is kept at the provider: reasoning comes back encrypted, is stored byte for byte and goes back in front of what
it led to. Only what may change stands behind the items. How answers are read is `openai_responses_stream`.
"""

import base64
import hashlib
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import Any

import msgspec

from codewhale.models.dialects.base import Buffer, LoadImage, ProviderSettings, RequestOptions
from codewhale.models.dialects.jsontext import decode, encode
from codewhale.models.dialects.openai_responses_stream import KeptOutput, ResponsesParser
from codewhale.protocol.messages import Image, Message, Opaque, Part, Reasoning, ResultPart, Text, ToolCall
from codewhale.protocol.tools import ToolSpec

_LED_TO = (Text, ToolCall)
_EFFORT = {"off": "none", "max": "xhigh"}


class OpenAIResponses:
    """Requests as POST /responses reads them.

    Facts that change the bytes: `reasoning` (False: the model has none to ask for), `replays_reasoning` (False: stored
    reasoning stays here), `seal` (a name for the account or endpoint that alone can read its encrypted reasoning; what
    came under another seal stays here), `reasoning_summary` (auto, concise, detailed: ask for a readable one),
    `effort_off` ... `effort_max`, `effort_default` (members of the body that ask for a level, "" for none),
    `extra_body` (members of every body), `images` (False: not read), `stream` (False: refused).
    """

    name = "openai-responses"
    path = "/responses"

    def __init__(self, settings: ProviderSettings) -> None:
        facts = self._facts = settings.facts
        self._reasons = facts.get("reasoning", True)
        self._replays = self._reasons and facts.get("replays_reasoning", True)
        self._seal = f"{self.name}:{facts['seal']}" if facts.get("seal") else self.name
        self._fixed = b',"store":false,"stream":' + (b"true" if facts.get("stream", True) else b"false")
        if self._replays:
            self._fixed += b',"include":["reasoning.encrypted_content"]'

    def tools_json(self, specs: Sequence[ToolSpec]) -> str:
        """The exact `tools` value for these catalog rows, in this order."""
        return encode([_function(spec) for spec in specs]).decode()

    def system(self, text: str) -> bytes:
        """b"": the system text travels as `instructions`."""
        return b""

    def message(self, message: Message, load_image: LoadImage) -> bytes:
        """One message as comma-joined items, b"" when it has nothing to say: an assistant without text and calls, a
        user without text and images. Images of a tool message follow all of its results."""
        if message.role == "assistant":
            return b",".join(self._assistant(message))
        wire = [_result(part) for part in message.parts if isinstance(part, ResultPart)]
        shown = any(isinstance(part, Image) for part in message.parts)
        content = list(self._content(message, load_image)) if shown else message.text
        if content:
            wire.append(encode({"type": "message", "role": "user", "content": content}))
        return b",".join(wire)

    def body(
        self, model: str, system: str, tools_json: str, messages: Sequence[Buffer], options: RequestOptions
    ) -> bytes:
        """A whole request body around comma-joined items, which may come in several pieces. Empty `system` and
        `tools_json` ("" or "[]"), a `max_tokens` of 0 and an effort of "" leave their fields out."""
        parts: list[Buffer] = [b'{"model":', encode(model), self._fixed]
        if system:
            parts += (b',"instructions":', encode(system))
        if tools_json not in ("", "[]"):
            parts += (b',"tools":', tools_json.encode())
        parts += (b',"input":[', *messages, b"]")
        if options.max_tokens > 0:
            parts.append(f',"max_output_tokens":{options.max_tokens}'.encode())
        if options.temperature is not None:
            parts.append(f',"temperature":{options.temperature:g}'.encode())
        parts.append(self._effort(options.effort))
        if extra := self._facts.get("extra_body"):
            parts += (b",", str(extra).encode())
        parts.append(b"}")
        return b"".join(parts)

    def headers(self, api_key: str) -> dict[str, str]:
        """The headers that carry the key; none without one."""
        return {"authorization": f"Bearer {api_key}"} if api_key else {}

    def parser(self) -> ResponsesParser:
        """A parser for one answer."""
        return ResponsesParser(self._seal)

    def _effort(self, effort: str) -> bytes:
        """The members that ask for an effort, with a comma in front."""
        said, word = self._facts.get(f"effort_{effort or 'default'}"), _EFFORT.get(effort, effort)
        members: dict[str, Any] = {"reasoning": {"effort": word}} if word and self._reasons else {}
        if said is not None:
            members = decode(f"{{{said}}}")
        if self._reasons and (summary := self._facts.get("reasoning_summary")):
            members["reasoning"] = {**members.get("reasoning", {}), "summary": summary}
        return b"," + encode(members)[1:-1] if members else b""

    def _assistant(self, message: Message) -> Iterator[bytes]:
        """The items of an answer in their order. Reasoning goes back with the item it led to or not at all: an answer
        that broke off, or whose calls were left out, may end in reasoning, and endpoints refuse that."""
        parts = [part for part in message.parts if not isinstance(part, Reasoning)]
        parts = [part for part in parts if not isinstance(part, Text) or part.text]
        for part, after in zip_longest(parts, parts[1:]):
            if isinstance(part, Text):
                phase = self._kept(after).phase
                wire = {"type": "message", "role": "assistant", "content": part.text}
                yield encode({**wire, "phase": phase} if phase else wire)
            elif isinstance(part, ToolCall):
                wire = {"type": "function_call", "call_id": _id(part.id), "name": part.sent_name}
                yield encode({**wire, "arguments": part.sent_arguments or "{}"})
            elif isinstance(part, Opaque) and isinstance(after, _LED_TO) and self._kept(part).type == "reasoning":
                yield part.json.encode()

    def _kept(self, part: Part | None) -> KeptOutput:
        """What an opaque part is, if it is one of ours that may go back."""
        if self._replays and isinstance(part, Opaque) and part.provider == self._seal:
            return msgspec.json.decode(part.json, type=KeptOutput)
        return KeptOutput()

    def _content(self, message: Message, load_image: LoadImage) -> Iterator[dict[str, Any]]:
        for part in message.parts:
            if isinstance(part, Text) and part.text:
                yield {"type": "input_text", "text": part.text}
            elif isinstance(part, Image):
                yield self._image(part, load_image)

    def _image(self, image: Image, load_image: LoadImage) -> dict[str, Any]:
        words = f"[{image.media_type} image left out: this model reads no images]"
        if self._facts.get("images", True):
            try:
                url = f"data:{image.media_type};base64,{base64.b64encode(load_image(image)).decode()}"
                return {"type": "input_image", "image_url": url, "detail": "auto"}
            except (KeyError, OSError):
                words = f"[{image.media_type} image of {image.bytes} bytes is no longer stored]"
        return {"type": "input_text", "text": words}


def _function(spec: ToolSpec) -> dict[str, Any]:
    """`strict` is said because it is on where nothing is said, and then every argument would be required."""
    function = {"type": "function", "name": spec.name, "description": spec.description}
    return {**function, "parameters": spec.parameters, "strict": False}


def _result(part: ResultPart) -> bytes:
    return encode({"type": "function_call_output", "call_id": _id(part.call_id), "output": part.content})


def _id(call_id: str) -> str:
    """The id of a call in at most 64 characters: another endpoint's may be longer."""
    return call_id if len(call_id) <= 64 else hashlib.sha256(call_id.encode(errors="replace")).hexdigest()
