"""Reasoning through whole turns: it goes back as the provider wants it, and thinking alone ends no turn."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from codewhale.app.compose import AppOptions, open_app
from codewhale.cli.offline.stored_sessions import request_body
from codewhale.protocol.events import Event, PrefixInvalidated, TurnFinished
from codewhale.protocol.modes import Authority, Mode
from codewhale.protocol.ops import OpenSession, SendMessage, SetEffort, SetModel
from codewhale.testing import collect
from support.wire import Reply, Wire, delta, sse, stream

CALL = {"index": 0, "id": "call_a", "function": {"name": "list_dir", "arguments": "{}"}}


def reply(finish: str, *deltas: dict[str, Any]) -> Reply:
    """One streamed answer."""
    return Reply([stream(sse(*(delta(**fields) for fields in deltas), delta(finish), "[DONE]"))])


THOUGHT = reply("stop", {"reasoning_content": "Hm."})
CALLS = reply("tool_calls", {"reasoning_content": "I must look."}, {"tool_calls": [CALL]})
BARE_CALLS = reply("tool_calls", {"tool_calls": [CALL]})
DONE = reply("stop", {"reasoning_content": "So."}, {"content": "Done."})


async def turns(
    home: Path, wire: Wire, provider: str, model: str, efforts: Sequence[str] = ("",), begins: str = ""
) -> tuple[TurnFinished, list[dict[str, Any]]]:
    """One turn for each effort, the last one's end, and the bodies sent; each is the one that the log gives again."""
    home.mkdir()
    (home / "config.toml").write_text(
        f'provider = "{provider}"\nmodel = "{model}"\n[providers.{provider}]\nbase_url = "{wire.url}"\n'
    )
    events: list[Event] = []
    async with open_app(AppOptions(home=str(home), workspace=str(home)), environ={}) as app:
        opened = OpenSession(workspace=str(home), mode=Mode.YOLO, authority=Authority.AUTO, effort=begins)
        session = await app.client.submit(opened)
        for effort in efforts:
            await app.client.submit(SetEffort(session, effort))
            told = app.client.events(session, app.engine.session(session).log.seq)
            await app.client.submit(SendMessage(session, "Look around."))
            events = [envelope.event for envelope in await collect(told)]
    for number, request in enumerate(wire.requests, 1):
        assert request_body(str(home), session, number) == request.body
    end = events[-1]
    assert isinstance(end, TurnFinished)
    return end, [json.loads(request.body) for request in wire.requests]


def thoughts(body: dict[str, Any]) -> list[str | None]:
    return [said.get("reasoning_content") for said in body["messages"] if said["role"] == "assistant"]


@pytest.mark.parametrize(
    ("provider", "model", "kept"),
    [("deepseek", "deepseek-v4-pro", ["Hm."]), ("sglang", "plain", ["Hm."]), ("vllm", "plain", []), ("p", "plain", [])],
)
async def test_thinking_alone_is_answered_by_one_nudge(
    tmp_path: Path, provider: str, model: str, kept: list[str]
) -> None:
    async with Wire([THOUGHT, DONE]) as wire:
        end, bodies = await turns(tmp_path / "home", wire, provider, model)
    assert (end.status, end.result["answer"], len(bodies)) == ("done", "Done.", 2)
    assert thoughts(bodies[1]) == kept
    assert bodies[1]["messages"][-1]["role"] == "user"
    assert "neither an answer nor a tool call" in bodies[1]["messages"][-1]["content"]


@pytest.mark.parametrize("provider", ["deepseek", "vllm", "moonshot", "mistral", "ollama"])
async def test_thinking_alone_twice_ends_the_turn(tmp_path: Path, provider: str) -> None:
    async with Wire([THOUGHT]) as wire:
        end, bodies = await turns(tmp_path / "home", wire, provider, "deepseek-v4-pro")
    assert end.status == "failed" and len(bodies) == 2
    assert "gave neither an answer nor a tool call" in end.reason


