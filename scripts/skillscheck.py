"""200 skills, whole and damaged in every way, judged by `codewhale skills check` and by the standard's own validator.

The validator is the program `agentskills` of the package skills-ref; its path may be given. Without it: skipped.
"""

import random
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from codewhale.skills.validate import check

COUNT, SEED = 200, 20
LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789"
NAMES = [
    "{}", "技能{}", "навык-{}", "{}-é", "ｆ{}", "{}²", "a-{}-b", "X{}", "{}-", "-{}", "{}--b", "{}_b", "{} b", "{}.b",
    "{}/b", "{}" + "x" * 70, "НАВЫК{}", "{}हि", "''", "", "{}!", "12{}", "ǅ{}", "ß{}",
]  # fmt: skip
DESCRIPTIONS = [
    "Does a thing.", "做一件事", "x" * 1024, "x" * 1025, "''", "", "'  '", ">\n  Two\n  lines.", "Use when: asked",
    "|\n  A: b",
    "'quoted: yes'", '"a \\u00e9"', "[a, b]", "{a: b}", "3", "null", "*x", "&x y", "!!str x", "@x", "a # b", "\n  a: b",
    "\n  - a", "plain\n  goes on", "'open",
]  # fmt: skip
MORE = [
    "license: MIT", "license: [MIT]", "compatibility: Needs git", "compatibility: " + "c" * 500,
    "compatibility: " + "c" * 501, "compatibility:\n  a: b", "allowed-tools: Read Bash(git:*)",
    "allowed-tools:\n  - Read",
    "metadata:\n  author: me\n  version: '1.0'", "metadata: {a: b}", "metadata: text", "metadata:\n  a: b\n  a: c",
    "name: twice", "author: me", "version: 1.0", "invocation: explicit-only", "paths: a", "# a comment", "", "\ttab: x",
    "metadata:\n    four: spaces\n    deep:\n      - x", "? a\n: b", "Description: x", "<<: x", "a: b: c",
    "...",
]  # fmt: skip
SHAPES = [
    "---\n{}\n---\nBody.\n", "---\n{}\n---", "---\r\n{}\r\n---\r\nBody.\r\n", "---\n{}\nBody.\n", "{}\n",
    "\n---\n{}\n---\n",
    "\ufeff---\n{}\n---\n", "--- \n{}\n--- \nBody --- of dashes.\n", "---\n---\n{}\n", "",
]  # fmt: skip


def make(folder: Path, chance: random.Random) -> Path:
    """One skill; most of its parts are sound."""

    def one(rows: list[str]) -> str:
        return rows[0] if chance.random() < 0.8 else chance.choice(rows)

    word = "".join(chance.choices(LETTERS, k=8))
    name = one(NAMES).format(word)
    rows = [f"name: {name}", f"description: {one(DESCRIPTIONS)}"]
    rows += chance.sample(MORE, chance.choice((0, 0, 0, 1, 1, 2)))
    if chance.random() < 0.05:
        rows.pop(chance.randrange(2))
    place = folder / (name.replace("/", "") or word if chance.random() < 0.93 else word)
    place.mkdir()
    file = chance.choice(("SKILL.md", "SKILL.md", "SKILL.md", "SKILL.md", "skill.md", "README.md"))
    (place / file).write_bytes(one(SHAPES).format("\n".join(rows)).encode())
    if file == "skill.md" and chance.random() < 0.5:
        (place / "SKILL.md").write_text("no header")
    return place


def main() -> int:
    """Compare; 1 where one verdict differs."""
    program = shutil.which(sys.argv[1] if len(sys.argv) > 1 else "agentskills")
    if program is None:
        print("skipped: the program agentskills of the package skills-ref is not installed")
        return 0
    chance = random.Random(SEED)
    with tempfile.TemporaryDirectory() as top:
        folders = [
            make(Path(top, str(number)), chance) for number in range(COUNT) if not Path(top, str(number)).mkdir()
        ]
        with ThreadPoolExecutor(2) as pool:
            runs = list(pool.map(lambda at: subprocess.run([program, "validate", at], capture_output=True), folders))
        theirs = [done.returncode == 0 for done in runs]
        ours = [check(str(folder))[0] for folder in folders]
        differ = [at for at in range(COUNT) if theirs[at] != ours[at].valid]
        for at in differ:
            said = (runs[at].stdout + runs[at].stderr).decode("utf-8", "replace")[-600:]
            text = "".join(repr(file.read_bytes()[:300]) for file in folders[at].iterdir())
            print(f"{folders[at].name!r}: theirs {theirs[at]}, ours {ours[at].faults}\n{text}\n{said}\n")
    print(f"{COUNT} skills, {sum(theirs)} valid; {len(differ)} verdicts differ")
    return 1 if differ else 0


if __name__ == "__main__":
    sys.exit(main())
