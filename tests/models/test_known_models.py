"""What is known of providers and models: the table, and what it comes to for one model."""

import re
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import msgspec
import pytest

from codewhale.models.build import DIALECTS, build_dialect
from codewhale.models.dialects.base import Price, ProviderSettings, RequestOptions
from codewhale.models.known_models import LONGEST_ANSWER, built_in, default_model, load_known, resolve_model
from codewhale.protocol.messages import Message, Part, Reasoning, Text, ToolCall

CALL = ToolCall("c1", "list_dir", "{}")
HOSTED = (
    "anthropic arcee deepseek fireworks moonshot nvidia-nim openai openrouter siliconflow siliconflow-cn groq mistral "
    "together zai"
).split()
LOCAL = "llama-cpp lm-studio ollama sglang vllm".split()


def table(name: str, **fields: Any) -> ProviderSettings:
    """A provider as configured when nobody configured it."""
    return msgspec.convert(built_in().get(name, {}) | fields, ProviderSettings)


def facts(name: str, model: str, **fields: Any) -> dict[str, Any]:
    return dict(resolve_model(name, table(name, **fields), model)[0].facts)


def window(name: str, model: str, **fields: Any) -> tuple[int, str]:
    found = resolve_model(name, table(name, **fields), model)[1]
    return found.window, found.window_source


def wire(name: str, model: str, *parts: Part) -> dict[str, Any]:
    """An assistant message of these parts as sent to a provider; {} for none."""
    dialect = build_dialect(name, resolve_model(name, table(name), model)[0])
    data = dialect.message(Message("assistant", parts), lambda image: b"")
    return dict(msgspec.json.decode(data)) if data else {}


def members(name: str, model: str, effort: str) -> dict[str, Any]:
    """What an effort adds to a body."""
    dialect = build_dialect(name, resolve_model(name, table(name), model)[0])
    body: dict[str, Any] = msgspec.json.decode(dialect.body(model, "", "", [b""], RequestOptions(0, effort)))
    return {key: value for key, value in body.items() if key not in ("model", "messages", "stream", "stream_options")}


# ------------------------------------------------------------------ the table


def test_each_row_says_where_it_is_from() -> None:
    known = load_known()
    assert set(HOSTED) | set(LOCAL) | {"scripted"} <= set(known.providers)
    for row in (*known.providers.values(), *known.models, *(m for p in known.providers.values() for m in p.models)):
        assert row.source and re.fullmatch(r"20\d\d-\d\d-\d\d", row.date)
    for name, provider in known.providers.items():
        if name != "scripted":
            assert provider.source.startswith("https://") and provider.base_url and provider.key_envs
            assert provider.base_url.startswith("https://" if name not in LOCAL else "http://localhost:")
            assert provider.dialect in {*DIALECTS, "openai-responses", "anthropic"}


def test_patterns_are_lower_case_and_rows_say_something() -> None:
    known = load_known()
    for row in (*known.models, *(model for provider in known.providers.values() for model in provider.models)):
        assert row.match == row.match.lower() and row.match.split()
        assert row.window or row.max_output or row.facts
        assert row.max_output <= (row.window or row.max_output)


def test_patterns_match_as_fnmatch_does() -> None:
    known = load_known()
    for row in known.providers.values():
        every = (*row.models, *known.models)
        patterns = {pattern for model in every for pattern in model.match.split()}
        names = {
            re.sub(r"\[(.).*?\]", r"\1", pattern).replace("*", filling)
            for pattern in patterns
            for filling in ("", "-x1")
        }
        for name in sorted(names):
            fits = [model for model in every if any(fnmatchcase(name, pattern) for pattern in model.match.split())]
            assert list(known.rows(row, name.upper())) == fits


