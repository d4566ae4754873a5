"""One prompt without a screen: the event stream as text, as one JSON object or as JSON lines. Never asks."""

import asyncio
import time
from collections.abc import Callable
from typing import Any, Literal, Protocol

from msgspec import Struct

from codewhale.display.client import Client
from codewhale.display.lines import envelope_line, object_line
from codewhale.display.setup import is_command
from codewhale.display.transcript.blocks import note_of, note_text
from codewhale.display.words import Words
from codewhale.lib.clock import rfc3339
from codewhale.lib.text import one_line, sanitise, scrub_surrogates
from codewhale.protocol.children import ListChildren
from codewhale.protocol.events import (
    CallFinished,
    CallStarted,
    ChildClosed,
    ChildOpened,
    Envelope,
    Event,
    FactProposed,
    JobEnded,
    JobStarted,
    Notice,
    RetryCountdown,
    SessionOpened,
    SessionResumed,
    SkillActivated,
    SkillReleased,
    TurnFinished,
    TurnStarted,
    is_durable,
)
from codewhale.protocol.ops import (
    CommandOutput,
    Interrupt,
    OpenSession,
    RunCommand,
    SendMessage,
    SessionStatus,
)

LINE_LIMIT, CHILD_LIMIT = 160, 400
OutputFormat = Literal["text", "json", "stream-json"]
# How long a turn may take to end once it was told to stop.
INTERRUPT_SECONDS = 10.0
INTERRUPTED = 130
WRONG_USAGE = 2
LEFT_OVER_SHOWN = 8


class ProgressLines:
    """Turns events into lines for `write`; says nothing of the ones a person need not see."""

    def __init__(self, write: Callable[[str], None]) -> None:
        self._write = write
        self._children: dict[str, str] = {}

    def show(self, event: Event) -> None:
        """Write the line of this event, if it has one."""
        limit, text = LINE_LIMIT, _text(event)
        match event:
            case ChildOpened(child=child, name=name):
                self._children[child] = name
            case SkillActivated() | FactProposed():
                limit = CHILD_LIMIT
            case ChildClosed(child=child):
                used = f"{event.steps} steps, {event.usage.input + event.usage.output:,} tokens"
                limit = CHILD_LIMIT
                text = f"< agent {self._children.get(child, child)} {event.status} ({used}): {event.summary}"
        if text:
            self._write(one_line(text, limit) + "\n")

    def say(self, *lines: str) -> None:
        self._write("".join(one_line(line, 2000) + "\n" for line in lines))


def _text(event: Event) -> str:
    match event:
        case CallStarted():
            return f"> {event.name} {event.arguments}"
        case CallFinished(ok=False):
            first = event.content.strip().partition("\n")[0]
            return f"! {event.name} failed: {first or event.error}"
        case Notice():
            return event.text if event.level == "info" else f"{event.level}: {event.text}"
        case RetryCountdown():
            what = "answer interrupted" if event.broke else "request failed"
            return f"{what}, retry {event.attempt} of {event.attempts} in {event.delay:.1f} s: {event.reason}"
        case JobStarted():
            return f"> job {event.job_id}: {event.command}"
        case JobEnded():
            return f"job {event.job_id} {event.status.lower()} after {event.seconds:.1f} s"
        case ChildOpened():
            return f"> agent {event.name}{f' ({event.role})' if event.role else ''}: {event.objective}"
        case SkillActivated() | SkillReleased():
            note = note_of(event)
            return note_text(Words(), note) if note is not None else ""
        case FactProposed():
            origin = f" (from {event.origin})" if event.origin else ""
            text = f"proposes to remember: {one_line(event.text, 160)}{one_line(origin, 120)}"
            return f"{text}; it waits for you: codewhale exec '/memory waiting'"
        case _:
            return ""


class AnswerSink(Protocol):
    """Where the answer goes. Raises BrokenPipeError when nobody reads it any more."""

    is_terminal: bool

    async def write(self, text: str) -> None: ...


class HeadlessOptions(Struct, frozen=True):
    """What to open, what to print and what to say. `context` is fenced text sent beside the prompt."""

    open: OpenSession
    prompt: str
    context: str = ""
    output: OutputFormat = "text"
    deltas: bool = False


