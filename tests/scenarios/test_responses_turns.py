"""Whole turns over the Responses wire: reasoning goes back sealed as it came, and what breaks off leaves no trace that
an endpoint would refuse."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from codewhale.app.compose import AppOptions, open_app
from codewhale.cli.offline.stored_sessions import request_body
from codewhale.protocol.events import CallStarted, Event, RequestSent, TurnFinished, UsageReported
from codewhale.protocol.modes import Authority, Mode
from codewhale.protocol.ops import OpenSession, SendMessage, SetEffort, SetModel
from codewhale.testing import collect
from support.scenes import only
from support.wire import Reply, Wire, answer, delta, sse, stream

CONFIG = """
provider = "{provider}"
model = "gpt-5.4"
[providers.ours]
dialect = "openai-responses"
base_url = "{url}/v1"
api_key_env = "OUR_KEY"
facts = {{ reasoning_summary = "auto" }}
[providers.theirs]
dialect = "openai-responses"
base_url = "{url}/theirs"
facts = {{ seal = "theirs" }}
[providers.chat]
base_url = "{url}/chat"
facts = {{ replays_reasoning = true }}
"""
# An id as long as some endpoints make them.
LONG = "functions.list_dir:0/" + "a" * 60
CHAT_CALL = {"index": 0, "id": LONG, "function": {"name": "list_dir", "arguments": "{}"}}
CHAT_CALLS = Reply([stream(sse(delta(reasoning_content="Hm."), delta("tool_calls", tool_calls=[CHAT_CALL]), "[DONE]"))])
CHAT_DONE = Reply([stream(sse(delta("stop", content="Done."), "[DONE]"))])


def thought(number: int) -> dict[str, Any]:
    summary = [{"type": "summary_text", "text": f"Thought {number}."}]
    return {"id": f"rs_{number}", "type": "reasoning", "summary": summary, "encrypted_content": f"gAAA{number}+/="}


def call(number: int) -> dict[str, Any]:
    made = {"type": "function_call", "id": f"fc_{number}", "call_id": f"call_{number}", "name": "list_dir"}
    return {**made, "arguments": '{"path":"."}', "status": "completed"}


def said(text: str) -> dict[str, Any]:
    content = [{"type": "output_text", "text": text, "annotations": []}]
    return {"id": "msg_1", "type": "message", "role": "assistant", "content": content, "phase": "final_answer"}


def events(*items: dict[str, Any], kind: str = "completed", **response: Any) -> list[dict[str, Any]]:
    """The events of an answer of whole items."""
    usage = {"input_tokens": 2000, "input_tokens_details": {"cached_tokens": 1024}, "output_tokens": 9}
    out: list[dict[str, Any]] = [{"type": "response.created", "response": {"status": "in_progress"}}]
    for index, item in enumerate(items):
        begun = {**item, "arguments": "", "content": []}
        out.append({"type": "response.output_item.added", "output_index": index, "item": begun})
        out.append({"type": "response.output_item.done", "output_index": index, "item": item})
    end = {"status": kind, "usage": usage, "output": list(items), **response}
    return [*out, {"type": f"response.{kind}", "response": end}]


def reply(*items: dict[str, Any], **fields: Any) -> Reply:
    return Reply([stream(sse(*events(*items, **fields)))])


CALLS = reply(thought(1), call(1), call(2))
DONE = reply(thought(2), said("Done."))


async def turns(home: Path, wire: Wire, *steps: Mapping[str, str], provider: str = "ours") -> list[Event]:
    """A session of one turn a step (after a change of `effort` or `provider`), and its events. Each request that was
    sent is the one that the log gives again."""
    home.mkdir()
    url = wire.url.removesuffix("/v1")
    (home / "config.toml").write_text(CONFIG.format(url=url, provider=provider))
    told: list[Event] = []
    async with open_app(AppOptions(home=str(home), workspace=str(home)), environ={"OUR_KEY": "sk-1"}) as app:
        opened = OpenSession(workspace=str(home), mode=Mode.YOLO, authority=Authority.AUTO)
        session = await app.client.submit(opened)
        for step in steps or ({},):
            if "effort" in step:
                await app.client.submit(SetEffort(session, step["effort"]))
            if "provider" in step:
                await app.client.submit(SetModel(session, "m", provider=step["provider"]))
            since = app.client.events(session, app.engine.session(session).log.seq)
            await app.client.submit(SendMessage(session, "Look around."))
            told += [envelope.event for envelope in await collect(since)]
    again = [request_body(str(home), session, event.request) for event in only(told, RequestSent)]
    assert list(dict.fromkeys(again)) == list(dict.fromkeys(request.body for request in wire.requests))
    return told


def inputs(wire: Wire) -> list[list[dict[str, Any]]]:
    return [json.loads(request.body).get("input", []) for request in wire.requests]


def end(told: list[Event]) -> TurnFinished:
    assert isinstance(told[-1], TurnFinished)
    return told[-1]


async def test_reasoning_goes_back_in_front_of_its_calls(tmp_path: Path) -> None:
    async with Wire([CALLS, DONE, CALLS, DONE]) as wire:
        told = await turns(tmp_path / "home", wire, {"effort": "high"}, {"effort": "off"})
    assert end(told).result["answer"] == "Done."
    for request in wire.requests:
        assert request.head.startswith("POST /v1/responses HTTP/1.1")
        assert request.headers["authorization"] == "Bearer sk-1"
    sealed, *made = inputs(wire)[1][-5:]
    assert sealed == thought(1)
    assert json.dumps(thought(1)).encode() in wire.requests[1].body  # With the very spaces it came with.
    assert [item["type"] for item in made] == ["function_call"] * 2 + ["function_call_output"] * 2
    assert [item["call_id"] for item in made] == ["call_1", "call_2"] * 2
    assert inputs(wire)[2][-2]["phase"] == "final_answer"
    # The second turn's calls bear ids that were used: they get new ones, in the call and its result alike.
    ids = [item["call_id"] for item in inputs(wire)[3] if item["type"] == "function_call"]
    assert ids == [item["call_id"] for item in inputs(wire)[3] if item["type"] == "function_call_output"]
    assert len(set(ids)) == 4
    efforts = [json.loads(request.body)["reasoning"] for request in wire.requests]
    assert efforts == [{"effort": word, "summary": "auto"} for word in ("high", "high", "none", "none")]
    for before, after in zip(wire.requests, wire.requests[1:], strict=False):
        assert after.body.startswith(before.body[: before.body.rindex(b'],"max_output_tokens"')])
    usages = [event.usage for event in only(told, UsageReported)]
    assert {(usage.input, usage.cache_hit, usage.cache_miss) for usage in usages} == {(2000, 1024, 976)}


async def test_an_answer_that_breaks_off_runs_nothing_and_leaves_no_loose_reasoning(tmp_path: Path) -> None:
    broken = Reply([stream(sse(*events(thought(1), said("Let me"), thought(2), call(1))[:-2]))], then="reset")
    async with Wire([broken, DONE]) as wire:
        told = await turns(tmp_path / "home", wire, {}, {})
    assert [event.status for event in only(told, TurnFinished)] == ["done", "done"]
    assert not only(told, CallStarted) and inputs(wire)[0] == inputs(wire)[1]
    assert not [item for item in inputs(wire)[1] if item.get("type") == "reasoning"]


async def test_a_bound_reached_in_reasoning_is_answered_by_one_nudge(tmp_path: Path) -> None:
    cut = reply(thought(1), kind="incomplete", incomplete_details={"reason": "max_output_tokens"})
    async with Wire([cut, DONE]) as wire:
        told = await turns(tmp_path / "home", wire)
    assert end(told).status == "done"
    assert [item["role"] for item in inputs(wire)[1][-2:]] == ["user", "user"]


async def test_a_conversation_that_began_elsewhere(tmp_path: Path) -> None:
    async with Wire([CHAT_CALLS, CHAT_DONE, DONE]) as wire:
        told = await turns(tmp_path / "home", wire, {}, {"provider": "ours"}, provider="chat")
    assert end(told).status == "done"
    call, result, answered = inputs(wire)[2][-4:-1]
    assert (call["type"], result["type"], answered["content"]) == ("function_call", "function_call_output", "Done.")
    assert call["call_id"] == result["call_id"] and len(call["call_id"]) <= 64


async def test_one_that_goes_on_elsewhere(tmp_path: Path) -> None:
    async with Wire([CALLS, DONE, DONE, CHAT_DONE]) as wire:
        told = await turns(tmp_path / "home", wire, {}, {"provider": "theirs"}, {"provider": "chat"})
    assert end(told).status == "done"
    assert wire.requests[2].head.startswith("POST /theirs/responses ")
    assert b"gAAA" in wire.requests[1].body
    assert b"gAAA" not in wire.requests[2].body and b"gAAA" not in wire.requests[3].body
    assert "authorization" not in wire.requests[2].headers
    chat = json.loads(wire.requests[3].body)["messages"]
    assert [message.get("reasoning_content") for message in chat if message.get("tool_calls")] == ["Thought 1."]


async def test_a_failure_before_the_first_word_is_tried_again(tmp_path: Path) -> None:
    busy = Reply([answer(503, b'{"error":{"code":"server_error","message":"Try later"}}', "retry-after: 0")])
    async with Wire([busy, DONE]) as wire:
        told = await turns(tmp_path / "home", wire)
    assert end(told).status == "done"
    assert wire.requests[0].body == wire.requests[1].body


async def test_reasoning_that_cannot_be_read_there_is_left_out_when_told_so(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    fault = {"code": "invalid_encrypted_content", "message": "The encrypted content could not be verified."}
    unread = Reply([answer(400, json.dumps({"error": fault}).encode())])
    async with Wire([CALLS, DONE, unread, DONE]) as wire:
        config = CONFIG.format(url=wire.url.removesuffix("/v1"), provider="ours")
        opened = OpenSession(workspace=str(home), mode=Mode.YOLO, authority=Authority.AUTO)
        for facts in ("", "replays_reasoning = false, "):
            (home / "config.toml").write_text(config.replace("facts = { reasoning_s", f"facts = {{ {facts}reasoning_s"))
            async with open_app(AppOptions(home=str(home), workspace=str(home)), environ={"OUR_KEY": "sk-1"}) as app:
                session = await app.client.submit(opened)
                for _ in range(2 - bool(facts)):
                    await app.client.submit(SetModel(session, "gpt-5.4"))
                    since = app.client.events(session, app.engine.session(session).log.seq)
                    await app.client.submit(SendMessage(session, "Look around."))
                    last = [envelope.event for envelope in await collect(since)][-1]
            assert isinstance(last, TurnFinished)
            if not facts:
                assert last.status == "failed" and "replays_reasoning = false" in last.reason
            opened = OpenSession(workspace=str(home), resume=session, mode=Mode.YOLO, authority=Authority.AUTO)
    assert last.status == "done"
    assert b"gAAA" in wire.requests[2].body and b"gAAA" not in wire.requests[3].body


async def test_a_refusal_ends_the_turn_and_says_why(tmp_path: Path) -> None:
    fault = {"code": "invalid_prompt", "message": "Invalid prompt: it was flagged"}
    async with Wire([Reply([answer(400, json.dumps({"error": fault}).encode())])]) as wire:
        told = await turns(tmp_path / "home", wire)
    assert end(told).status == "failed" and "it was flagged" in end(told).reason
