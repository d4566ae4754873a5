"""What goes wrong between us and a provider, each fault through a whole turn: told by name, waited for in sight, never
answered by another model, and nothing that came is lost or run twice."""

import json
import time
from email.utils import formatdate
from pathlib import Path
from typing import Any

import pytest

from codewhale.protocol.events import AnswerDropped, CallFinished, RequestSent, RetryCountdown
from support.machine import MAKES_FILES
from support.scenes import only
from support.wire import Reply, answer, delta, sse, stream
from support.wired import wired

DONE = Reply([stream(sse(delta("stop", content="Done."), "[DONE]"))])
TOO_MANY = json.dumps({"error": {"message": "Rate limit reached", "code": "rate_limit_exceeded"}}).encode()
HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
GATEWAY = b"<html><head><title>502 Bad Gateway</title></head><body>\n<h1>nginx</h1>\n</body></html>"


def call(call_id: str | None, command: str, index: int = 0) -> dict[str, Any]:
    function = {"name": "exec_shell", "arguments": json.dumps({"command": command})}
    return {"index": index, "function": function} | ({} if call_id is None else {"id": call_id})


def sent(agent: Any) -> list[dict[str, Any]]:
    return [json.loads(request.body) for request in agent.wire.requests]


def begun(*events: Any) -> bytes:
    """An answer's head and one chunk of it."""
    body = sse(*events)
    return HEAD + b"%x\r\n%b\r\n" % (len(body), body)


@pytest.mark.parametrize("form", ["seconds", "date"])
async def test_429_is_waited_for_as_the_server_asks_in_sight(home: Path, workspace: Path, form: str) -> None:
    wish = "7" if form == "seconds" else formatdate(time.time() + 60, usegmt=True)
    async with wired(home, workspace, [Reply([answer(429, TOO_MANY, f"retry-after: {wish}")]), DONE]) as agent:
        events, result = await agent.turn("Hi")
    [told] = only(events, RetryCountdown)
    assert result["status"] == "done" and agent.naps == [told.delay]
    assert told.delay == 7 if form == "seconds" else 40 < told.delay <= 61
    assert (told.attempt, told.attempts) == (1, 5) and "Rate limit reached" in told.reason
    assert agent.wire.requests[0].body == agent.wire.requests[1].body


@pytest.mark.parametrize("status", [500, 502, 503, 504, 529])
async def test_5xx_is_tried_six_times_with_one_model_then_told(home: Path, workspace: Path, status: int) -> None:
    async with wired(home, workspace, [Reply([answer(status, b"oops")])]) as agent:
        events, result = await agent.turn("Hi")
        bodies = {request.body for request in agent.wire.requests}
        assert (result["status"], len(agent.wire.requests), len(bodies)) == ("infra", 6, 1)
        assert (
            f"HTTP {status}" in result["error"] and [told.delay for told in only(events, RetryCountdown)] == agent.naps
        )
        assert agent.naps == [1.0, 2.0, 4.0, 8.0, 16.0] and "6 times" in result["error"]
        await agent.turn("Again")
    assert {body["model"] for body in sent(agent)} == {"m"}


@pytest.mark.parametrize(("status", "said"), [(402, "Insufficient Balance"), (404, "The model `m` does not exist")])
async def test_no_refusal_changes_the_model(home: Path, workspace: Path, status: int, said: str) -> None:
    refusal = json.dumps({"error": {"message": said}}).encode()
    async with wired(home, workspace, [Reply([answer(status, refusal)]), DONE]) as agent:
        _, result = await agent.turn("Hi")
        assert result["status"] == "failed" and said in result["error"] and agent.naps == []
        _, after = await agent.turn("Again")
    assert after["status"] == "done" and [body["model"] for body in sent(agent)] == ["m", "m"]


@pytest.mark.parametrize("inside", [False, True])
async def test_a_call_that_the_server_could_not_read_is_asked_for_again(
    home: Path, workspace: Path, inside: bool
) -> None:
    """Some servers answer a damaged call with an error of their own, with a status or inside the stream."""
    error = {"message": "Failed to call a function.", "code": "tool_use_failed", "failed_generation": "{"}
    lost = answer(400, json.dumps({"error": error}).encode())
    if inside:
        lost = stream(sse(delta(content="Let me see."), {"error": error | {"status_code": 400}}))
    async with wired(home, workspace, [Reply([lost]), DONE]) as agent:
        _, result = await agent.turn("Hi")
        assert (result["status"], agent.naps) == ("done", [])
        assert "one valid JSON object" in sent(agent)[1]["messages"][-1]["content"]
    nothing = answer(400, json.dumps({"error": error}).encode())
    async with wired(home / "b", workspace, [Reply([lost]), Reply([nothing])]) as agent:
        _, result = await agent.turn("Hi")
        assert result["status"] == "failed" and "made no tool call that could be read" in result["error"]
        assert len(agent.wire.requests) == 2


