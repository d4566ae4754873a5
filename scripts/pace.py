"""How much slower this machine is now than the one on which the bounds of time were set: a fixed piece of work of the
kind that the harness does (JSON, words, a database in memory), in milliseconds of processor time, over REFERENCE_MS.
"""

import json
import re
import sqlite3
import statistics
import sys
import time

REFERENCE_MS = 40.0  # the fastest that was seen on the machines of two cores on which the bounds were set
MOST = 2.0  # a machine that is slower still does not measure, it waits
TIMES, ROUNDS = 25, 12


def work() -> float:
    """Do it once; milliseconds of processor time."""
    rows = [{"id": number, "name": f"call {number % 97}", "text": "read it all " * 6} for number in range(400)]
    begun = time.process_time()
    for _ in range(ROUNDS):
        data = json.dumps(rows)
        words: dict[str, int] = {}
        for row in json.loads(data):
            for word in row["text"].split():
                words[word] = words.get(word, 0) + row["id"]
        found = re.findall(r"call (\d+)", data)
        database = sqlite3.connect(":memory:")
        database.execute("CREATE TABLE calls (id INTEGER PRIMARY KEY, name TEXT)")
        database.executemany("INSERT INTO calls VALUES (?, ?)", enumerate(found))
        database.execute("SELECT sum(length(name)) FROM calls").fetchall()
        database.close()
    return (time.process_time() - begun) * 1000


def pace() -> float:
    """1.0 on a machine that is as fast as the reference or faster, and at most MOST."""
    return min(MOST, max(1.0, statistics.median(work() for _ in range(TIMES)) / REFERENCE_MS))


if __name__ == "__main__":
    took = sorted(work() for _ in range(TIMES))
    print(f"{took[0]:.1f} to {took[-1]:.1f} ms, median {statistics.median(took):.1f} (reference {REFERENCE_MS:g})")
    sys.exit(0)
