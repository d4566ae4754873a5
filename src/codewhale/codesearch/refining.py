"""Weights that fit one repository a little better: its own commits are questions (the subject) with known answers (the
files). A step is bounded, and kept only where it ranks newer commits, which it was not fitted on, better."""

import zlib
from collections.abc import Callable, Iterator, Sequence
from itertools import takewhile
from typing import TYPE_CHECKING, NamedTuple

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from codewhale.codesearch.corpus import Corpus
from codewhale.codesearch.evidence import Evidence
from codewhale.codesearch.features import FEATURES, candidates, matrix
from codewhale.codesearch.query import read_query
from codewhale.codesearch.rank import Weights
from codewhale.codesearch.reader import Reader

if TYPE_CHECKING:
    from codewhale.codesearch.corpus import Floats

KEY = "refined"
RIDGE = 0.03
LARGEST_STEP = 0.2  # of any weight; the weights are about 1
MOST_QUESTIONS, LEAST_QUESTIONS = 250, 60
MOST_FILES = 30_000  # a larger tree takes too long to ask so often
_GAIN = 0.005  # of NDCG@10 on newer commits
_MOST_COMMITS = 2_000  # looked at
_RENEWED = 200  # commits later it is done again
_MOST_PATHS, _MOST_RIGHT, _LEAST_WORDS = 10, 3, 4
_DIGITS = 3


class Asked(NamedTuple):
    """A question: the features of its candidates, a row each, which of them are right (1.0), and its shape."""

    values: "Floats"
    right: "Floats"
    shape: str


class Refined(Struct, frozen=True):
    """What was found: the weights it goes with, the newest commit then, what to add to each weight by shape (nothing
    where it does not pay), and NDCG@10 on newer commits without and with it."""

    weights: int
    newest: str
    steps: dict[str, dict[str, float]]
    before: float
    after: float


def is_due(reader: Reader, weights: Weights) -> bool:
    """Whether an index has history to refine from and was not refined since some hundred commits."""
    if reader.commit_count < LEAST_QUESTIONS or len(reader.files) > MOST_FILES:
        return False
    known = _known(reader, weights)
    newest = min(_RENEWED, reader.commit_count)
    return known is None or all(reader.commit(number).sha != known.newest for number in range(newest))


def refined(reader: Reader, weights: Weights) -> Weights:
    """The weights with the steps that the index remembers for them."""
    return applied(weights, _known(reader, weights))


def applied(weights: Weights, found: Refined | None) -> Weights:
    """The weights with the steps that were found for them."""
    if found is None or not found.steps:
        return weights
    shapes = {
        shape: {name: value + found.steps.get(shape, {}).get(name, 0.0) for name, value in vector.items()}
        for shape, vector in weights.shapes.items()
    }
    return replace(weights, shapes=shapes)


