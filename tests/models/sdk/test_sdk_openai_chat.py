"""The chat dialect against the openai SDK: its request types take our bodies, its stream parser hears the same."""

import json
from typing import Any

import msgspec
import pytest

from codewhale.cli.offline.catalog import tools_head
from codewhale.models.build import build_dialect
from codewhale.models.dialects.base import Fact, ProviderSettings, RequestOptions
from codewhale.models.known_models import built_in, load_known, resolve_model
from codewhale.protocol.messages import Image, Message, Reasoning, ResultPart, Text, ToolCall
from support.conformance import Case, cases
from support.sdk import accept, answers, bodies, last, serving

CASES = [pytest.param(case, id=case.name) for case in cases("openai-chat")]
KNOWN = [name for name, row in load_known().providers.items() if row.dialect == "openai-chat"]
# What these endpoints send in a way of their own: the SDK's parser would make other calls of it, and ours repairs it.
REPAIRED = frozenset({"chat_damage", "chat_ollama", "chat_vllm"})


def plain(body: bytes, facts: dict[str, Fact]) -> bytes:
    """A body without what the SDK leaves to `extra_body`: the members that facts add, and reasoning that goes back."""
    sent = json.loads(body)
    for name, members in facts.items():
        if name == "extra_body" or name.startswith("effort_"):
            for key in json.loads(f"{{{members}}}"):
                if key != "reasoning_effort":
                    sent.pop(key, None)
    if sent.get("reasoning_effort") == "max":
        del sent["reasoning_effort"]
    for message in sent["messages"]:
        for field in str(facts.get("reasoning_field", "reasoning_content")).split():
            message.pop(field, None)
    return json.dumps(sent).encode()


@pytest.mark.parametrize("case", CASES)
async def test_bodies_fit_the_request_type(case: Case) -> None:
    from openai.types.chat.completion_create_params import CompletionCreateParams

    async for body in bodies(case):
        accept(plain(body, case.data.get("facts", {})), CompletionCreateParams)


@pytest.mark.parametrize("name", KNOWN)
def test_so_do_every_provider_effort_kind_of_part_and_the_catalog(name: str) -> None:
    from openai.types.chat.completion_create_params import CompletionCreateParams

    tools, picture = json.loads(tools_head("openai-chat")), Image("image/png", "00", 3)
    model = load_known().providers[name].default_model or "m"
    settings, _ = resolve_model(name, msgspec.convert(built_in()[name], ProviderSettings), model)
    dialect = build_dialect(name, settings)
    said = (Reasoning("hm"), Text("a"), ToolCall("c", "f", ""))
    messages = b",".join(
        (
            dialect.message(Message("user", (Text("a"), picture, Text("b"))), lambda image: b"abc"),
            dialect.message(Message("assistant", said), lambda image: b""),
            dialect.message(Message("tool", (ResultPart("c", "", ok=False), picture)), lambda image: b"abc"),
        )
    )
    for effort in ("", "off", "low", "medium", "high", "max"):
        body = dialect.body(model, "s", json.dumps(tools), [messages], RequestOptions(40_000, effort))
        accept(plain(body, dict(settings.facts)), CompletionCreateParams)


async def test_a_body_of_another_shape_would_be_noticed() -> None:
    from openai.types.chat.completion_create_params import CompletionCreateParams
    from pydantic import ValidationError

    [case] = [case for case in cases("openai-chat") if case.name == "chat_deepseek"]
    good = plain([body async for body in bodies(case)][-1], case.data.get("facts", {}))
    with pytest.raises(AssertionError):
        accept(good.replace(b'"stream_options":', b'"options":'), CompletionCreateParams)
    with pytest.raises(ValidationError):
        accept(good.replace(b'"role": "tool"', b'"role": "tools"'), CompletionCreateParams)


@pytest.mark.parametrize("case", CASES)
async def test_its_parser_hears_what_ours_does(case: Case) -> None:
    for data, events in answers(case):
        async with serving(data) as url:
            heard = await listen(url)
        if heard is None or last(events, "failed"):
            continue
        for kind in ("text", "reasoning"):
            assert heard[kind] == "".join(event[kind] for event in events if kind in event)
        if case.name not in REPAIRED:
            assert heard["calls"] == calls(events)


def calls(events: list[dict[str, Any]]) -> list[list[str]]:
    """The calls of a fixture's events, whole."""
    found: dict[int, list[str]] = {}
    for event in events:
        if "call" in event:
            index, *words = event["call"]
            found[index] = [before + word for before, word in zip(found.get(index, ["", "", ""]), words, strict=True)]
    return [found[index] for index in sorted(found)]


async def listen(url: str) -> dict[str, Any] | None:
    """What the SDK hears, None where it does not hear it to the end."""
    import openai

    client = openai.DefaultAsyncHttpxClient(trust_env=False)
    deltas = []
    try:
        async with openai.AsyncOpenAI(base_url=url, api_key="k", max_retries=0, http_client=client) as sdk:
            asked: Any = [{"role": "user", "content": "?"}]
            async for chunk in await sdk.chat.completions.create(model="m", messages=asked, stream=True):
                deltas += [choice.delta for choice in chunk.choices[:1]]
        return added(deltas)
    except (openai.APIError, ValueError, TypeError):
        return None


def added(deltas: list[Any]) -> dict[str, Any]:
    """The deltas as the SDK's examples add them up. Raises TypeError for content or arguments that are no text."""
    extras = [delta.model_extra or {} for delta in deltas]
    found: dict[int, list[str]] = {}
    for call in (call for delta in deltas for call in delta.tool_calls or ()):
        row, function = found.setdefault(call.index, ["", "", ""]), call.function
        row[0] = row[0] or call.id or ""
        row[1] += (function.name if function else "") or ""
        row[2] += (function.arguments if function else "") or ""
    return {
        "text": "".join(delta.content or "" for delta in deltas),
        "reasoning": "".join(extra.get("reasoning_content") or extra.get("reasoning") or "" for extra in extras),
        "calls": [found[index] for index in sorted(found)],
    }
