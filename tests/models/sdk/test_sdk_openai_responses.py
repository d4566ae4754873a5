"""The Responses dialect against the openai SDK: its request types take our bodies, its stream parser hears the same."""

from typing import Any

import pytest

from codewhale.cli.offline.catalog import tools_head
from codewhale.models.dialects.base import ProviderSettings, RequestOptions
from codewhale.models.dialects.openai_responses import OpenAIResponses
from codewhale.models.known_models import resolve_model
from codewhale.protocol.messages import Image, Message, Opaque, ResultPart, Text, ToolCall
from support.conformance import Case, cases
from support.sdk import accept, answers, bodies, content, last, serving

CASES = [pytest.param(case, id=case.name) for case in cases("openai-responses")]
ENDS = ("response.completed", "response.incomplete", "response.failed")


@pytest.mark.parametrize("case", CASES)
async def test_bodies_fit_the_request_type(case: Case) -> None:
    from openai.types.responses.response_create_params import ResponseCreateParamsStreaming

    async for body in bodies(case):
        accept(body, ResponseCreateParamsStreaming)


def test_so_do_every_effort_every_kind_of_part_and_the_catalog() -> None:
    from openai.types.responses.response_create_params import ResponseCreateParamsStreaming

    tools = tools_head("openai-responses")
    picture = Image("image/png", "00", 3)
    kept = Opaque("openai-responses", '{"type":"message","phase":"commentary"}')
    for name in ("openai-responses", "unknown"):
        for model in ("gpt-4.1", "gpt-5", "gpt-5-codex", "gpt-5.1", "gpt-5.6", "o3", "another"):
            settings = ProviderSettings(dialect="openai-responses", facts={"reasoning_summary": "concise"})
            dialect = OpenAIResponses(resolve_model(name, settings, model)[0])
            user = dialect.message(Message("user", (Text("a"), picture, Text("b"))), lambda image: b"abc")
            said = dialect.message(Message("assistant", (Text("a"), kept, ToolCall("c", "f", ""))), lambda image: b"")
            results = dialect.message(Message("tool", (ResultPart("c", "", ok=False), picture)), lambda image: b"abc")
            for effort in ("", "off", "low", "medium", "high", "max"):
                pieces = [user, b",", said, b",", results]
                body = dialect.body(model, "s", tools, pieces, RequestOptions(40_000, effort))
                accept(body, ResponseCreateParamsStreaming)


async def test_a_body_of_another_shape_would_be_noticed() -> None:
    from openai.types.responses.response_create_params import ResponseCreateParamsStreaming
    from pydantic import ValidationError

    good = [body async for body in bodies(cases("openai-responses")[-1])][-1]
    with pytest.raises(AssertionError):
        accept(good.replace(b'"store":', b'"stored":'), ResponseCreateParamsStreaming)
    with pytest.raises(ValidationError):
        accept(good.replace(b'"function_call_output"', b'"function_result"'), ResponseCreateParamsStreaming)


@pytest.mark.parametrize("case", CASES)
async def test_its_parser_hears_what_ours_does(case: Case) -> None:
    for data, events in answers(case):
        async with serving(data) as url:
            response, error = await listen(url)
        if last(events, "failed"):
            assert error or response.status == "failed" or response.incomplete_details.reason == "content_filter"
        elif response is not None:
            assert content(events) == said(response)
            assert last(events, "usage") == usage(response)
            assert last(events, "finished") == finished(response)


async def listen(url: str) -> tuple[Any, str]:
    """The response that ends what the SDK hears, None where none does, and how it failed."""
    import openai

    client = openai.DefaultAsyncHttpxClient(trust_env=False)
    final = None
    async with openai.AsyncOpenAI(base_url=url, api_key="k", max_retries=0, http_client=client) as sdk:
        try:
            async for event in await sdk.responses.create(model="m", input="?", stream=True):
                if event.type == "error":
                    return None, event.message
                if event.type in ENDS:
                    final = event.response
        except openai.APIError as error:
            return None, error.message
    return final, ""


def said(response: Any) -> list[dict[str, Any]]:
    """A response's output in the words of a fixture."""
    out: list[dict[str, Any]] = []
    calls = 0
    for item in response.output:
        if item.type == "reasoning":
            thought = "\n\n".join(part.text for part in item.summary) or "".join(p.text for p in item.content or ())
            out += [{"reasoning": thought}] if thought else []
            out += [{"opaque": item.to_dict(mode="json")}] if item.encrypted_content or item.content else []
        elif item.type == "message":
            out.append({"text": "".join(p.text if p.type == "output_text" else p.refusal for p in item.content)})
            out += [{"opaque": {"type": "message", "phase": item.phase}}] if item.phase else []
        else:
            out.append({"call": [calls, item.call_id, item.name, item.arguments]})
            calls += 1
    return out


def usage(response: Any) -> dict[str, int] | None:
    """A response's usage in the words of a fixture."""
    if response.usage is None:
        return None
    told, hit = response.usage, response.usage.input_tokens_details.cached_tokens
    counts = {"input": told.input_tokens, "output": told.output_tokens, "cache_hit": hit}
    counts |= {"cache_miss": told.input_tokens - hit, "reasoning": told.output_tokens_details.reasoning_tokens}
    return {name: count for name, count in counts.items() if count}


def finished(response: Any) -> str:
    """How a response ended, in the words of a fixture."""
    if response.status == "incomplete":
        return {"max_output_tokens": "length"}[response.incomplete_details.reason]
    kinds = [part.type for item in response.output for part in getattr(item, "content", None) or ()]
    calls = any(item.type == "function_call" for item in response.output)
    return "refusal" if "refusal" in kinds else "tool_calls" if calls else "stop"


async def test_its_accumulator_ends_in_the_same_response() -> None:
    import openai

    [case] = [case for case in cases("openai-responses") if case.name == "responses_reasoning"]
    for data, events in answers(case):
        async with serving(data) as url:
            client = openai.DefaultAsyncHttpxClient(trust_env=False)
            sdk = openai.AsyncOpenAI(base_url=url, api_key="k", max_retries=0, http_client=client)
            async with sdk, sdk.responses.stream(model="m", input="?") as heard:
                response = await heard.get_final_response()
        assert content(events) == said(response)
