"""`make journal-damage`: spoil the journal in 200 places and see that it opens, or is set aside and said so.

Bytes are flipped, the tail is cut, the write-ahead log is spoiled or taken away. Whatever happens, the tasks whose
sessions stand must be found again, as done or as interrupted, and none as still to be begun.
"""

import argparse
import json
import random
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

from codewhale.lib.clock import SystemClock
from codewhale.protocol.events import CallStarted, SessionOpened, TurnFinished, TurnStarted
from codewhale.protocol.modes import Mode
from codewhale.protocol.tasks import TASK_KIND
from codewhale.protocol.tools import Effect
from codewhale.session.store import SessionStore
from codewhale.tasks.book import TaskBook

TASKS = 40
WAYS = ("one bit", "many bytes", "zeros", "cut", "log gone", "log spoiled", "log cut")
# The first adds tasks and closes, the second dies: what it wrote stands in the write-ahead log alone.
DIES = """
import os, sys
from codewhale.lib.clock import SystemClock
from codewhale.session.store import SessionStore
from codewhale.tasks.book import TaskBook
from codewhale.tasks.model import TaskSpec
book = TaskBook(sys.argv[1], SessionStore(sys.argv[1], SystemClock()))
for number in range(int(sys.argv[2]), int(sys.argv[3])):
    book.add(TaskSpec(f"Task {number} " * 40, sys.argv[1]), f"task_{number:08x}")
if sys.argv[2] == "0":
    book.close()
os._exit(9)
"""


def filled(home: Path) -> None:
    """A home whose journal was left by a process that died; every second task has its session."""
    for part in (("0", str(TASKS // 2)), (str(TASKS // 2), str(TASKS))):
        subprocess.run([sys.executable, "-c", DIES, str(home), *part], check=False, timeout=300)
    store = SessionStore(str(home), SystemClock())
    for number in range(0, TASKS, 2):
        task = f"task_{number:08x}"
        log = store.create(SessionOpened(1, str(home), Mode.AGENT, "p", "m", kind=TASK_KIND, name=task))
        log.append([TurnStarted(1), CallStarted("call_1", "exec_shell", "{}", (Effect.EXECUTES,), "r")])
        if number % 4:
            log.append([TurnFinished(1, "done", "", {"answer": "well"})])
        log.close()


def spoil(folder: Path, way: str, dice: random.Random) -> None:
    main, log = folder / "journal.sqlite3", folder / "journal.sqlite3-wal"
    if way == "log gone":
        log.unlink()
        return
    path = log if way.startswith("log") else main
    data = bytearray(path.read_bytes())
    if way.endswith("cut"):
        del data[dice.randrange(len(data)) :]
    for _ in range({"one bit": 1, "many bytes": 200, "log spoiled": 20}.get(way, 0)):
        data[dice.randrange(len(data))] ^= 1 << dice.randrange(8)
    if way == "zeros":
        at = dice.randrange(len(data))
        data[at : at + 4096] = bytes(len(data[at : at + 4096]))
    path.write_bytes(data)


def one(whole: Path, home: Path, way: str, dice: random.Random) -> tuple[str, list[str]]:
    """Spoil a copy: what became of it, and what was wrong with that."""
    shutil.copytree(whole, home)
    spoil(home / "journal", way, dice)
    book = TaskBook(str(home), SessionStore(str(home), SystemClock()))
    try:
        board = book.board(100)
    except Exception as error:
        return "failed", [f"{way}: {type(error).__name__}: {error}"]
    finally:
        book.close()
    aside = any((home / "journal").glob("damaged-*"))
    faults = [] if aside == ("set aside" in board.notice) else [f"{way}: set aside {aside}, said {board.notice!r}"]
    states = {view.id: view.status for view in board.tasks}
    for number in range(0, TASKS, 2):
        wanted = "completed" if number % 4 else "interrupted"
        if (state := states.get(f"task_{number:08x}")) != wanted:
            faults.append(f"{way}: task {number} is {state}, not {wanted}")
    return "set aside" if aside else "opened", faults


def damage(places: int, seed: int = 0) -> dict[str, object]:
    """Spoil so many copies; how many opened and were set aside, and what was wrong."""
    dice, counts, faults = random.Random(seed), Counter[str](), list[str]()
    with tempfile.TemporaryDirectory(prefix="journaldamage-") as folder:
        whole = Path(folder, "whole")
        whole.mkdir()
        filled(whole)
        for place in range(places):
            home = Path(folder, "spoiled")
            way = WAYS[place % len(WAYS)]
            outcome, wrong = one(whole, home, way, dice)
            counts[f"{way}: {outcome}"] += 1
            faults += wrong
            shutil.rmtree(home)
    return {"places": places, "faults": faults, **dict(sorted(counts.items()))}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--places", type=int, default=200)
    outcome = damage(parser.parse_args().places)
    print(json.dumps(outcome))
    return bool(outcome["faults"])


if __name__ == "__main__":
    sys.exit(main())
