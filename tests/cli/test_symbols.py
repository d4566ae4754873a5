"""`codewhale symbols` as a person and a script call it."""

import json
from pathlib import Path

import pytest

from support.program import codewhale_program
from support.repos import make_repo

FILES = {
    "keys.py": "def resolve(name):\n    return name\n",
    "main.py": "from keys import resolve\n\n\ndef start():\n    return resolve('x')\n",
    "other.py": "def run(thing):\n    return thing.resolve()\n",
}


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    (tmp_path / "tree").mkdir()
    for name, text in FILES.items():
        (tmp_path / "tree" / name).write_text(text)
    return tmp_path


def test_a_person_sees_places_and_what_is_uncertain(tree: Path) -> None:
    done = codewhale_program(tree, "symbols", "resolve", "--callers", "-w", "tree")
    first, second = done.stdout.splitlines()
    assert first.startswith("  main.py:5  start  return resolve('x')") and second.startswith("? other.py:2  run")
    done = codewhale_program(tree, "symbols", "resolv", "-w", "tree")
    assert (done.returncode, done.stdout) == (0, "") and "no match; do you mean resolve?" in done.stderr
    done = codewhale_program(tree, "symbols", "resolv", "-w", "tree", "--json")
    assert json.loads(done.stdout)["did_you_mean"] == ["resolve"]
    done = codewhale_program(tree, "symbols", "run", "--callers", "-w", "tree")
    assert done.returncode == 0 and "no match. It is defined (fn) and has no callers by name" in done.stderr
    done = codewhale_program(tree, "symbols", "none_such", "-w", "tree")
    assert (done.returncode, done.stdout) == (0, "") and "no match" in done.stderr


def test_a_path_with_a_line_break_stays_on_its_line(tmp_path: Path) -> None:
    make_repo(tmp_path / "repo", {"ev\x1b[31mil\nname.py": "def resolve():\n    pass\n"})
    for words in (["symbols", "resolve"], ["history", "name"], ["search", "resolve"]):
        lines = codewhale_program(tmp_path, *words, "-w", "repo").stdout.splitlines()
        assert any(r"ev\x1b[31mil\x0aname.py" in line for line in lines), words
        assert not any(line.startswith("name.py") for line in lines), words


@pytest.mark.parametrize(
    ("words", "relation", "paths"),
    [
        (["resolve"], "definitions", ["keys.py"]),
        (["resolve", "--refs"], "references", ["main.py", "main.py", "other.py"]),
        (["start", "--callees"], "callees", ["main.py"]),
        (["--imports", "main.py"], "imports", ["main.py"]),
        (["--importers", "keys.py"], "importers", ["main.py"]),
    ],
)
def test_a_script_gets_one_object(tree: Path, words: list[str], relation: str, paths: list[str]) -> None:
    done = codewhale_program(tree, "symbols", *words, "-w", "tree", "--json")
    told = json.loads(done.stdout)
    assert (told["relation"], [row["path"] for row in told["results"]]) == (relation, paths)
    assert all({"line", "certain", "why"} <= set(row) for row in told["results"]) and told["total"] == len(paths)


def test_wrong_usage_and_missing_files(tree: Path) -> None:
    for words in ([], ["x", "--imports", "main.py"], ["x", "--refs", "--callers"], [" "], ["x", "-w", "none"]):
        done = codewhale_program(tree, "symbols", *words)
        assert (done.returncode, done.stdout) == (2, ""), words
    done = codewhale_program(tree, "symbols", "--imports", "no.py", "-w", "tree")
    assert done.returncode == 1 and "'no.py'" in done.stderr
