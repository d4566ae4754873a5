"""Sub-queries: asked once, kept, bounded, recorded by what they are made of, and answered slot by slot."""

import asyncio
import hashlib
import os
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from codewhale.process.artifacts import ArtifactStore
from codewhale.protocol.errors import CodeWhaleError, QuestionFailed
from codewhale.protocol.ports import Infilled, ModelQuestion, ModelReply
from codewhale.protocol.stream import Usage
from codewhale.rlm.answers import AnswerStore, KeptAnswer
from codewhale.rlm.fanout import SubQueries
from codewhale.rlm.model import Answered, KernelAsk, QueryLimits, RlmSettings
from codewhale.rlm.recipes import text_of
from codewhale.rlm.source import SourceFile

LINES = "".join(f"line {n} has {n * 7 % 10} apples\n" for n in range(200)).encode()


class Model:
    """Answers with the number of lines of a prompt; refuses what `refuse` says."""

    def __init__(self) -> None:
        self.asked: list[ModelQuestion] = []
        self.refuse: dict[int, QuestionFailed] = {}
        self.running = self.most = 0
        self.gate = asyncio.Event()
        self.gate.set()

    def asks(self, session: str) -> str:
        return "small"

    async def question(self, session: str, question: ModelQuestion) -> ModelReply:
        self.asked.append(question)
        number = len(self.asked)
        self.running += 1
        self.most = max(self.most, self.running)
        try:
            await self.gate.wait()
            await asyncio.sleep(0)
        finally:
            self.running -= 1
        if number in self.refuse:
            raise self.refuse[number]
        return ModelReply(str(question.text.count("\n")), "stop", Usage(input=10, output=1), "small")

    async def complete(self, session: str, prompt: str, *, max_tokens: int) -> str:
        raise AssertionError

    async def infill(self, session: str, prefix: str, suffix: str, *, max_tokens: int) -> Infilled:
        raise AssertionError


STORES: list[AnswerStore] = []


def opened(home: str, wait: float = 5.0) -> AnswerStore:
    """A store that is closed with the test."""
    STORES.append(AnswerStore(home, wait=wait))
    return STORES[-1]


@pytest.fixture(autouse=True)
def closed() -> Iterator[None]:
    yield
    while STORES:
        STORES.pop().close()


class Bench:
    """One session's sub-queries over LINES."""

    def __init__(self, folder: Path, model: Model) -> None:
        path = folder / "source.txt"
        path.write_bytes(LINES)
        self.artifacts = ArtifactStore(str(folder / "artifacts"))
        self.answers = opened(str(folder))
        self.source = SourceFile(str(path), "file")
        self.queries = SubQueries(model, self.artifacts, self.answers, self.source, "s1")

    async def ask(self, ask: KernelAsk) -> list[Answered]:
        slots: dict[int, Answered] = {}

        async def take(slot: int, answered: Answered) -> None:
            assert slot not in slots
            slots[slot] = answered

        await self.queries.ask(ask, take)
        return [slots[slot] for slot in range(len(ask.spans))]


def spans(count: int, size: int = 100) -> tuple[tuple[int, int], ...]:
    return tuple((n * size, n * size + size) for n in range(count))


@pytest.fixture
def model() -> Model:
    return Model()


@pytest.fixture
def bench(tmp_path: Path, model: Model) -> Bench:
    return Bench(tmp_path, model)


async def test_each_slot_is_answered_over_its_part_and_the_text_can_be_built_again(bench: Bench, model: Model) -> None:
    answers = await bench.ask(KernelAsk(1, "query", spans(16), template="Count the lines of {slice}"))
    assert [int(one.text) for one in answers] == [LINES[a:b].count(b"\n") for a, b in spans(16)]
    sources = {bench.source.sha256: bench.source}
    for question in model.asked:
        text = text_of(
            question.recipe,
            lambda sha: bench.artifacts.get(bench.artifacts.find(sha)[0]),
            lambda sha, a, b: next(one for name, one in sources.items() if name.startswith(sha)).read(a, b),
        )
        assert text == question.text
    assert bench.queries.coverage.spans == [(0, 1600)] and bench.queries.counts.queries == 16


async def test_a_repeated_question_asks_no_model_also_in_another_session(
    bench: Bench, model: Model, tmp_path: Path
) -> None:
    ask = KernelAsk(1, "query", spans(4), template="Count")
    first = await bench.ask(ask)
    again = await bench.ask(ask)
    assert ([one.text for one in again], len(model.asked)) == ([one.text for one in first], 4)
    assert all(one.cached for one in again) and bench.queries.counts.cached == 4
    other = SubQueries(model, bench.artifacts, opened(str(tmp_path)), bench.source, "s2")
    bench.queries = other
    await bench.ask(ask)
    other.settings = RlmSettings(temperature=0.9)
    await bench.ask(ask)
    assert len(model.asked) == 8
    assert bench.answers.totals().answers == 8 and bench.answers.clear() == 8
    other.settings = RlmSettings()
    await bench.ask(ask)
    assert len(model.asked) == 12 and bench.answers.totals().answers == 4  # that other session's store was open


