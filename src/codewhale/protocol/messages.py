"""Messages: what a conversation is made of, in no provider's dialect.

Parts are tagged structs. A tool call keeps the raw argument string a model sent beside the form that goes
back on the wire, so replayed bytes never depend on anything but the stored message.
"""

from typing import Literal

from msgspec import Struct

Role = Literal["user", "assistant", "tool"]


class Text(Struct, frozen=True, tag="text", omit_defaults=True):
    """Plain text. `source` is "person" (default), "harness" (context, nudges) or "model"; `kind` names the context
    update that it is, "" for none."""

    text: str
    source: str = "person"
    kind: str = ""


class Reasoning(Struct, frozen=True, tag="reasoning"):
    """What a model thought before answering; replayed only as its provider demands."""

    text: str


class Image(Struct, frozen=True, tag="image"):
    """An image kept as an artifact; `artifact` is its sha256 in hex, `bytes` its size."""

    media_type: str
    artifact: str
    bytes: int


class Opaque(Struct, frozen=True, tag="opaque"):
    """A provider's own part (signature, encrypted reasoning): JSON text kept byte for byte."""

    provider: str
    json: str


class ToolCall(Struct, frozen=True, tag="tool_call", omit_defaults=True):
    """A call a model asked for.

    `name` and `arguments` are what it sent, raw. `wire_name` and `wire_arguments` are what every later
    request says instead, and are empty when the raw form is already valid. `id` is unique in its session.
    """

    id: str
    name: str
    arguments: str
    wire_name: str = ""
    wire_arguments: str = ""

    @property
    def sent_name(self) -> str:
        return self.wire_name or self.name

    @property
    def sent_arguments(self) -> str:
        return self.wire_arguments or self.arguments


class ResultPart(Struct, frozen=True, tag="tool_result", omit_defaults=True):
    """What the model reads as the answer to call `call_id`."""

    call_id: str
    content: str
    ok: bool = True


Part = Text | Reasoning | Image | Opaque | ToolCall | ResultPart


class Message(Struct, frozen=True, tag="message", omit_defaults=True):
    """One message: a role and its parts in order."""

    role: Role
    parts: tuple[Part, ...]

    @property
    def text(self) -> str:
        return "\n".join(part.text for part in self.parts if isinstance(part, Text))

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        return tuple(part for part in self.parts if isinstance(part, ToolCall))
