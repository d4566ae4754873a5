"""How fast a tree is indexed, kept true and asked: the figures of the code index, on trees made of real sources.

Memory is what the harness and its workers hold together at one moment, shared pages counted once (Linux).

python scripts/indexspeed.py [--sources DIR]... [--files N]... [--workers N] [--json]
"""

import argparse
import asyncio
import json
import os
import random
import resource
import shutil
import statistics
import sys
import sysconfig
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from typing import Any

from codewhale.codesearch import scan
from codewhale.codesearch.build import CodeIndex, is_stale, prepare, refresh
from codewhale.codesearch.languages import Languages
from codewhale.codesearch.model import Stamp
from codewhale.codesearch.rank import Ranker
from codewhale.codesearch.reader import IndexReader
from codewhale.codesearch.search import CodeSearch

BYTES_A_FILE = 8_500
LARGEST = 400_000
EDITS = 60
QUESTIONS = 200
WORDS = """where are options parsed and defaults applied retry a failed request with backoff close the connection when
idle cache invalidation after write escape html in templates read config file from home directory convert date to string
route matching order middleware chain stop signal handling allocate buffer grow array compare two versions log level
token refresh permission check upload large file stream progress report test fixture cleanup thread pool size""".split()


def sources(folders: list[str]) -> list[tuple[str, int]]:
    """(path, size) of every source file with a grammar, in an order that depends on nothing."""
    languages = Languages()
    found = []
    for folder in folders:
        for above, inner, names in os.walk(folder):
            inner[:] = sorted(name for name in inner if name not in (".git", "node_modules", "__pycache__"))
            for name in names:
                path = os.path.join(above, name)
                if languages.of(path, b"") in languages.parsed and os.path.isfile(path) and not os.path.islink(path):
                    size = os.path.getsize(path)
                    found += [(path, size)] if 0 < size < LARGEST else []
    random.Random(11).shuffle(sorted_found := sorted(found))
    return sorted_found


def chosen(found: list[tuple[str, int]], count: int) -> Iterator[tuple[str, str]]:
    """(source, path in the tree) of `count` files of about BYTES_A_FILE on average, ten in a folder; sources repeat
    where there are too few."""
    given = taken = 0
    for _ in range(1 + 4 * count // len(found)):
        for path, size in found:
            if given == count:
                return
            ahead = taken + size - given * BYTES_A_FILE
            if ahead > 40 * BYTES_A_FILE or (ahead < -40 * BYTES_A_FILE and size < BYTES_A_FILE):
                continue
            folder = f"part{given // 1000}/group{given // 100 % 10}/unit{given // 10 % 10}"
            yield path, f"{folder}/{given}_{os.path.basename(path)}"
            given, taken = given + 1, taken + size


def make_tree(root: str, found: list[tuple[str, int]], count: int) -> int:
    """Write a tree and return its bytes."""
    total = 0
    for source, path in chosen(found, count):
        target = os.path.join(root, path)
        os.makedirs(os.path.dirname(target), exist_ok=True)
        shutil.copyfile(source, target)
        total += os.path.getsize(target)
    return total


def measured(root: str, total: int, workers: int) -> dict[str, Any]:
    """Build, check, edit and open the index of a tree."""
    with tempfile.TemporaryDirectory(prefix="codewhale-speed-") as state:
        return asyncio.run(_measured(root, total, CodeIndex(root, state, workers=workers), state))


async def _measured(root: str, total: int, index: CodeIndex, state: str) -> dict[str, Any]:
    warm = os.path.join(state, "warm")
    os.mkdir(warm)
    for number in range(30):
        with open(os.path.join(warm, f"{number}.py"), "w") as file:
            file.write("x = 1\n")
    await refresh(CodeIndex(warm, state))
    cold = await _cold(root)
    together = Together()
    before = _cpu()
    begun = time.perf_counter()
    report = await refresh(index)
    built = time.perf_counter() - begun
    used, held = _cpu() - before, together.stop()
    size = os.path.getsize(index.path)
    await prepare(index)
    os.sync()  # a tree at rest: the kernel does not write out meanwhile what was just made
    store = index.open()
    await is_stale(index, store)
    checks = [await _timed(is_stale(index, store)) for _ in range(7)]
    store.close()
    edits = await _edits(root, index)
    begun = time.perf_counter()
    reader = IndexReader(index.open())
    opened = time.perf_counter() - begun
    chunks = reader.chunk_count
    ranked = _questions(reader)
    reader.close()
    return {
        "files": report.indexed,
        "megabytes": round(total / 1e6, 1),
        "chunks": chunks,
        "build_s": round(built, 2),
        "build_cpu_s": round(used, 2),
        "memory_mb": held,
        "database_share": round(size / total, 3),
        "check_ms": round(1000 * statistics.median(checks), 1),
        "edit_p50_ms": round(1000 * statistics.median(edits), 1),
        "edit_p95_ms": round(1000 * sorted(edits)[int(len(edits) * 0.95)], 1),
        "open_ms": round(1000 * opened, 1),
        "rank_p50_ms": round(1000 * statistics.median(ranked), 1),
        "rank_p95_ms": round(1000 * sorted(ranked)[int(len(ranked) * 0.95)], 1),
        "cold_answer_s": round(cold, 2),
    }


class Together:
    """The most memory that this process and its children held together, looked at twice a second; in megabytes."""

    def __init__(self) -> None:
        self._most = 0
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._look)
        self._thread.start()

    def stop(self) -> int:
        """End looking."""
        self._ended.set()
        self._thread.join()
        return self._most // 1024

    def _look(self) -> None:
        while not self._ended.wait(0.5):
            self._most = max(self._most, sum(map(_held, _family(os.getpid()))))


