"""What finding code costs: 30 concept questions about real repositories, each answered by a script that sees nothing
but tool results, once with codebase_search and read_file, once with grep_files, file_search and read_file.

python scripts/search_policy.py DATA [--questions N] [--json]

A question is answered when a file that is known to answer it has been read: a reader knows the place when it is seen.
Both ways read the same windows. A repository is searched with weights that were fitted on others. Tokens are those of
calls and results, four bytes each. Exit code 1 when searching takes more than half the calls or tokens, or answers
fewer.
"""

import argparse
import asyncio
import hashlib
import json
import sys
import tempfile
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
from search_corpus import Data, Question
from search_eval import held_out, weights_for

from codewhale.codesearch.query import read_query
from codewhale.codesearch.rank import Weights
from codewhale.codesearch.search import CodeSearch
from codewhale.codesearch.terms import Terms
from codewhale.process.artifacts import ArtifactStore
from codewhale.protocol.errors import ToolError
from codewhale.protocol.modes import Mode
from codewhale.protocol.tools import CallContext
from codewhale.tools.base import bound
from codewhale.tools.codesearch import CodeSearchTools
from codewhale.tools.files import FileTools
from codewhale.tools.search import SearchTools
from codewhale.workspace.files import Workspaces

QUESTIONS = 30
MOST_CALLS = 25
MOST_SHARE = 0.5
WINDOW = 120  # lines read around a place
ABOVE = 20
WORDS = 5  # words of a question that are looked for
READS_A_ROUND = 3  # files read before more is looked for
BYTES_A_TOKEN = 4

Place = tuple[str, int]


class Desk:
    """The tools, over one tree; counts what calling them takes."""

    def __init__(self, families: list[object], tree: Path) -> None:
        self._tools = {name: tool for family in families for name, tool in bound(family).items()}
        self._at = CallContext("call", "session", str(tree), Mode.AGENT, lambda text: None, lambda: False)
        self.calls = 0
        self.tokens = 0
        self.read: list[str] = []

    async def ask(self, name: str, **given: Any) -> Any:
        """What a tool says, read as JSON where it is that; None for an error."""
        self.calls += 1
        self.tokens += len(json.dumps({"name": name, "arguments": given})) // BYTES_A_TOKEN
        tool = self._tools[name]
        try:
            result = await tool.run(msgspec.convert(given, tool.args, strict=True), self._at)
        except ToolError as error:
            self.tokens += len(error.message.encode()) // BYTES_A_TOKEN
            return None
        self.tokens += len(result.content.encode()) // BYTES_A_TOKEN
        if name == "read_file":
            self.read.append(given["path"])
            return result.content
        return json.loads(result.content)

    async def open(self, place: Place) -> None:
        """Read the lines around a place."""
        await self.ask("read_file", path=place[0], start_line=max(1, place[1] - ABOVE), max_lines=WINDOW)


async def by_search(desk: Desk, question: str, words: list[str]) -> AsyncIterator[None]:
    """Ask, read the hits in their order, ask again in fewer words. Yields after each file that was read."""
    for query in (question, " ".join(words), *words):
        found = await desk.ask("codebase_search", query=query)
        for hit in found["results"] if found else ():
            if hit["path"] not in desk.read:
                await desk.open((hit["path"], hit["line"]))
                yield


async def by_text(desk: Desk, _: str, words: list[str]) -> AsyncIterator[None]:
    """Look for the two most telling words near each other, then for each word in texts and in names; between that,
    read the files that hold most of them, rare words counting more. Yields after each file that was read."""
    gathered: dict[str, float] = defaultdict(float)
    lines: dict[str, int] = {}
    for looks in _looks(words):
        found = await _looked(desk, looks)
        for path, line in found.items():
            gathered[path] += 1 / (1 + len(found)) ** 0.5
            lines[path] = max(lines.get(path, 0), line)
        for path in _best(gathered, desk.read)[:READS_A_ROUND]:
            await desk.open((path, lines[path]))
            yield
    for path in _best(gathered, desk.read):
        await desk.open((path, lines[path]))
        yield


