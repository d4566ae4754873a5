"""The provider that plays turns."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from codewhale.models.dialects.base import ProviderSettings, RequestOptions
from codewhale.models.scripted import ScriptedProvider, read_script
from codewhale.protocol.errors import ConfigError
from codewhale.protocol.messages import Message, Text
from codewhale.protocol.stream import (
    CallDelta,
    Failed,
    Finished,
    ReasoningDelta,
    StreamEvent,
    TextDelta,
    Usage,
    UsageReport,
)


async def play(made: ScriptedProvider, body: bytes = b"{}") -> list[StreamEvent]:
    return [event async for event in made.stream(body)]


def joined(events: list[StreamEvent]) -> tuple[str, str, list[tuple[str, str, str]]]:
    """(text, reasoning, calls as (id, name, arguments))."""
    calls: dict[int, tuple[str, str, str]] = {}
    for event in events:
        if isinstance(event, CallDelta):
            one = calls.get(event.index, ("", "", ""))
            calls[event.index] = (one[0] + event.id, one[1] + event.name, one[2] + event.arguments)
    text = "".join(event.text for event in events if isinstance(event, TextDelta))
    return text, "".join(e.text for e in events if isinstance(e, ReasoningDelta)), list(calls.values())


async def test_turns_are_played_in_order_and_then_done() -> None:
    made = ScriptedProvider(
        [
            {"text": "Looking now.", "reasoning": "hm", "calls": [{"name": "f", "arguments": {"p": 1}}]},
            {"calls": [{"name": "f", "arguments": '{"p": '}, {"name": "g"}], "finish": "length"},
        ]
    )
    first = await play(made, b"x" * 400)
    assert joined(first) == ("Looking now.", "hm", [("call_1", "f", '{"p":1}')])
    assert 2 <= sum(isinstance(event, TextDelta) for event in first) <= 4
    assert first[-2:] == [UsageReport(Usage(input=100, output=5)), Finished("tool_calls")]
    second = await play(made)
    assert joined(second)[2] == [("call_2", "f", '{"p": '), ("call_3", "g", "{}")]
    assert second[-1] == Finished("length")
    for _ in range(2):
        last = await play(made)
        assert (joined(last)[0], last[-1]) == ("done", Finished("stop"))
    assert made.requests == [b"x" * 400, b"{}", b"{}", b"{}"]


async def test_the_same_turns_give_the_same_events() -> None:
    turns: list[Any] = [{"text": "a long enough text", "calls": [{"name": "f", "arguments": {"p": "q"}}]}]
    assert await play(ScriptedProvider(turns)) == await play(ScriptedProvider(turns))


async def test_ids_go_on_where_the_request_has_got_to() -> None:
    made = ScriptedProvider([{"calls": [{"name": "f"}]}])
    assert joined(await play(made, b'{"tool_calls":[{"id":"call_7"},{"id":"call_x"}]}'))[2] == [("call_8", "f", "{}")]


async def test_a_function_sees_the_request() -> None:
    def policy(body: dict[str, Any]) -> dict[str, Any]:
        return {"text": body["messages"][-1]["content"].upper()}

    for made in (ScriptedProvider([policy, policy]), ScriptedProvider(policy)):
        message = made.dialect.message(Message("user", (Text("hi"),)), lambda image: b"")
        body = made.dialect.body("m", "", "[]", [message], RequestOptions())
        assert [joined(await play(made, body))[0] for _ in range(2)] == ["HI", "HI"]


@pytest.mark.parametrize(
    ("error", "failed"),
    [
        ("rate_limit", Failed("rate_limit", "rate_limit", True, False)),
        ("the machine is down", Failed("server", "the machine is down", True, False)),
        ({"message": "m", "kind": "auth"}, Failed("auth", "m", False, False)),
        ({"message": "m", "kind": "server", "retryable": False}, Failed("server", "m", False, False)),
    ],
)
async def test_errors(error: Any, failed: Failed) -> None:
    assert await play(ScriptedProvider([{"error": error}])) == [failed]
    started = await play(ScriptedProvider([{"text": "a", "error": error}]))
    assert started == [TextDelta("a"), Failed(failed.kind, failed.message, failed.retryable, True)]


async def test_delay_and_usage() -> None:
    made = ScriptedProvider([{"delay": 0.05, "usage": {"input": 9, "cache_hit": 8}}])
    began = asyncio.get_running_loop().time()
    assert await play(made) == [UsageReport(Usage(input=9, cache_hit=8)), Finished("stop")]
    assert asyncio.get_running_loop().time() - began >= 0.04
    await made.aclose()


def test_the_dialect_has_its_own_name() -> None:
    assert ScriptedProvider().dialect.name == "scripted"
    facts = ScriptedProvider(settings=ProviderSettings(facts={"max_completion_tokens": True})).dialect
    assert b"max_completion_tokens" in facts.body("m", "", "", [b""], RequestOptions(5))


def test_scripts_are_json_lines(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    turns = [{"text": "a\u2028b"}, {"calls": [{"name": "f", "arguments": "{}"}], "note": "ignored"}]
    lines = "\r\n\n".join(json.dumps(turn, ensure_ascii=False) for turn in turns)
    path.write_bytes(b"\xef\xbb\xbf" + lines.encode() + b"\n\n")
    assert read_script(str(path)) == turns


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('{"text": ', "not JSON"),
        ("[]", "object"),
        ('{"text": 3}', "text"),
        ('{"calls": [{"arguments": {}}]}', "name"),
        ('{"calls": [{"name": "f", "arguments": [1]}]}', "arguments"),
        ('{"delay": "soon"}', "delay"),
        ('{"text": "\udcff"}', "not JSON"),
    ],
)
def test_a_bad_line_is_named(tmp_path: Path, line: str, said: str) -> None:
    path = tmp_path / "s.jsonl"
    path.write_bytes(b'{"text":"fine"}\n\n' + line.encode("utf-8", "surrogateescape") + b"\n")
    with pytest.raises(ConfigError, match=said) as caught:
        read_script(str(path))
    assert f"script {path}, line 3" in str(caught.value)


def test_a_missing_script_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"absent\.jsonl cannot be read"):
        read_script(str(tmp_path / "absent.jsonl"))
    with pytest.raises(ConfigError, match="turn 1"):
        ScriptedProvider([{"text": 3}])
