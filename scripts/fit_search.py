"""Fit the weights of code search on repositories with known answers, and say what they reach on repositories they were
not fitted on. `fit_search.py DATA` prints the figures, `--write` puts the weights fitted on all into the package.

Each query counts twice, with history and without: a clone may be shallow.
"""

import argparse
import asyncio
import json
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from search_corpus import CORPORA, Data, Question, Repo, under
from search_fit import Sample, cross_fitted, fit_shapes, ndcg

from codewhale.codesearch.build import CodeIndex, refresh
from codewhale.codesearch.corpus import Corpus
from codewhale.codesearch.evidence import Evidence
from codewhale.codesearch.features import FEATURES, candidates, matrix
from codewhale.codesearch.model import Commit
from codewhale.codesearch.query import read_query
from codewhale.codesearch.rank import Weights
from codewhale.codesearch.reader import IndexReader
from codewhale.codesearch.terms import Terms

WEIGHTS = Path(__file__).resolve().parent.parent / "src" / "codewhale" / "codesearch" / "weights.json"
_DIGITS = 3


def reader_of(tree: Path, state: Path, history: list[Commit]) -> IndexReader:
    """A reader of an up to date index of a tree."""
    index = CodeIndex(str(tree), str(state))
    asyncio.run(refresh(index, commits=history))
    return IndexReader(index.open())


def corpora(data: Data, names: list[str]) -> Iterator[tuple[Repo, str, Path, list[Commit]]]:
    """Each corpus there is: repository, which one, its folder, its history. One without a sub-folder is both."""
    for repo in data.repos:
        tree = data.tree(repo) if not names or repo.name in names else None
        if tree is not None:
            history = data.history(repo)
            for corpus in CORPORA:
                root = repo.root if corpus == "root" else ""
                yield repo, corpus, tree / root, under(root, history)


def samples_of(
    reader: IndexReader, questions: list[Question], repo: Repo, corpus: str, terms: Terms
) -> Iterator[Sample]:
    """What the features say of each question's candidates."""
    made = Corpus(reader, terms)
    prefix = f"{repo.root}/" if corpus == "root" and repo.root else ""
    for question in questions:
        query = read_query(question.text, terms)
        evidence = Evidence(made, query)
        chosen = candidates(evidence)
        right = [float(prefix + reader.paths[file] in question.expected) for file in chosen.tolist()]
        values = matrix(evidence, chosen)
        kind = (repo.name, corpus, question.kind, question.pinned, query.shape)
        yield Sample(*kind, values, np.array(right), len(question.expected))


def collected(data: Data, names: list[str], state: Path, *, shallow: bool) -> list[Sample]:
    """The samples of all corpora."""
    terms, samples = Terms(), list[Sample]()
    for repo, corpus, tree, history in corpora(data, names):
        began = time.monotonic()
        reader = reader_of(tree, state / ("shallow" if shallow else "deep"), [] if shallow else history)
        samples += samples_of(reader, data.asked(repo, corpus), repo, corpus, terms)
        print(f"{repo.name} {corpus}: {len(reader.files)} files, {time.monotonic() - began:.1f} s", file=sys.stderr)
    return samples


def told(name: str, samples: list[Sample], weights: Mapping[str, Mapping[str, Any]]) -> str:
    """One line: NDCG@10 by file for each kind of query in each corpus."""
    found: dict[str, list[float]] = {}
    for sample in samples:
        reached = ndcg(sample, weights[sample.repo][sample.shape])
        group = "commit" if sample.kind == "commit" else "annotated"
        for key in dict.fromkeys((group, sample.kind)):
            found.setdefault(f"{sample.corpus} {key}", []).append(reached)
    return f"{name:<10}" + "  ".join(f"{key} {np.mean(values):.4f}" for key, values in sorted(found.items()))


def main() -> int:
    """0 when it could be fitted."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("data", help="folder with queries, repos.json, trees and mirrors")
    parser.add_argument("--repo", action="append", default=[], help="only this repository")
    parser.add_argument("--write", action="store_true", help="put the weights into the package")
    given = parser.parse_args()
    data = Data(given.data)
    deep = collected(data, given.repo, data.folder / "state", shallow=False)
    shallow = collected(data, given.repo, data.folder / "state", shallow=True)
    held_out = cross_fitted(deep + shallow)
    print(told("history", deep, held_out))
    print(told("shallow", shallow, held_out))
    if given.write:
        fitted = fit_shapes(deep + shallow)
        shapes = {
            shape: {name: round(float(value), _DIGITS) for name, value in zip(FEATURES, values, strict=True)}
            for shape, values in fitted.items()
        }
        hand = {name: value for name, value in msgspec.to_builtins(Weights.shipped()).items() if name != "shapes"}
        WEIGHTS.write_text(json.dumps({"shapes": shapes, **hand}, indent=1) + "\n", "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
