"""Slots for models: what a program adds to the best files, and what is said of one that adds nothing."""

import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from codewhale.codesearch.scorers import CORE, POOL, SLOTS, ModelSlot, ScorerError, Scorers, program_of
from codewhale.codesearch.search import CodeSearch, SearchAnswer
from codewhale.process.confinement import sandbox
from support.searchtree import planted

QUERY = "how are expired tokens refreshed"
# Names of files in alphabetical order: the last one is the best.
BY_NAME = """
for line in sys.stdin:
    asked = json.loads(line)
    names = sorted(one["path"] for one in asked["passages"])
    print(json.dumps({"scores": [names.index(one["path"]) for one in asked["passages"]]}), flush=True)
"""

Program = Callable[[str], str]

pytestmark = pytest.mark.skipif(not sandbox().mechanism, reason="nothing on this machine holds a command")


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    return planted(tmp_path)


@pytest.fixture
def program(tmp_path: Path) -> Program:
    """A model's folder with a program made of some lines of Python."""

    def made(body: str) -> str:
        folder = tmp_path / "model"
        folder.mkdir(exist_ok=True)
        scorer = folder / "scorer"
        scorer.write_text(f"#!{sys.executable}\nimport json, os, socket, sys, time\n{body}")
        scorer.chmod(0o755)
        return str(folder)

    return made


async def asked(tree: Path, tmp_path: Path, settings: Mapping[str, object], *, times: int = 1) -> list[SearchAnswer]:
    search = CodeSearch(str(tmp_path / "state"), settings=settings)
    try:
        return [await search.search(str(tree), QUERY, 3, patience=None) for _ in range(times)]
    finally:
        await search.aclose()


@pytest.mark.parametrize("slot", SLOTS, ids=lambda slot: slot.key)
async def test_a_slot_adds_its_signal_and_scores_stay_sums(
    slot: ModelSlot, tree: Path, tmp_path: Path, program: Program
) -> None:
    key, signal = slot.key, slot.signal
    (plain,) = await asked(tree, tmp_path, {})
    first, second = await asked(tree, tmp_path, {key: program(BY_NAME)}, times=2)
    assert first.backend.endswith(f"+{signal}") and first.notes == ()
    assert first.hits == second.hits and len(first.hits) == 3
    assert signal not in plain.backend
    for hit in first.hits:
        assert hit.score == round(sum(reason.value for reason in hit.reasons), 3)
        assert all(0 < reason.value <= slot.weight for reason in hit.reasons if reason.signal == signal)
    told = [reason.line() for hit in first.hits for reason in hit.reasons if reason.signal == signal]
    assert told and all("scored" in line for line in told)


async def test_passages_say_where_they_are_and_what_stands_there(tree: Path, tmp_path: Path, program: Program) -> None:
    body = """
for line in sys.stdin:
    asked = json.loads(line)
    good = all(one["line"] >= 1 and one["text"].strip() and len(one["text"]) <= 2000 for one in asked["passages"])
    tokens = ["refresh" in one["text"] for one in asked["passages"]]
    print(json.dumps({"scores": [float(good and one) for one in tokens]}), flush=True)
"""
    (answer,) = await asked(tree, tmp_path, {"rerank": program(body)})
    reasons = [reason for reason in answer.hits[0].reasons if reason.signal == "rerank"]
    assert answer.hits[0].path == "src/auth/token_store.py" and reasons[0].value == 4.0


async def test_a_program_has_no_network_and_writes_nothing(tree: Path, tmp_path: Path, program: Program) -> None:
    body = """
def refused(work):
    try:
        work()
    except OSError:
        return True
    return False
def write(): open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "written"), "w")
def dial(): socket.create_connection(("192.0.2.1", 80), 0.5)
held = refused(write) and refused(dial)
for line in sys.stdin:
    scores = [float(one["path"].endswith("token_store.py")) for one in json.loads(line)["passages"]]
    print(json.dumps({"scores": scores if held else []}), flush=True)
"""
    (answer,) = await asked(tree, tmp_path, {"dense-embed": program(body)})
    assert answer.notes == () and not (tmp_path / "model" / "written").exists()


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ("print('no JSON', flush=True); sys.stdin.read()", "did not answer with scores"),
        ("print('{\"scores\": [1.0]}', flush=True); sys.stdin.read()", "gave 1 scores for"),
        ("sys.exit('the model is not there')", "ended without an answer: the model is not there"),
        ("sys.exit(3)", "ended without an answer (exit code 3)"),
        ("print('x' * 2_000_000, end='', flush=True); sys.stdin.read()", "did not answer with scores"),
    ],
)
async def test_what_does_not_score_is_said_and_left_out(
    body: str, told: str, tree: Path, tmp_path: Path, program: Program
) -> None:
    (plain,) = await asked(tree, tmp_path, {})
    first, _, third = await asked(tree, tmp_path, {"rerank": program(body)}, times=3)
    assert [hit.path for hit in first.hits] == [hit.path for hit in plain.hits]
    (note,) = first.notes
    assert note.startswith("rerank ") and told in note and note.endswith("The answer does not use it.")
    assert "failed 2 times and is not used any more" in third.notes[0]


async def test_a_program_that_says_nothing_is_ended(tree: Path, tmp_path: Path, program: Program) -> None:
    scorers = Scorers({"rerank": program("time.sleep(3600)")}, start_seconds=0.3)
    search = CodeSearch(str(tmp_path / "state"))
    answer = await search.search(str(tree), QUERY, POOL, patience=None)
    hits, signals, problems = await scorers.scored(str(tree), QUERY, answer.hits, 3)
    assert hits == answer.hits[:3] and signals == () and "did not answer within 0.3 seconds" in problems[0]
    await scorers.aclose()
    await search.aclose()


def test_a_place_without_a_program_is_refused_by_name(tmp_path: Path) -> None:
    (tmp_path / "weights.bin").write_bytes(b"")
    for path, told in (
        ("models/x", "must be an absolute path"),
        (str(tmp_path / "gone"), "there is no"),
        (str(tmp_path), "a folder with one called scorer"),
        (str(tmp_path / "weights.bin"), "is a model, not a program"),
    ):
        with pytest.raises(ScorerError, match=told):
            program_of("rerank", path)


async def test_without_an_index_names_and_text_answer_and_it_is_said(tree: Path, tmp_path: Path) -> None:
    (answer,) = await asked(tree, tmp_path, {CORE: False})
    assert answer.backend == "path+text" and answer.hits
    assert "codebase-search-core = false" in answer.notes[0]
    assert not (tmp_path / "state").exists()
    search = CodeSearch(str(tmp_path / "state"), settings={CORE: False})
    assert await search.read(str(tree), lambda reader: 1) == (
        None,
        (f"The code index is switched off ({CORE} = false).",),
    )
    assert not search.is_indexed(str(tree))
