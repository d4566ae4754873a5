"""A provider behind HTTP: requests sent, answers streamed, and a request sent again that got no answer, or one that
broke before it was whole. Each repeat is told by Retrying; the last failure ends the stream."""

from collections.abc import AsyncIterator, Mapping
from typing import Protocol

import msgspec

from codewhale.models.dialects.base import Dialect, ModelFacts, ProviderSettings
from codewhale.models.dialects.failures import Failure, ProviderFailure
from codewhale.models.endpoint import Endpoint, other_place
from codewhale.models.exchange import AnswerParser, Exchange, StreamLimits
from codewhale.models.loopback import is_near
from codewhale.models.retries import Retries, retries_of
from codewhale.models.transport import Transport
from codewhale.protocol.errors import ConfigError
from codewhale.protocol.stream import Failed, Resent, Retrying, StreamEvent


class HttpDialect(Dialect, Protocol):
    """A dialect that is spoken over HTTP, at `path` below the base URL where the settings name none."""

    path: str

    def parser(self) -> AnswerParser:
        """A reader of one answer."""
        ...


class HttpProvider:
    """A configured endpoint; see `Provider`. Connections are kept between requests."""

    def __init__(
        self,
        name: str,
        settings: ProviderSettings,
        api_key: str,
        dialect: HttpDialect,
        limits: StreamLimits | None = None,
        retries: Retries | None = None,
    ) -> None:
        """Raises ConfigError for a base URL, path, header or proxy that cannot be used. No connection is made yet."""
        self.name = name
        self.settings = settings
        self.model = ModelFacts()
        self.dialect: Dialect = dialect
        self._parser = dialect.parser
        self._api_key = api_key
        self._limits = limits or limits_of(name, settings)
        self._retries = retries or retries_of(name, settings)
        headers = dialect.headers(api_key)
        places = (settings, other_place(settings, dialect.path))
        self._transports = [Transport(Endpoint(name, at, headers, dialect.path)) for at in places if at is not None]
        self._at = 0

    @classmethod
    def build(
        cls, name: str, settings: ProviderSettings, api_key: str, dialect: HttpDialect, environ: Mapping[str, str]
    ) -> "HttpProvider":
        """The provider with the limits that the environment sets. Raises ConfigError."""
        return cls(name, settings, api_key, dialect, limits_from(environ, limits_of(name, settings)))

    def beside(self, settings: ProviderSettings, dialect: HttpDialect) -> "HttpProvider":
        """Another path of the same host in another dialect, with this one's key; its answers come in one piece, so
        they may begin late. Raises ConfigError."""
        limits = msgspec.structs.replace(self._limits, first=max(self._limits.first, _ONE_PIECE_SECONDS))
        return HttpProvider(self.name, settings, self._api_key, dialect, limits, self._retries)

    async def stream(self, body: bytes) -> AsyncIterator[StreamEvent]:
        """The answer to one request: see `Provider.stream`."""
        attempt, refused = 0, ""
        while True:
            transport = self._transports[self._at]
            exchange = Exchange(transport, body, self._parser(), self._limits)
            try:
                while not exchange.over:
                    for event in await exchange.read():
                        yield event
                return
            except ProviderFailure as error:
                failure = error.failure
            finally:
                await exchange.close()
            if failure.no_such_place and not refused and len(self._transports) > 1:
                # The version may stand in the address or be left out: the place that answers is asked from now on.
                refused = f"{self._told(failure)} (asked {transport.address}"
                self._at = 1 - self._at
                continue
            attempt += 1
            broke = exchange.answered
            delay = self._retries.delay(attempt, failure, broke)
            if delay is None:
                tried = f", {attempt} times" if attempt > 1 else ""
                message = f"{self._told(failure)} (asked {transport.address}{tried})"
                if failure.no_such_place and refused:
                    message, self._at = f"{refused}, then {transport.address})", 1 - self._at
                yield Failed(failure.kind, message, failure.retryable, exchange.started, failure.window)
                return
            yield Retrying(attempt, self._retries.most(broke), delay, self._told(failure), broke, failure.kind)
            await self._retries.sleep(delay)
            if broke:
                yield Resent()

    async def aclose(self) -> None:
        """Close the kept connections."""
        for transport in self._transports:
            await transport.close()

    def _told(self, failure: Failure) -> str:
        """The failure's line, without the key that some servers repeat."""
        message = failure.message
        if len(self._api_key) >= 8:
            message = message.replace(self._api_key, "[key]")
        if failure.kind == "auth" and self.settings.api_key_env:
            message += f" (the key is read from {self.settings.api_key_env})"
        if failure.retry_after is not None and failure.retry_after > self._retries.patience:
            message += f" (the server asks you to wait {failure.retry_after:.0f} seconds)"
        return message


# An answer that comes in one piece begins when it is whole.
_ONE_PIECE_SECONDS = 300.0
_FIRST_NEAR, _FIRST_FAR = 600.0, 120.0


def limits_of(name: str, settings: ProviderSettings) -> StreamLimits:
    """The limits that a provider's settings name. Raises ConfigError for one out of bounds."""
    first, gap = settings.first_token_timeout, settings.gap_timeout
    if first == 0:
        first = _FIRST_NEAR if is_near(settings.base_url) else _FIRST_FAR
    for key, value in (("first_token_timeout", first), ("gap_timeout", gap)):
        if not 0 < value <= 86_400:
            raise ConfigError(f"providers.{name}.{key} = {value:g} is not a number of seconds up to 86400")
    return StreamLimits(first=first, gap=gap)


# Limits from the environment: variable, field, least and greatest value.
_VARIABLES: tuple[tuple[str, str, float, float], ...] = (
    ("CODEWHALE_STREAM_OPEN_TIMEOUT_SECS", "first", 5, 3600),
    ("DEEPSEEK_STREAM_IDLE_TIMEOUT_SECS", "gap", 1, 3600),
    ("CODEWHALE_STREAM_IDLE_TIMEOUT_SECS", "gap", 1, 3600),
    ("CODEWHALE_STREAM_WALL_SECS", "wall", 10, 86_400),
    ("CODEWHALE_STREAM_CONTENT_BYTES", "content", 65_536, 100_000_000),
)


def limits_from(environ: Mapping[str, str], limits: StreamLimits) -> StreamLimits:
    """The limits with those that the environment sets, each drawn into its bounds; a later variable wins over an
    earlier one of the same field. Raises ConfigError for a value that is not a number."""
    chosen: dict[str, float] = {}
    for variable, field, least, greatest in _VARIABLES:
        if text := environ.get(variable, "").strip():
            try:
                chosen[field] = min(max(float(text), least), greatest)
            except ValueError:
                raise ConfigError(f"{variable} = {text!r} is not a number from {least:g} to {greatest:g}")
    content = int(chosen.pop("content", limits.content))
    return msgspec.structs.replace(limits, **chosen, content=content)
