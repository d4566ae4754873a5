"""Weights fitted to a repository's own commits: what is asked, what is kept, and when it is done again."""

import asyncio
import subprocess
from collections.abc import Iterator
from pathlib import Path

import msgspec
import numpy as np
import pytest
from msgspec.structs import replace

from codewhale.codesearch.answering import CodeSearch
from codewhale.codesearch.build import Index
from codewhale.codesearch.corpus import Corpus
from codewhale.codesearch.features import FEATURES
from codewhale.codesearch.model import Commit
from codewhale.codesearch.query import SHAPES
from codewhale.codesearch.rank import Weights
from codewhale.codesearch.reader import Reader
from codewhale.codesearch.refining import (
    KEY,
    LARGEST_STEP,
    LEAST_QUESTIONS,
    Asked,
    Refined,
    fit,
    is_due,
    ndcg,
    own_questions,
    refine,
    refined,
)
from codewhale.codesearch.terms import Terms
from support.searchtree import index_of

WORDS = "anchor barnacle compass dolphin estuary ferry gannet harbour iceberg jetty kelp lagoon".split()
COUNT = 84
BLIND = replace(Weights.shipped(), shapes={shape: dict.fromkeys(FEATURES, 0.0) for shape in SHAPES})


def subject(number: int) -> str:
    return f"Rework how the {WORDS[number % len(WORDS)]} is drawn, part {number}"


def path(number: int) -> str:
    return f"src/{WORDS[number % len(WORDS)]}.py"


def planted(folder: Path) -> Path:
    (folder / "tree" / "src").mkdir(parents=True)
    for number, word in enumerate(WORDS):
        other = WORDS[(number + 1) % len(WORDS)]
        text = f"def draw_{word}() -> None:\n    {word} = '{other}'\n"
        (folder / "tree" / path(number)).write_text(text, "utf-8")
    return folder / "tree"


@pytest.fixture
def reader(tmp_path: Path) -> Iterator[Reader]:
    planted(tmp_path)
    commits = [
        Commit(f"{number:040x}", 1_700_000_000 - number, subject(number), (path(number),)) for number in range(COUNT)
    ]
    found = index_of(tmp_path, commits)
    yield found
    found.close()


def test_commits_are_asked_without_themselves(reader: Reader) -> None:
    asked = list(own_questions(Corpus(reader, Terms())))
    assert len(asked) == COUNT and all(one.right.sum() == 1 for one in asked)
    column = FEATURES.index("history")
    for one in asked[:12]:
        assert one.values[one.right == 1][:, column].max() > 0  # other commits speak of the file too


def test_what_only_one_commit_says_is_not_known_to_its_question(tmp_path: Path) -> None:
    planted(tmp_path)
    reader = index_of(tmp_path, [Commit("f" * 40, 1_800_000_000, "Teach jetty pontoons to float", ("src/jetty.py",))])
    (one,) = own_questions(Corpus(reader, Terms()))
    assert not one.values[:, FEATURES.index("history")].any()
    reader.close()


def test_a_step_is_bounded_and_kept_where_it_ranks_newer_commits_better(reader: Reader) -> None:
    found = refine(Corpus(reader, Terms()), BLIND)
    assert found.after > found.before + 0.005 and set(found.steps) == set(SHAPES)
    assert all(abs(step) <= LARGEST_STEP for steps in found.steps.values() for step in steps.values())
    assert found.newest == f"{0:040x}"


def test_where_nothing_is_gained_nothing_is_changed(reader: Reader) -> None:
    found = refine(Corpus(reader, Terms()), Weights.shipped())
    assert found.steps == {} and found.before > 0.9
    assert refined(reader, Weights.shipped()) == Weights.shipped()


def test_stopped_early_there_is_too_little_to_go_by(reader: Reader) -> None:
    left = iter(range(LEAST_QUESTIONS - 1))
    found = refine(Corpus(reader, Terms()), BLIND, lambda: next(left, None) is None)
    assert (found.steps, found.before) == ({}, 0.0)


def test_it_is_due_once_for_weights_and_a_history(reader: Reader, tmp_path: Path) -> None:
    assert is_due(reader, BLIND)
    store = Index(str(tmp_path / "tree"), str(tmp_path / "state"), workers=1).open()
    store.remember(**{KEY: msgspec.json.encode(refine(Corpus(reader, Terms()), BLIND))})
    later = Reader(store)
    assert not is_due(later, BLIND) and is_due(later, Weights.shipped())
    assert refined(later, BLIND) != BLIND and refined(later, Weights.shipped()) == Weights.shipped()
    later.close()
    for spoiled in (b"", b"no JSON", b"[]", 7):
        store = Index(str(tmp_path / "tree"), str(tmp_path / "state"), workers=1).open()
        store.remember(**{KEY: spoiled})
        later = Reader(store)
        assert is_due(later, BLIND) and refined(later, BLIND) == BLIND
        later.close()


def test_a_short_history_is_left_alone(tmp_path: Path) -> None:
    planted(tmp_path)
    reader = index_of(tmp_path, [Commit("f" * 40, 1_800_000_000, subject(1), (path(1),))])
    assert not is_due(reader, BLIND)
    reader.close()


def test_a_fit_finds_what_tells_right_from_wrong() -> None:
    chance = np.random.default_rng(3)
    asked = []
    for _ in range(60):
        values = chance.random((10, 3))
        asked.append(Asked(values, (values[:, 0] == values[:, 0].max()).astype(float), "question"))
    weights = fit(asked, np.zeros(3), 0.01, [1.0] * 60)
    assert weights[0] > 1.0 > abs(weights[1]) and abs(weights[2]) < 1.0
    assert np.mean([ndcg(one.values @ weights, one.right) for one in asked]) > 0.9
    assert ndcg(np.zeros(2), np.zeros(2)) == 0.0


def test_who_waits_for_the_index_gets_the_refined_answer(tmp_path: Path) -> None:
    tree = planted(tmp_path)
    stream = ["reset refs/heads/main\n"]
    for number in range(COUNT):
        said, text = (
            subject(number),
            (tree / path(number)).read_text() if number >= COUNT - 12 else f"part = {number}\n",
        )
        stream.append(
            f"commit refs/heads/main\ncommitter A <a@b.c> {1_700_000_000 + number} +0000\ndata {len(said)}\n{said}\n"
            f"M 100644 inline {path(number)}\ndata {len(text)}\n{text}\n"
        )
    subprocess.run(["git", "init", "-q", "-b", "main"], cwd=tree, check=True)
    subprocess.run(["git", "fast-import", "--quiet"], cwd=tree, input="".join(stream).encode(), check=True)

    async def ask() -> list[float]:
        search = CodeSearch(str(tmp_path / "home"), weights=BLIND)
        waited = await search.search(str(tree), subject(5), 3, patience=None)
        again = await search.search(str(tree), subject(5), 3, patience=2.0)
        await search.aclose()
        assert waited.hits == again.hits and waited.notes == ()
        for hit in waited.hits:
            assert hit.score == round(sum(reason.value for reason in hit.reasons), 3)
        return [waited.hits[0].score]

    assert asyncio.run(ask())[0] > 0
    store = Index(str(tree), str(tmp_path / "home")).open()
    assert msgspec.json.decode(store.meta(KEY), type=Refined).steps
    store.close()
