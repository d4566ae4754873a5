"""`make index-crash`: random changes and kills, after each of which the code index must equal one made from nothing.

The work is split over processes, each with trees and a seed of its own: most of it is waiting for git and for workers.

python scripts/indexcrash.py [--changes N] [--kills N] [--seed N] [--jobs N]
"""

import argparse
import asyncio
import contextlib
import json
import os
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from codewhale.codesearch.build import CodeIndex, refresh
from codewhale.process.launch import Launch, run, start
from support.codetree import Happenings, git, grammars, same_as_rebuilt

BUILDING = "import asyncio, sys; from codewhale.codesearch.build import CodeIndex, refresh\n"
BUILDING += (
    "index = CodeIndex(sys.argv[1], sys.argv[2]); index.grammar_folder = sys.argv[3]; asyncio.run(refresh(index))"
)


async def changes(scratch: Path, count: int, seed: int) -> Counter[str]:
    """Let `count` things happen, look after each; now and then in a second worktree."""
    happenings = Happenings(scratch / "tree", seed)
    happenings.commit()
    git(happenings.root, "worktree", "add", "-q", "-b", "beside", str(scratch / "beside"))
    index = grammars(CodeIndex(str(happenings.root), str(scratch / "home")), scratch)
    beside = grammars(CodeIndex(str(scratch / "beside"), str(scratch / "home")), scratch)
    told: Counter[str] = Counter()
    for number in range(count):
        told[happenings.step()] += 1
        await refresh(index)
        await same_as_rebuilt(index, scratch)
        if number % 10 == 0:
            told["worktree"] += 1
            (scratch / "beside" / f"beside{number % 50}.py").write_text(happenings.text("a.py"))
            await refresh(beside)
            await same_as_rebuilt(beside, scratch)
    return told


async def kills(scratch: Path, count: int, seed: int) -> int:
    """Kill a building process at `count` random moments; returns how many were still at it."""
    happenings = Happenings(scratch / "killed", seed)
    for number in range(120):
        happenings.write(f"group{number % 9}/unit{number}.py")
    index = grammars(CodeIndex(str(happenings.root), str(scratch / "home")), scratch)
    argv = (sys.executable, "-c", BUILDING, index.root, str(scratch / "home"), index.grammar_folder)
    some, caught = random.Random(seed), 0
    for number in range(count):
        if number % 2:
            index.discard()
        for at in range(60):
            happenings.write(f"group{at % 9}/unit{some.randrange(120)}.py")
        child = await start(Launch(argv=argv, cwd=str(scratch), profile="none", supervised=False))
        ended = asyncio.ensure_future(child.ended())
        await asyncio.wait([ended], timeout=some.uniform(0.1, 1.2))
        if not ended.done():
            with contextlib.suppress(ProcessLookupError):  # it has ended by itself just now
                os.killpg(child.pid, signal.SIGKILL) if some.random() < 0.5 else os.kill(child.pid, signal.SIGKILL)
                caught += 1
        await child.kill()
        index.forget_stamps()
        await refresh(index)
        await same_as_rebuilt(index, scratch)
    return caught


def one(args: argparse.Namespace) -> None:
    """Run a share of it in this process and say so; an AssertionError is a failure."""
    with tempfile.TemporaryDirectory(prefix="codewhale-index-") as folder:
        told = asyncio.run(changes(Path(folder), args.changes, args.seed)) if args.changes else Counter[str]()
        caught = asyncio.run(kills(Path(folder), args.kills, args.seed)) if args.kills else 0
    print(json.dumps({"changes": told, "caught": caught}), flush=True)


async def shared(args: argparse.Namespace) -> int:
    """Run all of it in several processes; returns how many failed."""

    def share(whole: int, number: int) -> int:
        return whole * (number + 1) // args.jobs - whole * number // args.jobs

    async def part(number: int) -> dict[str, Any] | None:
        shares = ("--changes", share(args.changes, number), "--kills", share(args.kills, number))
        argv = (sys.executable, __file__, *shares, "--seed", args.seed * 1000 + number, "--jobs", 1)
        done = await run(Launch(tuple(map(str, argv)), os.getcwd(), "none", seconds=3600, output_limit=1 << 20))
        if done.exit_code == 0:
            told: dict[str, Any] = json.loads(done.stdout)
            return told
        print(f"seed {args.seed * 1000 + number} failed:\n{(done.stdout + done.stderr).decode(errors='replace')}")
        return None

    found = await asyncio.gather(*(part(number) for number in range(args.jobs)))
    told: Counter[str] = Counter()
    for each in filter(None, found):
        told.update(each["changes"])
    caught = sum(each["caught"] for each in found if each is not None)
    print(f"changes   {sum(told.values())} {dict(told)}: the index equals a rebuild after each")
    print(f"kills     {args.kills}, {caught} while it was building: the index equals a rebuild after each")
    return found.count(None)


def main() -> int:
    """Run everything and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--changes", type=int, default=2000)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2 * (os.cpu_count() or 1))
    args = parser.parse_args()
    if args.jobs == 1:
        one(args)
        return 0
    begun = time.monotonic()
    failed = asyncio.run(shared(args))
    print(f"seconds   {time.monotonic() - begun:.0f}")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
