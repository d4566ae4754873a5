"""Fitting the weights of code search: a listwise fit with a ridge towards what all shapes of query share, and
cross-validation over repositories."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from codewhale.codesearch.features import FEATURES
from codewhale.codesearch.query import SHAPES

SHARED_RIDGE = 2e-3
SHAPE_RIDGE = 5e-3
FOLDS = 6
SHARES = {("whole", False): 1.0, ("root", False): 0.7, ("whole", True): 1.2}  # (corpus, commit query): weight of all

Floats = Any  # numpy arrays of float64


class Sample(NamedTuple):
    """A query and its candidates. `values`: candidates by features; `relevant`: 1.0 or 0.0 each; `corpus`: "whole" or
    "root"; `kind`: semantic, architecture, symbol or commit."""

    repo: str
    corpus: str
    kind: str
    pinned: bool
    shape: str
    values: Floats
    relevant: Floats
    expected: int


def fit(samples: Sequence[Sample], start: Floats, ridge: float, worth: Callable[[Sample], float]) -> Floats:
    """The weights that make right files likely, held to `start` by the ridge: a listwise softmax over the candidates of
    each question (Cao et al., "Learning to rank: from pairwise approach to listwise approach", 2007, right files
    weighed alike), and Newton's method, since it is convex. `worth` is what a question counts."""
    useful = [sample for sample in samples if sample.relevant.any()]
    if not useful:
        return start
    values = np.concatenate([sample.values for sample in useful]).astype(np.float64)
    sizes = np.array([len(sample.relevant) for sample in useful])
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    shares = np.concatenate([sample.relevant / sample.relevant.sum() for sample in useful])
    worths = np.array([worth(sample) for sample in useful])
    worths /= worths.sum()
    by_row = np.repeat(worths, sizes)

    def state(weights: Floats) -> tuple[float, Floats]:
        scores = values @ weights
        most = np.repeat(np.maximum.reduceat(scores, starts), sizes)
        odds = np.exp(scores - most)
        chance = odds / np.repeat(np.add.reduceat(odds, starts), sizes)
        away = weights - start
        return float(-(by_row * shares * np.log(np.maximum(chance, 1e-300))).sum() + ridge * away @ away), chance

    weights = start.copy()
    loss, chance = state(weights)
    for _ in range(50):
        slope = values.T @ (by_row * (chance - shares)) + 2 * ridge * (weights - start)
        means = np.add.reduceat(values * chance[:, None], starts)
        bend = (values * (by_row * chance)[:, None]).T @ values - (means * worths[:, None]).T @ means
        step = np.linalg.solve(bend + 2 * ridge * np.eye(len(weights)), slope)
        size = 1.0
        while size > 1e-4 and state(weights - size * step)[0] > loss:
            size /= 2
        weights = weights - size * step
        before, (loss, chance) = loss, state(weights)
        if before - loss < 1e-9:
            break
    return weights


def worths_of(samples: Sequence[Sample]) -> Callable[[Sample], float]:
    """What a query counts: annotated and commit queries, whole and small corpora each have their share of all."""
    counts: dict[tuple[str, bool], int] = {}
    for sample in samples:
        key = (sample.corpus, sample.kind == "commit")
        counts[key] = counts.get(key, 0) + 1
    return lambda sample: (
        SHARES.get((sample.corpus, sample.kind == "commit"), 0.0)
        / counts.get((sample.corpus, sample.kind == "commit"), 1)
    )


def fit_shapes(samples: Sequence[Sample]) -> dict[str, Floats]:
    """A weight vector for each shape of query, each held to the one fitted on all."""
    worth = worths_of(samples)
    shared = fit(samples, np.zeros(len(FEATURES)), SHARED_RIDGE, worth)
    return {
        shape: fit([sample for sample in samples if sample.shape == shape], shared, SHAPE_RIDGE, worth)
        for shape in SHAPES
    }


def folds(repos: Iterable[str], count: int = FOLDS) -> list[set[str]]:
    """The repositories in `count` groups of about one size, always the same."""
    ordered = sorted(repos, key=lambda name: (sum(map(ord, name)) * 2654435761 % 4294967296, name))
    return [set(ordered[at::count]) for at in range(count)]


def cross_fitted(samples: Sequence[Sample]) -> dict[str, dict[str, Floats]]:
    """For each repository, the weights fitted without it and the others of its fold."""
    fitted = {}
    for held in folds({sample.repo for sample in samples}):
        weights = fit_shapes([sample for sample in samples if sample.repo not in held])
        fitted.update(dict.fromkeys(held, weights))
    return fitted


def ndcg(sample: Sample, weights: Floats, most: int = 10) -> float:
    """NDCG@10 of the files of a sample in the order of their scores."""
    best = np.argsort(-(sample.values @ weights), kind="stable")[:most]
    gains = 1 / np.log2(np.arange(2, most + 2))
    ideal = float(gains[: min(most, sample.expected or int(sample.relevant.sum()))].sum())
    return float((sample.relevant[best] * gains[: len(best)]).sum()) / ideal if ideal else 0.0
