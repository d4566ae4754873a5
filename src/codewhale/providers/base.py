"""What a dialect and a provider are: bytes out, stream events in."""

from collections.abc import AsyncIterator, Callable, Sequence
from typing import Protocol

from msgspec import Struct

from codewhale.protocol.messages import Image, Message
from codewhale.protocol.stream import StreamEvent
from codewhale.protocol.tools import ToolSpec

Buffer = bytes | bytearray
LoadImage = Callable[[Image], bytes]


class ProviderSettings(Struct, frozen=True, omit_defaults=True):
    """A `[providers.<name>]` table. `dialect` is openai-chat or scripted; `script` a JSON-lines file of turns
    (scripted only); `facts` holds what is known of the endpoint, by name."""

    dialect: str = "openai-chat"
    base_url: str = ""
    path: str = "/chat/completions"
    api_key_env: str = ""
    headers: dict[str, str] = {}
    context_window: int = 128_000
    max_output: int = 0
    script: str = ""
    facts: dict[str, bool] = {}


class Dialect(Protocol):
    """How one wire format says a conversation. Pure: the same input gives the same bytes."""

    name: str

    def tools_json(self, specs: Sequence[ToolSpec]) -> str:
        """The exact `tools` value for these catalog rows, in this order."""
        ...

    def system(self, text: str) -> bytes:
        """The system text as the first wire message (b"" where it travels elsewhere)."""
        ...

    def message(self, message: Message, load_image: LoadImage) -> bytes:
        """One message as wire JSON: comma-joined objects, b"" when it has nothing to say."""
        ...

    def body(self, model: str, system: str, tools_json: str, messages: Sequence[Buffer], max_tokens: int) -> bytes:
        """A whole request body around comma-joined wire messages, given in pieces so that a long conversation is
        copied once. `max_tokens` 0 leaves the field out."""
        ...


class Provider(Protocol):
    """A place that answers requests."""

    @property
    def name(self) -> str:
        """Its configured name."""
        ...

    @property
    def dialect(self) -> Dialect:
        """The bytes it speaks."""
        ...

    @property
    def settings(self) -> ProviderSettings:
        """What is configured of it."""
        ...

    def stream(self, body: bytes) -> AsyncIterator[StreamEvent]:
        """The answer to one request. Never raises but on cancellation: a failure is the last event (Failed);
        otherwise Finished is. Retries happen inside, before the first byte only, each told by Retrying."""
        ...

    async def aclose(self) -> None:
        """Release connections."""
        ...