async def test_at_most_sixteen_run_at_once_and_a_batch_of_seventeen_says_so(bench: Bench, model: Model) -> None:
    model.gate.clear()
    asks = [bench.ask(KernelAsk(n, "query", spans(16, 10 + n), template="Count")) for n in range(3)]
    running = asyncio.gather(*asks)
    while model.running < 16:  # noqa: ASYNC110
        await asyncio.sleep(0)
    model.gate.set()
    await running
    assert model.most == 16
    answers = await bench.ask(KernelAsk(9, "query", spans(17), template="Count"))
    assert {one.error for one in answers} == {"batch"} and "at most 16" in answers[0].text
    bench.queries.limits = QueryLimits(1000, 1000)
    many = KernelAsk(9, "query", spans(128, 1), template="Count all", whole=True)
    assert not any(one.error for one in await bench.ask(many)) and model.most == 16
    more = await bench.ask(KernelAsk(10, "query", spans(129, 1), template="Count all", whole=True))
    assert {one.error for one in more} == {"batch"}


async def test_after_a_quota_error_the_rest_is_not_asked(bench: Bench, model: Model) -> None:
    model.refuse = {n: QuestionFailed("execution_failed", "no credit left", "quota") for n in range(1, 99)}
    await bench.ask(KernelAsk(1, "query", spans(16), template="Count"))
    asked = len(model.asked)
    answers = await bench.ask(KernelAsk(2, "query", spans(16, 50), template="Count"))
    assert asked <= 16 and len(model.asked) == asked
    assert {one.error for one in answers} == {"stopped"} and "no credit left" in answers[0].text
    bench.queries.begin_round()
    model.refuse = {}
    assert (await bench.ask(KernelAsk(3, "query", spans(1, 50), template="Count")))[0].error == ""


async def test_one_failure_fills_its_own_slot_alone(bench: Bench, model: Model) -> None:
    model.refuse = {2: QuestionFailed("execution_failed", "overloaded", "server")}
    answers = await bench.ask(KernelAsk(1, "query", spans(5), template="Count"))
    assert sorted(one.error for one in answers) == ["", "", "", "", "server"]
    (failed,) = [one for one in answers if one.error]
    assert failed.text == "[sub-query failed: server: overloaded]"
    again = await bench.ask(KernelAsk(1, "query", spans(5), template="Count"))
    assert [one.error for one in again] == [""] * 5 and len(model.asked) == 6


async def test_rounds_and_sessions_have_their_most(bench: Bench, model: Model) -> None:
    bench.queries.limits = QueryLimits(session=10, round=6)
    answers = await bench.ask(KernelAsk(1, "query", spans(8), template="Count"))
    assert [one.error for one in answers].count("limit") == 2 and "next rlm_eval" in str(answers)
    bench.queries.begin_round()
    answers = await bench.ask(KernelAsk(2, "query", spans(8, 30), template="Count"))
    assert [one.error for one in answers].count("limit") == 4 and "max_sub_queries" in str(answers)
    assert len(model.asked) == 10


@pytest.mark.parametrize(
    ("span", "prompt", "kind"),
    [
        ((0, 10**9), "Count", "failed"),
        ((5, 2), "Count", "failed"),
        ((0, 5), "  ", "prompt"),
        ("x" * 400_001, "C", "prompt"),
    ],
)
async def test_what_cannot_be_asked_says_why(
    bench: Bench, model: Model, span: tuple[int, int] | str, prompt: str, kind: str
) -> None:
    (answer,) = await bench.ask(KernelAsk(1, "query", (span,), template=prompt))
    assert (answer.error, model.asked) == (kind, [])
    assert answer.text.startswith("[sub-query failed: ") and answer.text.endswith("]")


async def test_a_source_that_changed_is_not_read(bench: Bench, model: Model) -> None:
    with open(bench.source.path, "ab") as file:
        file.write(b"more")
    (answer,) = await bench.ask(KernelAsk(1, "query", ((0, 5),), template="Count"))
    assert answer.error == "failed" and "has changed" in answer.text and model.asked == []


async def test_a_cancel_ends_the_questions_under_way(bench: Bench, model: Model) -> None:
    model.gate.clear()
    running = asyncio.create_task(bench.ask(KernelAsk(1, "query", spans(5), template="Count")))
    while model.running < 5:  # noqa: ASYNC110
        await asyncio.sleep(0)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert model.running == 0


