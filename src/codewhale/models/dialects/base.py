"""What a dialect and a provider are: bytes out, stream events in."""

from collections.abc import AsyncIterator, Callable, Sequence
from typing import Protocol

from msgspec import Struct

from codewhale.protocol.messages import Image, Message
from codewhale.protocol.stream import StreamEvent
from codewhale.protocol.tools import ToolSpec

Buffer = bytes | bytearray
LoadImage = Callable[[Image], bytes]


Fact = bool | int | str


class Price(Struct, frozen=True, omit_defaults=True):
    """What a model costs, in `currency` per million tokens: prompt tokens that miss the cache, prompt tokens that
    hit it, tokens of the answer. `source` is where the figures stand, `date` when they were read (YYYY-MM-DD).
    `peak` names the hours at which they hold ("1-5 01:00-04:00 06:00-10:00": Monday to Friday, UTC; "" is always),
    `off_peak` is the share that is asked at all others. A prompt of more than `long_from` tokens (0: any) multiplies
    what it costs by `long_input` and its answer by `long_output`."""

    miss: float
    hit: float
    output: float
    currency: str = "USD"
    peak: str = ""
    off_peak: float = 1.0
    long_from: int = 0
    long_input: float = 1.0
    long_output: float = 1.0
    source: str = ""
    date: str = ""


class ModelFacts(Struct, frozen=True, omit_defaults=True):
    """What is known of one model at one provider. `window` is in tokens and `window_source` says who says so:
    configured, reported, catalog, name or fallback (the last two are guesses). `max_output` 0 asks for no bound;
    `price` None is unknown."""

    window: int = 128_000
    window_source: str = "fallback"
    max_output: int = 0
    price: Price | None = None


class RequestOptions(Struct, frozen=True, omit_defaults=True):
    """What may differ from request to request: the bound on the answer (0 is none), the reasoning effort ("" is
    the provider's own; off, low, medium, high, max) and the temperature (None is the provider's own)."""

    max_tokens: int = 0
    effort: str = ""
    temperature: float | None = None


class ProviderSettings(Struct, frozen=True, omit_defaults=True):
    """A `[providers.<name>]` table. `dialect` is a row of `build.DIALECTS`; `script` a JSON-lines file of turns
    (scripted only); `facts` holds what is known of the endpoint, by name; `prices` by model; a `context_window`
    or `max_output` of 0 leaves it to what is known of the model. An empty `path` is the dialect's own. A request that
    got no answer is sent again `request_retries` times, one whose answer broke `stream_retries` times. Time-outs are in
    seconds: until the first token (0: 600 at an address of this machine or its network, else 120), and between two."""

    dialect: str = "openai-chat"
    base_url: str = ""
    path: str = ""
    api_key_env: str = ""
    api_key: str = ""
    headers: dict[str, str] = {}
    context_window: int = 0
    max_output: int = 0
    default_model: str = ""
    windows: dict[str, int] = {}
    script: str = ""
    facts: dict[str, Fact] = {}
    prices: dict[str, Price] = {}
    request_retries: int = 5
    stream_retries: int = 5
    first_token_timeout: float = 0
    gap_timeout: float = 60


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

    def body(
        self, model: str, system: str, tools_json: str, messages: Sequence[Buffer], options: RequestOptions
    ) -> bytes:
        """A whole request body around comma-joined wire messages, given in pieces so that a long conversation is
        copied once. What `options` say stands behind the messages: it may change, and the bytes before it must not."""
        ...

    def headers(self, api_key: str) -> dict[str, str]:
        """The headers that carry the key; an empty key has none."""
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
        """What is configured of it, its facts resolved for the model it was built for."""
        ...

    model: ModelFacts  # what is known of the model it was built for

    def stream(self, body: bytes) -> AsyncIterator[StreamEvent]:
        """The answer to one request. Never raises but on cancellation: a failure is the last event (Failed);
        otherwise Finished is. Retries happen inside, each told by Retrying: one that says that the answer broke makes
        void what has come, and Resent follows it once the request goes out again."""
        ...

    async def aclose(self) -> None:
        """Release connections."""
        ...
