"""Fifteen questions about this very tree and where their answers stand, read off the papers and not off the ranking."""

import asyncio
import json
from pathlib import Path
from typing import NamedTuple

from codewhale.codesearch.build import CodeIndex, refresh
from codewhale.codesearch.rank import Ranker
from codewhale.codesearch.reader import IndexReader

SOURCE = Path(__file__).resolve().parent.parent.parent / "src" / "codewhale"
MOST = 10


class Answer(NamedTuple):
    """A question, the share of the right files among the first ten, and one over the rank of the first (0: none)."""

    query: str
    recall: float
    reciprocal: float


def answers(state: Path, file: str = "concepts.jsonl") -> list[Answer]:
    """Every question of a file asked of an index of the package, kept under `state`."""
    index = CodeIndex(str(SOURCE), str(state))
    asyncio.run(refresh(index, commits=[]))
    reader = IndexReader(index.open())
    try:
        ranker = Ranker(reader)
        rows = Path(__file__).with_name(file).read_text("utf-8").splitlines()
        return [_answer(ranker, **json.loads(row)) for row in rows]
    finally:
        reader.close()


def _answer(ranker: Ranker, query: str, expected: list[str]) -> Answer:
    assert all((SOURCE / path).exists() for path in expected), expected
    paths = [hit.path for hit in ranker.search(query, MOST).hits]
    ranks = [paths.index(path) + 1 for path in expected if path in paths]
    return Answer(query, len(ranks) / len(expected), 1 / min(ranks) if ranks else 0.0)
