"""What a probe tells of endpoints that do things and of endpoints that do not."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from codewhale.app.routes import build_provider
from codewhale.models.dialects.base import Provider, ProviderSettings
from codewhale.models.probe import FINDINGS, MAX_OUTPUT, Probe, probe
from codewhale.models.scripted import ScriptedProvider
from support.patience import HANG
from support.wire import Reply, Wire, answer

WEATHER = {"name": "get_weather", "arguments": {"city": "Paris"}}
HIDDEN = {"name": "get_population", "arguments": {"city": "Oslo"}}
COUNTED = {"text": "1 2 3 4 5 6 7 8 9"}


async def reported() -> tuple[int, str]:
    return 32768, "/models"


async def silent() -> tuple[int, str]:
    return 0, "the endpoint does not list it"


async def ask(provider: Provider, window: Callable[[], Any] = silent, slow: float = 60.0) -> Probe:
    try:
        return await probe(provider, "m", window, slow)
    finally:
        await provider.aclose()


def answers(found: Probe) -> dict[str, str]:
    assert tuple(finding.name for finding in found.findings) == FINDINGS
    assert all(finding.evidence for finding in found.findings)
    return {finding.name: finding.answer for finding in found.findings}


async def test_an_able_endpoint() -> None:
    provider = ScriptedProvider(
        [
            {**COUNTED, "reasoning": "easy", "usage": {"input": 1300, "output": 30, "cache_miss": 1300}},
            {**COUNTED, "usage": {"input": 1300, "output": 30, "cache_hit": 1280, "cache_miss": 20}},
            {"calls": [WEATHER, WEATHER]},
            {"calls": [HIDDEN]},
        ]
    )
    found = await ask(provider, reported)
    assert set(answers(found).values()) == {"yes"}
    assert (found.error, found.window, found.requests) == ("", 32768, 4)
    assert found.facts == {"calls_undeclared_tools": True, "parallel_calls": True, "tools": True}
    bodies = [json.loads(body) for body in provider.requests]
    assert all(body["max_tokens"] == MAX_OUTPUT for body in bodies)
    assert bodies[0] == bodies[1] and "tools" not in bodies[0]
    assert [tool["function"]["name"] for tool in bodies[3]["tools"]] == ["get_weather"]
    assert sum(len(body) for body in provider.requests) < 16_000


async def test_an_endpoint_that_calls_one_at_a_time_and_only_what_is_declared() -> None:
    turns = [{**COUNTED, "usage": {"input": 9, "output": 9}}] * 2
    found = await ask(ScriptedProvider([*turns, {"calls": [WEATHER]}, {"text": "I have no such tool."}]))
    told = answers(found)
    assert told["tool_calls"] == "yes" and told["parallel_calls"] == told["undeclared_calls"] == "no"
    assert told["reasoning"] == told["cache_telemetry"] == "no" and told["window"] == "unknown"
    assert found.facts == {"calls_undeclared_tools": False, "parallel_calls": False, "tools": True}


async def test_a_model_that_prints_its_calls_as_text() -> None:
    printed = {"text": '{"name": "get_weather", "arguments": {"city": "Paris"}}'}
    found = await ask(ScriptedProvider([COUNTED, COUNTED, printed]))
    calls = next(finding for finding in found.findings if finding.name == "tool_calls")
    assert (calls.answer, calls.evidence) == ("no", "the call was printed as text")
    assert found.facts == {"tools": False, "text_calls": True}
    assert answers(found)["undeclared_calls"] == "unknown"
    assert found.requests == 3


async def test_a_model_that_only_talks_of_a_tool_writes_no_calls() -> None:
    said = {"text": "I would use get_weather for that, for Paris and for Oslo."}
    found = await ask(ScriptedProvider([COUNTED, COUNTED, said]))
    assert found.facts == {"tools": False}


async def test_an_endpoint_that_refuses_tools() -> None:
    refused = {"error": {"message": "this model does not support tools", "kind": "bad_request"}}
    found = await ask(ScriptedProvider([COUNTED, COUNTED, refused]))
    assert answers(found)["tool_calls"] == "no"
    broken = {"error": {"message": "busy", "kind": "server"}}
    assert answers(await ask(ScriptedProvider([COUNTED, broken, broken])))["tool_calls"] == "unknown"


async def test_an_answer_that_was_cut_short_proves_nothing() -> None:
    cut = {"text": "", "reasoning": "Let me think", "finish": "length"}
    told = answers(await ask(ScriptedProvider([COUNTED, COUNTED, cut])))
    assert told["tool_calls"] == "unknown" and told["reasoning"] == "yes"


async def test_a_failure_ends_it_at_once() -> None:
    provider = ScriptedProvider([{"error": {"message": "no credit left", "kind": "quota"}}])
    found = await ask(provider, reported)
    assert found.error == "no credit left"
    assert set(answers(found).values()) == {"unknown"}
    assert (len(provider.requests), found.window, found.facts) == (1, 0, {})


async def over_the_wire(*replies: Reply, slow: float = 60.0) -> tuple[Probe, Wire]:
    async with Wire(replies) as wire:
        provider = build_provider("p", ProviderSettings(base_url=wire.url), "sk-1", model="m", environ={})
        return await ask(provider, slow=slow), wire


async def test_an_answer_in_one_piece_was_held_back_unless_it_was_quick() -> None:
    text = " ".join(map(str, range(1, 61)))
    message = {"role": "assistant", "content": text}
    whole = json.dumps({"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}).encode()
    found, _ = await over_the_wire(Reply([answer(200, whole)]), slow=0.0)
    assert answers(found)["streams"] == "no"
    assert answers(found)["cache_telemetry"] == "no"
    found, _ = await over_the_wire(Reply([answer(200, whole)]), slow=HANG)
    assert answers(found)["streams"] == "unknown"


@pytest.mark.parametrize("status", [429, 503])
async def test_what_would_be_sent_again_later_is_given_up(status: int) -> None:
    found, wire = await over_the_wire(Reply([answer(status, b'{"error":{"message":"busy"}}')]))
    assert "busy" in found.error
    assert len(wire.requests) == 1
