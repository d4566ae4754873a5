"""What an endpoint itself says of the models it serves: their ids, and a model's window, from the listings that the
common servers give. Each is asked once, briefly."""

import asyncio
import contextlib
from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from codewhale.models.dialects.base import ProviderSettings
from codewhale.models.dialects.failures import ProviderFailure, failure, from_status, page_line
from codewhale.models.endpoint import ENDINGS, Endpoint
from codewhale.models.loopback import on_loopback
from codewhale.models.transport import Transport, Unreachable, WireCut, WireError
from codewhale.protocol.errors import CodeWhaleError

SECONDS, CONNECT_SECONDS = 10.0, 4.0
MAX_BYTES = 8 << 20
MOST_MODELS = 5000
# What a row of a model listing calls the window it serves with, the surest first.
_FIELDS = (
    "max_model_len",  # vLLM, SGLang
    "loaded_context_length",  # LM Studio
    "n_ctx",  # llama.cpp
    "context_window",  # Groq
    "max_input_tokens",  # Anthropic
    "context_length",  # OpenRouter, Together, Moonshot, Ollama
    "max_context_length",  # Mistral, LM Studio
)


class ListedModel(Struct, frozen=True):
    """A row of a listing; `window` is 0 where it does not say."""

    id: str
    window: int = 0


class Listings:
    """The listings of one endpoint. `headers` carry the key."""

    def __init__(self, name: str, settings: ProviderSettings, headers: dict[str, str]) -> None:
        self._name = name
        self._settings = settings
        self._headers = headers

    async def window(self, model: str) -> tuple[int, str]:
        """The window of a model in tokens and the address that says so; (0, why not) where none does. A server on this
        machine is asked for the window it runs with before the one that the model could have."""
        for url, path in self._addresses():
            found = window_in(await self._get(url, path), model)
            if found:
                return found, path
        return 0, "the endpoint does not list it"

    async def ids(self) -> tuple[str, ...]:
        """The ids of the models that the endpoint lists, sorted; empty where it lists none."""
        try:
            return tuple(row.id for row in await self.models())
        except (ProviderFailure, CodeWhaleError):
            return ()

    async def models(self) -> tuple[ListedModel, ...]:
        """The models that the endpoint lists, by id. Raises ProviderFailure saying why it gives no list, ConfigError
        for an address that cannot be asked."""
        url, path = self._models()
        try:
            listing = await self._ask(url, path)
        except ProviderFailure as error:
            # The version may stand in the address or be left out.
            other = url.removesuffix("/v1") if url.endswith("/v1") else f"{url}/v1"
            if not error.failure.no_such_place or path != "/models":
                raise
            listing = await self._ask(other, path)
        rows = listing.get("data") if isinstance(listing, dict) else listing
        if not isinstance(rows, list):
            raise failure("protocol", "the answer is not a list of models")
        found = (row.get("id") for row in rows if isinstance(row, dict))
        names = sorted({name for name in found if isinstance(name, str) and name})[:MOST_MODELS]
        windows = {
            row["id"]: row_window(row) for row in rows if isinstance(row, dict) and isinstance(row.get("id"), str)
        }
        return tuple(ListedModel(name, windows[name]) for name in names)

    def _addresses(self) -> Iterator[tuple[str, str]]:
        base = self._settings.base_url.rstrip("/")
        if on_loopback(base):
            scheme, _, rest = base.partition("://")
            root = f"{scheme}://{rest.partition('/')[0]}"
            for path in ("/props", "/api/ps", "/api/v0/models"):  # llama.cpp, Ollama, LM Studio
                yield root, path
        yield self._models()

    def _models(self) -> tuple[str, str]:
        own = self._settings.path
        path = next((own.removesuffix(ending) for ending in ENDINGS if own.endswith(ending)), "")
        return self._settings.base_url.rstrip("/"), path + "/models"

    async def _get(self, url: str, path: str) -> Any:
        """The JSON at an address, None where there is none."""
        with contextlib.suppress(ProviderFailure, CodeWhaleError):
            return await self._ask(url, path)
        return None

    async def _ask(self, url: str, path: str) -> Any:
        """The JSON at an address. Raises ProviderFailure, ConfigError."""
        transport = Transport(Endpoint(self._name, replace(self._settings, base_url=url, path=path), self._headers))
        data = bytearray()
        try:
            async with asyncio.timeout(SECONDS):
                answer = await transport.post(b"", "GET", CONNECT_SECONDS)
                while len(data) <= MAX_BYTES and (more := await answer.read()):
                    data += more
            if answer.status != 200:
                raise ProviderFailure(from_status(answer.status, answer.headers, bytes(data)))
            if data.lstrip()[:1] == b"<":
                raise failure("protocol", f"the server answered with {page_line(bytes(data[:65536]))}")
            return msgspec.json.decode(data)
        except Unreachable as error:
            raise failure("connect", str(error)) from error
        except TimeoutError as error:
            raise failure("timeout", f"no answer within {SECONDS:g} seconds") from error
        except (WireCut, WireError, OSError) as error:
            raise failure("connect", str(error)) from error
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise failure("protocol", "the answer is not JSON") from error
        finally:
            await transport.close()


def window_in(listing: Any, model: str) -> int:
    """The window that a listing gives a model, 0 for none."""
    if not isinstance(listing, dict):
        return 0
    settings = listing.get("default_generation_settings")
    if isinstance(settings, dict):
        return _count(settings.get("n_ctx"))
    rows = listing.get("data") or listing.get("models")
    for row in rows if isinstance(rows, list) else ():
        if isinstance(row, dict) and model in _names(row):
            return row_window(row)
    return 0


def row_window(row: dict[str, Any]) -> int:
    """The window in a row of a listing, 0 for none."""
    inner = row.get("meta")
    places = [row, *([inner] if isinstance(inner, dict) else [])]
    return next((found for field in _FIELDS for place in places if (found := _count(place.get(field)))), 0)


def _names(row: dict[str, Any]) -> set[str]:
    found = {str(row.get(field)) for field in ("id", "name", "model", "key") if row.get(field)}
    return found | {name.removesuffix(":latest") for name in found}


def _count(value: Any) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 < value < 1 << 40 else 0
