"""A data folder made of pinned wheels, for machines that hold no repositories: the docstrings of public definitions are
the questions, taken out of the files that are searched, and class names that stand once are looked up by name.

None of these packages is among those that the weights of the package were fitted on.
"""

import ast
import hashlib
import json
import re
import shutil
import subprocess
import sys
import zipfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from codewhale.codesearch.priors import PathKinds

WHEELS = (
    ("httpx", "0.28.1", "d909fcccc110f8c7faf814ca82a9a4d816bc5a6dbfea25d6591d6985b8ba59ad"),
    ("rich", "13.9.4", "6049d5e6ec054bf2779ab3358186963bac2ea89175919d699e378b99738c2a90"),
    ("networkx", "3.4.2", "df5d4365b724cf81b8c6a7312509d0c22386097011ad1abe274afd5e9d3bbc5f"),
)
MOST_DOCSTRINGS, MOST_NAMES = 80, 20  # questions a package
_FEWEST_WORDS, _MOST_WORDS = 5, 30
_WORD = re.compile(r"[A-Za-z]\w+")

Documented = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


class Told(NamedTuple):
    """A definition: where it stands, what it is called, and the first sentence of what is said of it."""

    path: str
    start: int
    end: int
    name: str
    sentence: str


def made(folder: Path) -> None:
    """Fetch the wheels with pip, write their trees without docstrings, and the questions. Raises CalledProcessError
    where pip cannot have them."""
    fetched = folder / "wheels"
    fetched.mkdir(parents=True, exist_ok=True)
    pins = "".join(f"{name}=={version} --hash=sha256:{sha}\n" for name, version, sha in WHEELS)
    (fetched / "pins.txt").write_text(pins, "utf-8")
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:"]
    subprocess.run([*command, "--require-hashes", "-r", "pins.txt", "-d", "."], cwd=fetched, check=True)
    questions = []
    for name, version, _ in WHEELS:
        tree = folder / "trees" / name
        shutil.rmtree(tree, ignore_errors=True)
        with zipfile.ZipFile(next(fetched.glob(f"{name}-{version}-*.whl"))) as wheel:
            wheel.extractall(tree)
        questions += [_question(name, version, *one) for one in _asked(list(_bared(tree)))]
    (folder / "wheels.jsonl").write_text("".join(json.dumps(one) + "\n" for one in questions), "utf-8")
    rows = [{"repo": name, "slug": name, "commit": version, "root": ""} for name, version, _ in WHEELS]
    (folder / "repos.json").write_text(json.dumps(rows) + "\n", "utf-8")


def _bared(tree: Path) -> Iterator[Told]:
    """Take the docstrings out of a tree's files, line numbers kept; what they said of public definitions of its code
    proper."""
    kinds = PathKinds()
    for file in sorted(tree.rglob("*.py")):
        path = file.relative_to(tree).as_posix()
        text = file.read_text("utf-8")
        parsed = ast.parse(text)
        lines = text.split("\n")
        for node in ast.walk(parsed):
            said = _docstring(node)
            if said is None:
                continue
            for row in range(said.lineno - 1, said.end_lineno or said.lineno):
                lines[row] = lines[row][: said.col_offset] + "..." if row == said.lineno - 1 else ""
            if isinstance(node, Documented) and not kinds.of(path) and not node.name.startswith("_"):
                sentence = re.split(r"\.(?:\s|$)|\n\s*\n", ast.get_docstring(node) or "")[0]
                yield Told(path, node.lineno, node.end_lineno or node.lineno, node.name, " ".join(sentence.split()))
        file.write_text("\n".join(lines), "utf-8")


def _docstring(node: ast.AST) -> ast.Expr | None:
    if isinstance(node, Documented | ast.Module) and node.body and ast.get_docstring(node) is not None:
        first = node.body[0]
        return first if isinstance(first, ast.Expr) else None
    return None


def _asked(told: list[Told]) -> Iterator[tuple[str, str, Told]]:
    """(kind, query, what answers it): sentences of one definition alone that name neither it nor its file, and classes
    that are called so once; which ones is a matter of their hash."""
    often = Counter(one.sentence for one in told)
    names = Counter(one.name for one in told)
    sayings = [one for one in told if often[one.sentence] == 1 and _asks(one)]
    for one in sorted(sayings, key=_hash)[:MOST_DOCSTRINGS]:
        yield "docstring", one.sentence, one
    classes = [one for one in told if one.name[0].isupper() and names[one.name] == 1]
    for one in sorted(classes, key=_hash)[:MOST_NAMES]:
        yield "name", one.name, one


def _asks(one: Told) -> bool:
    words = [word.lower() for word in _WORD.findall(one.sentence)]
    stem = one.path.rpartition("/")[2].removesuffix(".py").strip("_").lower()
    return _FEWEST_WORDS <= len(words) <= _MOST_WORDS and not {one.name.lower(), stem} & set(words)


def _hash(one: Told) -> str:
    return hashlib.sha256(f"{one.path}:{one.name}".encode()).hexdigest()


def _question(repo: str, version: str, kind: str, query: str, one: Told) -> dict[str, object]:
    target = {"path": one.path, "start": one.start, "end": one.end}
    return {
        "id": f"{repo}:{kind}:{one.path}:{one.start}", "repo": repo, "slug": repo, "commit": version, "pinned": False,
        "root": "", "lang": "python", "query": query, "expected_paths": [one.path], "primary_paths": [one.path],
        "targets": [target], "kind": kind, "source": "wheel",
    }  # fmt: skip
