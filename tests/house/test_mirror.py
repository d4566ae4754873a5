"""Tests mirror the source, tools stand in tests and papers, and no text speaks of things outside the project."""

import io
import json
import re
import subprocess
import sys
import tokenize
from pathlib import Path
from typing import Any

from support.house import ROOT, code_lines, floor, sources

ENOUGH = 40
SPECS = ROOT / "src" / "codewhale" / "catalog" / "specs.json"
LEFT_OPEN = re.compile(r"\b(TO" + r"DO|FIX" + r"ME|XX" + r"X)\b")
ELSEWHERE = re.compile(
    r"/wo" + r"rk/(main|shared|scratch)|/ro" + r"ot/\.pyenv|/tm" + r"p/bash_jobs"
    r"|shared/(contr" + r"acts|design|seeds|hooks)|\bseed 00" + r"\d|\bthe orig" + r"inal's\b"
)  # fmt: skip
BINARY = (".png", ".gif", ".pdf", ".ico", ".gz", ".whl", ".zip", ".jsonl.zst")


def tracked() -> list[Path]:
    """Files under version control; all files where the tree is no repository."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=False)
    if listed.returncode:
        return [path for path in ROOT.rglob("*") if path.is_file() and ".venv" not in path.parts]
    names = [name for name in listed.stdout.decode().split("\0") if name]
    return [ROOT / name for name in names if (ROOT / name).is_file() and not name.endswith(BINARY)]


def test_each_source_file_has_its_tests() -> None:
    covered = floor()["covered"]
    found = []
    for source in sources():
        inner = source.path.removeprefix("src/codewhale/")
        stem = Path(inner).stem
        name = f"test_{Path(inner).parent.name if stem == '__init__' else stem}"
        folder = ROOT / "tests" / Path(inner).parent
        by_name = (folder / f"{name}.py").exists() or any(folder.glob(f"{name}_*.py"))
        if code_lines(source) > ENOUGH and not by_name and inner not in covered:
            found.append(f"{source.path}: no tests/{Path(inner).parent}/{name}.py and no row in floor.toml")
    assert not found, "\n" + "\n".join(found)


def test_rows_of_covered_files_are_true() -> None:
    for inner, test in floor()["covered"].items():
        assert (ROOT / "src" / "codewhale" / inner).exists(), inner
        assert (ROOT / test).exists(), test


def test_each_test_file_has_its_source() -> None:
    rooms = {room["name"] for room in floor()["room"]}
    found = []
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        inner = path.relative_to(ROOT / "tests")
        if inner.parts[0] not in rooms:
            continue
        folder = ROOT / "src" / "codewhale" / inner.parent
        stems = {item.stem for item in folder.glob("*.py")} | {item.name for item in folder.glob("*/")} | {folder.name}
        if not any(re.match(rf"test_{re.escape(stem)}(_|$)", path.stem) for stem in stems):
            found.append(f"tests/{inner}: nothing in src of that name")
    assert not found, "\n" + "\n".join(found)


def tool_names() -> list[str]:
    """Registered tools, from the generated catalog."""
    loaded: Any = json.loads(SPECS.read_text())
    rows = loaded if isinstance(loaded, list) else loaded.get("tools", loaded)
    return sorted(rows) if isinstance(rows, dict) else sorted(row["name"] for row in rows)


def test_each_tool_stands_in_tests_and_papers() -> None:
    papers = (ROOT / "docs" / "tools.md").read_text()
    tests = "\n".join(path.read_text() for path in (ROOT / "tests" / "tools").glob("*.py"))
    assert [name for name in tool_names() if f"`{name}`" not in papers] == []
    assert [name for name in tool_names() if not re.search(rf"\b{name}\b", tests)] == []


def test_papers_are_up_to_date() -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "scripts" / "docs.py"), "--check"], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr


def comments(text: str) -> str:
    """The comments of a Python file."""
    words = tokenize.generate_tokens(io.StringIO(text).readline)
    return "\n".join(token.string for token in words if token.type == tokenize.COMMENT)


def test_nothing_is_left_open() -> None:
    found = []
    for path in tracked():
        text = path.read_text(errors="replace")
        if not LEFT_OPEN.search(text):
            continue
        looked_at = comments(text) if path.suffix == ".py" else text if path.suffix in (".md", ".toml", "") else ""
        found += [f"{path.relative_to(ROOT)}: {match.group()}" for match in LEFT_OPEN.finditer(looked_at)]
    assert not found, "\n" + "\n".join(found)


def test_nothing_speaks_of_the_machine_it_was_written_on() -> None:
    found = []
    for path in tracked():
        text = path.read_text(errors="replace")
        found += [f"{path.relative_to(ROOT)}: {match.group()}" for match in ELSEWHERE.finditer(text)]
    assert not found, "\n" + "\n".join(found)
