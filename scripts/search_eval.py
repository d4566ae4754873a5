"""What code search reaches on repositories with known answers, next to what else there is.

`search_eval.py DATA [--semble PYTHON]`. A folder without repositories is filled from pinned packages. Of many
repositories each is ranked with weights fitted on others; history is of commits older than any that a query was made
from. Figures are NDCG@10 by file and by slot, recall@10, reciprocal rank, and recall within 2,000 tokens of results.
Exit 1 when a bound does not hold.
"""

import argparse
import asyncio
import json
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from fit_search import collected, corpora, reader_of
from msgspec.structs import replace
from search_corpus import Data, Place, Question, recall_within, scores
from search_fit import FOLDS, cross_fitted
from search_packages import TARBALLS, WHEELS, made
from search_peers import by_fts5, by_ripgrep, by_semble

from codewhale.codesearch.exact import exact_lines
from codewhale.codesearch.features import FEATURES
from codewhale.codesearch.path_kinds import PROSE
from codewhale.codesearch.query import read_query
from codewhale.codesearch.rank import Ranker, Weights
from codewhale.codesearch.reader import IndexReader
from codewhale.codesearch.terms import Terms

FIGURES = ("file", "slot", "recall", "mrr", "tokens")
OURS, RIPGREP, FTS5, SEMBLE = "codewhale", "ripgrep", "fts5", "semble"
ANNOTATED = frozenset({"semantic", "architecture", "symbol"})
BOOTSTRAPS = 2_000
RIPGREP_SLACK = 0.03
SEMBLE_LEAD = 0.05


class Row(NamedTuple):
    """What a system reached on a question."""

    system: str
    corpus: str
    question: Question
    reached: dict[str, float]


class Group(NamedTuple):
    """Questions that are told together, with the bounds of one figure of ours."""

    name: str
    corpus: str
    holds: Callable[[Question], bool]
    figure: str = "file"
    bound: float = 0.0


GROUPS = (
    Group("annotated, sub-folder, pinned", "root", lambda one: one.kind in ANNOTATED and one.pinned, "slot", 0.85),
    Group("annotated", "whole", lambda one: one.kind in ANNOTATED, "file", 0.85),
    Group("commit", "whole", lambda one: one.kind == "commit", "file", 0.65),
    Group("symbol", "whole", lambda one: one.kind == "symbol", "file", 0.96),
    Group("symbol, sub-folder", "root", lambda one: one.kind == "symbol", "file", 0.96),
    Group("semantic", "whole", lambda one: one.kind == "semantic"),
    Group("architecture", "whole", lambda one: one.kind == "architecture"),
    Group("docstring", "whole", lambda one: one.kind == "docstring", "file", 0.7),
    Group("comment", "whole", lambda one: one.kind == "comment", "file", 0.5),
    Group("name", "whole", lambda one: one.kind == "name", "file", 0.95),
)


def answered(ranker: Ranker, tree: Path, questions: Iterable[Question], took: list[float]) -> Iterator[list[Place]]:
    """Our ten best for each question as the product answers it, lines that hold it included, and how long ranking
    took."""
    root = str(tree.resolve())
    for question in questions:
        query = read_query(question.text, ranker.terms)
        exact = asyncio.run(exact_lines(ranker.reader, root, query, ranker.terms))
        began = time.perf_counter()
        hits = ranker.search(question.text, 10, exact=exact).hits
        took.append(1000 * (time.perf_counter() - began))
        yield [Place(hit.path, hit.line, hit.end_line) for hit in hits]


def measured(data: Data, given: argparse.Namespace) -> tuple[list[Row], list[float]]:
    """Every system on every question, and the milliseconds of our ranking."""
    state = data.folder / "state"
    fitted = weights_for(data, given.repo)
    terms, rows, took = Terms(), list[Row](), list[float]()
    for repo, corpus, tree, history in corpora(data, given.repo):
        questions = data.asked(repo, corpus)
        reader = reader_of(tree, state / "deep", history)
        ranker = Ranker(reader, terms, held_out(fitted[repo.name]) if repo.name in fitted else None)
        systems: dict[str, Iterable[list[Place]]] = {OURS: answered(ranker, tree, questions, took)}
        if not given.alone:
            systems |= peers(tree, reader, questions, given.semble)
        prefix = f"{repo.root}/" if corpus == "root" and repo.root else ""
        for system, answers in systems.items():
            for question, places in zip(questions, answers, strict=True):
                at_top = [Place(prefix + place.path, place.start, place.end) for place in places]
                reached = scores(question, at_top)
                reached["tokens"] = recall_within(question, at_top, data.folder / "trees" / repo.name)
                rows.append(Row(system, corpus, question, reached))
        print(f"{repo.name} {corpus}", file=sys.stderr)
    return rows, took


