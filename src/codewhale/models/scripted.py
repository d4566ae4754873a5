"""A provider that plays turns instead of asking a model: for tests, demonstrations and measurements.

Deterministic: the same turns and requests give the same events. It speaks the OpenAI chat bytes, so that what it
records is what a real endpoint would have been sent.
"""

import asyncio
import os
import re
import stat
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from codewhale.models.dialects.base import Dialect, ModelFacts, ProviderSettings
from codewhale.models.dialects.failures import KINDS, RETRYABLE
from codewhale.models.dialects.openai_chat import ScriptedDialect
from codewhale.protocol.errors import ConfigError
from codewhale.protocol.stream import (
    CallDelta,
    Failed,
    Finished,
    ReasoningDelta,
    StreamEvent,
    TextDelta,
    Usage,
    UsageReport,
)

Policy = Callable[[dict[str, Any]], dict[str, Any]]
Turn = dict[str, Any] | Policy

_ISSUED = re.compile(rb'"id":"call_(\d{1,9})"')
_PIECES = 4


class ScriptedCall(Struct, frozen=True):
    """A call of a turn; arguments as an object, or as the raw string a model would have sent."""

    name: str
    arguments: dict[str, Any] | str = {}

    @property
    def raw(self) -> str:
        """The arguments as sent."""
        return self.arguments if isinstance(self.arguments, str) else msgspec.json.encode(self.arguments).decode()


class ScriptedError(Struct, frozen=True):
    """How a turn fails, after whatever it says before."""

    message: str = "the script says so"
    kind: str = "server"
    retryable: bool | None = None


class ScriptedUsage(Struct, frozen=True):
    """Token counts that a turn reports in place of the estimate."""

    input: int = 0
    output: int = 0
    cache_hit: int = 0
    cache_miss: int = 0
    reasoning: int = 0


class ScriptedTurn(Struct, frozen=True):
    """One turn. `error` as plain text is a kind of failure, or the message of a server failure; `delay` is in
    seconds, before the first event."""

    text: str = ""
    reasoning: str = ""
    calls: tuple[ScriptedCall, ...] = ()
    finish: str = ""
    error: ScriptedError | str | None = None
    delay: float = 0.0
    usage: ScriptedUsage | None = None


class ScriptedProvider:
    """Plays turns in order, one a request, and "done" when they are used up.

    A turn is an object of a script line's shape or a function from the request body (parsed) to one; a function in
    place of the sequence answers every request. `requests` holds the bodies received. Call ids are call_1, call_2
    and so on, beyond any that a request already holds.
    """

    def __init__(
        self,
        turns: Sequence[Turn] | Policy = (),
        *,
        name: str = "scripted",
        settings: ProviderSettings | None = None,
    ) -> None:
        """Raises ConfigError, naming the turn, for one that is not of that shape."""
        self.name = name
        self.settings = settings or ProviderSettings(dialect="scripted")
        self.model = ModelFacts(self.settings.context_window or 1_000_000, "configured", self.settings.max_output)
        self.dialect: Dialect = ScriptedDialect(self.settings)
        self.requests: list[bytes] = []
        self._policy = turns if callable(turns) else None
        self._turns: list[ScriptedTurn | Policy] = []
        if not callable(turns):
            self._turns = [
                turn if callable(turn) else _turn(turn, f"turn {number}") for number, turn in enumerate(turns, start=1)
            ]
        self._issued = 0

    @classmethod
    def build(
        cls, name: str, settings: ProviderSettings, api_key: str, dialect: object, environ: Mapping[str, str]
    ) -> "ScriptedProvider":
        """The provider that plays the script its settings name. Raises ConfigError, naming file and line."""
        return cls(read_script(settings.script) if settings.script else (), name=name, settings=settings)

    async def stream(self, body: bytes) -> AsyncIterator[StreamEvent]:
        """The next turn: see `Provider.stream`. What a function raises passes through: it is the caller's own."""
        self.requests.append(body)
        turn = self._next(body)
        if turn.delay > 0:
            await asyncio.sleep(turn.delay)
        for event in self._events(turn, body):
            yield event

    async def aclose(self) -> None:
        """Nothing to release."""

    def _next(self, body: bytes) -> ScriptedTurn:
        number = len(self.requests)
        turn = self._policy or (self._turns[number - 1] if number <= len(self._turns) else ScriptedTurn(text="done"))
        if isinstance(turn, ScriptedTurn):
            return turn
        return _turn(turn(msgspec.json.decode(body)), f"turn {number}")

    def _events(self, turn: ScriptedTurn, body: bytes) -> Iterator[StreamEvent]:
        for piece in _pieces(turn.reasoning):
            yield ReasoningDelta(piece)
        for piece in _pieces(turn.text):
            yield TextDelta(piece)
        if turn.calls:
            self._issued = max(self._issued, *(int(number) for number in _ISSUED.findall(body)), 0)
        for index, call in enumerate(turn.calls):
            self._issued += 1
            yield CallDelta(index, f"call_{self._issued}", call.name, "")
            for piece in _pieces(call.raw):
                yield CallDelta(index, "", "", piece)
        if turn.error is not None:
            yield _failed(turn.error, started=bool(turn.text or turn.reasoning or turn.calls))
            return
        yield UsageReport(_usage(turn, len(body)))
        yield Finished(turn.finish or ("tool_calls" if turn.calls else "stop"))


