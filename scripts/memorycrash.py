"""`make memory-crash`: two processes add facts while a person edits the file, and writers are killed at random moments;
afterwards no fact that was acknowledged is missing, the person's edits stand, and the index equals one made anew.

python scripts/memorycrash.py [--facts N] [--kills N] [--seed N]
"""

import argparse
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from support.factwriters import beside, killed


def main() -> int:
    """0 when all held."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--facts", type=int, default=500)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        edits = beside(Path(scratch) / "beside", args.facts, args.seed)
        print(f"2 writers of {args.facts} facts beside {edits} edits of a person: nothing is missing")
        print(f"{killed(Path(scratch) / 'killed', args.kills, args.seed)} kills: nothing is missing")
    return 0


if __name__ == "__main__":
    sys.exit(main())