def outcome(session: str, status: str, exit_code: int, answer: str = "", error: str | None = None) -> dict[str, Any]:
    """The JSON object of a run that ended without a turn of its own."""
    usage = {"input": 0, "output": 0, "cache_hit": 0, "cache_miss": 0, "cost": None, "currency": "USD"}
    return {
        "schema_version": 1,
        "session_id": session,
        "status": status,
        "exit_code": exit_code,
        "answer": answer,
        "tools": [],
        "changes": [],
        "usage": usage,
        "error": error,
        "children": [],
    }


def _spent(usage: dict[str, Any]) -> str:
    """What a run took, in one line."""
    hit = f", {usage['cache_hit'] / usage['input']:.0%} of it cached" if usage["cache_hit"] and usage["input"] else ""
    return (
        f"{usage['input']:,} tokens in{hit}, {usage['output']:,} out: {usage['cost']:.4g} {usage['currency']} "
        "(codewhale stats sums it up)"
    )


def _left_over(jobs: dict[str, str]) -> str:
    """What still runs at the end of a run, and ends with it."""
    named = [f"{job} ({one_line(command, 60)})" for job, command in jobs.items()]
    more = f" and {len(named) - LEFT_OVER_SHOWN} more" if len(named) > LEFT_OVER_SHOWN else ""
    return f"codewhale: background jobs killed at the end of this run: {', '.join(named[:LEFT_OVER_SHOWN])}{more}"


