"""Each way of filling in the middle, from the request's bytes to the answer's events."""

import asyncio
import json
from typing import Any

import msgspec
import pytest

from codewhale.app.routes import build_provider
from codewhale.models.dialects.base import Provider, ProviderSettings
from codewhale.models.dialects.openai_chat import OpenAIChat
from codewhale.models.fim import SHAPES, fim_request
from codewhale.models.http import HttpProvider
from codewhale.models.retries import Retries
from codewhale.protocol.stream import Failed, Finished, Retrying, StreamEvent, TextDelta, Usage, UsageReport
from support.patience import HANG
from support.wire import Reply, Wire, answer, sse, stream

KEY = "sk-0123456789"
CHOICE = {"index": 0, "finish_reason": "stop"}
USAGE = {"prompt_tokens": 20, "completion_tokens": 3}

# Answers as the public references of these servers show them, cut down to what is read (constructed).
# api-docs.deepseek.com/api/create-completion, platform.openai.com/docs/api-reference/completions,
# docs.mistral.ai/api (fim), github.com/ggml-org/llama.cpp tools/server/README.md (infill),
# docs.ollama.com/api/generate
ANSWERS: dict[str, dict[str, Any]] = {
    "completions": {"object": "text_completion", "choices": [{**CHOICE, "text": "middle"}], "usage": USAGE},
    "deepseek": {
        "choices": [{**CHOICE, "text": "middle", "logprobs": None}],
        "usage": {**USAGE, "prompt_cache_hit_tokens": 15, "prompt_cache_miss_tokens": 5},
    },
    "mistral": {"choices": [{**CHOICE, "message": {"role": "assistant", "content": "middle"}}], "usage": USAGE},
    "llama-cpp": {
        "content": "middle", "stop": True, "stop_type": "eos", "tokens_predicted": 3, "tokens_evaluated": 20,
    },
    "ollama": {
        "response": "middle", "done": True, "done_reason": "stop", "prompt_eval_count": 20, "eval_count": 3,
    },
}  # fmt: skip
GREEDY = {"temperature": 0, "max_tokens": 64}
BODIES: dict[str, tuple[str, dict[str, Any]]] = {
    "completions": ("/v1/completions", {"prompt": "a(", "suffix": ")b", **GREEDY}),
    "deepseek": ("/beta/completions", {"prompt": "a(", "suffix": ")b", **GREEDY}),
    "mistral": ("/v1/fim/completions", {"prompt": "a(", "suffix": ")b", **GREEDY}),
    "llama-cpp": ("/infill", {"input_prefix": "a(", "input_suffix": ")b", "n_predict": 64, "temperature": 0}),
    "ollama": (
        "/api/generate",
        {"prompt": "a(", "suffix": ")b", "options": {"num_predict": 64, "temperature": 0}},
    ),
}


def provider_at(url: str, **facts: Any) -> Provider:
    """A chat provider that says how it fills in the middle."""
    return build_provider("p", ProviderSettings(base_url=url, facts=facts), KEY, model="m", environ={})


async def fill(provider: Provider) -> list[StreamEvent]:
    """The events of one gap filled."""
    carrier, body = fim_request(provider, "m", "a(", ")b", 64)
    try:
        return [event async for event in carrier.stream(body)]
    finally:
        await carrier.aclose()
        await provider.aclose()


def said(body: object, status: int = 200) -> Reply:
    """A whole JSON answer."""
    return Reply([answer(status, msgspec.json.encode(body))])


def test_every_shape_is_tried_here() -> None:
    assert set(SHAPES) == set(ANSWERS) == set(BODIES)


@pytest.mark.parametrize("fim", sorted(SHAPES))
async def test_a_gap_is_filled_the_providers_way(fim: str) -> None:
    async with Wire([said(ANSWERS[fim])]) as wire:
        events = await fill(provider_at(wire.url, fim=fim))
    (request,) = wire.requests
    path, fields = BODIES[fim]
    assert request.head.startswith(f"POST {path} HTTP/1.1")
    assert json.loads(request.body) == {"model": "m", "stream": False, **fields}
    assert request.headers["authorization"] == f"Bearer {KEY}"
    hit = 15 if fim == "deepseek" else 0
    usage = Usage(input=20, output=3, cache_hit=hit, cache_miss=20 - hit)
    assert events == [TextDelta("middle"), UsageReport(usage), Finished("stop")]


