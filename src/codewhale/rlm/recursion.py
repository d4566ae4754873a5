"""sub_rlm: a question whose answer a model works out with code, over a part of the source in a kernel of its own."""

import asyncio
import re

from codewhale.process.artifacts import ArtifactStore
from codewhale.protocol.errors import QuestionFailed
from codewhale.protocol.ports import Completer, ModelQuestion
from codewhale.rlm.fanout import SubQueries
from codewhale.rlm.model import RoundResult
from codewhale.rlm.process import KernelLost, KernelProcess
from codewhale.rlm.recipes import recipe
from codewhale.rlm.slots import KernelSlots
from codewhale.rlm.source import SourceFile

ROUNDS = 8
_SHOWN = 4_000
_CODE = re.compile(r"```(?:python|py|repl)?[ \t]*\n(.*?)```", re.DOTALL)
GUIDE = """Answer a question about a long text that you do not see. You have a Python session in which SOURCE is the
text (len(SOURCE), SOURCE[a:b], SOURCE.find). Send one ```python block at a time; you read what it prints. Helpers:
peek(start, end), search(pattern), chunk(max_chars), sub_query(prompt, slice), sub_query_all(prompt, slices). When you
know the answer, call finalize(answer) in a block. Example:
```python
counts = sub_query_all("How many complaints are in this part? Answer with a number only.", chunk(20000))
finalize(sum(int(one) for one in counts))
```"""


class Recursion:
    """Solves questions for the sessions of a conversation; what it asks counts as theirs."""

    def __init__(self, completer: Completer, artifacts: ArtifactStore, owner: str, slots: KernelSlots) -> None:
        self._completer = completer
        self._artifacts = artifacts
        self._owner = owner
        self._slots = slots

    async def solve(self, parent: SubQueries, prompt: str, part: bytes) -> str:
        """The answer. Where the settings allow no deeper session, that of one plain question. Raises QuestionFailed."""
        depth = parent.settings.sub_rlm_max_depth
        sha = await asyncio.to_thread(self._artifacts.put, part)
        source = await asyncio.to_thread(SourceFile, self._artifacts.path(sha), "part")
        try:
            queries = parent.below(source)
            if depth > 1:
                queries.recurse = lambda question, inner: self.solve(queries, question, inner)
            async with self._slots.taken(depth):
                return await self._rounds(queries, source, prompt)
        finally:
            source.close()

    async def _rounds(self, queries: SubQueries, source: SourceFile, prompt: str) -> str:
        kernel = await KernelProcess.start(source.path, source.bytes)
        story = f"{GUIDE}\n\nThe text has {source.bytes:,} bytes.\nQuestion: {prompt}\n"
        try:
            for number in range(1, ROUNDS + 1):
                reply = await self._ask(queries, story)
                code = _CODE.search(reply)
                if code is None:
                    return reply.strip()
                try:
                    result = await kernel.run(code[1], queries.settings.round_seconds, queries.ask)
                except KernelLost as lost:
                    result = RoundResult(0, error=lost.error)
                if result.threads or not kernel.alive:
                    await kernel.close()
                    kernel = await KernelProcess.start(source.path, source.bytes)
                if result.finals:
                    return str(result.finals[-1].value)
                story += f"\n[round {number}]\n{reply.strip()}\n[output]\n{_shown(result)}\n"
        finally:
            await kernel.close()
        return f"[sub_rlm: no answer after {ROUNDS} rounds; ask about a smaller part, or more precisely]"

    async def _ask(self, queries: SubQueries, story: str) -> str:
        queries.admit()
        sha = await asyncio.to_thread(self._artifacts.put, story.encode())
        settings = queries.settings
        question = ModelQuestion(
            story,
            recipe(sha, "", (0, 0)),
            temperature=settings.temperature,
            max_tokens=settings.max_tokens,
            seconds=float(settings.sub_query_timeout_secs),
        )
        reply = await self._completer.question(self._owner, question)
        queries.count(reply.usage)
        if not reply.text.strip():
            raise QuestionFailed("execution_failed", "the model answered nothing", "empty")
        return reply.text


def _shown(result: RoundResult) -> str:
    error = f"{result.error.message}\n{result.error.traceback}".strip() if result.error is not None else ""
    text = "\n".join(filter(None, (result.stdout.text.strip(), result.stderr.text.strip(), error))) or "(nothing)"
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}\n[{len(text) - _SHOWN:,} more characters]"
