"""What models cost, and where that is known from."""

import re

import pytest

from codewhale.models.dialects.base import Price, ProviderSettings
from codewhale.models.prices import load_prices, price_of


def at(url: str, **fields: object) -> ProviderSettings:
    """Settings of an endpoint."""
    return ProviderSettings(base_url=url, **fields)  # type: ignore[arg-type]


def test_every_row_says_where_and_when_it_was_read() -> None:
    rows = load_prices()
    assert len(rows) > 20
    for row in rows:
        price = row.price
        assert re.fullmatch(r"\d{4}-\d\d-\d\d", price.date), row
        assert price.source and row.match == row.match.lower(), row
        assert 0 <= price.hit <= price.miss <= price.output, row
        assert 0 < price.off_peak <= 1 and bool(price.peak) == (price.off_peak < 1), row
        assert min(price.long_input, price.long_output) >= 1, row
        assert price.source.startswith("https://") or price.output == 0, row


def test_a_price_belongs_to_the_place_that_is_asked() -> None:
    official = price_of("deepseek", at("https://api.deepseek.com"), "deepseek-v4-pro")
    assert official is not None and official.source.startswith("https://api-docs.deepseek.com/")
    assert price_of("mine", at("https://api.deepseek.com/v1"), "DeepSeek-V4-Pro") == official
    assert price_of("deepseek", at("http://127.0.0.1:9999/v1"), "deepseek-v4-pro") == official
    assert price_of("deepseek", at("https://gateway.example/v1"), "deepseek-v4-pro") is None
    assert price_of("mine", at("http://127.0.0.1:9999/v1"), "deepseek-v4-pro") is None


@pytest.mark.parametrize("url", ["", "nonsense", "http://[", "https://api.deepseek.com.evil.example/"])
def test_what_nobody_has_said_is_unknown(url: str) -> None:
    assert price_of("deepseek", at(url), "deepseek-v4-pro") is None
    assert price_of("deepseek", at("https://api.deepseek.com"), "brand-new") is None


def test_the_configuration_goes_first_and_may_speak_for_every_model() -> None:
    own, rest = Price(1, 0.5, 2, "EUR"), Price(3, 3, 3)
    settings = at("https://api.deepseek.com", prices={"deepseek-v4-pro": own, "*": rest})
    assert price_of("deepseek", settings, "deepseek-v4-pro") == own
    assert price_of("deepseek", settings, "another") == rest


def test_closer_patterns_win_and_ones_own_machine_asks_nothing() -> None:
    openai = at("https://api.openai.com/v1")
    mini, large = price_of("openai", openai, "gpt-5.4-mini"), price_of("openai", openai, "gpt-5.4")
    assert mini is not None and large is not None and mini.output < large.output
    free = price_of("ollama", at("http://127.0.0.1:11434/v1"), "qwen3:8b")
    assert free is not None and (free.miss, free.hit, free.output) == (0, 0, 0)
    assert price_of("ollama", at("https://rented.example/v1"), "qwen3:8b") is None
