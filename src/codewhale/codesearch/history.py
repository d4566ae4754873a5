"""The commits of a repository: what git says of them, and those that answer a query, by BM25 over their subjects and,
at half the weight, over the paths they changed."""

import asyncio
import math
import re
import time
from collections.abc import Iterator

from msgspec import Struct

from codewhale.codesearch.model import Commit
from codewhale.codesearch.query import SearchQuery, read_query
from codewhale.codesearch.reader import IndexReader
from codewhale.codesearch.terms import Terms
from codewhale.process.repository import find_repository
from codewhale.protocol.errors import ToolError
from codewhale.workspace.git import git

MOST_COMMITS = 5_000
MOST_PATHS = 30
_SECONDS = 30.0
_OUTPUT = 64 << 20
_SUBJECT = 300  # characters kept
MOST = 100
_PATHS = 8
_PATH_WEIGHT = 0.5
_CHOSEN = 1.0  # the score of a commit for having changed a path that was asked for
_K1, _B = 1.2, 0.75  # Robertson and Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond", 2009
_NO_COMMITS = (
    "There are no commits: the folder is not in a git repository, nothing was committed, or git cannot read them."
)
_NONE_SPEAKS = "None of the {:,} indexed commits matches. Use other words, or a path."
_PULL = re.compile(r"^Merge (?:pull request|PR) #(\d+)\b|\((?:#|gh-|GH-)(\d+)\)\s*$|^Merge .*\(#(\d+)\)")


class CommitHit(Struct, frozen=True):
    """A commit that was found: `at` in RFC 3339; its pull request as far as the subject names one; at most eight of
    the paths it changed, those that answer first; the words of the query that were found in subject and paths."""

    sha: str
    at: str
    subject: str
    score: float
    matched: tuple[str, ...]
    paths: tuple[str, ...]
    more_paths: int = 0
    pull_request: int | None = None


class CommitHits(Struct, frozen=True):
    """The best commits for a query, and where there are none, why and what to do: true of a whole index alone."""

    best: list[CommitHit]
    hint: str = ""


def find_commits(reader: IndexReader, text: str, most: int = 10) -> CommitHits:
    """The best commits for a query, at most `most`, best first; equal ones newest first. A path in the query chooses
    those that changed it, and its other words rank them."""
    terms = Terms()
    commits = list(reader.commits())
    words, chosen = _choose(commits, text.split())
    query = read_query(" ".join(words), terms)
    wanted = tuple(query.terms)
    in_paths = [_of_paths(terms, commit) for commit in commits] if wanted else []
    scores: dict[int, float] = dict.fromkeys(chosen or (), _CHOSEN)
    matched: dict[int, set[str]] = {}
    for term in wanted:
        for number, value in (*_subjects(reader, term), *_paths(in_paths, term)):
            if chosen is None or number in scores:
                scores[number] = scores.get(number, 0.0) + value
                matched.setdefault(number, set()).add(term)
    best = sorted(scores, key=lambda number: (-scores[number], number))[:most]
    results = [_past(commits[number], scores[number], (query, matched.get(number, set())), terms) for number in best]
    return CommitHits(results, "" if results else _NONE_SPEAKS.format(len(commits)) if commits else _NO_COMMITS)


def _choose(commits: list[Commit], words: list[str]) -> tuple[list[str], set[int] | None]:
    """The words that name no changed path, and the commits that changed one of those named; None for no path. A path
    is a file as commits name it, a folder of such, or a file's name where it has an ending."""
    chosen: set[int] | None = None
    others = []
    for word in words:
        path = word.strip("`'\"").removeprefix("./").rstrip("/,:")
        inside, ends = f"{path}/", f"/{path}" if "." in path.strip(".") else ""
        changing = {
            number
            for number, commit in enumerate(commits)
            if any(
                one == path or ("/" in word and one.startswith(inside)) or (ends and one.endswith(ends))
                for one in commit.paths
            )
        } if path else set[int]()  # fmt: skip
        if changing:
            chosen = changing | (chosen or set())
        else:
            others.append(word)
    return others, chosen


