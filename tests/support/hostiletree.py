"""A workspace in which everything that a tool may look at is as bad as it can be, and calls that look at it."""

import os
import socket
import zlib
from pathlib import Path
from typing import Any

from support.goodcalls import GOOD

STARS = "*a" * 18 + "*b"
LONG = "a" * 200
GIB = 1 << 30
PATTERNS = ("(a*)*$", "(?:(?:(?:a{1000}){1000}){1000}){1000}", ".*.*.*.*x", "a" * 9_000)
GLOBS = (STARS, "**/" * 300 + "x", "{a,b}" * 6 + "?*" * 400)
PATHS = (
    ".", "huge.bin", "line.txt", "pipe", "deep", "many", "loop", "self", "deep.json", "dotted.toml", "bomb.pdf",
    "socket", "picture.jpg", "nul.txt", LONG,
)  # fmt: skip


def lay(top: Path) -> None:
    """Fill a folder."""
    (top / ".gitignore").write_text("\n".join([STARS, *(f"{STARS}{n}*[!x]*?" for n in range(70))]) + "\n")
    (top / ".ignore").write_text("[" * 100_000 + "\n" + "*?" * 20_000 + "\n")
    (top / LONG).write_text("x")
    for name, size in (("huge.bin", 3 * GIB), ("huge.json", 3 * GIB), ("huge.py", 3 * GIB)):
        with open(top / name, "wb") as file:
            file.truncate(size)
    (top / "line.txt").write_bytes(b"a" * (50 << 20))
    (top / "line.py").write_bytes(b"x = " + b"(" * (9 << 20))
    (top / "nul.txt").write_bytes(b"\0\xff" * 500_000)
    for name in ("pipe", "pipe.py", "pyproject.toml", "AGENTS.md", "sub.json"):
        os.mkfifo(top / name)
    deep = top / "deep"
    deep.mkdir()
    (deep / "/".join(["d"] * 250)).mkdir(parents=True)
    many = top / "many"
    many.mkdir()
    for number in range(3_000):
        (many / f"f{number}.txt").touch()
    os.symlink("loop", top / "loop")
    os.symlink(".", top / "self")
    os.symlink("/dev/zero", top / "zero")
    (top / "deep.json").write_text("[" * 1_000_000)
    (top / "package.json").write_text("[" * 1_000_000)
    (top / "dotted.toml").write_text(".".join(["a"] * 100_000) + " = 1")
    (top / "Cargo.toml").write_text(".".join(["a"] * 100_000) + " = 1")
    (top / "picture.jpg").write_bytes(b"\xff\xd8" + b"\xff\xe0\x00\x02" * 2_000_000)
    (top / "bomb.pdf").write_bytes(b"%PDF-1.4\n" + zlib.compress(b"q " * 10_000_000))
    (top / "a.txt").write_text("one\ntwo\n")
    skill = top / ".agents" / "skills" / "bad"
    skill.mkdir(parents=True)
    (skill / "SKILL.md").write_text("---\na: &a [" + "*a," * 3000 + "]\n---\n")
    with socket.socket(socket.AF_UNIX) as listening:
        here = os.getcwd()
        os.chdir(top)
        try:
            listening.bind("socket")
        finally:
            os.chdir(here)


def calls(name: str, properties: dict[str, Any]) -> list[dict[str, Any]]:
    """Calls of a tool: the one that works, and it with one argument after another made hostile."""
    good = GOOD[name]
    # Those that take the whole time of a search are searched for elsewhere.
    patterns = (PATTERNS[1], PATTERNS[-1][:2_000]) if name == "grep_files" else PATTERNS
    bad: list[dict[str, Any]] = []
    for key, values in (
        ("path", PATHS),
        ("pattern", patterns),
        ("query", (*PATTERNS, "a" * 499)),
        ("symbol", PATTERNS[:2]),
        ("path_glob", GLOBS),
        ("include", [[f"{glob}{number}" for number in range(8)] for glob in GLOBS]),
        ("exclude", [[f"{glob}{number}" for number in range(50)] for glob in GLOBS[2:]]),
        ("content", ("[" * 200_000, ".".join(["a"] * 40_000) + " = 1")),
        ("search", ("a" * 5_000, LONG)),
        ("patch", ("*** Begin Patch\n" + "@@\n-a\n+b\n" * 3_000 + "*** End Patch", "--- a\n+++ b\n" * 5_000)),
    ):
        if key in properties:
            bad += [{**good, key: value} for value in values]
    if "path" in properties and "content" in properties and name == "validate_data":
        bad = [{k: v for k, v in call.items() if k != "path" or "content" not in call} for call in bad]
    return [good, *bad][:60]
