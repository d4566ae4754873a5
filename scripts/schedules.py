"""100 schedules over 400 days of a clock that obeys: with two changes of daylight saving, a jump of a day back and one
of a year forward, each moment runs once, or the record says that it was missed.

usage: schedules.py [COUNT] [LOOKS] [SEED]
"""

import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))
from support.schedules import sound


def main() -> int:
    """0 when every moment was accounted for."""
    count, looks, seed = (int(given) for given in (*sys.argv[1:], *("100", "400", "1")[len(sys.argv) - 1 :]))
    begun = time.monotonic()
    with tempfile.TemporaryDirectory() as home:
        wrong = sound(Path(home), count, looks, seed)
    for line in wrong:
        print(f"FAILED {line}")
    print(f"{count} schedules, {looks} looks at the clock: {len(wrong)} wrong ({time.monotonic() - begun:.0f} s)")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