@pytest.mark.parametrize(
    ("fim", "change"),
    [
        ("completions", {"choices": [{"text": "mid", "finish_reason": "length"}]}),
        ("mistral", {"choices": [{"message": {"content": "mid"}, "finish_reason": "length"}]}),
        ("llama-cpp", {"content": "mid", "stop_type": "limit"}),
        ("ollama", {"response": "mid", "done_reason": "length"}),
    ],
)
async def test_an_answer_that_hit_its_limit_says_so(fim: str, change: dict[str, Any]) -> None:
    async with Wire([said({**ANSWERS[fim], **change})]) as wire:
        events = await fill(provider_at(wire.url, fim=fim))
    assert (events[0], events[-1]) == (TextDelta("mid"), Finished("length"))


@pytest.mark.parametrize("tail", ["/v1", "/v1/", "/beta", "/anthropic", ""])
async def test_the_place_is_found_from_any_base_url_of_the_host(tail: str) -> None:
    async with Wire([said(ANSWERS["deepseek"])]) as wire:
        await fill(provider_at(wire.url.removesuffix("/v1") + tail, fim="deepseek"))
    assert wire.requests[0].head.startswith("POST /beta/completions ")


async def test_path_and_model_can_be_set_by_fact() -> None:
    async with Wire([said(ANSWERS["mistral"])]) as wire:
        await fill(provider_at(wire.url, fim="mistral", fim_path="/codestral/fim", fim_model="codestral-latest"))
    assert wire.requests[0].head.startswith("POST /v1/codestral/fim ")
    assert json.loads(wire.requests[0].body)["model"] == "codestral-latest"


@pytest.mark.parametrize(
    ("reply", "kind", "words"),
    [
        (said({"error": {"message": "m does not support insert"}}, 400), "bad_request", "does not support insert"),
        (said({"error": {"message": "no such route"}}, 404), "bad_request", "no such route"),
        (said({"choices": []}), "protocol", "no text at choices.0.text"),
        (said({"choices": [{"text": None}]}), "protocol", "no text at choices.0.text"),
        (Reply([answer(200, b'{"choices"')]), "protocol", "not JSON"),
        (Reply([stream(sse({"choices": [{"text": "a"}]}))]), "protocol", "though streaming was off"),
        (Reply([answer(200, b"<html><title>Sign in</title>", content_type="text/html")]), "protocol", "Sign in"),
    ],
)
async def test_a_fault_is_the_last_event(reply: Reply, kind: str, words: str) -> None:
    async with Wire([reply]) as wire:
        (event,) = await fill(provider_at(wire.url, fim="completions"))
    assert isinstance(event, Failed) and event.kind == kind and words in event.message
    assert KEY not in event.message


async def test_a_busy_server_is_asked_again_and_that_is_told() -> None:
    naps: list[float] = []

    async def sleep(seconds: float) -> None:
        naps.append(seconds)

    busy = Reply([answer(429, b'{"error":{"message":"slow down"}}', "retry-after: 7")])
    async with Wire([busy, said(ANSWERS["completions"])]) as wire:
        settings = ProviderSettings(base_url=wire.url, facts={"fim": "completions"})
        retries = Retries(sleep=sleep, jitter=lambda: 0.0)
        events = await fill(HttpProvider("p", settings, KEY, OpenAIChat(settings), retries=retries))
    assert naps == [7.0] and isinstance(events[0], Retrying) and "slow down" in events[0].reason
    assert events[1] == TextDelta("middle") and len(wire.requests) == 2


async def test_a_cancelled_call_drops_its_connection() -> None:
    async with Wire([Reply([b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\r\n"], "hang")]) as wire:
        task = asyncio.create_task(fill(provider_at(wire.url, fim="ollama")))
        await asyncio.wait_for(wire.asked.wait(), HANG)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.wait_for(wire.gone.wait(), HANG)


async def test_an_empty_answer_is_no_fault() -> None:
    async with Wire([said({"choices": [{"text": "", "finish_reason": "stop"}]})]) as wire:
        assert await fill(provider_at(wire.url, fim="completions")) == [Finished("stop")]


@pytest.mark.parametrize("facts", [{}, {"fim": ""}, {"fim": "smoke-signals"}, {"fim": False}])
def test_a_provider_without_the_fact_fills_nothing(facts: dict[str, Any]) -> None:
    with pytest.raises(KeyError):
        fim_request(provider_at("http://127.0.0.1:9/v1", **facts), "m", "a", "b", 1)
