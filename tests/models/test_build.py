"""From configured names to providers."""

import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from codewhale.app.routes import build_provider
from codewhale.models.build import DIALECTS, build_dialect
from codewhale.models.dialects.base import ProviderSettings
from codewhale.models.known_models import built_in, default_model
from codewhale.models.scripted import ScriptedProvider
from codewhale.protocol.errors import ConfigError


def test_each_row_leads_to_a_provider_of_that_dialect() -> None:
    for dialect in DIALECTS:
        settings = ProviderSettings(dialect=dialect, base_url="https://example.com")
        provider = build_provider("p", settings, "key", environ={})
        asked = {
            "anthropic": ("https://example.com", "/v1/messages"),
            "openai-chat": ("https://example.com/v1", "/chat/completions"),
            "openai-responses": ("https://example.com/v1", "/responses"),
            "scripted": ("https://example.com/v1", "/chat/completions"),
        }
        assert (provider.name, provider.dialect.name) == ("p", dialect)
        assert (provider.settings.base_url, provider.settings.path) == asked[dialect]
        assert build_dialect("p", settings).name == dialect


_VERSIONED = "https://example.com/v1"


@pytest.mark.parametrize(
    "base_url",
    ["https://example.com", "https://example.com/", _VERSIONED, f"{_VERSIONED}/"]
    + [f"{_VERSIONED}{ending}" for ending in ("/chat/completions", "/messages", "/responses", "/responses/")],
)
@pytest.mark.parametrize(
    ("dialect", "asked"),
    [
        ("openai-chat", "https://example.com/v1/chat/completions"),
        ("openai-responses", "https://example.com/v1/responses"),
        ("anthropic", "https://example.com/v1/messages"),
    ],
)
def test_an_address_is_taken_with_and_without_its_version_and_pasted_whole(
    base_url: str, dialect: str, asked: str
) -> None:
    built = build_provider("p", ProviderSettings(dialect=dialect, base_url=base_url), "k", environ={})
    assert built.settings.base_url + built.settings.path == asked


@pytest.mark.parametrize(
    ("base_url", "asked"),
    [
        ("https://api.deepseek.com", "https://api.deepseek.com/chat/completions"),
        ("https://api.z.ai/api/paas/v4/", "https://api.z.ai/api/paas/v4/chat/completions"),
        ("https://example.com/openai", "https://example.com/openai/chat/completions"),
        ("https://example.com/v1beta/openai", "https://example.com/v1beta/openai/chat/completions"),
        ("http://127.0.0.1:8080/chat/completions", "http://127.0.0.1:8080/chat/completions"),
    ],
)
def test_an_address_with_a_path_of_its_own_is_asked_as_it_is_written(base_url: str, asked: str) -> None:
    built = build_provider("p", ProviderSettings(base_url=base_url), "k", environ={})
    assert built.settings.base_url + built.settings.path == asked


@pytest.mark.parametrize(
    ("base_url", "path", "expected"),
    [
        ("https://example.com", "", "/v1/messages"),
        ("https://example.com/v1/", "", "/messages"),
        ("https://example.com/v1", "/v1/messages", "/v1/messages"),
    ],
)
def test_a_path_is_the_dialects_unless_it_is_told(base_url: str, path: str, expected: str) -> None:
    settings = ProviderSettings(dialect="anthropic", base_url=base_url, path=path)
    assert build_provider("p", settings, "k", environ={}).settings.path == expected


def test_an_unknown_dialect_is_told_the_known_ones() -> None:
    with pytest.raises(
        ConfigError, match=r"providers\.p\.dialect = 'morse' is unknown; choose one of .*openai-chat, .*scripted"
    ):
        build_provider("p", ProviderSettings(dialect="morse"), "")


def test_every_known_provider_can_be_built() -> None:
    for name, table in built_in().items():
        settings = msgspec.convert(table, ProviderSettings)
        if settings.dialect in DIALECTS:
            built = build_provider(name, settings, "k", model=default_model(name, settings), environ={})
            assert (built.name, built.dialect.name) == (name, settings.dialect)
            assert built.model.window > 0


def test_what_is_known_of_the_model_is_built_in() -> None:
    settings = msgspec.convert(built_in()["deepseek"], ProviderSettings)
    assert (settings.base_url, settings.api_key_env) == ("https://api.deepseek.com", "DEEPSEEK_API_KEY")
    provider = build_provider("deepseek", settings, "k", model="deepseek-v4-pro", environ={})
    assert (provider.model.window, provider.model.window_source) == (1_000_000, "catalog")
    assert provider.settings.facts["replays_reasoning"]


def test_a_script_is_played(tmp_path: Path) -> None:
    script = tmp_path / "s.jsonl"
    script.write_text('{"text":"a"}\n')
    assert isinstance(
        build_provider("s", ProviderSettings(dialect="scripted", script=str(script)), "", environ={}), ScriptedProvider
    )
    with pytest.raises(ConfigError, match=r"absent\.jsonl"):
        build_provider("s", ProviderSettings(dialect="scripted", script="absent.jsonl"), "", environ={})


def test_a_provider_that_is_not_used_is_not_imported() -> None:
    code = (
        "import sys; from codewhale.app.routes import build_provider; before = set(sys.modules) - {'pycurl'}; "
        "from codewhale.models.dialects.base import ProviderSettings; "
        "build_provider('p', ProviderSettings(base_url='http://127.0.0.1:1'), ''); "
        "print([m for m in sys.modules if 'scripted' in m or 'curl' in m or m in ('email', 'zlib') "
        "and m not in before])"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[]"


@pytest.mark.parametrize("members", ["high", '"a":1}', '"a":1},{"b":2', "{}", 3, True])
@pytest.mark.parametrize("fact", ["effort_low", "extra_body"])
def test_facts_that_would_spoil_a_body_are_refused(fact: str, members: str | int) -> None:
    settings = ProviderSettings(base_url="https://example.com", facts={fact: members})
    with pytest.raises(ConfigError, match=rf"providers\.p\.facts\.{fact}"):
        build_provider("p", settings, "", environ={})


def test_an_unknown_way_of_writing_schemas_is_refused() -> None:
    with pytest.raises(ConfigError, match="typed_branches"):
        build_dialect("p", ProviderSettings(facts={"schemas": "fancy"}))
