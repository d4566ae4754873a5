"""Filling in the middle against the openai SDK: its request type takes our body, and it reads the same answer."""

import json
from typing import Any

import msgspec
import pytest

from codewhale.app.routes import build_provider
from codewhale.models.dialects.base import ProviderSettings
from codewhale.models.fim import fim_request
from support.sdk import accept
from support.wire import Reply, Wire, answer

# platform.openai.com/docs/api-reference/completions/object (constructed)
COMPLETION: dict[str, Any] = {
    "id": "cmpl-1",
    "object": "text_completion",
    "created": 1_750_000_000,
    "model": "m",
    "choices": [{"index": 0, "text": "middle", "logprobs": None, "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 20, "completion_tokens": 3, "total_tokens": 23},
}


def body(fim: str) -> bytes:
    """The body of a gap."""
    settings = ProviderSettings(base_url="http://127.0.0.1:9/v1", facts={"fim": fim})
    return fim_request(build_provider("p", settings, "", model="m", environ={}), "m", "a(", ")b", 64)[1]


@pytest.mark.parametrize("fim", ["completions", "deepseek"])
def test_a_body_fits_the_request_type(fim: str) -> None:
    from openai.types.completion_create_params import CompletionCreateParamsNonStreaming

    accept(body(fim), CompletionCreateParamsNonStreaming)


async def test_its_client_asks_and_hears_the_same() -> None:
    import openai

    reply = Reply([answer(200, msgspec.json.encode(COMPLETION))])
    async with Wire([reply]) as wire:
        async with openai.AsyncOpenAI(base_url=wire.url, api_key="none", max_retries=0) as client:
            sent = json.loads(body("completions"))
            heard = await client.completions.create(**sent)
        assert json.loads(wire.requests[0].body) == sent
        assert wire.requests[0].head.startswith("POST /v1/completions ")
        settings = ProviderSettings(base_url=wire.url, facts={"fim": "completions"})
        provider = build_provider("p", settings, "", model="m", environ={})
        carrier, ours = fim_request(provider, "m", "a(", ")b", 64)
        said = [event async for event in carrier.stream(ours)]
        await carrier.aclose()
        await provider.aclose()
    assert said[0].text == heard.choices[0].text == "middle"  # type: ignore[union-attr]
    assert heard.usage is not None
    assert said[1].usage.input == heard.usage.prompt_tokens  # type: ignore[union-attr]
