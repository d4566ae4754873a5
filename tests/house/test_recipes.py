"""The recipes of CONTRIBUTING.md, executed on a copy of the tree: each must leave a house that still stands."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import pytest

from support.house import ROOT

FENCE = re.compile(r'^( *)```(?:python|text) file=(\S+)(?: after="((?:\\.|[^"\\])*)")?\n(.*?)^ *```$', re.S | re.M)
PAPER = (ROOT / "CONTRIBUTING.md").read_text()
RECIPES = dict(re.findall(r"^## (An? [^\n]+)\n(.*?)(?=^## |\Z)", PAPER, re.S | re.M))


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tree without what is built, installed or measured."""
    folder = tmp_path_factory.mktemp("tree")
    for name in ("src", "scripts", "docs", "tests/support", "tests/house"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "tests/conftest.py", "tests/slow.txt", "README.md", "ARCHITECTURE.md"):
        shutil.copy(ROOT / name, folder / name)
    return folder


def follow(recipe: str, tree: Path) -> list[str]:
    """Write a recipe's blocks into the tree; returns the test files among them."""
    tests = []
    for indent, name, after, code in FENCE.findall(recipe):
        path = tree / name
        text = re.sub(rf"^{indent}", "", code, flags=re.M)
        if after:
            line = json.loads(f'"{after}"')
            before = path.read_text()
            assert before.count(line + "\n") == 1, f"{name} has no single line {line!r}"
            path.write_text(before.replace(line + "\n", f"{line}\n{text}"))
        else:
            assert not path.exists(), name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(dedent(text))
        if name.startswith("tests/"):
            tests.append(name)
    return tests


def python(tree: Path, *arguments: str) -> None:
    """Run Python on the copy; shows what it printed when it fails."""
    environment = {**os.environ, "PYTHONPATH": str(tree / "src"), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [sys.executable, *arguments], cwd=tree, env=environment, capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]


def test_there_are_the_promised_recipes() -> None:
    assert list(RECIPES) == ["A tool", "A known provider", "A provider", "A slash command"]


@pytest.mark.parametrize("name", RECIPES)
def test_recipe_works(name: str, tree: Path) -> None:
    tests = follow(RECIPES[name], tree)
    assert tests, "a recipe brings its test"
    python(tree, "scripts/catalog.py")
    python(tree, "-m", "pytest", "-p", "no:cacheprovider", *tests)


@pytest.mark.slow
def test_the_house_still_stands_after_all_of_them(tree: Path) -> None:
    python(tree, "-m", "pytest", "-p", "no:cacheprovider", "tests/house/test_floor.py", "-k", "not ceilings")