def pull_request(subject: str) -> int | None:
    """The number of the pull request that a subject names: "Merge pull request #7 from ..." or "... (#7)"."""
    match = _PULL.search(subject)
    number = next((group for group in match.groups() if group), None) if match else None
    return int(number) if number is not None and len(number) < 10 else None


def _subjects(reader: IndexReader, term: str) -> Iterator[tuple[int, float]]:
    numbers, often = reader.history(term)
    if not len(numbers):
        return
    mean = max(1.0, float(reader.commit_length.mean()))
    idf = _idf(len(numbers), reader.commit_count)
    for number, count in zip(numbers.tolist(), often.tolist(), strict=True):
        length = float(reader.commit_length[number])
        yield number, idf * count * (_K1 + 1) / (count + _K1 * (1 - _B + _B * length / mean))


def _paths(in_paths: list[dict[str, int]], term: str) -> Iterator[tuple[int, float]]:
    having = [number for number, counts in enumerate(in_paths) if term in counts]
    idf = _idf(len(having), len(in_paths))
    for number in having:
        share = in_paths[number][term] / max(1, in_paths[number][""])
        yield number, _PATH_WEIGHT * idf * share**0.5


def _of_paths(terms: Terms, commit: Commit) -> dict[str, int]:
    """Term -> in how many of the changed paths it is; "" -> how many there are."""
    counts = {"": len(commit.paths)}
    for path in commit.paths:
        for term in set(terms.count(path)):
            counts[term] = counts.get(term, 0) + 1
    return counts


def _idf(having: int, count: int) -> float:
    return math.log(1 + (count - having + 0.5) / (having + 0.5))


def _past(commit: Commit, score: float, matched: tuple[SearchQuery, set[str]], terms: Terms) -> CommitHit:
    query, having = matched
    words = tuple(dict.fromkeys(word for word in query.words if having & set(terms.expand(word))))
    paths = sorted(commit.paths, key=lambda path: (-len(having & set(terms.count(path))), path))
    at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(commit.at))
    shown, more, pull = tuple(paths[:_PATHS]), max(0, len(paths) - _PATHS), pull_request(commit.subject)
    return CommitHit(commit.sha, at, commit.subject, round(score, 3), words, shown, more, pull)


async def head_commit(root: str) -> str | None:
    """The commit that is checked out, "" where there is none; None when git cannot say."""
    if find_repository(root) is None:
        return ""
    try:
        done = await git(("rev-parse", "--verify", "-q", "HEAD"), root)
    except ToolError:
        return None
    if done.exit_code != 0:
        return "" if done.exit_code == 1 else None  # 1: nothing was committed yet
    return done.stdout.decode("ascii", "replace").strip()


async def read_history(root: str, until: str = "HEAD") -> list[Commit] | None:
    """The last commits that changed something beneath `root`, or merged; paths from the root. Empty outside a
    repository; None when git fails or cannot say in half a minute."""
    args = (
        "log", "-z", f"--max-count={MOST_COMMITS}", "--name-only", "--no-renames", "--relative",
        "--format=%x01%H%x02%ct%x02%s%x03", until, "--",
    )  # fmt: skip
    try:
        done = await git(args, root, seconds=_SECONDS, output_limit=_OUTPUT)
    except ToolError:
        return []
    if done.exit_code != 0 or done.stdout_gap >= 0:
        return None
    return await asyncio.to_thread(_parsed, done.stdout)


def _parsed(data: bytes) -> list[Commit]:
    found: list[Commit] = []
    for part in data.decode("utf-8", "replace").split("\x01")[1:]:
        head, _, rest = part.partition("\x03")
        fields = head.split("\x02")
        if len(fields) != 3 or not fields[1].isdigit():
            continue
        paths = [path.strip("\n") for path in rest.split("\0")]
        kept = tuple(path for path in paths if path)
        merge = fields[2].startswith("Merge ")
        if (kept or merge) and len(kept) <= MOST_PATHS:
            found.append(Commit(fields[0], int(fields[1]), fields[2][:_SUBJECT], kept))
    return found
