"""Processes that add facts to one home, a person who edits the file meanwhile, and what must hold afterwards."""

import os
import random
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

from codewhale.memory.service import Memory

PROGRAM = """
import sys
from codewhale.memory.layers import MemoryRefused
from codewhale.memory.service import Memory
home, name, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
memory = Memory(home, lambda workspace: workspace)
for number in range(count):
    text = f"fact {name} {number} is about island {number * 7919 % 1000}"
    while True:
        try:
            memory.add("place", text, "global")
            break
        except MemoryRefused as error:
            print("refused:", error, file=sys.stderr, flush=True)
    print(text, flush=True)
    if number % 40 == 0:
        memory.search("place", f"island {number}")
"""


class Person(threading.Thread):
    """Somebody with an editor: loads the file, thinks for a moment, and saves it with a line of their own changed, in
    place or as another file under its name."""

    def __init__(self, path: Path, seed: int) -> None:
        super().__init__()
        self._path = path
        self._made = random.Random(seed)
        self.over = threading.Event()
        self.edits = 0

    def run(self) -> None:
        while not self.over.wait(self._made.uniform(0.02, 0.2)):
            lines = [line for line in self._path.read_text().split("\n") if not line.startswith("- the person's edit")]
            time.sleep(self._made.uniform(0, 0.05))
            self.edits += 1
            text = "\n".join([f"- the person's edit {self.edits}", *lines])
            if self.edits % 2:
                self._path.write_text(text)
            else:
                draft = self._path.with_name("MEMORY.md~")
                draft.write_text(text)
                os.replace(draft, self._path)


def check(home: Path, said: set[str], edit: str) -> None:
    """Raises AssertionError."""
    memory = Memory(str(home), lambda workspace: workspace)
    texts = [fact.text for fact in memory.facts("place")]
    missing = said - {*texts}
    assert not missing, f"{len(missing)} of {len(said)} facts are missing, such as {sorted(missing)[0]!r}"
    own = [text for text in texts if text.startswith("the person's edit")]
    assert not edit or own == [edit], f"the person wrote {edit!r}, there is {own}"
    assert len(texts) == len({*texts}), "a fact stands there twice"
    memory.search("place", "island 7")
    rows = memory.index.dump()
    (home / "memory" / "index.sqlite3").unlink()
    assert Memory(str(home), lambda workspace: workspace).index.dump() == rows, "the index is not that of the file"


def begun(home: Path) -> Path:
    path = home / "memory" / "global" / "MEMORY.md"
    path.parent.mkdir(parents=True)
    own = "".join(f"- habit {number} of the person\n" for number in range(12))
    path.write_text(f"# What I want\n\n- the person's edit 0\n{own}")
    return path


def writer(home: Path, name: str, count: int) -> "subprocess.Popen[str]":
    argv = [sys.executable, "-c", PROGRAM, str(home), name, str(count)]
    return subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)


def beside(home: Path, count: int, seed: int, writers: int = 2) -> int:
    """Let `writers` add `count` facts each beside a person; how often that one saved."""
    person = Person(begun(home), seed)
    person.start()
    processes = [writer(home, f"w{number}", count) for number in range(writers)]
    said = {line for process in processes for line in process.communicate()[0].split("\n") if line}
    person.over.set()
    person.join()
    assert len(said) == writers * count, f"only {len(said)} facts were stored"
    check(home, said, f"the person's edit {person.edits}")
    return person.edits


def killed(home: Path, kills: int, seed: int) -> int:
    """Kill a writer `kills` times; how many facts were acknowledged before."""
    made = random.Random(seed)
    begun(home)
    said: set[str] = set()
    for number in range(kills):
        process = writer(home, f"k{number}", 100_000)
        assert process.stdout is not None
        said.add(process.stdout.readline().strip())
        time.sleep(made.uniform(0, 0.05))
        process.send_signal(signal.SIGKILL)
        rest = process.communicate()[0].split("\n")
        said |= {line for line in rest[:-1] if line}
        check(home, said, "")
        if number % 20 == 19:  # so that the file stays below what it may hold
            (home / "memory" / "global" / "MEMORY.md").write_text("# What I want\n")
            said.clear()
    return kills