async def test_html_error_pages_are_one_line(home: Path, workspace: Path) -> None:
    page, answered = answer(403, GATEWAY, content_type="text/html"), answer(200, GATEWAY, content_type="text/html")
    async with wired(home, workspace, [Reply([page]), Reply([answered])]) as agent:
        for _ in range(2):
            _, result = await agent.turn("Hi")
            assert result["status"] == "failed"
            (line,) = [line for line in result["error"].splitlines() if "502 Bad Gateway" in line]
            assert "502 Bad Gateway (an HTML page, not an API answer)" in line and "<" not in result["error"]
            assert result["error"].count("\n") <= 1  # what happened with what to do, and what was answered
    assert len(agent.wire.requests) == 2


async def test_a_stall_is_asked_about_again_and_what_came_is_not_sent_back(home: Path, workspace: Path) -> None:
    replies = [Reply([begun(delta(content="So far"))], "hang"), DONE]
    async with wired(home, workspace, replies, idle=0.15) as agent:
        events, result = await agent.turn("Hi")
        assert (result["status"], result["answer"]) == ("done", "Done.")
        await agent.turn("Go on")
    [dropped] = only(events, AnswerDropped)
    assert (dropped.text, dropped.attempt, dropped.attempts) == ("So far", 1, 5)
    assert "sent nothing more within 0.15 seconds" in dropped.reason
    assert agent.wire.requests[0].body == agent.wire.requests[1].body
    assert all("So far" not in request.body.decode() for request in agent.wire.requests)


async def test_half_a_tool_call_never_runs(home: Path, workspace: Path) -> None:
    half = call("a", "touch made")
    half["function"]["arguments"] = half["function"]["arguments"][:-4]
    replies = [Reply([begun(delta(content="I"), delta(tool_calls=[half]))], "reset"), DONE]
    async with wired(home, workspace, replies) as agent:
        events, result = await agent.turn("Hi")
    assert result["status"] == "done" and not only(events, CallFinished)
    assert [dropped.calls for dropped in only(events, AnswerDropped)] in ([("exec_shell",)], [()])
    assert not (workspace / "made").exists() and b"tool_calls" not in agent.wire.requests[1].body


async def test_a_call_that_is_whole_in_an_answer_that_is_not_never_runs(home: Path, workspace: Path) -> None:
    replies = [Reply([begun(delta(tool_calls=[call("a", "touch made")]))], "close"), DONE]
    async with wired(home, workspace, replies) as agent:
        events, result = await agent.turn("Hi")
    assert result["status"] == "done" and not only(events, CallFinished) and not (workspace / "made").exists()


async def test_invalid_utf8_is_a_break_and_never_replaced(home: Path, workspace: Path) -> None:
    broken = sse(delta(content="Good")) + sse(delta(content="x")).replace(b'"x"', b'"\xff\xfe"') + sse("[DONE]")
    async with wired(home, workspace, [Reply([stream(broken)]), DONE]) as agent:
        events, result = await agent.turn("Hi")
        assert result["status"] == "done" and "not UTF-8" in only(events, AnswerDropped)[0].reason
    assert "\ufffd" not in agent.wire.requests[1].body.decode()


@pytest.mark.parametrize("ids", [("same", "same"), (None, None), ("", "")])
@MAKES_FILES
async def test_calls_with_one_id_or_none_run_once_each(
    home: Path, workspace: Path, ids: tuple[str | None, str | None]
) -> None:
    pair = [call(ids[0], "echo 1 >> ran.txt"), call(ids[1], "echo 2 >> ran.txt", 1)]
    asked = Reply([stream(sse(delta(tool_calls=pair), delta("tool_calls"), "[DONE]"))])
    async with wired(home, workspace, [asked, asked, DONE]) as agent:
        events, result = await agent.turn("Hi")
    assert result["status"] == "done" and len(only(events, CallFinished)) == 4
    assert (workspace / "ran.txt").read_text() == "1\n2\n1\n2\n"
    messages = sent(agent)[-1]["messages"]
    made = [made["id"] for message in messages for made in message.get("tool_calls", [])]
    assert made == [message["tool_call_id"] for message in messages if message["role"] == "tool"]
    assert len(set(made)) == 4 and all(made)
    assert [event.request for event in only(events, RequestSent)] == [1, 2, 3]
