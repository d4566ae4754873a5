"""Answers that break at any place, in any way, in each wire format: asked for again within the turn, nothing of them
run, nothing of them sent back, all of it counted."""

import asyncio
import json
import os
import signal
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codewhale.app.compose import App, AppOptions, open_app
from codewhale.models.dialects.validate import Validator
from codewhale.protocol.events import (
    AnswerDropped,
    BudgetSettled,
    CallFinished,
    CallStarted,
    Event,
    MessageAdded,
    RequestSent,
    RetryCountdown,
    TurnFinished,
    UsageReported,
)
from codewhale.protocol.modes import Authority, Mode
from codewhale.protocol.ops import Interrupt, Limits, OpenSession, SendMessage
from codewhale.testing import collect
from support.answers import ARGUMENTS, DIALECTS, answer_bytes, answer_events, last_needed
from support.patience import HANG, Moment
from support.scenes import only
from support.stage import until
from support.wire import Reply, Wire, answer, delta, sse, stream
from support.wired import wired

WAYS = ("close", "reset", "hang", "end", "malformed", "not an object", "error", "not text", "bad chunk")
WORDS = "Now I write it."
HEAD = stream(b"").removesuffix(b"0\r\n\r\n")


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


def broken(dialect: str, at: int, way: str) -> Reply:
    """The answer up to its event number `at`, and then what breaks it."""
    events = [sse(event) for event in answer_events(dialect, WORDS, ARGUMENTS)]
    before = HEAD + b"".join(map(chunk, events[:at]))
    error: dict[str, Any] = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
    spoiled = {
        "malformed": chunk(events[at][: max(8, len(events[at]) // 2)] + b"\n\n"),
        "not an object": chunk(sse("[1]")),
        "error": chunk(sse(error)),
        "not text": chunk(b"data: \xff\xfe\n\n"),
        "bad chunk": b"xyz\r\n",
        "end": b"0\r\n\r\n",
    }
    then = way if way in ("close", "reset", "hang") else "keep" if way == "end" else "hang"
    return Reply([before, spoiled.get(way, b"")], then)


async def play(folder: Path, dialect: str, *replies: Reply) -> tuple[list[Event], dict[str, Any], Wire]:
    home, workspace = folder / "home", folder / "work"
    workspace.mkdir()
    whole = Reply([answer_bytes(dialect, WORDS, ARGUMENTS)])
    last = Reply([answer_bytes(dialect, "Done.")])
    async with wired(home, workspace, [*replies, whole, last], idle=1.0, dialect=dialect) as agent:
        events, result = await agent.turn("Write it.")
    assert (workspace / "made.txt").read_text() == "made once"
    return events, result, agent.wire


@pytest.mark.parametrize("dialect", DIALECTS)
@settings(max_examples=15, deadline=None)
@given(data=st.data())
def test_an_answer_that_breaks_anywhere_is_asked_for_again_and_runs_once(dialect: str, data: st.DataObject) -> None:
    events = answer_events(dialect, WORDS, ARGUMENTS)
    breaks = st.tuples(st.integers(0, last_needed(dialect, events) - 1), st.sampled_from(WAYS))
    drawn = data.draw(st.lists(breaks, min_size=1, max_size=3))
    with tempfile.TemporaryDirectory() as folder:
        told, result, wire = asyncio.run(play(Path(folder), dialect, *(broken(dialect, at, way) for at, way in drawn)))
    assert result["status"] == "done" and len(only(told, CallStarted)) == len(only(told, CallFinished)) == 1
    bodies = [request.body for request in wire.requests]
    assert len(bodies) == len(drawn) + 2 and len(set(bodies[: len(drawn) + 1])) == 1
    assert [event.attempt for event in only(told, RetryCountdown)] == list(range(1, len(drawn) + 1))
    assert all(event.attempts == 5 for event in only(told, RetryCountdown))
    assert len(only(told, AnswerDropped)) == len(drawn)
    assert len([event for event in only(told, MessageAdded) if event.message.role == "assistant"]) == 2
    if dialect == "openai-chat":
        text = ",".join(json.dumps(message) for message in json.loads(bodies[-1])["messages"][1:]).encode()
        assert Validator(dialect, {}, 1).fault(text) == ""


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_damage_behind_the_end_of_an_answer_breaks_nothing(tmp_path: Path, dialect: str) -> None:
    events = answer_events(dialect, WORDS, ARGUMENTS)
    end = last_needed(dialect, events)
    before = HEAD + b"".join(chunk(sse(event)) for event in events[:end])
    for number, (more, then) in enumerate(
        [(chunk(b"data: {\n\n"), "hang"), (b"", "reset"), (chunk(b"data: \xff\n\n"), "close")]
    ):
        folder = tmp_path / str(number)
        folder.mkdir()
        home, workspace = folder / "home", folder / "work"
        workspace.mkdir()
        replies = [Reply([before, more], then), Reply([answer_bytes(dialect, "Done.")])]
        async with wired(home, workspace, replies, idle=1.0, dialect=dialect) as agent:
            told, result = await agent.turn("Write it.")
        assert result["status"] == "done" and len(agent.wire.requests) == 2
        assert len(only(told, CallStarted)) == 1 and not only(told, AnswerDropped)


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize(
    ("status", "said"),
    [(400, "bad field"), (401, "no"), (403, "no"), (404, "model `m` not found"), (400, "maximum context length")],
)
async def test_what_another_try_cannot_help_is_told_at_once(
    home: Path, workspace: Path, dialect: str, status: int, said: str
) -> None:
    reply = Reply([answer(status, json.dumps({"error": {"message": said}}).encode())])
    async with wired(home, workspace, [reply], dialect=dialect) as agent:
        told, result = await agent.turn("Hi")
    assert result["exit_code"] == 1 and len(agent.wire.requests) == 1 and not only(told, RetryCountdown)
    assert said in result["error"] and agent.wire.address in result["error"]


async def test_tries_that_broke_count_against_the_budget_and_are_no_steps(home: Path, workspace: Path) -> None:
    half = sse(delta(content="Half"), {"choices": [], "usage": {"prompt_tokens": 700, "completion_tokens": 30}})
    replies = [Reply([HEAD + chunk(half)], "close"), Reply([HEAD + chunk(sse(delta(content="x" * 100)))], "close")]
    done = Reply([stream(sse(delta("stop", content="Done."), {"choices": [], "usage": {"prompt_tokens": 710}}))])
    async with wired(home, workspace, [*replies, done]) as agent:
        told, result = await agent.turn("Hi")
    assert result["status"] == "done" and [sent.request for sent in only(told, RequestSent)] == [1, 2, 3]
    assert [(report.request, report.usage.input) for report in only(told, UsageReported)] == [(1, 700), (3, 710)]
    settled = only(told, BudgetSettled)
    assert [one.steps for one in settled] == [0, 0, 1]
    assert settled[0].tokens == 730 and settled[1].tokens > 730 + 700 and settled[2].tokens > settled[1].tokens + 700
    assert result["usage"]["input"] == 1410


async def test_a_budget_without_room_for_another_try_ends_the_turn(home: Path, workspace: Path) -> None:
    half = sse(delta(content="Half"), {"choices": [], "usage": {"prompt_tokens": 90_000, "completion_tokens": 30}})
    async with Wire([Reply([HEAD + chunk(half)], "close")]) as wire:
        home.mkdir(exist_ok=True)
        (home / "config.toml").write_text(config(wire))
        async with open_app(AppOptions(home=str(home), workspace=str(workspace)), environ={}) as app:
            opened = OpenSession(str(workspace), mode=Mode.YOLO, authority=Authority.AUTO, limits=Limits(tokens=95_000))
            session = await app.client.submit(opened)
            waiting = asyncio.ensure_future(collect(app.client.events(session, from_seq=-1)))
            await asyncio.sleep(0)
            await app.client.submit(SendMessage(session, "Hi"))
            told = [envelope.event for envelope in await waiting]
    assert isinstance(told[-1], TurnFinished) and told[-1].status == "budget"
    assert len(only(told, AnswerDropped)) == 1 and len(wire.requests) == 1


# ---------------------------------------------------------------------- a wait between two tries


def config(wire: Wire) -> str:
    return f'provider = "box"\nmodel = "m"\n[providers.box]\nbase_url = "{wire.url}"\n'


async def test_a_wait_between_tries_ends_at_once_when_it_is_interrupted(home: Path, workspace: Path) -> None:
    long = Reply([answer(429, b"{}", "retry-after: 200")])
    cut = Reply([HEAD + chunk(sse(delta(content="Half")))], "close")
    for replies in ([long], [cut, long]):
        async with Wire(replies) as wire:
            home.mkdir(exist_ok=True)
            (home / "config.toml").write_text(config(wire))
            async with open_app(AppOptions(home=str(home), workspace=str(workspace)), environ={}) as app:
                opened = OpenSession(str(workspace), mode=Mode.YOLO, authority=Authority.AUTO)
                session = await app.client.submit(opened)
                told: list[Event] = []

                async def follow(told: list[Event] = told, app: App = app, session: str = session) -> None:
                    async for envelope in app.client.events(session, from_seq=-1):
                        told.append(envelope.event)
                        if isinstance(envelope.event, TurnFinished):
                            return

                following = asyncio.ensure_future(follow())
                await asyncio.sleep(0)
                await app.client.submit(SendMessage(session, "Hi"))
                await until(lambda told=told: any(event.delay > 100 for event in only(told, RetryCountdown)))
                begun = Moment()
                await app.client.submit(Interrupt(session))
                await asyncio.wait_for(following, HANG)
                assert not begun.hung
                assert isinstance(told[-1], TurnFinished) and told[-1].status == "interrupted"
                assert not [event for event in only(told, MessageAdded) if event.message.role == "assistant"]


async def exec_cli(home: Path, workspace: Path, *more: str) -> asyncio.subprocess.Process:
    environ = {**os.environ, "CODEWHALE_HOME": str(home)}
    command = [sys.executable, "-m", "codewhale", "exec", "--auto", "--output-format", "stream-json", *more]
    pipe = asyncio.subprocess.PIPE
    return await asyncio.create_subprocess_exec(*command, cwd=workspace, env=environ, stdout=pipe, stderr=pipe)


@pytest.mark.parametrize("end", ["SIGTERM", "--max-seconds"])
async def test_a_signal_and_the_time_bound_end_a_wait_between_tries(home: Path, workspace: Path, end: str) -> None:
    cut = Reply([HEAD + chunk(sse(delta(content="Half")))], "close")
    async with Wire([cut, Reply([answer(503, b"{}", "retry-after: 250")])]) as wire:
        home.mkdir(exist_ok=True)
        (home / "config.toml").write_text(config(wire))
        bound = ["--max-seconds", "4"] if end == "--max-seconds" else []
        run = await exec_cli(home, workspace, *bound, "Hi")
        assert run.stdout is not None
        async with asyncio.timeout(HANG):
            while b"answer_dropped" not in await run.stdout.readline():
                pass
            await until(lambda: len(wire.requests) == 2)
            if end == "SIGTERM":
                run.send_signal(signal.SIGTERM)
            out, _ = await run.communicate()
    assert run.returncode == (130 if end == "SIGTERM" else 4)
    assert b'"turn_finished"' in out


async def test_a_session_that_was_killed_between_tries_goes_on_soundly(home: Path, workspace: Path) -> None:
    cut = Reply([HEAD + chunk(sse(delta(content="Half an answer")))], "close")
    done = Reply([stream(sse(delta("stop", content="Done."), "[DONE]"))])
    async with Wire([cut, Reply([answer(503, b"{}", "retry-after: 250")]), done]) as wire:
        home.mkdir(exist_ok=True)
        (home / "config.toml").write_text(config(wire))
        run = await exec_cli(home, workspace, "First.")
        async with asyncio.timeout(HANG):
            await until(lambda: len(wire.requests) == 2)
            run.kill()
            await run.communicate()
            again = await exec_cli(home, workspace, "--continue", "Second.")
            out, said = await again.communicate()
    assert again.returncode == 0, said.decode()
    assert b"Half an answer" not in wire.requests[-1].body
    users = [message for message in json.loads(wire.requests[-1].body)["messages"] if message["role"] == "user"]
    assert "First." in str(users) and "Second." in str(users)
    assert json.loads(out.splitlines()[-1])["event"]["status"] == "done"


async def test_headless_retry_asks_the_last_message_again_and_follows_its_turn(home: Path, workspace: Path) -> None:
    done = Reply([stream(sse(delta("stop", content="Done at last."), "[DONE]"))])
    async with Wire([Reply([answer(401, b"{}")]), done]) as wire:
        home.mkdir(exist_ok=True)
        (home / "config.toml").write_text(config(wire))
        async with asyncio.timeout(HANG):
            first = await exec_cli(home, workspace, "Ask me.")
            await first.communicate()
            again = await exec_cli(home, workspace, "--continue", "/retry")
            out, said = await again.communicate()
    assert (first.returncode, again.returncode) == (1, 0), said.decode()
    assert json.loads(out.splitlines()[-1])["event"]["result"]["answer"] == "Done at last."
    users = [one for one in json.loads(wire.requests[-1].body)["messages"] if one["role"] == "user"]
    assert str(users).count("Ask me.") == 1


async def test_headless_says_each_retry_and_ends_with_75_after_so_many_tries(home: Path, workspace: Path) -> None:
    cut = Reply([HEAD + chunk(sse(delta(content="Half")))], "close")
    async with Wire([cut]) as wire:
        home.mkdir(exist_ok=True)
        (home / "config.toml").write_text(config(wire) + "stream_retries = 2\n")
        environ = {**os.environ, "CODEWHALE_HOME": str(home)}
        pipe = asyncio.subprocess.PIPE
        command = [sys.executable, "-m", "codewhale", "exec", "Hi"]
        run = await asyncio.create_subprocess_exec(*command, cwd=workspace, env=environ, stdout=pipe, stderr=pipe)
        async with asyncio.timeout(HANG):
            out, said = await run.communicate()
    text = said.decode()
    assert run.returncode == 75 and len(wire.requests) == 3 and b"Half" not in out
    assert "answer interrupted, retry 1 of 2" in text and "answer interrupted, retry 2 of 2" in text
    assert (
        f"(asked {wire.url}/chat/completions, 3 times)" in text
        and "codewhale exec --continue /retry asks again." in text
    )