def weights_for(data: Data, names: list[str]) -> Mapping[str, Mapping[str, Any]]:
    """For each repository, weights that were fitted without it; none for a few repositories, which the package's own
    weights must do for."""
    if len(names or data.repos) < FOLDS:
        return {}
    state = data.folder / "state"
    both = [collected(data, names, state, shallow=shallow) for shallow in (False, True)]
    return cross_fitted(both[0] + both[1])


def peers(tree: Path, reader: IndexReader, questions: list[Question], semble: str) -> dict[str, Iterable[list[Place]]]:
    """The other systems on a corpus, those that know no kinds of files over its code alone."""
    code = [file.path for file in reader.files if file.lang not in PROSE]
    found: dict[str, Iterable[list[Place]]] = {
        RIPGREP: by_ripgrep(tree, code, questions),
        FTS5: by_fts5(tree, code, questions),
    }
    return found | ({SEMBLE: by_semble(semble, tree, questions)} if semble else {})


def held_out(vectors: Mapping[str, Any]) -> Weights:
    """Weights as ranking takes them."""
    shapes = {
        shape: {name: float(value) for name, value in zip(FEATURES, vector, strict=True)}
        for shape, vector in vectors.items()
    }
    return replace(Weights.shipped(), shapes=shapes)


def table(rows: list[Row]) -> Iterable[str]:
    """A block of lines a group: the figures of each system."""
    for group in GROUPS:
        chosen = [row for row in rows if row.corpus == group.corpus and group.holds(row.question)]
        asked = len({row.question.id for row in chosen})
        if not asked:
            continue
        yield f"\n{group.name} ({asked} queries)  {'  '.join(f'{figure:>6}' for figure in FIGURES)}"
        for system in dict.fromkeys(row.system for row in chosen):
            mine = [row.reached for row in chosen if row.system == system]
            means = (np.mean([reached[figure] for reached in mine]) for figure in FIGURES)
            yield f"  {system:<28}{'  '.join(f'{mean:6.3f}' for mean in means)}"


def mean_of(rows: Iterable[Row], system: str, figure: str) -> float:
    """The mean of a figure; NaN where there is none."""
    values = [row.reached[figure] for row in rows if row.system == system]
    return float(np.mean(values)) if values else float("nan")


def broken(rows: list[Row]) -> list[str]:
    """The bounds that do not hold."""
    found = []
    for group in GROUPS:
        chosen = [row for row in rows if row.corpus == group.corpus and group.holds(row.question)]
        reached, peer = (mean_of(chosen, system, group.figure) for system in (OURS, SEMBLE))
        if group.bound and reached < group.bound:
            found.append(f"{group.name}: {group.figure} {reached:.3f} is below {group.bound}")
        if group.name in ("annotated", "commit") and reached < peer + SEMBLE_LEAD:
            found.append(f"{group.name}: {reached:.3f} leads semble's {peer:.3f} by less than {SEMBLE_LEAD}")
    return found + list(worse_than_ripgrep(rows))


def worse_than_ripgrep(rows: list[Row]) -> Iterable[str]:
    """Repositories where ripgrep is ahead by more than the slack, or surely (paired bootstrap, 95 %)."""
    chance = np.random.default_rng(0)
    whole = [row for row in rows if row.corpus == "whole"]
    for repo in sorted({row.question.repo for row in whole}):
        of = {
            system: {
                row.question.id: row.reached["file"]
                for row in whole
                if row.system == system and row.question.repo == repo
            }
            for system in (OURS, RIPGREP)
        }
        lead = np.array([of[OURS][name] - of[RIPGREP][name] for name in of[RIPGREP]])
        if not len(lead):
            continue
        means = chance.choice(lead, (BOOTSTRAPS, len(lead))).mean(axis=1)
        if lead.mean() < -RIPGREP_SLACK or np.quantile(means, 0.975) < 0:
            yield f"{repo}: {lead.mean():+.3f} against ripgrep over {len(lead)} queries"


def main() -> int:
    """0 when every bound holds."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("data", help="folder with queries, repos.json, trees and mirrors")
    parser.add_argument("--repo", action="append", default=[], help="only this repository")
    parser.add_argument("--semble", default="", metavar="PYTHON", help="a Python that has semble")
    parser.add_argument("--alone", action="store_true", help="do not run the other systems")
    parser.add_argument("--json", metavar="FILE", help="also write every figure of every query")
    given = parser.parse_args()
    if not (Path(given.data) / "repos.json").exists():
        print(
            f"{given.data} holds no repositories: {', '.join(one[0] for one in (*WHEELS, *TARBALLS))} are fetched",
            file=sys.stderr,
        )
        made(Path(given.data))
    rows, took = measured(Data(given.data), given)
    print("\n".join(table(rows)))
    print(f"\nranking: median {np.median(took):.1f} ms, 95th percentile {np.quantile(took, 0.95):.1f} ms")
    if given.json:
        told = [[row.system, row.corpus, row.question.id, row.reached] for row in rows]
        Path(given.json).write_text(json.dumps(told) + "\n", "utf-8")
    failed = broken(rows)
    print("\n".join(["", *failed]) if failed else "\nEvery bound holds.")
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
