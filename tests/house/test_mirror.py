"""Tests mirror the source, tools stand in tests and papers, and no text speaks of things outside the project."""

import io
import json
import re
import subprocess
import sys
import tokenize
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from support.house import ROOT, floor, imports, sources

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


def test_each_file_of_the_slow_list_exists() -> None:
    listed = [line for line in (ROOT / "tests" / "slow.txt").read_text().splitlines() if not line.startswith("#")]
    assert listed == sorted(set(listed))
    assert [name for name in listed if not (ROOT / name).is_file()] == []


def test_tests_stand_in_folders_of_rooms() -> None:
    rooms = {room["name"] for room in floor()["room"]}
    kinds = {*floor()["test_folders"], *rooms}
    tested = {path.relative_to(ROOT / "tests").parts[0] for path in (ROOT / "tests").rglob("test_*.py")}
    assert {name for name in tested if not name.endswith(".py")} - kinds == set()
    assert {room for room in rooms if room not in tested and f"test_{room}.py" not in tested} == set()


def test_each_module_is_imported_by_another() -> None:
    imported = {link.target for source in sources() for link in imports(source)}
    imported |= {source.module for source in sources() if source.path.endswith("__init__.py")}
    unused = {source.module for source in sources()} - imported
    assert sorted(name for name in unused if not any(fnmatch(name, row) for row in floor()["programs"])) == []


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
