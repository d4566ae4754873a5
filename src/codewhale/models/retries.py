"""When a request is sent again: how often, and after how long."""

import asyncio
import os
from collections.abc import Awaitable, Callable

from msgspec import Struct

from codewhale.models.dialects.base import ProviderSettings
from codewhale.models.dialects.failures import Failure
from codewhale.protocol.errors import ConfigError

_MOST = 100


def _jitter() -> float:
    return os.urandom(1)[0] / 255


class Retries(Struct, frozen=True):
    """A request that got no answer is sent again `requests` times, one whose answer broke before it was whole
    `streams` times; both count together, so that a question is never asked more often than the larger one says. The
    wait is `base` seconds and `factor` times longer each time, at most `cap`, shortened by up to a quarter so that
    many clients do not come back at once. A server's own wish goes first, up to `patience`. `sleep` and `jitter` (0 to
    1) are handed in."""

    requests: int = 5
    streams: int = 5
    base: float = 1.0
    factor: float = 2.0
    cap: float = 60.0
    patience: float = 300.0
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    jitter: Callable[[], float] = _jitter

    def most(self, broke: bool) -> int:
        """How often a request is sent again after its answer broke, or after there was none."""
        return self.streams if broke else self.requests

    def delay(self, attempt: int, failure: Failure, broke: bool = False) -> float | None:
        """Seconds to wait before repeat number `attempt` (from 1), None when the request is not to be repeated."""
        if not failure.retryable or attempt > self.most(broke):
            return None
        if failure.retry_after is not None:
            return failure.retry_after if failure.retry_after <= self.patience else None
        return min(self.cap, self.base * self.factor ** (attempt - 1)) * (1 - self.jitter() / 4)


def retries_of(name: str, settings: ProviderSettings) -> Retries:
    """What a provider's settings say. Raises ConfigError for a number out of bounds."""
    for key in ("request_retries", "stream_retries"):
        count = getattr(settings, key)
        if not 0 <= count <= _MOST:
            raise ConfigError(f"providers.{name}.{key} = {count} is not a number from 0 to {_MOST}")
    return Retries(settings.request_retries, settings.stream_retries)
