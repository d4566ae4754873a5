"""A provider is asked before it is used: what answers at an address that somebody wrote, whether a key is taken, which
models are served."""

import asyncio
import re
from collections.abc import Sequence
from types import MappingProxyType
from typing import Any

import msgspec

from codewhale.app.keys import MISSING
from codewhale.app.routes import Routes, open_routes
from codewhale.app.settings import Place, Settings
from codewhale.config.edit import set_values
from codewhale.models.dialects.base import ProviderSettings
from codewhale.models.dialects.failures import Failure
from codewhale.models.endpoint import addresses, is_exposed, name_of
from codewhale.models.keys import KeyStore
from codewhale.models.known_models import load_known, resolve_model
from codewhale.models.listings import ListedModel
from codewhale.models.loopback import host_of, on_loopback
from codewhale.models.reaching import Reached, reach_provider
from codewhale.protocol.errors import ConfigError, ProviderError
from codewhale.protocol.ops import ConnectProvider
from codewhale.protocol.views import CheckEndpoint, EndpointView, ModelRow
from codewhale.session.redaction import Redactors

_EXPOSED = MappingProxyType({"allow_insecure_http": True})


async def reach(routes: Routes, name: str, model: str = "", knocks: bool = True) -> Reached:
    """What a provider answers, asked for a model ("" is the one to begin with). Raises ConfigError."""
    provider = routes.build(name, model)
    settings = routes.settings(name)
    own = settings.default_model or load_known().provider(name, settings).default_model
    try:
        return await reach_provider(provider, routes.key(name).value, model, own, knocks)
    finally:
        await provider.aclose()