def _looks(words: list[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    plain = {"case_insensitive": True, "context_lines": 0}
    if len(words) > 1:
        one, two = words[:2]
        yield "grep_files", {"pattern": f"{one}.{{0,40}}{two}|{two}.{{0,40}}{one}", **plain}
    for word in words:
        yield "file_search", {"query": word, "limit": 10}
        yield "grep_files", {"pattern": word, **plain}


async def _looked(desk: Desk, looks: tuple[str, dict[str, Any]]) -> dict[str, int]:
    """Path -> its first line that was found, 1 for a name."""
    found = await desk.ask(looks[0], **looks[1])
    if not found:
        return {}
    if looks[0] == "file_search":
        return {row["path"]: 1 for row in found}
    places: dict[str, int] = {}
    for match in found["matches"]:
        places.setdefault(match["file"], match["line_number"])
    return places


def _best(gathered: dict[str, float], read: list[str]) -> list[str]:
    return sorted((path for path in gathered if path not in read), key=lambda path: (-gathered[path], path))


def telling(question: str, terms: Terms) -> list[str]:
    """The words to look for, names and long ones first."""
    words = [word for word in read_query(question, terms).words if len(word) > 2]
    return sorted(dict.fromkeys(words), key=lambda word: (word.islower(), -len(word)))[:WORDS]


async def answered(way: Callable[..., AsyncIterator[None]], desk: Desk, question: Question, words: list[str]) -> bool:
    """Go one way until a right file is read or the calls are used up; whether one was."""
    async for _ in way(desk, question.text, words):
        if desk.read[-1] in question.expected:
            return True
        if desk.calls >= MOST_CALLS:
            break
    return False


def chosen(data: Data, count: int) -> list[Question]:
    """Questions of how things work, one of each repository in turn, by the hash of their ids."""
    by_repo: dict[str, list[Question]] = defaultdict(list)
    for question in sorted(data.questions, key=lambda one: hashlib.sha256(one.id.encode()).hexdigest()):
        if question.kind in ("architecture", "semantic") and data.tree(_repo(data, question.repo)) is not None:
            by_repo[question.repo].append(question)
    turns = [
        questions[turn] for turn in range(count) for _, questions in sorted(by_repo.items()) if turn < len(questions)
    ]
    return turns[:count]


def _repo(data: Data, name: str) -> Any:
    return next(repo for repo in data.repos if repo.name == name)


async def costs(data: Data, question: Question, home: str, weights: Weights | None) -> dict[str, Any]:
    """What one question takes each way: (calls, tokens, whether it was answered)."""
    tree = data.tree(_repo(data, question.repo))
    assert tree is not None
    search, words = CodeSearch(home, weights=weights), telling(question.text, Terms())
    files = FileTools(Workspaces(ArtifactStore(home)))
    try:
        await search.search(str(tree), "index", 1, patience=None)
        row: dict[str, Any] = {"repo": question.repo, "question": question.text}
        for name, way, family in (("search", by_search, CodeSearchTools(search)), ("text", by_text, SearchTools())):
            desk = Desk([files, family], tree)
            good = await answered(way, desk, question, words)
            row[name] = {"calls": desk.calls, "tokens": desk.tokens, "answered": good}
        return row
    finally:
        await search.aclose()


def _table(rows: list[dict[str, Any]]) -> Iterator[str]:
    yield f"{'repository':<18}{'codebase_search':>24}{'grep and names':>24}  question"
    for row in rows:
        cells = "".join(
            f"{row[way]['calls']:>7} calls{row[way]['tokens']:>8,}{' ok' if row[way]['answered'] else ' --'}"
            for way in ("search", "text")
        )
        yield f"{row['repo']:<18}{cells}  {row['question'][:70]}"


def main() -> int:
    """Ask, print the table, compare."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", metavar="DATA", help="a folder with queries (*.jsonl), repos.json and trees")
    parser.add_argument("--questions", type=int, default=QUESTIONS, metavar="N")
    parser.add_argument("--json", action="store_true", help="one JSON object")
    args = parser.parse_args()
    data, rows = Data(args.data), []
    fitted = weights_for(data, [])
    with tempfile.TemporaryDirectory() as home:
        for question in chosen(data, args.questions):
            weights = held_out(fitted[question.repo]) if question.repo in fitted else None
            rows.append(asyncio.run(costs(data, question, home, weights)))
    if not rows:
        print(f"search_policy: {args.data} holds no question whose tree is there", file=sys.stderr)
        return 2
    sums = {
        way: {key: sum(row[way][key] for row in rows) for key in ("calls", "tokens", "answered")}
        for way in ("search", "text")
    }
    shares = {key: sums["search"][key] / max(1, sums["text"][key]) for key in ("calls", "tokens")}
    good = max(shares.values()) <= MOST_SHARE and sums["search"]["answered"] >= sums["text"]["answered"]
    if args.json:
        print(json.dumps({"questions": rows, "sums": sums, "shares": shares, "good": good}))
        return 0 if good else 1
    print("\n".join(_table(rows)))
    for way, name in (("search", "codebase_search"), ("text", "grep and names")):
        one = sums[way]
        print(f"{name:<18}{one['calls']:>6} calls {one['tokens']:>9,} tokens, {one['answered']}/{len(rows)} answered")
    both = [row for row in rows if row["search"]["answered"] and row["text"]["answered"]]
    for key in ("calls", "tokens"):
        ours, theirs = (sum(row[way][key] for row in both) for way in ("search", "text"))
        print(f"{key} where both answered ({len(both)}): {ours:,} to {theirs:,}")
    print(f"share: {shares['calls']:.2f} of the calls, {shares['tokens']:.2f} of the tokens; at most {MOST_SHARE}")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
