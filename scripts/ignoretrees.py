"""`make ignore-trees`: 2,000 random trees with ignore rules, walked by us as plain folders and judged by git in a
repository of the same files. Prints how many judgements differ and each that does; ends with 1 beyond the bound.
"""

import argparse
import asyncio
import json
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from support.ignoretrees import Verdicts, judge

BOUND = 0.0005
_AT_ONCE = 50


async def judged(trees: int, first: int) -> Verdicts:
    """The verdicts on that many trees, made of the seeds from `first` on."""
    verdicts = Verdicts()
    for begin in range(first, first + trees, _AT_ONCE):
        with tempfile.TemporaryDirectory() as scratch:
            await judge(Path(scratch), range(begin, min(begin + _AT_ONCE, first + trees)), verdicts)
    return verdicts


def main() -> int:
    """0 when the share of judgements that differ keeps to its bound."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("--trees", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    verdicts = asyncio.run(judged(given.trees, given.seed))
    for tree, path, hidden, held in verdicts.differing:
        print(f"{tree}: {path!r} is {'hidden' if hidden else 'shown'} by us and not by git; {held}")
    counts = {"judged": verdicts.judged, "ignored": verdicts.ignored}
    told = {"trees": given.trees, **counts, "differing": len(verdicts.differing)}
    print(json.dumps({**told, "rate": verdicts.rate, "bound": BOUND}))
    return 0 if verdicts.rate <= BOUND else 1


if __name__ == "__main__":
    sys.exit(main())