class Connections:
    """Checking and connecting, for one process. Keys that are kept are hidden by `redactors` from then on."""

    def __init__(self, place: Place, routes: Routes, redactors: Redactors) -> None:
        self._place = place
        self._routes = routes
        self._redactors = redactors

    async def check(self, query: CheckEndpoint) -> EndpointView:
        """See CheckEndpoint: an address is tried with and without its version, one of this machine in both schemes."""
        try:
            if not query.address:
                return (await self._look(query, query.name, ""))[0]
            urls = addresses(query.address)
            known = min((name for name, at in self._routes.tables.items() if _same(at, urls[0])), key=len, default="")
            name = query.name or known or self._free(name_of(urls[0]))
            return await self._first(query, name, ("",) if name == known and not on_loopback(urls[0]) else urls)
        except ConfigError as error:
            return EndpointView(query.name, "", why=str(error))

    async def _first(self, query: CheckEndpoint, name: str, urls: Sequence[str]) -> EndpointView:
        """The first address that answers, else what the first of them said."""
        views: list[EndpointView] = []
        for url in urls:
            view, failed = await self._look(query, name, url)
            views.append(view)
            if failed is None or view.wants_key or failed.kind in ("timeout", "protocol") or failed.no_such_place:
                return view  # something speaks there, so the scheme is right
        return views[0]

    async def _look(self, query: CheckEndpoint, name: str, base_url: str) -> tuple[EndpointView, Failure | None]:
        """What one address says; a server that has no list is one whose models are typed."""
        routes = await asyncio.to_thread(self._trial, name, base_url, checked_key(query.key), query.exposed)
        url, sent = routes.settings(name).base_url, routes.key(name)
        if is_exposed(routes.settings(name)):
            return EndpointView(name, url, exposed=True), None
        wants = EndpointView(name, url, why=f"{name} needs a key.", wants_key=True)
        if sent.source == MISSING:
            return msgspec.structs.replace(wants, why=" ".join((wants.why, *sent.refused))), None
        reached = await reach(routes, name, knocks=False)
        failed = reached.failure
        if failed is not None and failed.kind == "auth":
            return wants if not sent.value else msgspec.structs.replace(wants, why=reached.why(name)), failed
        if failed is not None:
            return EndpointView(name, url, why="" if failed.no_such_place else reached.why(name)), failed
        rows = await asyncio.to_thread(model_rows, name, routes.settings(name), reached.models)
        return EndpointView(name, url, rows, reached.model), None

    def _free(self, stem: str) -> str:
        names = (stem, *(f"{stem}-{number}" for number in range(2, len(self._routes.tables) + 3)))
        return next(name for name in names if name not in self._routes.tables)

    def _trial(self, name: str, base_url: str, key: str, exposed: bool) -> Routes:
        table = {"base_url": base_url} if base_url else {}
        over = {"provider": name, "providers": {name: {**table, "facts": _EXPOSED} if exposed else table}}
        return open_routes(self._place.home, self._place.config(over), self._place.environ, key)

    async def connect(self, op: ConnectProvider) -> tuple[str, str]:
        """Ask a provider, then keep its key and address; (provider, model) to ask from now on. Raises ConfigError and
        ProviderError, and then nothing has changed."""
        key, base_url = checked_key(op.key), op.base_url.strip().rstrip("/")
        if base_url and not re.fullmatch(r"\w[\w.-]{0,63}", op.name):
            raise ConfigError(f"{op.name!r} is not a valid provider name: use letters, digits, dots and dashes")
        known = self._routes.tables.get(op.name, ProviderSettings()).base_url
        base_url = "" if base_url == known else base_url
        near = on_loopback(known) and on_loopback(base_url)
        if base_url and known and host_of(known) != host_of(base_url) and not near:
            raise ConfigError(f"{op.name} is the name of {known}; choose another name")
        trial = await asyncio.to_thread(self._trial, op.name, base_url, key, op.exposed)
        trial.may_ask(op.name)
        host = host_of(trial.settings(op.name).base_url)
        if key and not host:
            raise ConfigError(f"provider {op.name} has no base_url, so there is nowhere to send a key")
        reached = await reach(trial, op.name, op.model)
        if reached.failure is not None:
            raise ProviderError(reached.why(op.name))
        # What the list says of the window is kept as `provider test --save` would.
        window = next((row.window for row in reached.models if row.id == reached.model), 0)
        changes: dict[tuple[str, ...], Any] = {("providers", op.name, "base_url"): base_url} if base_url else {}
        if op.exposed:
            changes[("providers", op.name, "facts", *_EXPOSED)] = True
        if window and op.use and resolve_model(op.name, trial.settings(op.name), reached.model)[1].window != window:
            changes[("providers", op.name, "windows", reached.model)] = window
        await asyncio.to_thread(self._keep, op.name, key, host, changes)
        used = self._routes.key(op.name)
        if key and used.value != key:
            raise ConfigError(f"the key is stored, but {used.source} takes precedence; change it there")
        return op.name, reached.model

    def _keep(self, name: str, key: str, host: str, changes: dict[tuple[str, ...], Any]) -> None:
        if key:
            self._redactors.learn({f"key of {name}": key})
            KeyStore(self._place.home).put(name, key, host)
        if changes:
            set_values(self._place.home, changes, Settings)
        self._routes.renew(self._place.config())


def _same(settings: ProviderSettings, url: str) -> bool:
    return host_of(settings.base_url) == host_of(url) != ""


def model_rows(name: str, settings: ProviderSettings, models: Sequence[ListedModel]) -> tuple[ModelRow, ...]:
    """What a provider lists, with what is known of each."""
    known = load_known()
    rows = []
    for listed in models:
        resolved, facts = resolve_model(name, settings, listed.id, known)
        window = 0 if facts.window_source == "fallback" else facts.window
        if facts.window_source != "configured":
            window = listed.window or window
        price = None if facts.price is None else msgspec.to_builtins(facts.price)
        images = bool(resolved.facts.get("images", True))
        rows.append(ModelRow(name, listed.id, window, price, True, "", False, images))
    return tuple(rows)


def checked_key(text: str) -> str:
    """A key as it was typed, without what stands around it. Raises ConfigError for what cannot be one."""
    key = text.strip()
    if key and (not key.isascii() or not key.isprintable() or " " in key):
        raise ConfigError("not a key: a key is one line of ASCII characters without spaces. Nothing was stored")
    return key
