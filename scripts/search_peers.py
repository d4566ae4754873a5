"""What code search is measured against: ripgrep once a keyword, SQLite's FTS5 over windows of lines, and semble's
BM25 ranking (run by a Python that has semble, without any model)."""

import json
import re
import sqlite3
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

from search_corpus import Place, Question

WINDOW = 50
_WORD = re.compile(r"\w+")
_EMPTY = frozenset("a an and are as at be by do does for from has have how if in is it its of on or the to was".split())
_EMPTY_TOO = frozenset("what when where which while who why will with that this these those into when use".split())
_SEMBLE = r"""
import json, sys
from pathlib import Path
import numpy as np
import semble.index.create as create
import semble.search as searching

class NoModel:
    dim = 2

create.embed_chunks = lambda model, chunks: np.ones((len(chunks), 2), np.float32)
searching._search_semantic = lambda *given, **named: []
tree = Path(sys.argv[1])
bm25, dense, chunks, _ = create.create_index_from_path(tree, NoModel(), display_root=tree)
for line in sys.stdin:
    found = searching.search(json.loads(line), NoModel(), dense, bm25, chunks, 20, alpha=0.0)
    print(json.dumps([[one.chunk.file_path, one.chunk.start_line, one.chunk.end_line] for one in found]), flush=True)
"""


def keywords(text: str) -> list[str]:
    """The words of a query that grep would be asked for."""
    words = [word for word in _WORD.findall(text) if len(word) > 1]
    return [word for word in dict.fromkeys(words) if word.lower() not in _EMPTY | _EMPTY_TOO] or words


def by_ripgrep(tree: Path, paths: Sequence[str], questions: Sequence[Question]) -> Iterator[list[Place]]:
    """Of some paths (those of code: papers and data would come first else) the files by how many keywords they hold,
    then by how many lines have one."""
    wanted = frozenset(paths)
    for question in questions:
        held: dict[str, list[int]] = {}
        for word in keywords(question.text):
            for path, count in _counted(tree, word):
                if path in wanted:
                    held.setdefault(path, []).append(count)
        ranked = sorted(held, key=lambda path: (-len(held[path]), -sum(held[path]), path))
        yield [Place(path, 0, 0) for path in ranked[:20]]


def _counted(tree: Path, word: str) -> Iterator[tuple[str, int]]:
    """(file, its lines with a word) as ripgrep finds them."""
    command = ["rg", "-c", "-i", "-F", "--no-messages", "--", word, "."]
    done = subprocess.run(command, cwd=tree, capture_output=True, text=True, check=False)
    for line in done.stdout.split("\n"):
        path, _, count = line.rpartition(":")
        if path:
            yield path.removeprefix("./"), int(count)


def by_fts5(tree: Path, paths: Sequence[str], questions: Sequence[Question]) -> Iterator[list[Place]]:
    """FTS5's bm25() over windows of 50 lines, the query's words joined by OR."""
    database = sqlite3.connect(":memory:")
    database.execute("CREATE VIRTUAL TABLE windows USING fts5(text, path UNINDEXED, line UNINDEXED)")
    for path in paths:
        lines = (tree / path).read_text("utf-8", errors="replace").split("\n")
        for at in range(0, len(lines), WINDOW):
            row = ("\n".join(lines[at : at + WINDOW]), path, at + 1)
            database.execute("INSERT INTO windows VALUES (?, ?, ?)", row)
    for question in questions:
        asked = " OR ".join(f'"{word}"' for word in keywords(question.text))
        select = "SELECT path, line FROM windows WHERE windows MATCH ? ORDER BY bm25(windows) LIMIT 50"
        found = database.execute(select, (asked,)).fetchall() if asked else []
        yield [Place(path, line, line + WINDOW - 1) for path, line in found]
    database.close()


def by_semble(python: str, tree: Path, questions: Sequence[Question]) -> Iterator[list[Place]]:
    """semble's own chunks, BM25 and ranking, its embedding left out (alpha 0)."""
    asked = "".join(json.dumps(question.text) + "\n" for question in questions)
    command = [python, "-c", _SEMBLE, str(tree)]
    told = subprocess.run(command, input=asked, capture_output=True, text=True, check=True).stdout
    for line in told.splitlines():
        yield [Place(*place) for place in json.loads(line)]