def _family(process: int) -> Iterator[int]:
    """A process and all beneath it."""
    yield process
    try:
        for task in os.listdir(f"/proc/{process}/task"):
            with open(f"/proc/{process}/task/{task}/children") as file:
                for child in file.read().split():
                    yield from _family(int(child))
    except OSError:
        return


def _held(process: int) -> int:
    """Kilobytes."""
    try:
        with open(f"/proc/{process}/smaps_rollup") as file:
            return next(int(line.split()[1]) for line in file if line.startswith("Pss:"))
    except (OSError, StopIteration):
        return 0


def _cpu() -> float:
    """Seconds of processor that this process and its ended children have used."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)


async def _cold(root: str) -> float:
    """Seconds to an answer where there is no index yet."""
    with tempfile.TemporaryDirectory(prefix="codewhale-cold-") as state:
        search = CodeSearch(state)
        begun = time.perf_counter()
        await search.search(root, "where is the connection closed when idle")
        taken = time.perf_counter() - begun
        await search.aclose()
    return taken


def _questions(reader: IndexReader) -> list[float]:
    """Seconds of ranking for questions of two to eight words, none asked twice."""
    some, ranker = random.Random(7), Ranker(reader)
    ranker.search("open the file", 10)
    found = []
    for _ in range(QUESTIONS):
        question = " ".join(some.sample(WORDS, some.randrange(2, 9)))
        begun = time.perf_counter()
        ranker.search(question, 10)
        found.append(time.perf_counter() - begun)
    return found


async def _timed(work: Any) -> float:
    begun = time.perf_counter()
    await work
    return time.perf_counter() - begun


async def _edits(root: str, index: CodeIndex) -> list[float]:
    """Seconds from a file's change to its being searchable, less the looking for what has changed. As in a session the
    database stays open meanwhile."""
    kept, changes, looked = index.open(), scan.changes, 0.0

    def timed_look(root: str, stamps: Mapping[str, Stamp], watched: scan.FolderTimes | None) -> tuple[list[str], bool]:
        nonlocal looked
        begun = time.perf_counter()
        try:
            return changes(root, stamps, watched)
        finally:
            looked += time.perf_counter() - begun

    scan.changes = timed_look
    paths = sorted(index.stamps(kept))
    random.Random(3).shuffle(paths)
    found = []
    for path in paths[:EDITS]:
        with open(os.path.join(root, path), "a") as file:
            file.write(f"\nchanged_{random.random()} = 1\n")
        await asyncio.sleep(0.03)
        begun, looked = time.perf_counter(), 0.0
        await refresh(index)
        found.append(time.perf_counter() - begun - looked)
    scan.changes = changes
    kept.close()
    return found


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sources", action="append", metavar="DIR", help="real sources (default: Python's, packages)")
    parser.add_argument("--files", action="append", type=int, metavar="N", help="size of a tree (default 10000)")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--tree", metavar="DIR", help="index this folder as it is; its files are changed")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    rows = []
    if args.tree:
        total = sum(os.path.getsize(os.path.join(d, f)) for d, _, names in os.walk(args.tree) for f in names)
        rows.append(measured(args.tree, total, args.workers))
    for count in [] if args.tree else args.files or [10_000]:
        found = sources(args.sources or [os.path.dirname(os.__file__), sysconfig.get_path("purelib")])
        with tempfile.TemporaryDirectory(prefix="codewhale-tree-") as root:
            rows.append(measured(root, make_tree(root, found, count), args.workers))
    for row in rows:
        print(json.dumps(row) if args.json else "\n".join(f"{name:<18}{value}" for name, value in row.items()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
