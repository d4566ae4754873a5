"""What is said of a server of the Model Context Protocol: how it is reached, what it offers, what a call came to. The
broker's frames and the rows of the catalog are both made of these."""

from collections.abc import Callable
from typing import Any, Protocol

from msgspec import Struct, field


class ServerSpec(Struct, frozen=True, omit_defaults=True):
    """How one server is reached, resolved and approved: a program (`argv`) or an address (`url`). `env` holds the
    declared variables with their values; beside them a program gets the allow-listed ones of any command, and none of
    the person's secrets. `profile` is the sandbox that holds it. Times are seconds. `sampling`: it may ask for answers
    of the model."""

    name: str
    argv: tuple[str, ...] = ()
    env: dict[str, str] = field(default_factory=dict)
    folder: str = ""
    url: str = ""
    headers: dict[str, str] = field(default_factory=dict)
    connect_seconds: float = 10.0
    call_seconds: float = 60.0
    read_seconds: float = 120.0
    roots: tuple[str, ...] = ()
    profile: str = "none"
    sampling: bool = False


class LoginOptions(Struct, frozen=True, omit_defaults=True):
    """How a login begins: a client that is registered already, the address of a document that describes this client,
    and the port at which the browser comes back (0 for any)."""

    client_id: str = ""
    client_secret: str = ""
    metadata_url: str = ""
    port: int = 0


class OfferedTool(Struct, frozen=True, omit_defaults=True):
    """A tool as its server lists it; `annotations` are the server's own claims."""

    name: str
    description: str = ""
    title: str = ""
    input_schema: dict[str, Any] = field(default_factory=dict)
    output_schema: dict[str, Any] = field(default_factory=dict)
    annotations: dict[str, Any] = field(default_factory=dict)


class OfferedPrompt(Struct, frozen=True, omit_defaults=True):
    """A prompt as its server lists it: `arguments` are (name, description, required)."""

    name: str
    description: str = ""
    arguments: tuple[tuple[str, str, bool], ...] = ()


class OfferedResource(Struct, frozen=True, omit_defaults=True):
    """A resource, or with `template` a pattern of addresses (RFC 6570)."""

    uri: str
    name: str = ""
    description: str = ""
    mime: str = ""
    size: int | None = None
    template: bool = False


class ServerOffer(Struct, frozen=True, omit_defaults=True):
    """All that a server offers once it is connected, cut to the bounds of the broker; `left_out` says what was cut."""

    server: str
    version: str = ""
    protocol: str = ""
    instructions: str = ""
    tools: tuple[OfferedTool, ...] = ()
    prompts: tuple[OfferedPrompt, ...] = ()
    resources: tuple[OfferedResource, ...] = ()
    left_out: tuple[str, ...] = ()


class Piece(Struct, frozen=True, omit_defaults=True):
    """One part of a result: `kind` is "text", "image", "audio", "resource" (embedded) or "link". A text that is large,
    and everything that is no text, stands in the file `path`, which the receiver owns; `text` then holds the beginning
    of a text. `size` is in bytes. `role` is who speaks in a message of a prompt."""

    kind: str
    text: str = ""
    mime: str = ""
    uri: str = ""
    path: str = ""
    size: int = 0
    role: str = ""


class CallOutcome(Struct, frozen=True, omit_defaults=True):
    """What a call, a read resource or a prompt came to. `error` is the server's own isError; `left_out` says what was
    cut."""

    pieces: tuple[Piece, ...] = ()
    structured: Any = None
    error: bool = False
    left_out: tuple[str, ...] = ()


class ServerState(Struct, frozen=True, omit_defaults=True):
    """How a server stands: "idle" (not started), "starting", "ready", "failed" or "closed"; `error` is the last one in
    a sentence, `stderr` the end of what a program wrote there."""

    name: str
    state: str = "idle"
    error: str = ""
    stderr: str = ""
    offer: ServerOffer | None = None


class ServerFailed(Exception):
    """A server, or the broker, could not do what was asked: `kind` is "start", "timeout", "lost", "refused", "auth"
    or "protocol"; the text is a sentence with the remedy. `sent` says that the request may have reached the server."""

    def __init__(self, kind: str, text: str, *, sent: bool = False) -> None:
        super().__init__(text)
        self.kind = kind
        self.sent = sent


class ServerCaller(Protocol):
    """What a server may ask back during a call, and what it tells; handed with each call by whoever makes it."""

    async def elicit(self, server: str, message: str, schema: dict[str, Any], url: str) -> dict[str, Any]:
        """{"action": "accept", "content": {...}}, or action "decline" or "cancel"."""

    async def sample(self, server: str, request: dict[str, Any]) -> dict[str, Any]:
        """The result of sampling/createMessage. Raises ServerFailed "refused"."""

    def progress(self, server: str, done: float, total: float | None, text: str) -> None: ...

    def log(self, server: str, level: str, text: str) -> None: ...


class Servers(Protocol):
    """The broker as the rest of the harness sees it. Each method may be cancelled, and ends within its bounds; all
    raise ServerFailed. `changed` is called with a server's name when it says that its lists have changed."""

    changed: Callable[[str], None]

    async def open(self, spec: ServerSpec) -> ServerOffer:
        """Start the broker where there is none, and the server where it does not run; what it offers now."""

    async def login(self, spec: ServerSpec, visit: Callable[[str], None]) -> ServerOffer:
        """Connect with a person there who can log in: `visit(url)` shows their browser where. What comes of it is kept,
        and the server is closed again."""

    def state(self, name: str) -> ServerState: ...

    async def offer(self, name: str) -> ServerOffer:
        """List again what a running server offers."""

    async def call(self, name: str, tool: str, arguments: dict[str, Any], caller: ServerCaller) -> CallOutcome: ...

    async def read(self, name: str, uri: str, caller: ServerCaller) -> CallOutcome: ...

    async def prompt(self, name: str, prompt: str, arguments: dict[str, str], caller: ServerCaller) -> CallOutcome: ...

    async def close(self, name: str) -> None: ...

    async def shut(self) -> None:
        """Close all servers and the broker; no process is left."""
