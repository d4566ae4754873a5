"""A provider behind HTTP: requests sent, answers streamed, and a request that got no answer sent again.

A request is repeated only while nothing of its answer has been passed on; each repeat is told by Retrying. Once
something was passed on, a fault ends the stream and what came is kept.
"""

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Protocol

import msgspec
from msgspec import Struct

from codewhale.dialects.base import Dialect, ModelFacts, ProviderSettings
from codewhale.dialects.failures import Failure, ProviderFailure
from codewhale.protocol.errors import ConfigError
from codewhale.protocol.stream import Failed, Retrying, StreamEvent
from codewhale.providers.endpoint import Endpoint
from codewhale.providers.exchange import AnswerParser, Exchange, Limits
from codewhale.providers.transport import Transport


class HttpDialect(Dialect, Protocol):
    """A dialect that is spoken over HTTP, at `path` below the base URL where the settings name none."""

    path: str

    def parser(self) -> AnswerParser:
        """A reader of one answer."""
        ...


def _jitter() -> float:
    return os.urandom(1)[0] / 255


class Retries(Struct, frozen=True):
    """When a failed request is sent again: `count` times, after `base` seconds and `factor` times longer each time,
    at most `cap`, shortened by up to a quarter so that many clients do not come back at once. A server's own
    wish goes first, up to `patience`. `sleep` and `jitter` (0 to 1) are handed in."""

    count: int = 3
    base: float = 1.0
    factor: float = 2.0
    cap: float = 60.0
    patience: float = 300.0
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    jitter: Callable[[], float] = _jitter

    def delay(self, attempt: int, failure: Failure) -> float | None:
        """Seconds to wait before repeat number `attempt` (from 1), None when the request is not to be repeated."""
        if not failure.retryable or attempt > self.count:
            return None
        if failure.retry_after is not None:
            return failure.retry_after if failure.retry_after <= self.patience else None
        return min(self.cap, self.base * self.factor ** (attempt - 1)) * (1 - self.jitter() / 4)


class HttpProvider:
    """A configured endpoint; see `Provider`. Connections are kept between requests."""

    def __init__(
        self,
        name: str,
        settings: ProviderSettings,
        api_key: str,
        dialect: HttpDialect,
        limits: Limits | None = None,
        retries: Retries | None = None,
    ) -> None:
        """Raises ConfigError for a base URL, path, header or proxy that cannot be used. No connection is made yet."""
        self.name = name
        self.settings = settings
        self.model = ModelFacts()
        self.dialect: Dialect = dialect
        self._parser = dialect.parser
        self._api_key = api_key
        self._limits = limits or Limits()
        self._retries = retries or Retries()
        self._transport = Transport(Endpoint(name, settings, dialect.headers(api_key), dialect.path))

    @classmethod
    def build(
        cls, name: str, settings: ProviderSettings, api_key: str, dialect: HttpDialect, environ: Mapping[str, str]
    ) -> "HttpProvider":
        """The provider with the limits that the environment sets. Raises ConfigError."""
        return cls(name, settings, api_key, dialect, limits_from(environ))

    def beside(self, settings: ProviderSettings, dialect: HttpDialect) -> "HttpProvider":
        """Another path of the same host in another dialect, with this one's key; its answers come in one piece, so
        they may begin late. Raises ConfigError."""
        limits = msgspec.structs.replace(self._limits, open=self._limits.idle)
        return HttpProvider(self.name, settings, self._api_key, dialect, limits, self._retries)

    async def stream(self, body: bytes) -> AsyncIterator[StreamEvent]:
        """The answer to one request: see `Provider.stream`."""
        deadline = asyncio.get_running_loop().time() + self._limits.wall
        attempt = 0
        while True:
            exchange = Exchange(self._transport, body, self._parser(), self._limits, deadline)
            try:
                while not exchange.over:
                    for event in await exchange.read():
                        yield event
                return
            except ProviderFailure as error:
                failure = error.failure
            finally:
                await exchange.close()
            attempt += 1
            delay = None if exchange.started else self._retries.delay(attempt, failure)
            if delay is None:
                yield Failed(failure.kind, self._told(failure), failure.retryable, exchange.started)
                return
            yield Retrying(attempt, self._retries.count, delay, self._told(failure))
            await self._retries.sleep(delay)

    async def aclose(self) -> None:
        """Close the kept connections."""
        await self._transport.close()

    def _told(self, failure: Failure) -> str:
        """The failure's line, without the key that some servers repeat."""
        message = failure.message
        if len(self._api_key) >= 8:
            message = message.replace(self._api_key, "[key]")
        if failure.kind == "auth" and self.settings.api_key_env:
            message += f" (the key is read from {self.settings.api_key_env})"
        if failure.retry_after is not None and failure.retry_after > self._retries.patience:
            message += f" (the server asks to wait {failure.retry_after:.0f} seconds)"
        return message


# Limits from the environment: variable, field, least and greatest value.
_VARIABLES: tuple[tuple[str, str, float, float], ...] = (
    ("CODEWHALE_STREAM_OPEN_TIMEOUT_SECS", "open", 5, 300),
    ("DEEPSEEK_STREAM_IDLE_TIMEOUT_SECS", "idle", 1, 3600),
    ("CODEWHALE_STREAM_IDLE_TIMEOUT_SECS", "idle", 1, 3600),
    ("CODEWHALE_STREAM_WALL_SECS", "wall", 10, 86_400),
    ("CODEWHALE_STREAM_CONTENT_BYTES", "content", 65_536, 100_000_000),
)


def limits_from(environ: Mapping[str, str]) -> Limits:
    """The limits that the environment sets, each drawn into its bounds; a later variable wins over an earlier one of
    the same field. Raises ConfigError for a value that is not a number."""
    chosen: dict[str, float] = {}
    for variable, field, least, greatest in _VARIABLES:
        if text := environ.get(variable, "").strip():
            try:
                chosen[field] = min(max(float(text), least), greatest)
            except ValueError:
                raise ConfigError(f"{variable} = {text!r} is not a number from {least:g} to {greatest:g}")
    content = int(chosen.pop("content", Limits().content))
    return Limits(**chosen, content=content)
