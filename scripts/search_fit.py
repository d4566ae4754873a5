"""Fitting the weights of code search: the fit of codesearch/refining.py with a ridge towards what all shapes of query
share, and cross-validation over repositories."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from codewhale.codesearch import refining
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
    """The weights that make relevant files likely, held to `start` by the ridge."""
    asked = [refining.Asked(sample.values, sample.relevant, sample.shape) for sample in samples]
    return refining.fit(asked, start, ridge, [worth(sample) for sample in samples])


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
    return refining.ndcg(sample.values @ weights, sample.relevant, sample.expected, most)
