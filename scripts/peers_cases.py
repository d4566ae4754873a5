"""`make peers-cases`: 58 damaged answers of a weak model, each through `codewhale exec` against a lenient and a strict
chat endpoint on loopback. Prints every outcome and the score; exit 1 below the bounds.
"""

import argparse
import json
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from support.weakcases import Case, Played, cases, figures, play
from support.weakserver import WeakServer

# The ten damages after which strict servers end other harnesses' sessions.
SESSIONS = ("P1", "P3", "P7", "P8", "P13c", "P14", "N4", "N7", "C5", "C7")
SUCCESS, STRICT, NO_EXTRA_TURN = 95.0, 93.0, 60.0


def run_all(chosen: list[Case], strict: bool, workers: int) -> dict[str, Played]:
    """Each case once."""
    with (
        tempfile.TemporaryDirectory() as folder,
        WeakServer() as server,
        ThreadPoolExecutor(workers) as pool,
    ):
        done = pool.map(lambda case: play(case, server, Path(folder), strict), chosen)
        return {case.id: played for case, played in zip(chosen, done, strict=True)}


def show(chosen: list[Case], played: dict[str, Played], verbose: bool) -> None:
    """One line a case; what the model was told with `verbose`."""
    for case in chosen:
        found = played[case.id]
        mark = " " if found.outcome in (case.label, EXPECTED.get(case.label)) else "*"
        print(f"{mark} {case.id:6} {found.outcome:26} rc {found.code:3}  {found.requests:2} requests  {case.what}")
        if found.rejected:
            print(f"         rejected: {found.rejected}")
        if verbose:
            print("         | " + found.told[:900].replace("\n", "\n         | "))


EXPECTED = {"refused": "refused_with_useful_error", "told": "refused_with_useful_error"}


def main() -> int:
    """Run, print, judge."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("ids", nargs="*", help="only these cases")
    parser.add_argument("--file", default="cases.json", help="another file of cases in tests/weakmodel")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--verbose", action="store_true", help="print what the model was told")
    options = parser.parse_args()
    chosen = [case for case in cases(options.file) if not options.ids or case.id in options.ids]
    lenient = run_all(chosen, False, options.workers)
    show(chosen, lenient, options.verbose)
    score = figures(lenient, iter(chosen))
    strict = run_all(chosen, True, options.workers)
    print("\nagainst a strict server, where that differs:")
    show([case for case in chosen if strict[case.id].outcome != lenient[case.id].outcome], strict, options.verbose)
    score["killed"] = sum(strict[case.id].killed for case in chosen if case.id in SESSIONS)
    score["rejected"] = sum(bool(found.rejected) for found in strict.values())
    score["strict_server_success"] = figures(strict, iter(chosen))["success"]
    print(json.dumps(score))
    enough = score["success"] >= SUCCESS and score["strict"] >= STRICT and score["no_extra_turn"] >= NO_EXTRA_TURN
    return 0 if enough and not (score["wrong"] or score["rejected"]) else 1


if __name__ == "__main__":
    sys.exit(main())
