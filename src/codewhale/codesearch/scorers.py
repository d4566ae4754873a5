"""Slots for models of a person's own. A slot names a program on this machine, or a model's folder that holds one called
`scorer`; it scores passages for a query and so adds a signal to the best files. It runs in the read-only sandbox, which
has no network: nothing is ever downloaded."""

import asyncio
import contextlib
import math
import os
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from codewhale.codesearch.rank import Hit, with_exact
from codewhale.codesearch.reasons import EXACT, Reason
from codewhale.codesearch.snippets import passages
from codewhale.process.launch import Child, Launch, settle, start
from codewhale.protocol.errors import ToolError

CORE = "codebase-search-core"
SCORER = "scorer"
POOL = 50  # files that are scored
START_SECONDS = 30.0  # for the first answer: a model is loaded
SECONDS = 5.0
_MOST_FAILURES = 2  # in a row, then a slot is left alone
_MOST_BYTES = 1 << 20  # of an answer


class ModelSlot(Struct, frozen=True):
    """A kind of model: the key that configures it, the signal it adds, and how much that is between the best and the
    worst of what it scores."""

    key: str
    signal: str
    weight: float


# A reranker reads query and passage together and has the last word; the two others are signals among others.
SLOTS = (
    ModelSlot("sparse-splade", "sparse", 1.0),
    ModelSlot("dense-embed", "dense", 1.0),
    ModelSlot("rerank", "rerank", 4.0),
)


class ScorerError(Exception):
    """A slot has nothing to say, and why, in words for a person."""


class _Scores(Struct):
    scores: list[float]


class Scorer:
    """One slot's program, started when it is first asked and kept running. Its input is a JSON object a line,
    {"query", "passages": [{"path", "line", "text"}]}; to each it answers a line {"scores": [number, ...]}, one a
    passage, the greater the better."""

    def __init__(self, slot: ModelSlot, path: str, start_seconds: float = START_SECONDS) -> None:
        self.slot = slot
        self._start_seconds = start_seconds
        self.path = path
        self._child: Child | None = None
        self._said: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._rest = b""
        self._failures = 0
        self._lock = asyncio.Lock()

    async def scores(self, query: str, texts: Sequence[Mapping[str, Any]]) -> list[float]:
        """A score for each passage. Raises ScorerError."""
        if self._failures >= _MOST_FAILURES:
            raise ScorerError(f"{self.slot.key} failed {_MOST_FAILURES} times and is not used any more")
        async with self._lock:
            answered = False
            try:
                found = await self._asked(msgspec.json.encode({"query": query, "passages": texts}) + b"\n", len(texts))
                answered, self._failures = True, 0
                return found
            except ScorerError:
                self._failures += 1
                raise
            finally:
                if not answered:
                    await self.aclose()

    async def aclose(self) -> None:
        """End the program."""
        child, self._child = self._child, None
        if child is not None:
            await settle(child.kill())

    async def _asked(self, line: bytes, count: int) -> list[float]:
        seconds = SECONDS if self._child is not None else self._start_seconds
        try:
            async with asyncio.timeout(seconds):
                child = self._child = self._child or await self._started()
                with contextlib.suppress(BrokenPipeError, ConnectionError):
                    await child.write(line)
                said = await self._said.get()
        except TimeoutError:
            raise ScorerError(f"{self.slot.key} did not answer within {seconds:g} seconds") from None
        except (OSError, ToolError) as error:
            raise ScorerError(f"{self.slot.key} cannot be run: {error}") from None
        if said is None:
            raise ScorerError(f"{self.slot.key} ended without an answer{await _last_words(child)}")
        return self._read(said, count)

    def _read(self, said: bytes, count: int) -> list[float]:
        try:
            found = msgspec.json.decode(said, type=_Scores).scores
        except (msgspec.DecodeError, UnicodeError) as error:
            raise ScorerError(f"{self.slot.key} did not answer with scores: {error}") from None
        if len(found) != count or not all(map(math.isfinite, found)):
            raise ScorerError(f"{self.slot.key} gave {len(found)} scores for {count} passages")
        return found

    async def _started(self) -> Child:
        program = program_of(self.slot.key, self.path)
        said = self._said = asyncio.Queue()
        self._rest = b""
        folder = os.path.dirname(program)
        child = await start(Launch((program,), folder, "read-only", keep_stdin=True, output_limit=4096), self._heard)
        asyncio.ensure_future(child.ended()).add_done_callback(lambda _: said.put_nowait(None))
        return child

    def _heard(self, stream: str, data: bytes) -> None:
        if stream == "stdout":
            *lines, self._rest = (self._rest + data).split(b"\n")
            for line in lines:
                self._said.put_nowait(line)
            if len(self._rest) > _MOST_BYTES:
                self._said.put_nowait(b"")


