"""What is told of models: the table's rows, one id, and what an endpoint lists."""

import json
from pathlib import Path

import pytest

from codewhale.cli.offline.models import live_models, model_rows, resolve
from codewhale.protocol.errors import ConfigError
from support.wire import Reply, Wire, answer


def test_the_rows_name_each_provider_and_its_default(home: Path) -> None:
    rows = model_rows(str(home), str(home), {})
    defaults = {row.provider: row.match for row in rows if row.default}
    assert defaults["deepseek"] == "deepseek-v4-pro"
    assert any(row.provider == "" and row.window for row in rows)
    assert {row.provider for row in model_rows(str(home), str(home), {}, "moonshot")} == {"moonshot"}
    with pytest.raises(ConfigError, match="there is no provider 'nobody'"):
        model_rows(str(home), str(home), {}, "nobody")


def test_a_known_model(home: Path) -> None:
    found = resolve(str(home), str(home), {}, "deepseek-v4-pro")
    assert (found.provider, found.known, found.window, found.window_source) == ("deepseek", True, 1_000_000, "catalog")
    assert found.price is not None and found.price.source
    assert found.others and "deepseek" not in found.others


def test_a_provider_may_stand_before_the_id(home: Path) -> None:
    found = resolve(str(home), str(home), {}, "moonshot/kimi-k2.6")
    assert (found.provider, found.model, found.known) == ("moonshot", "kimi-k2.6", True)
    assert resolve(str(home), str(home), {}, "kimi-k2.6", "moonshot") == found
    (home / "config.toml").write_text('provider = "box"\n[providers.box]\nbase_url = "http://127.0.0.1:9/v1"\n')
    for whole in ("acme/kimi-k2.6", "box/", "acme/deepseek/x"):
        found = resolve(str(home), str(home), {}, whole)
        assert (found.provider, found.model) == ("box", whole)
    found = resolve(str(home), str(home), {}, "box/acme/mine")
    assert (found.provider, found.model) == ("box", "acme/mine")
    found = resolve(str(home), str(home), {}, "deepseek/deepseek-v4-pro", "openrouter")
    assert (found.provider, found.model) == ("openrouter", "deepseek/deepseek-v4-pro")


def test_a_model_nobody_knows(home: Path) -> None:
    found = resolve(str(home), str(home), {}, "my-own-64k", "novita")
    assert (found.provider, found.known, found.window, found.window_source) == ("novita", False, 64_000, "name")
    assert (found.price, found.others, found.source) == (None, (), "")


def test_what_is_configured_stands_above_the_table(home: Path) -> None:
    (home / "config.toml").write_text("[providers.vllm.windows]\nmine = 9000\n")
    found = resolve(str(home), str(home), {}, "mine", "vllm")
    assert (found.window, found.window_source) == (9000, "reported")
    (home / "config.toml").write_text("[providers.deepseek]\ncontext_window = 7000\n")
    found = resolve(str(home), str(home), {}, "deepseek-v4-pro")
    assert (found.window, found.window_source) == (7000, "configured")


async def test_what_an_endpoint_lists(home: Path) -> None:
    listing = json.dumps({"object": "list", "data": [{"id": "b"}, {"id": "a"}, {"id": "a"}]}).encode()
    async with Wire([Reply([answer(200, listing)])]) as wire:
        (home / "config.toml").write_text(f'[providers.x]\nbase_url = "{wire.url}"\napi_key = "sk-x"\n')
        assert await live_models(str(home), str(home), {}, "x") == ("a", "b")
    (request,) = wire.requests
    assert request.head.startswith("GET /v1/models ")
    assert request.headers["authorization"] == "Bearer sk-x"
    with pytest.raises(ConfigError, match="DEEPSEEK_API_KEY is not set"):
        await live_models(str(home), str(home), {})