async def test_thoughts_go_back_as_they_were_in_every_later_request(tmp_path: Path) -> None:
    async with Wire([CALLS, BARE_CALLS, DONE, DONE]) as wire:
        _, bodies = await turns(tmp_path / "home", wire, "deepseek", "deepseek-v4-pro", ("high", "off"))
    assert [thoughts(body) for body in bodies] == [
        [],
        ["I must look."],
        ["I must look.", "(reasoning omitted)"],
        ["I must look.", "(reasoning omitted)", "So."],
    ]
    assert [body["thinking"] for body in bodies] == [{"type": "enabled"}] * 3 + [{"type": "disabled"}]
    for before, after in zip(wire.requests, wire.requests[1:], strict=False):
        assert after.body.startswith(before.body[: before.body.rindex(b'],"max_tokens"')])


async def test_a_conversation_without_thinking_makes_none_up_until_it_begins(tmp_path: Path) -> None:
    async with Wire([BARE_CALLS, DONE, BARE_CALLS, DONE, DONE]) as wire:
        _, bodies = await turns(tmp_path / "home", wire, "deepseek", "deepseek-v4-pro", ("off", "high", "off"), "off")
    assert [thoughts(body) for body in bodies[:2]] == [[], [None]]
    omitted = "(reasoning omitted)"
    assert [thoughts(body) for body in bodies[2:]] == [
        [omitted, "So."], [omitted, "So.", omitted], [omitted, "So.", omitted, "So."]
    ]  # fmt: skip
    assert [body["thinking"]["type"] for body in bodies] == ["disabled"] * 2 + ["enabled"] * 2 + ["disabled"]


async def test_thoughts_stay_here_for_a_provider_that_refuses_them(tmp_path: Path) -> None:
    async with Wire([CALLS, DONE]) as wire:
        end, bodies = await turns(tmp_path / "home", wire, "openai", "gpt-4.1")
    assert end.status == "done"
    assert thoughts(bodies[1]) == [None]


async def test_each_body_can_be_read_by_a_strict_server(tmp_path: Path) -> None:
    async with Wire([CALLS, DONE]) as wire:
        _, bodies = await turns(tmp_path / "home", wire, "mistral", "mistral-medium-latest", ("auto",))
    asked, answered = bodies[1]["messages"][-2:]
    assert asked["tool_calls"][0]["id"] == answered["tool_call_id"] and len(answered["tool_call_id"]) == 9
    assert "stream_options" not in bodies[0]


async def test_a_corrected_fact_holds_once_the_model_is_chosen_again(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    replies = [CALLS, DONE]
    async with Wire([*replies, *replies, *replies]) as wire:
        session = ""
        for fact, chosen in (("false", False), ("true", False), ("true", True)):
            (home / "config.toml").write_text(
                f'provider = "p"\nmodel = "m"\n[providers.p]\nbase_url = "{wire.url}"\n'
                f"[providers.p.facts]\nreplays_reasoning = {fact}\n"
            )
            async with open_app(AppOptions(home=str(home), workspace=str(home)), environ={}) as app:
                opened = OpenSession(str(home), Mode.YOLO, Authority.AUTO, resume=session)
                session = await app.client.submit(opened)
                if chosen:
                    await app.client.submit(SetModel(session, "m"))
                    await app.client.submit(SetModel(session, "m"))
                told = app.client.events(session, app.engine.session(session).log.seq)
                await app.client.submit(SendMessage(session, "Look around."))
                await collect(told)
                events = [envelope.event for envelope in app.engine.session(session).log.read()]
    bodies = [json.loads(request.body) for request in wire.requests]
    assert [set(thoughts(body)) for body in bodies[1:4]] == [{None}] * 3
    assert thoughts(bodies[-1]) == ["I must look.", "So.", "I must look.", "So.", "I must look."]
    assert [event.reason for event in events if isinstance(event, PrefixInvalidated)] == ["model"]