def test_a_general_row_never_hides_a_closer_one() -> None:
    """Each pattern of the models that hold everywhere leads to its own row's window, unless it names none."""
    known = load_known()
    for row in known.models:
        for pattern in row.match.split() if row.window else ():
            model = re.sub(r"\[(.)[^]]*\]", r"\1", pattern).replace("*", "x" if pattern == "*" else "")
            found = resolve_model("p", ProviderSettings(), model)[1]
            assert found.window == row.window, pattern


def test_the_defaults_of_configuration_name_no_facts() -> None:
    assert all(set(row) <= {"dialect", "base_url", "path", "api_key_env"} for row in built_in().values())


def test_a_provider_has_a_model_to_begin_with() -> None:
    assert default_model("deepseek", table("deepseek")) == "deepseek-v4-pro"
    assert default_model("moonshot", table("moonshot")) == "kimi-k2.6"
    assert default_model("moonshot", table("moonshot", default_model="kimi-k3")) == "kimi-k3"
    assert default_model("mine", ProviderSettings(base_url="https://api.moonshot.ai/v1")) == "kimi-k2.6"
    assert default_model("mine", ProviderSettings()) == "deepseek-v4-pro"


def test_every_fact_stands_in_the_papers() -> None:
    root = Path(__file__).parents[2]
    papers = (root / "docs" / "models.md").read_text()
    used = {name for path in root.glob("src/**/*.py") for name in re.findall(r'facts\.get\("(\w+)"', path.read_text())}
    known = load_known()
    rows = (*known.providers.values(), *known.models, *(m for row in known.providers.values() for m in row.models))
    used |= {name for row in rows for name in row.facts}
    assert len(used) > 20 and sorted(name for name in used if f"`{name}`" not in papers) == []


# ------------------------------------------------------------------ windows


def test_windows_are_resolved_from_the_surest_source() -> None:
    assert window("deepseek", "deepseek-v4-pro", context_window=5, windows={"deepseek-v4-pro": 6}) == (5, "configured")
    assert window("deepseek", "deepseek-v4-pro", windows={"deepseek-v4-pro": 6}) == (6, "reported")
    assert window("deepseek", "deepseek-v4-pro", windows={"another": 6}) == (1_000_000, "catalog")
    assert window("mine", "Some-Model_32k") == window("mine", "some-model-32K-instruct") == (32_000, "name")
    assert window("mine", "model-2.32k") == window("mine", "v32kx") == (128_000, "fallback")
    assert window("anthropic", "nobody-knows") == (200_000, "fallback")
    assert window("ollama", "qwen-foo") == (8_192, "fallback")
    assert window("vllm", "nobody-knows") == (128_000, "fallback")


def test_who_loads_a_model_chooses_its_window() -> None:
    assert window("vllm", "openai/gpt-oss-120b") == (131_072, "catalog")
    assert window("ollama", "gpt-oss:120b") == (8_192, "fallback")
    assert window("ollama", "gpt-oss:120b", context_window=65_536) == (65_536, "configured")


def test_answers_are_bounded_by_model_window_and_provider() -> None:
    def bound(name: str, model: str, **fields: Any) -> int:
        return resolve_model(name, table(name, **fields), model)[1].max_output

    assert bound("deepseek", "deepseek-v4-pro") == LONGEST_ANSWER
    assert bound("deepseek", "deepseek-v4-pro", max_output=300_000) == 300_000
    assert bound("openrouter", "deepseek/deepseek-v4-pro") == 32_768
    assert bound("deepseek", "deepseek-v4-pro", context_window=64_000) == 32_000
    assert bound("mine", "nobody-knows") == 0


def test_a_configured_price_is_the_price() -> None:
    price = Price(1.0, 0.1, 2.0)
    assert resolve_model("mine", ProviderSettings(prices={"m": price}), "m")[1].price == price
    assert resolve_model("mine", ProviderSettings(prices={"m": price}), "other")[1].price is None


# ------------------------------------------------------------------ whose facts hold


