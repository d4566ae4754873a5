"""The providers there are: names, defaults, what stands in the way of each."""

from pathlib import Path

import pytest

from codewhale.app.routes import Routes, open_routes
from codewhale.app.settings import open_config
from codewhale.models.scripted import ScriptedProvider
from codewhale.protocol.errors import ConfigError


def routes(home: Path, text: str = "", **environ: str) -> Routes:
    (home / "config.toml").write_text(text)
    return open_routes(str(home), open_config(str(home), str(home), environ, {}), environ)


def test_the_built_in_providers_need_no_table(home: Path) -> None:
    found = {row.name: row for row in routes(home).rows()}
    assert {"deepseek", "openai", "anthropic", "ollama", "vllm", "scripted"} <= set(found)
    assert [row.name for row in found.values() if row.default] == ["deepseek"]
    assert found["deepseek"].problem == "DEEPSEEK_API_KEY is not set"
    assert (found["ollama"].problem, found["ollama"].key.source) == ("", "not needed")
    assert all(row.origin == "default" for row in found.values())


def test_every_row_says_what_stands_in_its_way(home: Path) -> None:
    text = (
        'provider = "a"\n[providers.a]\nbase_url = "https://a.example"\n'
        '[providers.b]\nbase_url = "nowhere"\n[providers.c]\ndialect = "morse"\nbase_url = "https://c.example"\n'
        '[providers.d]\nbase_url = "http://d.example"\napi_key_env = "D_KEY"\n'
    )
    found = {row.name: row for row in routes(home, text).rows()}
    assert (found["a"].problem, found["a"].default, found["a"].origin) == ("", True, f"{home}/config.toml")
    assert "is not a URL" in found["b"].problem
    assert "morse" in found["c"].problem
    assert "not encrypted" in found["d"].problem


def test_a_model_that_nobody_named(home: Path) -> None:
    found = routes(home, 'model = "mine"\n[providers.x]\ndefault_model = "theirs"\nbase_url = "http://127.0.0.1:1"\n')
    assert found.default() == ("deepseek", "mine")
    assert (found.default_model("deepseek"), found.default_model("x")) == ("mine", "theirs")
    assert found.default_model("moonshot").startswith("kimi")
    assert found.default("x") == ("x", "theirs") and found.default("deepseek") == ("deepseek", "mine")


def test_a_name_that_is_not_there(home: Path) -> None:
    with pytest.raises(ConfigError, match=r"'depseek'; did you mean deepseek\?; configured: deepseek, x \("):
        routes(home, "[providers.x]\n").build("depseek", "m")


def test_a_ready_made_provider_comes_first_and_needs_no_key(home: Path) -> None:
    ready = ScriptedProvider([])
    config = open_config(str(home), str(home), {}, {})
    found = open_routes(str(home), config, {}, ready={"deepseek": ready})
    assert found.build("deepseek", "m") is ready
    found.may_ask("deepseek")
