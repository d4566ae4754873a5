"""Fitting search weights, and the scores they are judged by."""

import sys
from pathlib import Path

import numpy as np
import pytest

from support.house import ROOT

sys.path.insert(0, str(ROOT / "scripts"))
import search_fit
from search_corpus import Place, Question, Target, recall_within, scores, under
from search_fit import Sample, cross_fitted, fit, fit_shapes, folds, ndcg

from codewhale.codesearch.features import FEATURES
from codewhale.codesearch.model import Commit
from codewhale.codesearch.query import SHAPES


def samples(repos: int = 6, queries: int = 8) -> list[Sample]:
    """Queries whose right file is the one with the most of the first feature, less a little of the second."""
    chance = np.random.default_rng(7)
    made = []
    for repo in range(repos):
        for query in range(queries):
            values = chance.random((12, len(FEATURES)))
            relevant = np.zeros(12)
            relevant[np.argmax(values[:, 0] - 0.5 * values[:, 1])] = 1
            kind = ("commit", "semantic")[query % 2]
            made.append(Sample(f"repo{repo}", "whole", kind, True, SHAPES[query % 3], values, relevant, 1))
    return made


def test_newton_reaches_the_flat_point() -> None:
    given = samples()
    found = fit(given, np.zeros(len(FEATURES)), 1e-2, lambda one: 1.0)

    def slope(sample: Sample) -> "np.ndarray[tuple[int], np.dtype[np.float64]]":
        odds = np.exp(sample.values @ found)
        lean: np.ndarray[tuple[int], np.dtype[np.float64]] = sample.values.T @ (odds / odds.sum() - sample.relevant)
        return lean

    gradient = sum(slope(sample) for sample in given) / len(given) + 2e-2 * found
    assert np.abs(gradient).max() < 1e-4
    assert found[0] > 0 > found[1]


def test_nothing_relevant_leaves_the_start() -> None:
    start = np.ones(len(FEATURES))
    blank = [sample._replace(relevant=np.zeros(12)) for sample in samples(1, 2)]
    assert fit(blank, start, 1e-2, lambda one: 1.0) is start


def test_a_repository_is_never_scored_by_what_was_fitted_on_it() -> None:
    given = samples()
    names = {sample.repo for sample in given}
    groups = folds(names)
    assert sorted(name for group in groups for name in group) == sorted(names) and len(groups) == search_fit.FOLDS
    spoiled = [
        sample._replace(relevant=np.roll(sample.relevant, 1)) if sample.repo == "repo3" else sample for sample in given
    ]
    kept, changed = cross_fitted(given)["repo3"], cross_fitted(spoiled)["repo3"]
    assert all(np.allclose(kept[shape], changed[shape]) for shape in SHAPES)
    assert not np.allclose(fit_shapes(given)[SHAPES[0]], fit_shapes(spoiled)[SHAPES[0]])


def test_fitted_weights_find_the_right_file() -> None:
    given = samples(8, 12)
    fitted = cross_fitted(given)
    reached = [ndcg(sample, fitted[sample.repo][sample.shape]) for sample in given]
    assert np.mean(reached) > 0.7


QUESTION = Question(
    id="q",
    repo="r",
    text="what",
    kind="semantic",
    pinned=True,
    lang="python",
    expected=frozenset({"a.py", "b.py"}),
    targets=(Target("a.py", 10, 20), Target("b.py", 0, 0)),
    source="",
)


@pytest.mark.parametrize(
    ("places", "file", "slot"),
    [
        ([Place("a.py", 12, 14), Place("b.py", 1, 2)], 1.0, 1.0),
        ([Place("a.py", 1, 5), Place("b.py", 1, 2)], 1.0, 0.387),
        ([Place("a.py", 1, 5), Place("a.py", 15, 30), Place("b.py", 1, 9)], 1.0, 0.693),
        ([Place("c.py", 1, 5), Place("b.py", 0, 0)], 0.387, 0.387),
        ([], 0.0, 0.0),
    ],
)
def test_scores_by_file_and_by_slot(places: list[Place], file: float, slot: float) -> None:
    reached = scores(QUESTION, places)
    assert (round(reached["file"], 3), round(reached["slot"], 3)) == (file, slot)


def test_recall_within_a_budget(tmp_path: Path) -> None:
    for name, lines in (("a.py", 100), ("b.py", 10)):
        (tmp_path / name).write_text("x" * 39 + "\n" + ("x" * 39 + "\n") * (lines - 1))
    places = [Place("a.py", 1, 100), Place("b.py", 1, 10)]
    assert recall_within(QUESTION, places, tmp_path, 1_000) == 0.5
    assert recall_within(QUESTION, places, tmp_path, 1_100) == 1.0
    assert recall_within(QUESTION, places, tmp_path, 10) == 0.0


def test_history_as_a_sub_folder_sees_it() -> None:
    commits = [Commit("a", 2, "both", ("src/x.py", "y.py")), Commit("b", 1, "outside", ("srcs/x.py",))]
    assert under("src", commits) == [Commit("a", 2, "both", ("x.py",))]
    assert under("", commits) == commits
