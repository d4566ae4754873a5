"""Whole turns over the Anthropic wire: what is asked for, what goes back, and what happens when it refuses."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from codewhale.app.compose import AppOptions, open_app
from codewhale.cli.offline.probe import probe_provider
from codewhale.cli.offline.stored_sessions import request_body
from codewhale.protocol.events import Event, TurnFinished, UsageReported
from codewhale.protocol.modes import Authority, Mode
from codewhale.protocol.ops import OpenSession, SendMessage, SetEffort, SetModel
from codewhale.testing import collect
from support.scenes import only
from support.wire import Reply, Wire, answer, delta, sse, stream

CONFIG = """
provider = "{provider}"
model = "{model}"
[providers.anthropic]
base_url = "{url}"
api_key_env = "CLAUDE_KEY"
[providers.chat]
base_url = "{url}/chat"
facts = {{ replays_reasoning = true }}
[providers.twin]
dialect = "anthropic"
base_url = "{url}/twin"
facts = {{ thinking = "budget", replays_reasoning = true, cache_control = false }}
"""
SIGNATURE = "EqQBCgIYAhIM1gbcDa9GJwZA2b3h+/="


def claude(reason: str, *blocks: dict[str, Any], hit: int = 0) -> Reply:
    """One streamed answer of whole blocks."""
    usage = {"input_tokens": 10, "cache_read_input_tokens": hit, "cache_creation_input_tokens": 5, "output_tokens": 1}
    events: list[dict[str, Any]] = [{"type": "message_start", "message": {"usage": usage}}, {"type": "ping"}]
    for index, block in enumerate(blocks):
        events.append({"type": "content_block_start", "index": index, "content_block": block})
        events.append({"type": "content_block_stop", "index": index})
    events.append({"type": "message_delta", "delta": {"stop_reason": reason}, "usage": {"output_tokens": 7}})
    return Reply([stream(sse(*events, {"type": "message_stop"}))])


def thinking(words: str) -> dict[str, Any]:
    return {"type": "thinking", "thinking": words, "signature": SIGNATURE}


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


LOOK = {"type": "tool_use", "id": "toolu_1", "name": "list_dir", "input": {"path": "."}}
CALLS = claude("tool_use", thinking("I must look."), text("Looking."), LOOK)
DONE = claude("end_turn", thinking("So."), text("Done."), hit=15)
CHAT_CALL = {"index": 0, "id": "call:a", "function": {"name": "list_dir", "arguments": "{}"}}
CHAT_CALLS = Reply([stream(sse(delta(reasoning_content="Hm."), delta("tool_calls", tool_calls=[CHAT_CALL]), "[DONE]"))])
CHAT_DONE = Reply([stream(sse(delta("stop", reasoning_content="So.", content="Done."), "[DONE]"))])


async def turns(
    home: Path, wire: Wire, *steps: Mapping[str, str], provider: str = "anthropic", model: str = "claude-opus-4-8"
) -> list[Event]:
    """A session of one turn a step (after a change of `effort`, or of `provider` and `model`), and its events. Each
    request that was sent is the one that the log gives again."""
    home.mkdir()
    url = wire.url.removesuffix("/v1")
    (home / "config.toml").write_text(CONFIG.format(url=url, provider=provider, model=model))
    events: list[Event] = []
    async with open_app(AppOptions(home=str(home), workspace=str(home)), environ={"CLAUDE_KEY": "sk-1"}) as app:
        opened = OpenSession(workspace=str(home), mode=Mode.YOLO, authority=Authority.AUTO)
        session = await app.client.submit(opened)
        for step in steps or ({},):
            if "effort" in step:
                await app.client.submit(SetEffort(session, step["effort"]))
            if "model" in step:
                await app.client.submit(SetModel(session, step["model"], provider=step["provider"]))
            told = app.client.events(session, app.engine.session(session).log.seq)
            await app.client.submit(SendMessage(session, "Look around."))
            events += [envelope.event for envelope in await collect(told)]
    for number, body in enumerate(dict.fromkeys(request.body for request in wire.requests), 1):
        assert request_body(str(home), session, number) == body
    return events


def bodies(wire: Wire) -> list[Any]:
    return [json.loads(request.body) for request in wire.requests]


def end(events: list[Event]) -> TurnFinished:
    assert isinstance(events[-1], TurnFinished)
    return events[-1]


async def test_a_turn_with_thinking_and_a_call(tmp_path: Path) -> None:
    async with Wire([CALLS, DONE, DONE]) as wire:
        events = await turns(tmp_path / "home", wire, {"effort": "high"}, {"effort": "off"})
    assert end(events).result["answer"] == "Done."
    for request in wire.requests:
        assert request.head.startswith("POST /v1/messages HTTP/1.1")
        assert request.headers["x-api-key"] == "sk-1" and request.headers["anthropic-version"] == "2023-06-01"
        assert "authorization" not in request.headers
    asked, answered = bodies(wire)[1]["messages"][-2:]
    assert asked == {"role": "assistant", "content": [thinking("I must look."), text("Looking."), LOOK]}
    assert answered["role"] == "user"
    assert [block["tool_use_id"] for block in answered["content"]] == ["toolu_1"]
    assert [body["thinking"]["type"] for body in bodies(wire)] == ["adaptive", "adaptive", "disabled"]
    assert {body["max_tokens"] for body in bodies(wire)} == {65_536}


async def test_each_request_begins_with_the_one_before_and_all_of_it_is_counted(tmp_path: Path) -> None:
    async with Wire([CALLS, DONE, CALLS, DONE]) as wire:
        events = await turns(tmp_path / "home", wire, {"effort": "max"}, {"effort": "low"})
    for before, after in zip(wire.requests, wire.requests[1:], strict=False):
        assert after.body.startswith(before.body[: before.body.rindex(b'],"max_tokens"')])
        assert after.body.endswith(b"}}") and b'"cache_control":{"type":"ephemeral"}' in after.body[-200:]
    usages = [event.usage for event in only(events, UsageReported)]
    assert [(usage.input, usage.cache_hit, usage.cache_miss, usage.output) for usage in usages[:2]] == [
        (15, 0, 15, 7),
        (30, 15, 15, 7),
    ]


async def test_a_model_that_binds_its_thinking_is_told_to_drop_what_no_longer_fits(tmp_path: Path) -> None:
    async with Wire([CALLS, DONE]) as wire:
        await turns(tmp_path / "home", wire, model="claude-opus-5-5")
    for request, body in zip(wire.requests, bodies(wire), strict=True):
        assert request.headers["anthropic-beta"] == "thinking-binding-controls-2026-08-01"
        assert body["thinking"]["block_binding"] == {"prefix_mismatch_behavior": "drop_block"}


async def test_a_conversation_that_began_elsewhere_goes_on_without_foreign_thinking(tmp_path: Path) -> None:
    there = {"provider": "anthropic", "model": "claude-opus-4-8"}
    async with Wire([CHAT_CALLS, CHAT_DONE, DONE]) as wire:
        events = await turns(tmp_path / "home", wire, {}, there, provider="chat", model="m")
    assert end(events).result["answer"] == "Done."
    call, result, said = bodies(wire)[2]["messages"][-4:-1]
    assert [block["type"] for block in call["content"]] == ["tool_use"]
    assert call["content"][0]["id"] == result["content"][0]["tool_use_id"] != "call:a"
    assert said["content"] == [text("Done.")]


@pytest.mark.parametrize("there", [{"provider": "chat", "model": "m"}, {"provider": "twin", "model": "m"}])
async def test_one_that_goes_on_elsewhere_keeps_what_all_can_read(tmp_path: Path, there: Mapping[str, str]) -> None:
    last = CHAT_DONE if there["provider"] == "chat" else DONE
    async with Wire([CALLS, DONE, last]) as wire:
        events = await turns(tmp_path / "home", wire, {"effort": "medium"}, there)
    assert end(events).status == "done"
    call = next(message for message in bodies(wire)[2]["messages"] if message["role"] == "assistant")
    if there["provider"] == "twin":
        assert call["content"][0] == thinking("I must look.") | {"signature": ""}
        assert bodies(wire)[2]["thinking"] == {"type": "enabled", "budget_tokens": 10_240}
    else:
        assert (call["reasoning_content"], call["content"]) == ("I must look.", "Looking.")
        assert SIGNATURE.encode() not in wire.requests[2].body


async def test_what_a_twin_thought_is_not_sent_to_the_one_that_signs(tmp_path: Path) -> None:
    there = {"provider": "anthropic", "model": "claude-opus-4-8"}
    async with Wire([CALLS, DONE, DONE]) as wire:
        await turns(tmp_path / "home", wire, {}, there, provider="twin", model="m")
    kinds = [[block["type"] for block in message["content"]] for message in bodies(wire)[2]["messages"]]
    assert ["text", "tool_use"] in kinds and not any("thinking" in kind for kind in kinds)
    assert bodies(wire)[1]["messages"][-2]["content"][0] == thinking("I must look.")


async def test_thinking_alone_is_answered_by_one_nudge(tmp_path: Path) -> None:
    async with Wire([claude("end_turn", thinking("Hm.")), DONE]) as wire:
        events = await turns(tmp_path / "home", wire)
    assert end(events).status == "done"
    assert [message["role"] for message in bodies(wire)[1]["messages"][-2:]] == ["user", "user"]


async def test_a_paused_model_goes_on_once(tmp_path: Path) -> None:
    async with Wire([claude("pause_turn", text("First,")), DONE]) as wire:
        events = await turns(tmp_path / "home", wire)
    assert end(events).result["answer"] == "Done."
    assert "Go on where you stopped" in bodies(wire)[1]["messages"][-1]["content"][-1]["text"]
    async with Wire([claude("pause_turn", text("First,"))]) as wire:
        events = await turns(tmp_path / "again", wire)
    assert (end(events).status, len(wire.requests)) == ("done", 2)


async def test_an_endpoint_says_its_window_below_its_version(tmp_path: Path) -> None:
    listing = Reply([answer(200, b'{"data":[{"id":"claude-x","type":"model","max_input_tokens":777000}]}')])
    look = {**LOOK, "name": "get_weather"}
    four = [DONE, DONE, claude("tool_use", look, look), DONE]
    async with Wire([*four, *[Reply([answer(404)])] * 3, listing]) as wire:
        (tmp_path / "config.toml").write_text(f'[providers.gate]\ndialect = "anthropic"\nbase_url = "{wire.url}"\n')
        report = await probe_provider(str(tmp_path), str(tmp_path), {}, "gate", "claude-x", "sk-1")
    assert (report.ok, report.found.window, report.found.facts["parallel_calls"]) == (True, 777_000, True)
    assert [request.head.split()[:2] for request in wire.requests[3::4]] == [
        ["POST", "/v1/messages"],
        ["GET", "/v1/models"],
    ]


def refused(status: int, kind: str, message: str) -> Reply:
    return Reply([answer(status, json.dumps({"type": "error", "error": {"type": kind, "message": message}}).encode())])


async def test_an_overloaded_server_is_asked_again(tmp_path: Path) -> None:
    busy = Reply([answer(529, b'{"type":"error","error":{"type":"overloaded_error"}}', "retry-after: 0")])
    async with Wire([busy, DONE]) as wire:
        events = await turns(tmp_path / "home", wire)
    assert end(events).status == "done"
    assert wire.requests[0].body == wire.requests[1].body


@pytest.mark.parametrize(
    ("reply", "status", "said"),
    [
        (refused(401, "authentication_error", "invalid x-api-key"), "failed", "the key is read from CLAUDE_KEY"),
        (refused(400, "invalid_request_error", "messages.1: unexpected"), "failed", "messages.1: unexpected"),
        (
            refused(400, "invalid_request_error", "messages.1.content.0: Invalid `signature` in `thinking` block."),
            "failed",
            "set facts.binds_thinking = true, choose the model again",
        ),
        (claude("refusal"), "failed", "the model declined to answer"),
    ],
)
async def test_a_refusal_ends_the_turn_and_says_why(tmp_path: Path, reply: Reply, status: str, said: str) -> None:
    async with Wire([reply]) as wire:
        events = await turns(tmp_path / "home", wire)
    assert (end(events).status, len(wire.requests)) == (status, 1)
    assert said in end(events).reason
