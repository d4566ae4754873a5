"""What the analysis of command lines holds: the outside cases, spoiled lines without end, allowed ones of them run in a
jail of stubs, and the time it takes. Exit 1 when a bound is broken, 2 when it is one of time alone."""

import argparse
import random
import shutil
import sys
import tempfile
import time
from itertools import islice
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from codewhale.permissions.shell.judge import analyse
from support.shelllines import HERE, Jail, kept, named, spoiled, suite, table

# Bounds: shares of the outside cases, and milliseconds of 99 in 100 lines up to so many bytes.
FRICTION, SOFTENED = 0.15, 0.05
BOUNDS = ((1024, 3.0), (4096, 15.0))
BATCH = 200


def outside() -> bool:
    """The outside cases."""
    rows = suite()
    if not rows:
        print("outside cases: not here, skipped")
        return True
    counts = table(rows, lambda line: analyse(line, HERE).verdict)
    friction, softened = counts["friction"] / counts["safe"], counts["softened"] / counts["deny"]
    print(
        f"outside cases: {len(rows)} lines, {counts['leaks']} leaks, friction {friction:.1%}, softened {softened:.1%}"
    )
    return counts["leaks"] == 0 and friction <= FRICTION and softened <= SOFTENED


def spoil(count: int, samples: int, chance: random.Random) -> list[str]:
    """Judge spoiled lines; a sample of the allowed ones."""
    seeds = [row["cmd"] for row in suite() if len(row["cmd"]) < 2000]
    seeds += [line for name in ("reads", "everyday", "asks", "tricks", "never") for line in kept(name)]
    allowed: list[str] = []
    verdicts = dict.fromkeys(("allow", "ask", "deny"), 0)
    begun = time.monotonic()
    for line in islice(spoiled(seeds, chance), count):
        verdict = analyse(line, HERE).verdict
        verdicts[verdict] += 1
        if verdict == "allow":
            if len(allowed) < samples:
                allowed.append(line)
            elif (at := chance.randrange(verdicts["allow"])) < samples:
                allowed[at] = line
    shares = ", ".join(f"{verdict} {number}" for verdict, number in verdicts.items())
    print(f"spoiled lines: {count} judged without a crash in {time.monotonic() - begun:.0f} s ({shares})")
    return allowed


def jailed(lines: list[str]) -> bool:
    """Run allowed lines; what they start must be what was named."""
    if shutil.which("bwrap") is None:
        print("jail: no bwrap, skipped")
        return False
    good = True
    with tempfile.TemporaryDirectory() as folder:
        jail = Jail(Path(folder))
        for begin in range(0, len(lines), BATCH):
            batch = lines[begin : begin + BATCH]
            for line, called in zip(batch, jail.run(batch), strict=True):
                more = called - named(analyse(line, HERE))
                if more:
                    good = False
                    print(f"jail: {line!r} started {sorted(more)}, which was not named")
    print(f"jail: {len(lines)} allowed lines run, no file changed")
    return good


def timed(chance: random.Random) -> bool:
    """The time of lines up to each size, the outside cases and chains of ours."""
    analyse("ls", HERE)
    good = True
    for size, bound in BOUNDS:
        lines = [row["cmd"] for row in suite() if len(row["cmd"]) <= size]
        lines += [line for name in ("reads", "everyday", "asks", "never", "ordinary") for line in kept(name)]
        lines += [_chain(chance, size) for _ in range(len(lines) // 50)]
        times = sorted(_milliseconds(line) for line in lines)
        slow = times[int(len(times) * 0.99)]
        middle = times[len(times) // 2]
        print(f"time: {len(lines)} lines up to {size} bytes, p50 {middle:.3f} ms, p99 {slow:.3f} ms of {bound:g}")
        good = good and slow <= bound
    return good


def _chain(chance: random.Random, size: int) -> str:
    reads, line = kept("reads"), ""
    while len(line) < size - 60:
        line += (" && " if line else "") + chance.choice([read for read in reads if "#" not in read])
    return line


def _milliseconds(line: str) -> float:
    begun = time.process_time()
    analyse(line, HERE)
    return (time.process_time() - begun) * 1000


def main() -> int:
    """Run what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lines", type=int, default=1_000_000)
    parser.add_argument("--jail", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=5)
    args = parser.parse_args()
    chance = random.Random(args.seed)
    good, quick = outside(), timed(chance)
    good = jailed(spoil(args.lines, args.jail, chance)) and good
    if not good:
        return 1
    return 0 if quick else 2


if __name__ == "__main__":
    sys.exit(main())
