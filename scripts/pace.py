"""How slow this machine is now: a fixed piece of work of the kind that the harness does, in milliseconds of processor
time over REFERENCE_MS. A new process imports modules of the standard library (code that no cache holds), and then reads
JSON, counts words and fills a database in memory. To tell a slow hour of the machine from a slow change.
"""

import resource
import statistics
import subprocess
import sys

REFERENCE_MS = 100.0  # about what a virtual machine with two cores takes when nobody disturbs it
TIMES = 15
WORK = """
import argparse, asyncio, decimal, email.message, http.client, json, logging, re, sqlite3, ssl, urllib.request, xml.dom
rows = [{"id": number, "name": f"call {number % 97}", "text": "read it all " * 6} for number in range(400)]
for _ in range(4):
    data, words = json.dumps(rows), {}
    for row in json.loads(data):
        for word in row["text"].split():
            words[word] = words.get(word, 0) + row["id"]
    database = sqlite3.connect(":memory:")
    database.execute("CREATE TABLE calls (id INTEGER PRIMARY KEY, name TEXT)")
    database.executemany("INSERT INTO calls VALUES (?, ?)", enumerate(re.findall(r"call (\\d+)", data)))
    database.close()
"""


def work() -> float:
    """Do it once in a process of its own; milliseconds of processor time."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-I", "-c", WORK], check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) * 1000


def pace() -> float:
    """1.0 on a machine as fast as the reference, 2.0 on one that takes twice as long; the median of TIMES tries."""
    work()  # what is compiled and read from disk at the first time
    return statistics.median(work() for _ in range(TIMES)) / REFERENCE_MS


if __name__ == "__main__":
    took = sorted(work() for _ in range(TIMES))
    print(f"{took[0]:.0f} to {took[-1]:.0f} ms, median {statistics.median(took):.0f} (reference {REFERENCE_MS:g})")