def test_a_damaged_store_is_begun_anew(tmp_path: Path) -> None:
    (tmp_path / "rlm").mkdir()
    (tmp_path / "rlm/answers.sqlite3").write_bytes(b"no database at all" * 400)
    from codewhale.rlm.answers import KeptAnswer

    store = opened(str(tmp_path))
    store.put("k", KeptAnswer("seven", "stop"), "small", "s1")
    assert store.get("k") == KeptAnswer("seven", "stop") and store.totals().bytes == 5
    assert (tmp_path / "rlm/answers.sqlite3").stat().st_mode & 0o777 == 0o600
    assert hashlib.sha256(b"").hexdigest() not in store.path


def test_a_cleared_store_holds_no_byte_and_is_clear_for_whoever_had_it_open(tmp_path: Path) -> None:
    working, clearing = opened(str(tmp_path)), opened(str(tmp_path))
    working.put("k", KeptAnswer("the vault is 7391", "stop"), "m", "s")
    assert clearing.clear() == 1 and clearing.clear() == 0
    assert working.get("k") is None and working.totals().answers == 0
    assert not any(b"7391" in path.read_bytes() for path in (tmp_path / "rlm").iterdir())
    working.put("n", KeptAnswer("eight", "stop"), "m", "s")
    assert clearing.get("n") == KeptAnswer("eight", "stop")


def test_a_busy_store_stays_and_nothing_waits_for_it(tmp_path: Path) -> None:
    store = opened(str(tmp_path))
    store.put("k", KeptAnswer("paid", "stop"), "m", "s")
    store.close()
    other = sqlite3.connect(store.path, isolation_level=None)
    other.execute("PRAGMA locking_mode = EXCLUSIVE")
    other.execute("BEGIN EXCLUSIVE")
    busy = opened(str(tmp_path), wait=0.01)
    assert busy.get("k") is None
    busy.put("n", KeptAnswer("lost", "stop"), "m", "s")
    for forget in (busy.clear, lambda: busy.drop(lambda text: True), busy.totals):
        with pytest.raises(CodeWhaleError, match="cannot be used now"):
            forget()
    other.execute("ROLLBACK")
    other.close()
    assert opened(str(tmp_path)).get("k") == KeptAnswer("paid", "stop")
    assert busy.totals().answers == 1


def test_a_store_that_cannot_be_read_or_written_costs_no_answer(tmp_path: Path) -> None:
    (tmp_path / "rlm/answers.sqlite3").mkdir(parents=True)
    store = opened(str(tmp_path))
    assert store.get("k") is None
    store.put("k", KeptAnswer("paid", "stop"), "m", "s")
    full = opened(str(tmp_path / "other"))
    full.put("k", KeptAnswer("kept", "stop"), "m", "s")
    assert full._base is not None
    full._base.execute("PRAGMA max_page_count = 1")
    full.put("n", KeptAnswer("n" * 100_000, "stop"), "m", "s")
    full.close()
    assert opened(str(tmp_path / "other")).get("k") == KeptAnswer("kept", "stop")


def test_a_damaged_store_leaves_nothing_beside_the_new_one(tmp_path: Path) -> None:
    (tmp_path / "rlm").mkdir()
    for end in ("", "-wal", "-shm"):
        (tmp_path / f"rlm/answers.sqlite3{end}").write_bytes(b"no database at all" * 4000)
    store = opened(str(tmp_path))
    assert store.get("k") is None
    store.put("k", KeptAnswer("seven", "stop"), "m", "s")
    assert store.get("k") == KeptAnswer("seven", "stop")
    assert not any(b"no database" in path.read_bytes() for path in (tmp_path / "rlm").iterdir())


def test_a_store_that_is_damaged_while_it_is_open_is_begun_anew(tmp_path: Path) -> None:
    store = opened(str(tmp_path))
    for number in range(300):
        store.put(f"k{number}", KeptAnswer("x" * 1000, "stop"), "m", "s")
    store.clear()
    for number in range(300):
        store.put(f"k{number}", KeptAnswer("x" * 1000, "stop"), "m", "s")
    store.close()
    size = os.path.getsize(store.path)
    with open(store.path, "r+b") as file:
        file.seek(3 * 4096)
        file.write(b"\xff" * (size - 3 * 4096))
    found = [store.get(f"k{number}") for number in range(300)]
    assert None in found
    store.put("k", KeptAnswer("seven", "stop"), "m", "s")
    assert store.get("k") == KeptAnswer("seven", "stop")


def test_an_answer_that_is_dropped_leaves_no_byte_and_the_others_stay(tmp_path: Path) -> None:
    store = opened(str(tmp_path))
    assert store.drop(lambda text: True) == 0 and not (tmp_path / "rlm").exists()
    for number in range(300):
        store.put(
            f"k{number}", KeptAnswer("the vault is 7391" if number == 7 else f"answer {number}", "stop"), "m", "s"
        )
    assert store.drop(lambda text: "7391" in text) == 1
    assert store.get("k7") is None and store.get("k8") == KeptAnswer("answer 8", "stop")
    assert not any(b"7391" in path.read_bytes() for path in (tmp_path / "rlm").iterdir())
    store.close()
    assert store.totals().answers == 299
