"""Queries with known answers, the trees they are asked of, and how answers are scored.

A data folder holds queries (*.jsonl), repos.json, `trees/NAME` and `mirrors/OWNER+NAME/repo` (bare repositories that
trees and history come from). Nothing of it belongs to the project.
"""

import json
import math
import os
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple

from codewhale.codesearch.model import Commit

CORPORA = ("whole", "root")
_MOST_COMMITS = 5_000
_MOST_PATHS = 30
_TOKEN_BYTES = 4


class Repo(NamedTuple):
    """A repository at a commit. `root` is the sub-folder that small corpora are made of, "" for all of it."""

    name: str
    slug: str
    commit: str
    root: str


class Target(NamedTuple):
    """What is to be found; lines are 0 where only the file is meant."""

    path: str
    start: int
    end: int


class Question(NamedTuple):
    """A query. `kind` is semantic, architecture, symbol or commit; `source` ends in the commit's id for the last."""

    id: str
    repo: str
    text: str
    kind: str
    pinned: bool
    lang: str
    expected: frozenset[str]
    targets: tuple[Target, ...]
    source: str


class Place(NamedTuple):
    """A result: a path from the repository's top, and lines (0: the whole file)."""

    path: str
    start: int
    end: int


class Data:
    """A data folder."""

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        rows = json.loads((self.folder / "repos.json").read_text("utf-8"))
        self.repos = [Repo(row["repo"], row["slug"], row["commit"], row["root"]) for row in rows]
        lines = [line for path in sorted(self.folder.glob("*.jsonl")) for line in path.open(encoding="utf-8")]
        self.questions = [_question(json.loads(line)) for line in lines]

    def tree(self, repo: Repo) -> Path | None:
        """The files of a repository, written from its mirror if need be; None where there is neither."""
        tree = self.folder / "trees" / repo.name
        if not tree.exists() and (mirror := self.mirror(repo)) is not None:
            part = tree.with_name(f"{tree.name}.part")
            _write_out(mirror, repo.commit, part)
            part.rename(tree)
        return tree if tree.exists() else None

    def mirror(self, repo: Repo) -> Path | None:
        """Its bare repository, if it is there."""
        path = self.folder / "mirrors" / repo.slug.replace("/", "+") / "repo"
        return path if path.exists() else None

    def asked(self, repo: Repo, corpus: str) -> list[Question]:
        """The questions for a corpus: commit queries are for whole repositories alone."""
        return [
            question
            for question in self.questions
            if question.repo == repo.name and (corpus == "whole" or question.kind != "commit")
        ]

    def history(self, repo: Repo) -> list[Commit]:
        """The commits that lead to the tree and are older than the oldest that any query was made from."""
        mirror = self.mirror(repo)
        if mirror is None:
            return []
        asked = [question.source.split()[-1] for question in self.asked(repo, "whole") if question.kind == "commit"]
        times = _git(mirror, "log", "--no-walk", "--format=%ct", *asked).split() if asked else []
        before = min(map(int, times), default=1 << 40)
        told = _git(
            mirror, "log", "--no-merges", "--name-only", "-z", "--format=%x01%H%x02%ct%x02%s%x02", repo.commit,
            "-n", "20000", f"--before={before - 1}",
        )  # fmt: skip
        return list(_commits(told.decode("utf-8", "replace"), before))


def under(root: str, commits: Iterable[Commit]) -> list[Commit]:
    """Commits as a sub-folder sees them: paths from there, those that touch nothing in it left out."""
    if not root:
        return list(commits)
    cut = len(root) + 1
    inner = [
        Commit(one.sha, one.at, one.subject, tuple(path[cut:] for path in one.paths if path.startswith(f"{root}/")))
        for one in commits
    ]
    return [commit for commit in inner if commit.paths]


def _commits(told: str, before: int) -> Iterator[Commit]:
    given = 0
    for part in told.split("\x01")[1:]:
        sha, at, subject, names = part.split("\x02", 3)
        paths = tuple(name for name in names.replace("\n", "\0").split("\0") if name)
        if paths and len(paths) <= _MOST_PATHS and int(at) < before:
            yield Commit(sha, int(at), subject, paths)
            given += 1
            if given == _MOST_COMMITS:
                return


def _write_out(mirror: Path, commit: str, target: Path) -> None:
    """Write the regular files of a commit, those apart that the mirror lacks: it may be without its largest."""
    rows = (row.split(b"\t", 1) for row in _git(mirror, "ls-tree", "-r", "-z", commit).split(b"\0") if row)
    found = [(meta.split()[2], os.fsdecode(path)) for meta, path in rows if meta.startswith(b"100")]
    if not found:
        raise SystemExit(f"{mirror} does not hold the files of commit {commit}; fetch it again")
    told = BytesIO(_git(mirror, "cat-file", "--batch", given=b"\n".join(sha for sha, _ in found)))
    for _, path in found:
        size = told.readline().split()[-1]
        if size != b"missing":
            (target / path).parent.mkdir(parents=True, exist_ok=True)
            (target / path).write_bytes(told.read(int(size)))
            told.read(1)


def _git(mirror: Path, *arguments: str, given: bytes = b"") -> bytes:
    """What git says; what it said until it failed, since a mirror may lack some old object."""
    command = ["git", "-c", "safe.directory=*", f"--git-dir={mirror}", *arguments]
    return subprocess.run(command, capture_output=True, input=given, check=False).stdout


def _question(row: dict[str, Any]) -> Question:
    targets = tuple(Target(one["path"], one["start"] or 0, one["end"] or 0) for one in row["targets"])
    fields = (row["id"], row["repo"], row["query"], row["kind"], row["pinned"], row["lang"])
    return Question(*fields, frozenset(row["expected_paths"]), targets, row["source"])


def _gain(ranks: Iterable[int]) -> float:
    return sum(1 / math.log2(rank + 2) for rank in ranks)


def scores(question: Question, places: Sequence[Place], most: int = 10) -> dict[str, float]:
    """NDCG@10 by file (a file counts once) and by slot (a target counts at the first result that covers it, nothing
    is folded), recall@10 and the reciprocal rank of the first right file."""
    paths = list(dict.fromkeys(place.path for place in places))
    right = [rank for rank, path in enumerate(paths[:most]) if path in question.expected]
    slots = set()
    for target in question.targets:
        for rank, place in enumerate(places[:most]):
            apart = target.start and place.start and not (place.start <= target.end and target.start <= place.end)
            if place.path == target.path and not apart:
                slots.add(rank)
                break
    return {
        "file": _gain(right) / _gain(range(min(most, len(question.expected)))),
        "slot": _gain(slots) / _gain(range(min(most, len(question.targets)))),
        "recall": len(right) / len(question.expected),
        "mrr": 1 / (right[0] + 1) if right else 0.0,
    }


def recall_within(question: Question, places: Sequence[Place], tree: Path, tokens: int = 2_000) -> float:
    """The share of right files among the results whose lines, read one after another, fit so many tokens (of four
    bytes)."""
    left, found = tokens * _TOKEN_BYTES, set()
    for place in places:
        lines = (tree / place.path).read_bytes().split(b"\n")
        left -= sum(len(line) + 1 for line in lines[max(0, place.start - 1) : place.end or None])
        if left < 0:
            break
        found.add(place.path)
    return len(found & question.expected) / len(question.expected)