async def _last_words(child: Child) -> str:
    done = await child.wait()
    told = done.stderr.decode("utf-8", "replace").strip().rpartition("\n")[2][:200]
    return f": {told}" if told else f" (exit code {done.exit_code})"


def program_of(key: str, path: str) -> str:
    """The program that a slot names. Raises ScorerError."""
    place = os.path.expanduser(path)
    if not os.path.isabs(place):
        raise ScorerError(f"{key} must be an absolute path, or begin with ~/, not {path!r}")
    found = os.path.join(place, SCORER) if os.path.isdir(place) else place
    if not os.path.isfile(found):
        raise ScorerError(f"{key}: there is no {found}; set it to a program, or to a folder with one called {SCORER}")
    if not os.access(found, os.X_OK):
        raise ScorerError(
            f"{key}: {found} is a model, not a program; put the program that runs it beside it, as {SCORER}"
        )
    return found


class Scorers:
    """The slots that are filled."""

    def __init__(self, settings: Mapping[str, Any], start_seconds: float = START_SECONDS) -> None:
        """`settings` are configuration keys and their values; an empty one leaves a slot empty. A program has
        `start_seconds` for its first answer."""
        self._scorers = [Scorer(slot, settings[slot.key], start_seconds) for slot in SLOTS if settings.get(slot.key)]

    def __bool__(self) -> bool:
        return bool(self._scorers)

    async def scored(
        self, root: str, query: str, hits: Sequence[Hit], limit: int
    ) -> tuple[tuple[Hit, ...], tuple[str, ...], tuple[str, ...]]:
        """The `limit` best of hits with the scores of the slots, the signals that answered, and why others did
        not."""
        if not hits:
            return (), (), ()
        texts = await asyncio.to_thread(passages, root, hits)
        signals, problems = list[str](), list[str]()
        added: list[list[Reason]] = [[] for _ in hits]
        for scorer in self._scorers:
            try:
                scores = await scorer.scores(query, texts)
            except ScorerError as error:
                problems.append(f"{error}. The answer does not use it.")
                continue
            signals.append(scorer.slot.signal)
            for reasons, reason in zip(added, _reasons(scorer.slot, scores), strict=True):
                reasons += [reason] if reason.value else []
        ranked = sorted((_with(hit, new) for hit, new in zip(hits, added, strict=True)), key=lambda hit: -hit.score)
        exact = {hit for hit in ranked if _is_exact(hit)}
        kept = with_exact(ranked, exact, limit, len(exact) if len(exact) <= limit else 0)
        return tuple(kept), tuple(signals), tuple(problems)

    async def aclose(self) -> None:
        """End the programs."""
        for scorer in self._scorers:
            await scorer.aclose()


def _reasons(slot: ModelSlot, scores: Sequence[float]) -> list[Reason]:
    """What each score adds: nothing for the least, all of the slot's weight for the greatest."""
    low, high = min(scores), max(scores)
    order = sorted(range(len(scores)), key=lambda at: -scores[at])
    place = {at: rank for rank, at in enumerate(order, start=1)}
    return [
        Reason(
            slot.signal,
            round(slot.weight * (score - low) / (high - low), 3) if high > low else 0.0,
            f"scored {score:.3g}, {place[at]} of {len(scores)}",
        )
        for at, score in enumerate(scores)
    ]


def _with(hit: Hit, reasons: Sequence[Reason]) -> Hit:
    if not reasons:
        return hit
    told = (*hit.reasons, *reasons)
    return replace(hit, score=round(sum(reason.value for reason in told), 3), reasons=told)


def _is_exact(hit: Hit) -> bool:
    return any(reason.signal == EXACT for reason in hit.reasons)
