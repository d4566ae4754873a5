"""A short probe of a provider: a handful of small requests that show what its endpoint does, each finding with its
evidence. Bounded: four requests, `MAX_OUTPUT` tokens of answer each, a few listings of its models."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any, Literal

from msgspec import Struct

from codewhale.lib.text import one_line
from codewhale.models.dialects.base import Fact, Provider, RequestOptions
from codewhale.models.loopback import is_near
from codewhale.protocol.marks import MARKS, WHOLE
from codewhale.protocol.messages import Image, Message, Text
from codewhale.protocol.stream import (
    CallDelta,
    Failed,
    Finished,
    OpaqueDelta,
    ReasoningDelta,
    Retrying,
    TextDelta,
    Usage,
    UsageReport,
)
from codewhale.protocol.tools import Effect, ToolSpec

MAX_OUTPUT = 1024
KNOCK_OUTPUT = 16
SECONDS, SECONDS_NEAR = 60.0, 600.0  # for one answer; a machine of one's own may be slow
SLOW = 1.0  # Seconds after which an answer in one piece was held back: a quick one may just have come in one packet.
FINDINGS = ("streams", "tool_calls", "parallel_calls", "reasoning", "undeclared_calls", "cache_telemetry", "window")

Answer = Literal["yes", "no", "unknown"]
FindWindow = Callable[[], Awaitable[tuple[int, str]]]


class Finding(Struct, frozen=True):
    """One thing that was looked for, and what was seen."""

    name: str
    answer: Answer
    evidence: str


class Probe(Struct, frozen=True):
    """What a probe found. `error` is why the provider could not be asked, "" when it answered. `window` is what the
    endpoint reports in tokens, 0 when it reports none; `facts` are what a configuration may keep."""

    error: str
    findings: tuple[Finding, ...]
    window: int
    facts: dict[str, Fact]
    requests: int
    input: int
    output: int
    seconds: float


class Heard(Struct):
    """One answer."""

    text: str = ""
    pieces: int = 0
    seconds: float = 0.0
    reasoning: int = 0
    opaque: int = 0
    calls: dict[int, str] = {}
    usage: Usage | None = None
    finish: str = ""
    failure: Failed | None = None


def _tool(name: str, description: str) -> ToolSpec:
    city = {"type": "string", "description": "The city."}
    schema = {"type": "object", "properties": {"city": city}, "required": ["city"]}
    return ToolSpec(name, "probe", description, schema, (Effect.READS,))


WEATHER = _tool("get_weather", "The weather in a city right now.")
_COUNT = "Count from 1 to 60 in digits, separated by single spaces. Say nothing else."
_BALLAST = "You are being tested. What follows means nothing." + " The quick brown fox jumps over the lazy dog." * 120
_BOTH = "Call get_weather for Paris and for Oslo, both calls in one answer. Say nothing else."
_HIDDEN = (
    "Beside the tools that are declared there is one more: get_population, with one argument, city. It is not in "
    "the list, and calling it works all the same."
)
_POPULATION = "How many people live in Oslo? Call get_population; do not answer from memory."


async def knock(provider: Provider, model: str, seconds: float) -> Failed | None:
    """Why a provider does not answer one very small request; None where it does. The provider stays open."""
    return (await _Prober(provider, model, SLOW, seconds).ask("", "Say OK.", most=KNOCK_OUTPUT)).failure


async def probe(provider: Provider, model: str, find_window: FindWindow, slow: float = SLOW) -> Probe:
    """Ask a provider for `model`. `find_window()` tells the window that the endpoint reports, in tokens, and where it
    says so. The provider stays open."""
    return await _Prober(provider, model, slow).run(find_window)


class _Prober:
    def __init__(self, provider: Provider, model: str, slow: float, seconds: float = 0) -> None:
        self._slow = slow
        self._provider = provider
        self._seconds = seconds or (SECONDS_NEAR if is_near(provider.settings.base_url) else SECONDS)
        self._model = model
        self._heard: list[Heard] = []
        self._written = False
        self._found: dict[str, Finding] = {}

    async def run(self, find_window: FindWindow) -> Probe:
        begun = time.monotonic()
        first = await self.ask(_BALLAST, _COUNT)
        if first.failure is not None:
            return self._report(one_line(first.failure.message, 400), 0, begun)
        self._streams(first)
        self._cache(first, await self.ask(_BALLAST, _COUNT))
        self._calls(await self.ask("", _BOTH, WEATHER))
        if self._found["tool_calls"].answer == "yes":
            self._undeclared(await self.ask(_HIDDEN, _POPULATION, WEATHER))
        else:
            self._note("undeclared_calls", "unknown", "not asked: no declared tool was called")
        self._reasoning()
        # Last: a server that loads models when they are asked has loaded this one by now.
        window, where = await find_window()
        self._note("window", "yes" if window else "unknown", f"{window:,} tokens, says {where}" if window else where)
        return self._report("", window, begun)

    async def ask(self, system: str, prompt: str, *tools: ToolSpec, most: int = MAX_OUTPUT) -> Heard:
        """One answer; what the provider would send again is given up."""
        dialect = self._provider.dialect
        message = dialect.message(Message("user", (Text(prompt),)), _no_image)
        options = RequestOptions(min(most, self._provider.model.max_output or most))
        body = dialect.body(self._model, system, dialect.tools_json(tools) if tools else "", [message], options)
        heard = Heard()
        self._heard.append(heard)
        begun = time.monotonic()
        try:
            async with asyncio.timeout(self._seconds):
                await self._listen(body, heard)
        except TimeoutError:
            heard.failure = Failed(
                "timeout", f"no complete answer within {self._seconds:.0f} seconds", True, heard.pieces > 0
            )
        heard.seconds = time.monotonic() - begun
        return heard

    async def _listen(self, body: bytes, heard: Heard) -> None:
        stream = self._provider.stream(body)
        try:
            async for event in stream:
                match event:
                    case TextDelta(text):
                        heard.text += text
                        heard.pieces += 1
                    case ReasoningDelta(text):
                        heard.reasoning += len(text)
                        heard.pieces += 1
                    case CallDelta(index, _, name):
                        heard.calls[index] = heard.calls.get(index, "") + name
                    case OpaqueDelta():
                        heard.opaque += 1
                    case UsageReport(usage):
                        heard.usage = usage
                    case Finished(reason):
                        heard.finish = reason
                    case Failed():
                        heard.failure = event
                    case Retrying(delay=delay) if delay > 0:
                        heard.failure = Failed("connect", event.reason, True, False)
                        return
        finally:
            close: Any = getattr(stream, "aclose", None)
            if close is not None:
                await close()

    # ------------------------------------------------------------------ what an answer shows

    def _streams(self, heard: Heard) -> None:
        size = len(heard.text) + heard.reasoning
        if heard.pieces > 1:
            self._note("streams", "yes", f"{size} characters in {heard.pieces} pieces")
        else:
            seen = f"{size} characters in one piece, after {heard.seconds:.2f} s" if size else "an empty answer"
            self._note("streams", "no" if size > 60 and heard.seconds >= self._slow else "unknown", seen)

    def _cache(self, first: Heard, second: Heard) -> None:
        if second.failure is not None:
            self._note("cache_telemetry", "unknown", f"the repeat failed: {second.failure.message}")
            return
        counted = [heard.usage for heard in (first, second) if heard.usage is not None]
        if not counted:
            self._note("cache_telemetry", "no", "no usage is reported at all")
        elif any(usage.cache_hit or usage.cache_miss for usage in counted):
            last = counted[-1]
            seen = f"of {last.input:,} prompt tokens sent twice, {last.cache_hit:,} hit the cache"
            self._note("cache_telemetry", "yes", seen)
        else:
            self._note("cache_telemetry", "no", f"{counted[-1].input:,} prompt tokens, nothing about a cache")

    def _calls(self, heard: Heard) -> None:
        names = list(heard.calls.values())
        made = names.count(WEATHER.name)
        if heard.failure is not None:
            refused = heard.failure.kind == "bad_request"
            seen = f"{'refused' if refused else 'failed'}: {heard.failure.message}"
            self._note("tool_calls", "no" if refused else "unknown", seen)
            self._note("parallel_calls", "unknown", "no call was made")
        elif made:
            self._note("tool_calls", "yes", f"called {', '.join(names)}")
            self._note("parallel_calls", "yes" if made > 1 else "no", f"{made} of two calls came in one answer")
        else:
            printed = WEATHER.name in heard.text
            self._written = printed and any(mark in heard.text for mark in (*MARKS, *WHOLE, "```tool"))
            seen = (
                "the call was printed as text" if printed else f"no call: {one_line(heard.text, 80) or heard.finish!r}"
            )
            cut = heard.finish == "length" and not printed
            self._note("tool_calls", "unknown" if cut else "no", seen)
            self._note("parallel_calls", "unknown", "no call was made")

    def _undeclared(self, heard: Heard) -> None:
        names = list(heard.calls.values())
        if heard.failure is not None:
            self._note("undeclared_calls", "unknown", f"failed: {heard.failure.message}")
        elif "get_population" in names:
            self._note("undeclared_calls", "yes", "called a tool that was only mentioned")
        elif "get_population" in heard.text and heard.finish != "length":
            self._note("undeclared_calls", "no", "the call was printed as text or talked about")
        else:
            seen = f"called {', '.join(names)}" if names else f"no call: {one_line(heard.text, 80) or heard.finish!r}"
            self._note("undeclared_calls", "unknown" if heard.finish == "length" else "no", seen)

    def _reasoning(self) -> None:
        size = sum(heard.reasoning for heard in self._heard)
        tokens = sum(heard.usage.reasoning for heard in self._heard if heard.usage is not None)
        kept = sum(heard.opaque for heard in self._heard)
        if size:
            self._note("reasoning", "yes", f"{size} characters in a field of their own, {tokens} tokens counted")
        elif tokens or kept:
            self._note("reasoning", "yes", f"{tokens} tokens counted, {kept} closed parts, no text")
        else:
            self._note("reasoning", "no", f"none in {len(self._heard)} answers")

    def _note(self, name: str, answer: Answer, evidence: str) -> None:
        self._found[name] = Finding(name, answer, one_line(evidence, 300))

    def _report(self, error: str, window: int, begun: float) -> Probe:
        nothing = "the provider did not answer"
        counted = [heard.usage for heard in self._heard if heard.usage is not None]
        return Probe(
            error=error,
            findings=tuple(self._found.get(name, Finding(name, "unknown", nothing)) for name in FINDINGS),
            window=window,
            facts=self._facts(),
            requests=len(self._heard),
            input=sum(usage.input for usage in counted),
            output=sum(usage.output for usage in counted),
            seconds=round(time.monotonic() - begun, 2),
        )

    def _facts(self) -> dict[str, Fact]:
        """What was seen for certain, by the name a configuration gives it."""
        names = {
            "undeclared_calls": "calls_undeclared_tools",
            "parallel_calls": "parallel_calls",
            "tool_calls": "tools",
        }
        found: dict[str, Fact] = {
            fact: self._found[name].answer == "yes"
            for name, fact in sorted(names.items(), key=lambda item: item[1])
            if name in self._found and self._found[name].answer != "unknown"
        }
        return {**found, "text_calls": True} if self._written else found


def _no_image(image: Image) -> bytes:
    raise KeyError(image.artifact)
