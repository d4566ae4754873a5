"""The headless frontend against a client that plays a list of events: order, formats, ends of every kind."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest

from codewhale.headless.headless import Headless, HeadlessOptions, OutputFormat, ProgressLines, outcome
from codewhale.protocol.decisions import Rule
from codewhale.protocol.errors import SessionError
from codewhale.protocol.events import (
    CallFinished,
    CallStarted,
    Envelope,
    Event,
    MessageAdded,
    Notice,
    RetryCountdown,
    SessionOpened,
    SessionResumed,
    SkillActivated,
    SkillReleased,
    TextStreamed,
    TurnFinished,
    TurnStarted,
    UnknownEvent,
    is_durable,
)
from codewhale.protocol.messages import Message, Text
from codewhale.protocol.modes import Authority, Mode
from codewhale.protocol.ops import CommandOutput, Interrupt, OpenSession, RunCommand, SendMessage, StatusView
from codewhale.protocol.requests import Op, Query
from codewhale.protocol.scopes import Scope
from support.patience import HANG

AT = "2026-01-01T00:00:00.000Z"
OPENED = SessionOpened(1, "/w", Mode.AGENT, "p", "m")
MAKE = Rule("allow", "exec_shell", command="make")
RESUMED = SessionResumed(Mode.AGENT, Authority.HEADLESS)


class Playing:
    """A client whose session holds `past` and, once a message is sent, plays `live`."""

    def __init__(self, past: list[Event], live: list[Event], turns: int = 0, stops: bool = True) -> None:
        self.ops: list[Op] = []
        self._past, self._live, self._turns, self._stops = past, live, turns, stops
        self.sent, self._interrupted = asyncio.Event(), asyncio.Event()

    async def submit(self, op: Op) -> Any:
        self.ops.append(op)
        match op:
            case OpenSession(resume="gone"):
                raise SessionError("there is no session 'gone'")
            case OpenSession():
                return "s1"
            case SendMessage():
                self.sent.set()
            case Interrupt():
                self._interrupted.set()
            case RunCommand(line=line):
                return CommandOutput(f"ran {line}", ok="bad" not in line)
        return None

    async def query(self, query: Query) -> StatusView:
        return StatusView("s1", "/w", Mode.AGENT, Authority.HEADLESS, "p", "m", self._turns, 0, 0, False, "", (), 0, 0)

    async def events(self, session: str, from_seq: int = 0, durable: bool = True) -> AsyncIterator[Envelope]:
        seq = 0
        for event in self._past:
            seq += is_durable(event)
            yield Envelope(seq, session, AT, event)
        await self.sent.wait()
        for event in self._live:
            seq += is_durable(event)
            yield Envelope(seq, session, AT, event)
        if self._live and isinstance(self._live[-1], TurnFinished):
            return
        await self._interrupted.wait()
        if self._stops:
            result = outcome(session, "interrupted", 130, error="You stopped it.")
            yield Envelope(seq + 1, session, AT, TurnFinished(self._turns + 1, "interrupted", "", result))


class Captured:
    """Output kept as text; breaks after `limit` writes."""

    def __init__(self, is_terminal: bool = False, limit: int = 1000) -> None:
        self.is_terminal = is_terminal
        self.text = ""
        self._limit = limit

    async def write(self, text: str) -> None:
        if self._limit == 0:
            raise BrokenPipeError
        self._limit -= 1
        self.text += text

    @property
    def lines(self) -> list[dict[str, Any]]:
        assert self.text.endswith("\n")
        assert self.text.isascii()
        return [json.loads(line) for line in self.text[:-1].split("\n")]


def finished(turn: int = 1, answer: str = "fine", status: str = "done", code: int = 0, error: str = "") -> TurnFinished:
    return TurnFinished(turn, status, error, outcome("s1", status, code, answer, error or None))


def begun(turn: int = 1) -> list[Event]:
    return [TurnStarted(turn), MessageAdded(Message("user", (Text("hi"),)))]


async def run(
    client: Playing,
    output: OutputFormat = "text",
    prompt: str = "hi",
    deltas: bool = False,
    out: Captured | None = None,
) -> tuple[int, Captured, str]:
    out = out or Captured()
    said: list[str] = []
    options = HeadlessOptions(OpenSession("/w"), prompt, "", output, deltas)
    code = await asyncio.wait_for(Headless(client, options, out, ProgressLines(said.append)).run(), HANG)
    return code, out, "".join(said)


async def test_text_is_the_answer_and_a_newline() -> None:
    code, out, said = await run(Playing([OPENED], [*begun(), TextStreamed("fi"), finished()]))
    assert (code, out.text, said) == (0, "fine\n", "")


async def test_json_is_the_result_of_the_turn() -> None:
    code, out, said = await run(Playing([OPENED], [*begun(), finished(answer="né \u2028")]), "json")
    assert out.lines == [outcome("s1", "done", 0, "né \u2028")]
    assert (code, said) == (0, "")


async def test_stream_json_begins_with_the_opening_and_ends_with_the_result() -> None:
    live = [*begun(), TextStreamed("fi"), finished(answer="é\u2028")]
    code, out, _ = await run(Playing([OPENED], live), "stream-json")
    assert [line["event"]["type"] for line in out.lines] == [
        "session_opened",
        "turn_started",
        "message_added",
        "turn_finished",
    ]
    assert [line["seq"] for line in out.lines] == [1, 2, 3, 4]
    assert all(list(line) == ["v", "seq", "session", "at", "event"] and line["v"] == 1 for line in out.lines)
    assert out.lines[-1]["event"]["result"]["answer"] == "é\u2028"
    assert code == 0


async def test_deltas_are_told_only_when_asked_for() -> None:
    live = [*begun(), TextStreamed("fi"), finished()]
    _, out, _ = await run(Playing([OPENED], live), "stream-json", deltas=True)
    types = [(line["seq"], line["event"]["type"]) for line in out.lines]
    assert types[3:] == [(3, "text_streamed"), (4, "turn_finished")]


async def test_a_resumed_session_tells_its_opening_and_then_this_run_alone() -> None:
    past: list[Event] = [OPENED, *begun(1), finished(1, "old"), RESUMED, *begun(2), finished(2, "older"), RESUMED]
    live: list[Event] = [*begun(3), finished(3, "new")]
    code, out, _ = await run(Playing(past, live, turns=2), "stream-json")
    assert [line["event"]["type"] for line in out.lines] == [
        "session_opened",
        "session_resumed",
        "turn_started",
        "message_added",
        "turn_finished",
    ]
    assert out.lines[-1]["event"]["result"]["answer"] == "new"
    assert [line["seq"] for line in out.lines] == [1, 9, 10, 11, 12]
    assert code == 0


async def test_a_turn_that_died_with_its_process_is_not_taken_for_this_one() -> None:
    past: list[Event] = [OPENED, *begun(1), RESUMED]
    code, out, _ = await run(Playing(past, [*begun(2), finished(2, "new")], turns=1), "text")
    assert (code, out.text) == (0, "new\n")


async def test_an_event_of_a_later_version_keeps_its_bytes() -> None:
    raw = b'{"type":"novel","x":{"y":[1,2]},"n":"\xc3\xa9"}'
    live: list[Event] = [*begun(), UnknownEvent("novel", msgspec.Raw(raw)), finished()]
    _, out, _ = await run(Playing([OPENED], live), "stream-json")
    assert out.lines[3]["event"] == {"type": "novel", "x": {"y": [1, 2]}, "n": "é"}


@pytest.mark.parametrize(
    ("status", "code"),
    [("failed", 1), ("denied", 3), ("budget", 4), ("infra", 75), ("interrupted", 130)],
)
async def test_every_other_end_has_its_code_and_is_told_on_stderr(status: str, code: int) -> None:
    end = finished(answer="", status=status, code=code, error="because\x1b[31m so")
    got, out, said = await run(Playing([OPENED], [*begun(), end]))
    assert (got, out.text) == (code, "")
    assert said == f"codewhale: {status}: because\\x1b[31m so\n"


async def test_a_partial_answer_is_printed_with_its_failure() -> None:
    end = finished(answer="half", status="failed", code=1, error="cut")
    _, out, said = await run(Playing([OPENED], [*begun(), end]))
    assert (out.text, said) == ("half\n", "codewhale: failed: cut\n")


async def test_what_happens_is_told_on_stderr_safely() -> None:
    live: list[Event] = [
        *begun(),
        RetryCountdown(2, 4, 1.5, "overloaded\x9b2J"),
        RetryCountdown(3, 4, 2.0, "it was cut off", True),
        CallStarted("c1", "exec\u202eshell", '{"command":"echo \\u001b]0;x"}\x1b]0;x\x07', (), "rule"),
        CallFinished("c1", "exec_shell", False, "first\x1b[2J line\nsecond"),
        CallFinished("c2", "read_file", True, "content"),
        SkillActivated("r\u202e", "r/SKILL.md", "0", "person", scope=Scope(tools=("read_file",)), approved=(MAKE,)),
        SkillReleased("r"),
        Notice("warning", "mind\rthis"),
        finished(),
    ]
    _, out, said = await run(Playing([OPENED], live))
    assert said.splitlines() == [
        "request failed, retry 2 of 4 in 1.5 s: overloaded\\x9b2J",
        "answer interrupted, retry 3 of 4 in 2.0 s: it was cut off",
        '> exec\\u202eshell {"command":"echo \\u001b]0;x"}\\x1b]0;x\\x07',
        "! exec_shell failed: first\\x1b[2J line",
        "Using skill: r\\u202e (r/SKILL.md); restricts this turn to read_file; pre-approves exec_shell make",
        "No longer using: r",
        "warning: mind this",
    ]
    assert out.text == "fine\n"


async def test_an_answer_cannot_steer_a_terminal_but_reaches_a_file_whole() -> None:
    answer = "a\x1b[2Jb\x07\u202ec\ttab\nline"
    _, screen, _ = await run(Playing([OPENED], [*begun(), finished(answer=answer)]), out=Captured(is_terminal=True))
    assert screen.text == "a\\x1b[2Jb\\x07\\u202ec\ttab\nline\n"
    _, file, _ = await run(Playing([OPENED], [*begun(), finished(answer=answer)]))
    assert file.text == answer + "\n"


async def test_an_event_stream_that_ends_early_is_infrastructure() -> None:
    class Ending(Playing):
        async def events(self, session: str, from_seq: int = 0, durable: bool = True) -> AsyncIterator[Envelope]:
            yield Envelope(1, session, AT, OPENED)

    code, out, _ = await run(Ending([], []), "json")
    assert code == 75
    assert out.lines[0]["status"] == "infra"


async def test_what_cannot_be_opened_raises() -> None:
    options = HeadlessOptions(OpenSession("/w", resume="gone"), "hi")
    with pytest.raises(SessionError, match="gone"):
        await Headless(Playing([], []), options, Captured(), ProgressLines(lambda text: None)).run()


async def interrupted(client: Playing, output: OutputFormat = "json") -> tuple[int, Captured]:
    out = Captured()
    headless = Headless(
        client, HeadlessOptions(OpenSession("/w"), "hi", output=output), out, ProgressLines(lambda text: None)
    )
    task = asyncio.create_task(headless.run())
    await client.sent.wait()
    headless.interrupt()
    return await asyncio.wait_for(task, HANG), out


async def test_an_interrupt_stops_the_turn_and_its_result_is_told() -> None:
    client = Playing([OPENED], begun())
    code, out = await interrupted(client)
    assert code == 130
    assert out.lines[0]["status"] == "interrupted"
    assert [type(op) for op in client.ops] == [OpenSession, SendMessage, Interrupt]


async def test_an_interrupt_before_the_start_opens_nothing() -> None:
    client = Playing([OPENED], begun())
    headless = Headless(client, HeadlessOptions(OpenSession("/w"), "hi"), Captured(), ProgressLines(lambda text: None))
    headless.interrupt()
    assert await headless.run() == 130
    assert client.ops == []


async def test_a_reader_that_went_away_stops_the_turn() -> None:
    client = Playing([OPENED], begun())
    with pytest.raises(BrokenPipeError):
        await run(client, "stream-json", out=Captured(limit=1))
    assert isinstance(client.ops[-1], Interrupt)


async def test_a_slash_command_runs_without_a_turn() -> None:
    client = Playing([OPENED], [])
    assert (await run(client, prompt="/status now"))[1].text == "ran /status now\n"
    assert [type(op) for op in client.ops] == [OpenSession, RunCommand]
    code, out, said = await run(Playing([OPENED], []), prompt="/bad")
    assert (code, out.text, said) == (1, "", "ran /bad\n")


async def test_a_slash_command_speaks_every_format() -> None:
    _, out, _ = await run(Playing([OPENED], []), "json", "/status")
    assert out.lines == [outcome("s1", "done", 0, "ran /status")]
    code, out, _ = await run(Playing([OPENED], []), "stream-json", "/bad")
    assert [line["event"]["type"] for line in out.lines] == ["session_opened", "turn_finished"]
    assert out.lines[-1]["event"]["result"]["error"] == "ran /bad"
    assert code == 1


async def test_a_command_may_have_a_name_in_any_script() -> None:
    client = Playing([OPENED], [])
    await run(client, prompt="/接力")
    assert not any(isinstance(op, SendMessage) for op in client.ops)


@pytest.mark.parametrize("prompt", ["/usr/bin/env fails", "/ what", "a /status", "//x", "/1"])
async def test_a_path_is_no_command(prompt: str) -> None:
    client = Playing([OPENED], [*begun(), finished()])
    await run(client, prompt=prompt)
    assert isinstance(client.ops[1], SendMessage)