class Headless:
    """One run: open, send, follow to the end of the turn. `session` is "" until it is open."""

    def __init__(self, client: Client, options: HeadlessOptions, out: AnswerSink, progress: ProgressLines) -> None:
        self._client = client
        self._options = options
        self._out = out
        self._progress = progress
        self._stop = asyncio.Event()
        self._jobs: dict[str, str] = {}
        self._children: dict[str, dict[str, Any]] = {}
        self._turned = False
        self.session = ""

    async def run(self) -> int:
        """Run to the end; returns the exit code. Raises what opening the session raises, and
        BrokenPipeError when nobody reads the output."""
        if self._stop.is_set():
            return INTERRUPTED
        self.session = await self._client.submit(self._options.open)
        command = is_command(self._options.prompt)
        result = await (self._run_command() if command else self._run_turn())
        if self._options.output == "json":
            await self._out.write(object_line(result) + "\n")
        elif self._options.output == "text":
            await self._print_text(result)
            if self._turned and result["status"] != "done":
                self._progress.say(f"codewhale: {result['status']}: {result['error'] or 'no reason given'}")
            if result["usage"]["cost"]:
                self._progress.say(_spent(result["usage"]))
        if self._jobs:
            self._progress.say(_left_over(self._jobs))
        return int(result["exit_code"])

    def interrupt(self) -> None:
        """Stop the turn; `run` returns once it has ended."""
        self._stop.set()

    # -------------------------------------------------------------- a turn

    async def _run_turn(self) -> dict[str, Any]:
        status = await self._client.query(SessionStatus(self.session))
        message = SendMessage(self.session, scrub_surrogates(self._options.prompt), self._options.context)
        return await self._to_the_end(status.turns + 1, message)

    async def _to_the_end(self, turn: int, message: SendMessage | None = None) -> dict[str, Any]:
        """Follow a turn that `message` begins, or that has begun, to its end; returns its result."""
        self._turned = True
        follower = asyncio.create_task(self._follow(turn))
        stopper = asyncio.create_task(self._stop.wait())
        try:
            if message is not None:
                await self._client.submit(message)
            await asyncio.wait({follower, stopper}, return_when=asyncio.FIRST_COMPLETED)
            if not follower.done():
                await self._client.submit(Interrupt(self.session))
                await asyncio.wait({follower}, timeout=INTERRUPT_SECONDS)
            if follower.done():
                return follower.result()
            return outcome(self.session, "interrupted", INTERRUPTED, error="interrupted; the turn did not end in time")
        except BrokenPipeError:
            await self._client.submit(Interrupt(self.session))
            raise
        finally:
            for task in (follower, stopper):
                task.cancel()
            await asyncio.gather(follower, stopper, return_exceptions=True)

    async def _follow(self, turn: int) -> dict[str, Any]:
        """Show everything from the opening to the end of `turn`; returns its result."""
        # Progress on stderr need not wait for the disk; a line of the stream is an acknowledgement and must.
        events = self._client.events(self.session, durable=self._options.output == "stream-json")
        held: list[Envelope] | None = []
        try:
            async for envelope in events:
                event = envelope.event
                if held is None or isinstance(event, SessionOpened):
                    await self._show(envelope)
                elif isinstance(event, TurnStarted) and event.turn >= turn:
                    for earlier in (*held, envelope):
                        await self._show(earlier)
                    held = None
                elif isinstance(event, SessionResumed | TurnFinished):
                    # What an earlier run did is in the log; this run shows its own.
                    held = [envelope] if isinstance(event, SessionResumed) else []
                else:
                    held.append(envelope)
                if isinstance(event, TurnFinished) and held is None:
                    result = event.result or outcome(self.session, event.status, 1, error=event.reason)
                    return {**result, "children": await self._results()}
        finally:
            close = getattr(events, "aclose", None)
            if close is not None:
                await close()
        return outcome(self.session, "infra", 75, error="the event stream ended before the turn did")

    async def _results(self) -> list[dict[str, Any]]:
        """What the children of this run came to: whole answers, but of one that was released its summary."""
        if self._children:
            for view in await self._client.query(ListChildren(self.session)):
                if view.session in self._children:
                    self._children[view.session]["answer"] = view.answer
        return list(self._children.values())

    async def _show(self, envelope: Envelope) -> None:
        match envelope.event:
            case ChildOpened(child=child, name=name, role=role, kind="agent"):
                self._children[child] = {"name": name, "role": role, "session_id": child, "status": "running"}
            case ChildClosed(child=child, steps=steps, usage=usage) if child in self._children:
                self._children[child] |= {
                    "status": envelope.event.status, "answer": envelope.event.summary, "steps": steps,
                    "tokens": usage.input + usage.output, "cost": usage.cost, "currency": usage.currency,
                }  # fmt: skip
            case JobStarted(job_id=job, command=command):
                self._jobs[job] = command
            case JobEnded(job_id=job):
                self._jobs.pop(job, None)
        if self._options.output == "stream-json":
            if self._options.deltas or is_durable(envelope.event):
                await self._out.write(envelope_line(envelope) + "\n")
        elif self._options.output == "text":
            self._progress.show(envelope.event)

    # -------------------------------------------------------------- a slash command

    async def _run_command(self) -> dict[str, Any]:
        before = await self._client.query(SessionStatus(self.session))
        reply: CommandOutput = await self._client.submit(RunCommand(self.session, self._options.prompt.strip()))
        if reply.turn:
            return await self._to_the_end(before.turns + 1)
        status, code = ("done", 0) if reply.ok else ("failed", WRONG_USAGE if reply.misused else 1)
        result = outcome(self.session, status, code, reply.text, None if reply.ok else reply.text)
        if self._options.output == "stream-json":
            await self._print_events_and_end(before.seq, result)
        return result

    async def _print_events_and_end(self, before: int, result: dict[str, Any]) -> None:
        """The session's opening, what the command recorded behind the event `before`, and an end: it is no turn, yet
        whoever reads the lines waits for one."""
        last = (await self._client.query(SessionStatus(self.session))).seq
        shown: list[Envelope] = []
        events = self._client.events(self.session)
        try:
            async for envelope in events:
                if not shown or (is_durable(envelope.event) and envelope.seq > before):
                    shown.append(envelope)
                if envelope.seq >= last:
                    break
        finally:
            close = getattr(events, "aclose", None)
            if close is not None:
                await close()
        end = TurnFinished(0, result["status"], result["error"] or "", result)
        for envelope in (*shown, Envelope(max(last, shown[-1].seq) + 1, self.session, rfc3339(time.time()), end)):
            await self._out.write(envelope_line(envelope) + "\n")

    # -------------------------------------------------------------- the end

    async def _print_text(self, result: dict[str, Any]) -> None:
        answer = result["answer"]
        if not self._turned and result["status"] != "done":
            self._progress.say(*answer.splitlines())
        elif answer or result["status"] == "done":
            safe = sanitise(answer) if self._out.is_terminal else scrub_surrogates(answer)
            await self._out.write(safe + "\n")
