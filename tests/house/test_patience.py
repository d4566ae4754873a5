"""No test judges by seconds: what is slow on a busy machine is no fault, and what hangs is ended by its bound."""

import re

from support.house import ROOT

LEAST = 60
JUDGED = re.compile(
    r"\b(?:monotonic|perf_counter|process_time|time)\(\) - [\w.]+ <|\b(?:took|elapsed|seconds) < [0-9.]+"
)
WAITS = re.compile(
    r"asyncio\.timeout\(([0-9.]+)\)|asyncio\.wait_for\(.*, ([0-9.]+)\)|\btimeout=([0-9.]+)(?=[,)])"
    r"|deadline = time\.monotonic\(\) \+ ([0-9.]+)"
)
# A wait that must be in vain, or that the test is about.
SHORT = {"tests/workspace/undo/test_journal.py", "tests/session/test_lanes.py", "tests/house/test_time_limit.py"}


def test_no_test_judges_by_seconds_and_no_wait_is_short() -> None:
    found = []
    for path in sorted((ROOT / "tests").rglob("*.py")):
        name = str(path.relative_to(ROOT))
        for number, line in enumerate(path.read_text().splitlines(), 1):
            waits = [float(one) for match in WAITS.findall(line) for one in match if one.strip(".")]
            if JUDGED.search(line) or (name not in SHORT and any(0 < seconds < LEAST for seconds in waits)):
                found.append(f"{name}:{number}: {line.strip()}; use HANG or Moment of support/patience.py")
    assert found == []
