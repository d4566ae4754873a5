"""What models cost, by the place that serves them. The figures are `prices.json`; a model without a row has no price,
and nothing is guessed."""

import os
from fnmatch import fnmatchcase

import msgspec
from msgspec import Struct

from codewhale.models.dialects.base import Price, ProviderSettings
from codewhale.models.loopback import host_of, on_loopback

PRICES_FILE = os.path.join(os.path.dirname(__file__), "prices.json")


class PriceRow(Struct, frozen=True, forbid_unknown_fields=True):
    """Models whose id in lower case matches a pattern of `match`, at these `hosts`, and at providers of these names
    when they are asked through a port of this machine. A price for misses includes what a provider asks for writing
    its cache: an agent's prompts are all written."""

    match: str
    providers: tuple[str, ...]
    hosts: tuple[str, ...]
    price: Price


def load_prices() -> tuple[PriceRow, ...]:
    """The table, the closest rows first."""
    with open(PRICES_FILE, "rb") as file:
        return msgspec.json.decode(file.read(), type=tuple[PriceRow, ...])


def price_of(name: str, settings: ProviderSettings, model: str) -> Price | None:
    """What a model costs at a provider: as configured for its id or for "*", else by the table; None when nobody has
    said."""
    configured = settings.prices.get(model) or settings.prices.get("*")
    if configured is not None:
        return configured
    asked, near = host_of(settings.base_url).partition(":")[0], on_loopback(settings.base_url)
    for row in load_prices():
        here = asked in row.hosts or (near and name in row.providers)
        if here and any(fnmatchcase(model.lower(), pattern) for pattern in row.match.split()):
            return row.price
    return None
