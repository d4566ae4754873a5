"""`codewhale provider test`: a provider opened as a session would open it, probed, and what was found as lines of
configuration."""

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Struct

from codewhale.app.routes import open_routes
from codewhale.app.settings import Settings, open_config
from codewhale.config.edit import set_values
from codewhale.models.listings import Listings
from codewhale.models.probe import Probe, probe

Change = tuple[tuple[str, ...], Any]


class ProbeReport(Struct, frozen=True):
    """What `codewhale provider test --json` prints. `toml` says in config.toml what was found for certain."""

    schema_version: int
    provider: str
    model: str
    dialect: str
    base_url: str
    key: str
    ok: bool
    found: Probe
    toml: str


async def probe_provider(
    home: str, workspace: str, environ: Mapping[str, str], name: str, model: str, api_key: str
) -> ProbeReport:
    """Probe a provider for a model ("" is its default). Raises ConfigError before anything is dialled."""
    config = open_config(home, workspace, environ, {"provider": name})
    routes = open_routes(home, config, environ, api_key)
    model = model or routes.default_model(name)
    routes.may_ask(name)
    provider = routes.build(name, model)
    key = routes.key(name)
    listings = Listings(name, provider.settings, provider.dialect.headers(key.value))
    try:
        found = await probe(provider, model, lambda: listings.window(model))
    finally:
        await provider.aclose()
    return ProbeReport(
        schema_version=1,
        provider=name,
        model=model,
        dialect=provider.settings.dialect,
        base_url=provider.settings.base_url,
        key=key.source,
        ok=not found.error,
        found=found,
        toml=_toml(_changes(name, model, found)),
    )


def save(home: str, report: ProbeReport) -> str:
    """Write what was found into config.toml; returns its path. Raises ConfigError."""
    return set_values(home, dict(_changes(report.provider, report.model, report.found)), Settings)


def _changes(name: str, model: str, found: Probe) -> list[Change]:
    changes: list[Change] = [(("providers", name, "facts", fact), value) for fact, value in found.facts.items()]
    if found.window:
        changes.append((("providers", name, "windows", model), found.window))
    return changes


def _toml(changes: list[Change]) -> str:
    lines: list[str] = []
    table: tuple[str, ...] = ()
    for path, value in changes:
        if path[:-1] != table:
            table = path[:-1]
            lines.append(f"[{'.'.join(map(_word, table))}]")
        lines.append(f"{_word(path[-1])} = {msgspec.json.encode(value).decode()}")
    return "".join(line + "\n" for line in lines)


def _word(key: str) -> str:
    bare = key.replace("-", "").replace("_", "")
    return key if bare.isascii() and bare.isalnum() else msgspec.json.encode(key).decode()
