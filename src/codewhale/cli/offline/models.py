"""What is known of models, for `codewhale model`: the rows of the table, and all that holds for one id."""

from collections.abc import Mapping

from msgspec import Struct

from codewhale.app.routes import Routes, open_routes
from codewhale.app.settings import open_config
from codewhale.models.dialects.base import Fact, Price
from codewhale.models.known_models import Known, KnownModel, KnownProvider, load_known, resolve_model
from codewhale.models.listings import Listings


class KnownModelRow(Struct, frozen=True):
    """Models of a provider ("" is any) whose ids match one of the patterns of `match`."""

    provider: str
    match: str
    default: bool
    window: int
    max_output: int
    facts: dict[str, Fact]
    source: str
    date: str


class ModelView(Struct, frozen=True):
    """All that holds for a model at a provider. `known` is whether the table has a row for it; a `price` of None is
    unknown; a `max_output` of 0 leaves the length of answers to the provider; `others` are providers whose own rows
    know the id too."""

    provider: str
    model: str
    known: bool
    dialect: str
    base_url: str
    window: int
    window_source: str
    max_output: int
    price: Price | None
    facts: dict[str, Fact]
    source: str
    others: tuple[str, ...]


def model_rows(home: str, workspace: str, environ: Mapping[str, str], provider: str = "") -> list[KnownModelRow]:
    """The rows of one provider, or all. Raises ConfigError for an unknown provider."""
    routes = _routes(home, workspace, environ)
    names = [provider] if provider else sorted(routes.tables)
    found = [row for name in names for row in _rows(routes, name)]
    if not provider:
        found += [_row("", known) for known in load_known().models]
    return found


def resolve(home: str, workspace: str, environ: Mapping[str, str], model: str, provider: str = "") -> ModelView:
    """What holds for a model id; an id nobody knows holds too. Without a provider it is the one that stands before the
    id (PROVIDER/ID), else the configured one. Raises ConfigError for an unknown provider."""
    routes, known = _routes(home, workspace, environ), load_known()
    name, model = (provider, model) if provider else _split(routes, known, model)
    settings, facts = resolve_model(name, routes.settings(name), model)
    rows = list(known.rows(known.provider(name, settings), model))
    others = (other for other, row in sorted(known.providers.items()) if other != name and _own(known, row, model))
    return ModelView(
        provider=name,
        model=model,
        known=bool(rows),
        dialect=settings.dialect,
        base_url=settings.base_url,
        window=facts.window,
        window_source=facts.window_source,
        max_output=facts.max_output,
        price=facts.price,
        facts=dict(sorted(settings.facts.items())),
        source=rows[0].source if rows else "",
        others=tuple(others),
    )


async def live_models(home: str, workspace: str, environ: Mapping[str, str], provider: str = "") -> tuple[str, ...]:
    """The ids that a provider lists now, "" being the configured one; empty where it has no listing. Raises
    ConfigError before anything is dialled."""
    routes = _routes(home, workspace, environ)
    name = provider or routes.default()[0]
    routes.may_ask(name)
    ready = routes.build(name, "")
    try:
        return await Listings(name, ready.settings, ready.dialect.headers(routes.key(name).value)).ids()
    finally:
        await ready.aclose()


def _split(routes: Routes, known: Known, written: str) -> tuple[str, str]:
    """The provider and the id of PROVIDER/ID; an id with a slash of its own is the configured provider's."""
    default = routes.default()[0]
    name, slash, model = written.partition("/")
    row = known.provider(default, routes.settings(default))
    if not slash or not model or name not in routes.tables or _own(known, row, written):
        return default, written
    return name, model


def _routes(home: str, workspace: str, environ: Mapping[str, str]) -> Routes:
    return open_routes(home, open_config(home, workspace, environ, {}), environ)


def _rows(routes: Routes, name: str) -> list[KnownModelRow]:
    """A provider's default model with all that holds for it, then its own rows."""
    settings, model = routes.settings(name), routes.default_model(name)
    known = load_known()
    row = known.provider(name, settings)
    resolved, facts = resolve_model(name, settings, model)
    first = next(known.rows(row, model), KnownModel(model))
    default = KnownModelRow(
        name,
        model,
        True,
        facts.window,
        facts.max_output,
        resolved.facts,
        first.source or row.source,
        first.date or row.date,
    )
    return [default, *(_row(name, found) for found in row.models)]


def _row(name: str, known: KnownModel) -> KnownModelRow:
    return KnownModelRow(
        name, known.match, False, known.window, known.max_output, known.facts, known.source, known.date
    )


def _own(known: Known, row: KnownProvider, model: str) -> bool:
    """Whether a provider's own rows know a model."""
    return any(found is own for found in known.rows(row, model) for own in row.models)
