"""`make patch-check`: random patches against `git apply`, and cuts of random patches at every line in both formats.

A patch that git and ours treat differently must say by which comparison it was placed; of the cuts none may be applied
but those of a diff that end with a whole hunk. Ends with 1 where that does not hold.
"""

import argparse
import os
import random
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from support.patchcases import against_git, cut_applied, diff_of, envelope_of, scenario
from support.patchland import write_tree


def cuts(count: int, folder: Path) -> tuple[int, list[str]]:
    """How many cuts were tried, and those that were applied."""
    tried, applied = 0, []
    for seed in range(count):
        rng = random.Random(seed)
        before, after, _ = scenario(rng)
        base = folder / f"cut{seed}"
        for name, tree in (("a", before), ("b", after)):
            (base / name).mkdir(parents=True)
            write_tree(base / name, tree)
        diff, envelope = diff_of(base, 3).decode(), envelope_of(before, after)
        tried += diff.count("\n") + envelope.count("\n")
        applied += [*cut_applied(before, diff, True), *cut_applied(before, envelope, False)]
    return tried, applied


def main() -> int:
    """Try both, print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--patches", type=int, default=1000, help="patches given to git and to ours")
    parser.add_argument("--cut", type=int, default=500, help="patches cut at every line, in each format")
    args = parser.parse_args()
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None  # thousands of syncs are not what is tested
    with tempfile.TemporaryDirectory(dir=memory) as folder:
        tally = against_git(range(args.patches), Path(folder))
        tried, applied = cuts(args.cut, Path(folder))
    print(f"{args.patches} patches against git apply: {dict(tally.counts)}")
    print(f"{tried} cuts of {args.cut} patches in each format: {len(applied)} applied")
    for text in [*tally.disagreements, *applied][:5]:
        print("\n" + text)
    return 1 if tally.disagreements or applied else 0


if __name__ == "__main__":
    sys.exit(main())