@pytest.mark.parametrize(
    ("name", "model", "fast"),
    [
        ("deepseek", "deepseek-v4-pro", "deepseek-v4-flash"),
        ("deepseek-anthropic", "deepseek-v4-pro", "deepseek-v4-flash"),
        ("nvidia-nim", "deepseek-ai/deepseek-v4-pro", "deepseek-ai/deepseek-v4-flash"),
        ("openai", "gpt-5", None),
    ],
)
def test_deepseek_has_a_fast_model_that_can_be_asked_not_to_think(name: str, model: str, fast: str | None) -> None:
    assert facts(name, model).get("fast_model") == fast
    if fast is not None and name != "deepseek-anthropic":
        assert "false" in facts(name, fast)["effort_off"] or "disabled" in facts(name, fast)["effort_off"]


def test_facts_of_the_configuration_win() -> None:
    assert facts("deepseek", "deepseek-v4-pro")["images"] is False
    assert facts("deepseek", "deepseek-v4-pro", facts={"images": True})["images"] is True
    assert facts("deepseek", "deepseek-v4-pro", facts={"effort_low": ""})["effort_low"] == ""


def test_a_known_host_is_known_under_any_name() -> None:
    assert facts("work", "kimi-k2.6", base_url="https://api.moonshot.ai/v1")["schemas"] == "typed_branches"
    assert "schemas" not in facts("work", "kimi-k2.6", base_url="https://gateway.example.com/v1")
    assert facts("moonshot", "kimi-k2.6", base_url="https://gateway.example.com/v1")["schemas"] == "typed_branches"


def test_a_gateway_under_the_name_of_openai_has_none_of_its_facts() -> None:
    assert facts("openai", "gpt-5.6")["max_completion_tokens"] is True
    assert "max_completion_tokens" not in facts("openai", "gpt-5.6", base_url="https://gateway.example.com/v1")
    assert window("openai", "gpt-5.6", base_url="https://gateway.example.com/v1") == (1_050_000, "catalog")


def test_the_same_host_in_another_dialect_is_another_provider() -> None:
    host = "https://api.deepseek.com/anything"
    assert facts("work", "deepseek-v4-pro", base_url=host, dialect="anthropic")["thinking"] == "budget"
    assert "thinking" not in facts("work", "deepseek-v4-pro", base_url=host)


# ------------------------------------------------------------------ reasoning


@pytest.mark.parametrize(
    "model",
    [
        "deepseek-v4-pro", "deepseek-ai/DeepSeek-V4-Flash", "deepseek-chat", "deepseek-reasoner", "my-reasoner-2",
        "phi-4-reasoning-plus", "trinity-large-thinking", "deepseek-r1-distill", "deepseek-ai/deepseek-R1",
    ],
)  # fmt: skip
@pytest.mark.parametrize("provider", ["deepseek", "openai", "ollama", "vllm", "openrouter", "groq", "mine"])
def test_models_that_need_their_reasoning_get_it_everywhere(provider: str, model: str) -> None:
    assert wire(provider, model, Reasoning("why"), CALL)["reasoning_content"] == "why"
    assert wire(provider, model, Reasoning("why"), Text("so"))["reasoning_content"] == "why"
    assert wire(provider, model, CALL)["reasoning_content"] == "(reasoning omitted)"
    assert "reasoning_content" not in wire(provider, model, Text("so"))
    alone = wire(provider, model, Reasoning("why"))
    assert (alone["content"], alone["reasoning_content"]) == ("", "why") and "tool_calls" not in alone


def test_vllm_is_told_under_the_old_name_and_the_new_one() -> None:
    said = wire("vllm", "deepseek-v4-flash", Reasoning("why"), CALL)
    assert said["reasoning"] == said["reasoning_content"] == "why"


@pytest.mark.parametrize("provider", "deepseek nvidia-nim openrouter novita fireworks siliconflow arcee sglang".split())
def test_providers_that_take_reasoning_are_sent_what_there_is(provider: str) -> None:
    assert wire(provider, "plain-model", Reasoning("why"), CALL)["reasoning_content"] == "why"
    assert "reasoning_content" not in wire(provider, "plain-model", CALL)