def read_script(path: str) -> list[Turn]:
    """The turns of a JSON-lines file: one object a line, blank lines skipped, unknown fields ignored. Raises
    ConfigError naming the file, the line and what is wrong with it."""
    try:
        with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
            regular = stat.S_ISREG(os.fstat(file.fileno()).st_mode)
            lines = file.read().removeprefix(b"\xef\xbb\xbf").split(b"\n") if regular else []
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise ConfigError(f"script {path} cannot be read: {reason}; set `script` to a JSON-lines file")
    if not regular:
        raise ConfigError(f"script {path} is not a regular file; set `script` to a JSON-lines file")
    turns: list[Turn] = []
    for number, line in enumerate(lines, start=1):
        if line.strip():
            place = f"script {path}, line {number}"
            try:
                turn = msgspec.json.decode(line)
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
                reason = "nested too deeply" if isinstance(error, RecursionError) else error
                raise ConfigError(f"{place}: not JSON: {reason}")
            _turn(turn, place)
            turns.append(turn)
    return turns


def _turn(value: Any, place: str) -> ScriptedTurn:
    try:
        return msgspec.convert(value, ScriptedTurn)
    except msgspec.ValidationError as error:
        raise ConfigError(f'{place}: {error}; a turn is {{"text"?, "reasoning"?, "calls"?, "finish"?, "error"?}}')


def _failed(error: ScriptedError | str, started: bool) -> Failed:
    if isinstance(error, str):
        error = ScriptedError(error, error) if error in KINDS else ScriptedError(error)
    kind = error.kind if error.kind in KINDS else "server"
    retryable = kind in RETRYABLE if error.retryable is None else error.retryable
    return Failed(kind, error.message, retryable, started)  # type: ignore[arg-type]


def _usage(turn: ScriptedTurn, request_bytes: int) -> Usage:
    if turn.usage is not None:
        return msgspec.convert(msgspec.to_builtins(turn.usage), Usage)
    said = len(turn.text) + len(turn.reasoning) + sum(len(call.name) + len(call.raw) for call in turn.calls)
    return Usage(input=max(1, request_bytes // 4), output=max(1, said // 4), reasoning=len(turn.reasoning) // 4)


def _pieces(text: str) -> Iterator[str]:
    """Text in at most four pieces."""
    size = max(1, -(-len(text) // _PIECES))
    for start in range(0, len(text), size):
        yield text[start : start + size]
