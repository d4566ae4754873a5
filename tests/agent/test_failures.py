"""What a failed call teaches of the model's window, and the words that a person is told, through whole turns."""

import json
from pathlib import Path

import pytest

from codewhale.protocol.events import Compacted, Notice
from codewhale.protocol.modes import Authority
from support.scenes import only
from support.wire import Reply, answer, delta, sse, stream
from support.wired import wired

DONE = Reply([stream(sse(delta("stop", content="Done."), "[DONE]"))])
REFUSALS = [
    "This model's maximum context length is 16384 tokens. However, you requested 69779 tokens (4779 in the messages, "
    "65000 in the completion). Please reduce the length of the messages or completion.",
    "the request exceeds the available context size (16384 tokens), try increasing it",
    "prompt is too long: 69779 tokens > 16384 maximum",
    "input length and `max_tokens` exceed context limit: 4779 + 65000 > 16384, decrease input length or `max_tokens`",
    "The decoder prompt (length 69779) is longer than the maximum context length: the model limit is 16,384 tokens.",
]


def refusal(said: str, **more: object) -> Reply:
    return Reply(
        [answer(400, json.dumps({"error": {"message": said, "code": "context_length_exceeded", **more}}).encode())]
    )


@pytest.mark.parametrize("said", REFUSALS)
async def test_a_window_that_the_server_names_is_taken_and_the_answer_asked_for_shorter(
    home: Path, workspace: Path, said: str
) -> None:
    table = {"context_window": 131_072, "max_output": 65_000}
    async with wired(home, workspace, [refusal(said), DONE], **table) as agent:
        events, result = await agent.turn("Hi")
        first, second = (json.loads(request.body) for request in agent.wire.requests)
    assert result["status"] == "done"
    assert first["max_tokens"] == 65_000 and 0 < second["max_tokens"] < 16_384
    assert first["messages"] == second["messages"]
    [notice] = [event for event in only(events, Notice) if event.code == "window_adopted"]
    assert "16,384 tokens, not 131,072" in notice.text and "context_window = 16384" in notice.text


async def test_a_window_in_the_fields_of_a_refusal_is_taken_too(home: Path, workspace: Path) -> None:
    reply = refusal("too big", type="exceed_context_size_error", n_prompt_tokens=9000, n_ctx=16384)
    async with wired(home, workspace, [reply, DONE], context_window=131_072, max_output=65_000) as agent:
        events, result = await agent.turn("Hi")
    assert result["status"] == "done"
    assert any("16,384 tokens" in event.text for event in only(events, Notice))


async def test_a_refusal_that_names_no_window_is_told_with_both_figures(home: Path, workspace: Path) -> None:
    reply = refusal("Input is too long for requested model.")
    async with wired(home, workspace, [reply], context_window=131_072) as agent:
        events, result = await agent.turn("Hi")
    assert result["status"] == "failed" and len(agent.wire.requests) == 1
    assert "Input is too long for requested model." in result["error"]
    assert "tokens of the model's 131,072 (configured)" in result["error"]
    assert "provider test wired --save" in result["error"] and "providers.wired.context_window" in result["error"]
    assert "shortening it as far as possible" not in result["error"]
    assert not [event for event in only(events, Notice) if "too small" in event.text]


async def test_a_short_conversation_that_was_compacted_in_vain_is_no_measure_of_the_window(
    home: Path, workspace: Path
) -> None:
    reply = refusal("Requested tokens exceed context window.")
    async with wired(home, workspace, [*[DONE] * 8, reply, DONE, reply], context_window=131_072) as agent:
        for number in range(8):
            await agent.turn(f"Question {number}: {'word ' * 3000}")
        events, result = await agent.turn("Hi")
    assert result["status"] == "failed" and only(events, Compacted)
    assert "Requested tokens exceed context window." in result["error"]
    assert "tokens of the model's 131,072 (configured)" in result["error"]
    assert "provider test wired --save" in result["error"]
    assert "shortening it as far as possible" not in result["error"]
    assert not [event for event in only(events, Notice) if event.code == "window_too_small"]


async def test_a_refused_key_is_told_with_the_way_to_repair_it(home: Path, workspace: Path) -> None:
    reply = Reply([answer(401, b'{"error":{"message":"Incorrect API key provided"}}')])
    async with wired(home, workspace, [reply]) as agent:
        _, result = await agent.turn("Hi")
    assert result["status"] == "failed" and len(agent.wire.requests) == 1
    assert "codewhale login wired" in result["error"] and "codewhale provider test wired" in result["error"]
    assert f"{agent.wire.url}/chat/completions" in result["error"] and "doctor" not in result["error"]
    assert result["error"].startswith("wired rejected the key (401). ")


@pytest.mark.parametrize(
    ("status", "said", "first"),
    [
        (401, "Incorrect API key provided", "wired rejected the key (401). /login to change it."),
        (404, "The model `m` does not exist", "wired does not serve m (404). /model to choose another."),
        (403, "permission_denied", "wired rejected the key (403). /login to change it."),
    ],
)
async def test_a_person_is_led_to_the_command_that_helps(
    home: Path, workspace: Path, status: int, said: str, first: str
) -> None:
    reply = Reply([answer(status, json.dumps({"error": {"message": said}}).encode())])
    async with wired(home, workspace, [reply]) as agent:
        agent.client.parts.engine.session(agent.session).allow(authority=Authority.PERSON)
        _, result = await agent.turn("Hi")
    told, _, rest = result["error"].partition("\n")
    assert told == first and said in rest and "codewhale" not in result["error"]