@pytest.mark.parametrize("provider", "openai ollama vllm lm-studio llama-cpp groq mistral together mine".split())
def test_reasoning_stays_here_where_it_is_refused(provider: str) -> None:
    assert "reasoning_content" not in wire(provider, "plain-model", Reasoning("why"), CALL)
    assert wire(provider, "plain-model", Reasoning("why")) == {}


@pytest.mark.parametrize("provider", ["moonshot", "siliconflow", "openrouter", "together"])
def test_kimi_is_sent_its_reasoning_with_each_call(provider: str) -> None:
    assert wire(provider, "moonshotai/Kimi-K2.6", CALL)["reasoning_content"] == "(reasoning omitted)"


# ------------------------------------------------------------------ effort

ON = {"thinking": {"type": "enabled"}}
EFFORTS: dict[tuple[str, str], dict[str, Any]] = {
    ("deepseek", "deepseek-v4-pro"): {
        "off": {"thinking": {"type": "disabled"}},
        "low": ON | {"reasoning_effort": "high"},
        "medium": ON | {"reasoning_effort": "high"},
        "high": ON | {"reasoning_effort": "high"},
        "max": ON | {"reasoning_effort": "max"},
        "": {},
    },
    ("nvidia-nim", "deepseek-ai/deepseek-v4-pro"): {
        "off": {"chat_template_kwargs": {"thinking": False, "enable_thinking": False}},
        "max": {"chat_template_kwargs": {"thinking": True, "enable_thinking": True, "reasoning_effort": "max"}},
        "": {"chat_template_kwargs": {"thinking": True, "enable_thinking": True}},
    },
    ("vllm", "Qwen/Qwen3.6-27B"): {
        "off": {"chat_template_kwargs": {"enable_thinking": False}},
        "low": {"chat_template_kwargs": {"enable_thinking": True}, "reasoning_effort": "low"},
        "max": {"chat_template_kwargs": {"enable_thinking": True}, "reasoning_effort": "high"},
    },
    ("openrouter", "x/y"): {
        "off": {"reasoning": {"effort": "none"}, "usage": {"include": True}},
        "medium": {"reasoning": {"effort": "medium"}, "usage": {"include": True}},
        "max": {"reasoning": {"effort": "xhigh"}, "usage": {"include": True}},
    },
    ("fireworks", "m"): {"off": {"reasoning_effort": "none"}, "max": {"reasoning_effort": "high"}},
    ("arcee", "trinity-large-thinking"): {"off": {}, "low": {"reasoning_effort": "low"}},
    ("siliconflow", "deepseek-ai/DeepSeek-V4-Pro"): {
        "off": {"enable_thinking": False},
        "low": {"enable_thinking": True, "reasoning_effort": "high"},
        "max": {"enable_thinking": True, "reasoning_effort": "max"},
    },
    ("siliconflow", "plain"): {"off": {}, "max": {}},
    ("moonshot", "kimi-k2.6"): {"off": {"thinking": {"type": "disabled"}}, "high": {}},
    ("openai", "gpt-5.6"): {"off": {}, "max": {}},
    ("ollama", "m"): {"off": {}, "high": {}},
    ("mine", "m"): {"off": {}, "high": {}},
}


@pytest.mark.parametrize(("provider", "model"), sorted(EFFORTS))
def test_each_provider_is_told_the_effort_in_its_own_words(provider: str, model: str) -> None:
    for effort, wanted in EFFORTS[provider, model].items():
        assert members(provider, model, effort) == wanted, effort


def test_every_known_chat_model_can_be_asked_at_every_level() -> None:
    known = load_known()
    for name, row in known.providers.items():
        if row.dialect == "openai-chat":
            for model in ("m", row.default_model, *(match.match.split()[0].replace("*", "") for match in row.models)):
                for effort in ("", "off", "low", "medium", "high", "max"):
                    members(name, model, effort)