def refine(corpus: Corpus, weights: Weights, stopped: Callable[[], bool] = lambda: False) -> Refined:
    """What the history of an index comes to. Asks it up to 250 questions: some seconds for 10,000 files, fewer when
    `stopped` says so."""
    import numpy as np

    asked = list(takewhile(lambda _: not stopped(), own_questions(corpus)))
    newest = corpus.reader.commit(0).sha
    start = {shape: np.array([vector.get(name, 0.0) for name in FEATURES]) for shape, vector in weights.shapes.items()}
    newer, older = asked[: len(asked) // 3], asked[len(asked) // 3 :]
    before = after = 0.0
    steps: dict[str, dict[str, float]] = {}
    if len(asked) >= LEAST_QUESTIONS:
        tried = {shape: first + _step(older, first) for shape, first in start.items()}
        before = float(np.mean([ndcg(one.values @ start[one.shape], one.right) for one in newer]))
        after = float(np.mean([ndcg(one.values @ tried[one.shape], one.right) for one in newer]))
        if after > before + _GAIN:
            steps = {shape: _named(_step(asked, first)) for shape, first in start.items()}
    return Refined(_sum(weights), newest, steps, round(before, 4), round(after, 4))


def own_questions(corpus: Corpus) -> Iterator[Asked]:
    """The newest commits as questions, each asked of an index that does not know the commit itself: those that changed
    one to three files of code proper, and not much besides."""
    import numpy as np

    made, starts = 0, corpus.reader.commit_files[0]
    for number in range(min(_MOST_COMMITS, corpus.commits)):
        changed = set(corpus.changed[starts[number] : starts[number + 1]].tolist())
        right = [file for file in changed if corpus.kinds[file] == 0 and not corpus.prose[file]]
        if not 1 <= len(right) <= _MOST_RIGHT:
            continue
        commit = corpus.reader.commit(number)
        query = read_query(commit.subject, corpus.terms)
        if len(commit.paths) > _MOST_PATHS or len(query.words) < _LEAST_WORDS:
            continue
        evidence = Evidence(corpus, query, without=number)
        chosen = candidates(evidence)
        yield Asked(matrix(evidence, chosen), np.isin(chosen, right).astype(np.float64), query.shape)
        made += 1
        if made == MOST_QUESTIONS:
            return


def fit(asked: Sequence[Asked], start: "Floats", ridge: float, worths: Sequence[float]) -> "Floats":
    """The weights that make right files likely, held to `start` by the ridge: a listwise softmax over the candidates of
    each question (Cao et al., "Learning to rank: from pairwise approach to listwise approach", 2007, right files
    weighed alike), and Newton's method, since it is convex. `worths` is what each question counts."""
    import numpy as np

    useful = [(one, worth) for one, worth in zip(asked, worths, strict=True) if one.right.any()]
    if not useful:
        return start
    values = np.concatenate([one.values for one, _ in useful]).astype(np.float64)
    sizes = np.array([len(one.right) for one, _ in useful])
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    shares = np.concatenate([one.right / one.right.sum() for one, _ in useful])
    worth = np.array([worth for _, worth in useful])
    worth /= worth.sum()
    by_row = np.repeat(worth, sizes)

    def state(weights: "Floats") -> "tuple[float, Floats]":
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
        bend = (values * (by_row * chance)[:, None]).T @ values - (means * worth[:, None]).T @ means
        step = np.linalg.solve(bend + 2 * ridge * np.eye(len(weights)), slope)
        size = 1.0
        while size > 1e-4 and state(weights - size * step)[0] > loss:
            size /= 2
        weights = weights - size * step
        before, (loss, chance) = loss, state(weights)
        if before - loss < 1e-9:
            break
    return weights


def ndcg(scores: "Floats", right: "Floats", expected: int = 0, most: int = 10) -> float:
    """NDCG@10 of candidates in the order of their scores; `expected` right ones there are in all, 0: those among the
    candidates."""
    import numpy as np

    best = np.argsort(-scores, kind="stable")[:most]
    gains = 1 / np.log2(np.arange(2, most + 2))
    ideal = float(gains[: min(most, expected or int(right.sum()))].sum())
    return float((right[best] * gains[: len(best)]).sum()) / ideal if ideal else 0.0


def _step(asked: Sequence[Asked], start: "Floats") -> "Floats":
    import numpy as np

    step: Floats = np.clip(fit(asked, start, RIDGE, [1.0] * len(asked)) - start, -LARGEST_STEP, LARGEST_STEP)
    return step


def _named(step: "Floats") -> dict[str, float]:
    return {name: round(value, _DIGITS) for name, value in zip(FEATURES, step.tolist(), strict=True) if value}


def _sum(weights: Weights) -> int:
    return zlib.crc32(msgspec.json.encode((FEATURES, weights)))


def _known(reader: Reader, weights: Weights) -> Refined | None:
    told = reader.meta(KEY)
    try:
        found = msgspec.json.decode(told, type=Refined) if told else None
    except (msgspec.DecodeError, TypeError):
        return None
    return found if found is not None and found.weights == _sum(weights) else None
