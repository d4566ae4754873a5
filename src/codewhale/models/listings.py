"""What an endpoint itself says of the models it serves: a model's window, from the listings that the common servers
give. Each is asked once, briefly; a server that has no such listing says nothing."""

import asyncio
import contextlib
from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec.structs import replace

from codewhale.models.dialects.base import ProviderSettings
from codewhale.models.endpoint import ENDINGS, Endpoint
from codewhale.models.loopback import on_loopback
from codewhale.models.transport import Transport, Unreachable, WireCut, WireError
from codewhale.protocol.errors import CodeWhaleError

SECONDS = 10.0
MAX_BYTES = 8 << 20
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
        return 0, "no listing of the endpoint names it"

    async def ids(self) -> tuple[str, ...]:
        """The ids of the models that the endpoint lists, sorted; empty where it lists none."""
        listing = await self._get(*self._models())
        rows = listing.get("data") if isinstance(listing, dict) else listing
        found = [row.get("id") for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []
        return tuple(sorted({name for name in found if isinstance(name, str) and name}))

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
        try:
            transport = Transport(Endpoint(self._name, replace(self._settings, base_url=url, path=path), self._headers))
        except CodeWhaleError:
            return None
        try:
            async with asyncio.timeout(SECONDS):
                answer = await transport.post(b"", "GET")
                data = bytearray()
                while answer.status == 200 and len(data) <= MAX_BYTES and (more := await answer.read()):
                    data += more
                with contextlib.suppress(msgspec.DecodeError, UnicodeDecodeError, RecursionError):
                    return msgspec.json.decode(data) if answer.status == 200 else None
        except (Unreachable, WireCut, WireError, OSError, TimeoutError):
            return None
        finally:
            await transport.close()
        return None


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
            inner = row.get("meta")
            places = [row, *([inner] if isinstance(inner, dict) else [])]
            return next((found for field in _FIELDS for place in places if (found := _count(place.get(field)))), 0)
    return 0


def _names(row: dict[str, Any]) -> set[str]:
    found = {str(row.get(field)) for field in ("id", "name", "model", "key") if row.get(field)}
    return found | {name.removesuffix(":latest") for name in found}


def _count(value: Any) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 < value < 1 << 40 else 0
