"""Sub-queries: each slot of a kernel's ask becomes one question to a model, unless its answer is kept."""

import asyncio
import hashlib
from collections.abc import Awaitable, Callable

from msgspec import structs

from codewhale.process.artifacts import ArtifactStore
from codewhale.protocol.errors import CodeWhaleError, QuestionFailed, ToolError
from codewhale.protocol.ports import Completer, ModelQuestion
from codewhale.protocol.stream import Usage
from codewhale.rlm.answers import AnswerStore, KeptAnswer, answer_key
from codewhale.rlm.model import BATCH, PROMPT_CHARS, WHOLE, Answered, Counts, KernelAsk, QueryLimits, RlmSettings
from codewhale.rlm.recipes import query_text, recipe
from codewhale.rlm.source import Coverage, SourceFile

# After these nothing more of a round is asked.
_ENDS = ("quota", "budget", "auth")
Answer = Callable[[int, Answered], Awaitable[None]]
Recurse = Callable[[str, bytes], Awaitable[str]]


class SubQueries:
    """The questions of one session, for the conversation `owner`."""

    def __init__(
        self, completer: Completer, artifacts: ArtifactStore, answers: AnswerStore, source: SourceFile, owner: str
    ) -> None:
        self.settings = RlmSettings()
        self.limits = QueryLimits()
        self.counts = Counts()
        self.coverage = Coverage()
        self.round = 0  # questions of the round at hand
        self.recurse: Recurse | None = None
        self.top: SubQueries = self  # of the session that a conversation opened
        self._completer = completer
        self._artifacts = artifacts
        self._answers = answers
        self._source = source
        self._owner = owner
        self._slots = asyncio.Semaphore(BATCH)
        self._kept: dict[str, str] = {}
        self._over = ""

    def begin_round(self) -> None:
        self.round, self._over = 0, ""

    async def ask(self, ask: KernelAsk, answer: Answer) -> None:
        """Answer every slot, in the order in which answers come. A cancel ends the questions under way."""
        most = WHOLE if ask.whole else BATCH
        if len(ask.spans) > most:
            text = f"a batch has at most {most} sub-queries, this one {len(ask.spans)}; sub_query_all splits by itself"
            for slot in range(len(ask.spans)):
                await answer(slot, _failed("batch", text))
            return
        async with asyncio.TaskGroup() as group:
            for slot in range(len(ask.spans)):
                group.create_task(self._slot(ask, slot, answer))

    async def _slot(self, ask: KernelAsk, slot: int, answer: Answer) -> None:
        try:
            answered = await self._answered(ask, slot)
        except QuestionFailed as failed:
            if failed.failure in _ENDS:
                self._over = f"nothing more is asked in this round: {failed.message}"
            answered = _failed(failed.failure, failed.message)
        except (ToolError, CodeWhaleError, OSError) as error:
            answered = _failed("failed", str(error))
        self.counts.failed += bool(answered.error)
        await answer(slot, answered)

    async def _answered(self, ask: KernelAsk, slot: int) -> Answered:
        prompt, span = ask.prompt(slot), ask.spans[slot]
        if not prompt.strip():
            return _failed("prompt", "the prompt is empty; say what to do with the slice")
        part = await self._part(span)
        if ask.kind == "rlm" and self.recurse is not None and self.settings.sub_rlm_max_depth > 0:
            whole = span is None
            return Answered(await self.recurse(prompt, self._source.read(0, self._source.bytes) if whole else part))
        text = query_text(prompt, part.decode("utf-8", "replace"))
        if len(text) > PROMPT_CHARS:
            most = f"a sub-query has at most {PROMPT_CHARS:,} characters, this one {len(text):,}; use smaller slices"
            return _failed("prompt", most)
        spans = [span] if isinstance(span, tuple) else []
        model = self._completer.asks(self._owner)
        settings = self.settings
        parameters: dict[str, object] = {"temperature": settings.temperature, "max_tokens": settings.max_tokens}
        key = answer_key(model, parameters, prompt, part)
        if (kept := self._answers.get(key)) is not None:
            self.counts.cached += 1
            self.coverage.add(spans)
            return Answered(_cut(kept.text, kept.finish, settings.max_tokens), cached=True)
        made = await self._recipe(prompt if spans else text, spans)
        async with self._slots:
            self.admit()
            self.counts.longest_prompt = max(self.counts.longest_prompt, len(text))
            reply = await self._completer.question(
                self._owner,
                ModelQuestion(
                    text,
                    made,
                    model=model,
                    effort="off",
                    temperature=settings.temperature,
                    max_tokens=settings.max_tokens,
                    seconds=float(settings.sub_query_timeout_secs),
                ),
            )
        self.count(reply.usage)
        self._answers.put(key, KeptAnswer(reply.text, reply.finish), reply.model, self._owner)
        self.coverage.add(spans)
        return Answered(_cut(reply.text, reply.finish, settings.max_tokens))

    def admit(self) -> None:
        """Count one question. Raises QuestionFailed where there is no room for it, or nothing more is asked."""
        if self._over:
            raise QuestionFailed("not_available", self._over, "stopped")
        session, most = self.limits.session, self.limits.round
        if self.counts.queries >= session:
            text = f"this session has asked its {session} sub-queries; rlm_configure max_sub_queries asks for more"
            raise QuestionFailed("not_available", text, "limit")
        if self.top.round >= most:
            text = f"this round has asked its {most} sub-queries; go on in the next rlm_eval"
            raise QuestionFailed("not_available", text, "limit")
        self.counts.queries += 1
        self.top.round += 1

    def count(self, usage: Usage) -> None:
        self.counts.input += usage.input
        self.counts.output += usage.output
        self.counts.cache_hit += usage.cache_hit
        self.counts.cache_miss += usage.cache_miss

    def below(self, source: SourceFile) -> "SubQueries":
        """Those of a session one level deeper, over a part: they share its bounds and its counts."""
        queries = SubQueries(self._completer, self._artifacts, self._answers, source, self._owner)
        queries.settings = structs.replace(self.settings, sub_rlm_max_depth=self.settings.sub_rlm_max_depth - 1)
        queries.limits, queries.counts, queries.top = self.limits, self.counts, self.top
        return queries

    async def _part(self, span: tuple[int, int] | str | None) -> bytes:
        if span is None:
            return b""
        if isinstance(span, str):
            return span.encode("utf-8", "replace")
        start, end = span
        if not 0 <= start <= end <= self._source.bytes:
            raise ToolError(
                "invalid_input", f"the span {start}-{end} is outside the source of {self._source.bytes} bytes"
            )
        return self._source.read(start, end)

    async def _recipe(self, prompt: str, spans: list[tuple[int, int]]) -> dict[str, object]:
        sha = hashlib.sha256(prompt.encode("utf-8", "replace")).hexdigest()
        if sha not in self._kept:
            self._kept[sha] = await asyncio.to_thread(self._artifacts.put, prompt.encode("utf-8", "replace"))
        return recipe(sha, self._source.sha256 if spans else "", spans[0] if spans else (0, 0))


def _failed(kind: str, message: str) -> Answered:
    return Answered(f"[sub-query failed: {kind}: {message}]", kind)


def _cut(text: str, finish: str, most: int) -> str:
    return f"{text}\n[cut: the answer reached its {most:,} tokens]" if finish == "length" else text
