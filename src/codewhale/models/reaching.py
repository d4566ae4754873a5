"""Reaching a provider: its list of models, and where that proves nothing one very small request."""

import asyncio

import msgspec
from msgspec import Struct

from codewhale.models.dialects.base import Provider
from codewhale.models.dialects.failures import Failure, ProviderFailure, headline
from codewhale.models.listings import ListedModel, Listings
from codewhale.models.probe import knock

SECONDS = 25.0
# Failures of the small request that mean no use, whatever the list said.
_USELESS = ("auth", "connect", "timeout", "protocol", "no_model")


class Reached(Struct, frozen=True):
    """What a provider answered: its list, the model that was or would be asked, and why it cannot be used."""

    models: tuple[ListedModel, ...] = ()
    model: str = ""
    failure: Failure | None = None

    def why(self, name: str) -> str:
        """Why it cannot be used, "" where it can."""
        failed = self.failure
        head = "" if failed is None else headline(name, self.model, failed.kind, failed.message)
        return "" if failed is None else ": ".join(filter(None, (head, failed.message)))


async def reach_provider(provider: Provider, key: str, model: str, own: str, knocks: bool) -> Reached:
    """Ask a provider for its list; a model that is not on it, or a key, which many lists do without, is tried with a
    request where that is wanted (`knocks`). `own` is the model to begin with where it is served. It stays open."""
    if not provider.settings.base_url:
        return Reached(model=model or own)
    try:
        async with asyncio.timeout(SECONDS):
            return await _reach(provider, key, model, own, knocks)
    except TimeoutError:
        return Reached(model=model, failure=Failure("timeout", f"no answer within {SECONDS:g} seconds", True))


async def _reach(provider: Provider, key: str, model: str, own: str, knocks: bool) -> Reached:
    models: tuple[ListedModel, ...] = ()
    missing: Failure | None = None
    try:
        models = await Listings(provider.name, provider.settings, provider.dialect.headers(key)).models()
    except ProviderFailure as error:
        said = error.failure.message.replace(key, "[key]") if len(key) >= 8 else error.failure.message
        missing = msgspec.structs.replace(error.failure, message=said)
    ids = [row.id for row in models]
    model = model or (own if own in ids or not ids else ids[0])
    if not knocks or (missing is not None and not missing.no_such_place):
        return Reached(models, model, missing)
    if not model:
        return Reached(failure=Failure("bad_request", "the server does not list its models; name one", False))
    failed = await knock(provider, model, SECONDS) if key or model not in ids else None
    if failed is None or (models and failed.kind not in _USELESS):
        return Reached(models, model)
    return Reached(models, model, Failure(failed.kind, failed.message, failed.retryable))
