"""Command lines for tests: the ones that are kept, spoiled ones, and a jail in which allowed ones show what they do."""

import os
import random
import re
import shutil
import subprocess
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from codewhale.permissions.shell.judge import ShellContext, ShellJudgement
from support.suites import suites

LINES = Path(__file__).parents[1] / "permissions" / "shell" / "lines"
SUITE = suites() / "shell_policy"
HERE = ShellContext("/root/project", "", "/root")
VERDICTS = {"safe": "allow", "approval": "ask", "deny": "deny"}
_ODD = [
    ";", "|", "&", "\n", " ", "\t", "$", "`", "(", ")", "{", "}", "<", ">", "'", '"', "\\", "*", "?", "[", "]",
    "~", "!", "#", "=", "-", "--", "&&", "||", "$(", ")", "<(", ">(", "${", "}", "<<", "<<<", ">>", ">|", "&>",
    "2>", "2>&1", "|&", ";;", "$'", '$"', "@P}", "\r", "\x00", "\x0b", "\xa0", "\u2003", "\u200b", "\uff1b",
    "/", "..", ".env", "\\\n", "\x7f", ">/dev/null", "$?", "$IFS", "touch PWNED", "-exec", "-o", "-i", "e", "w",
    "x=1 ", "time ", "env ", "! ", "bash -c ", "| sh", "| xargs ", "@", "%", "^", "+", ",", ":", "0", "EOF",
    "\ud800", "é",
]  # fmt: skip


def kept(name: str) -> list[str]:
    """The lines of a file of ours."""
    return [line for line in (LINES / f"{name}.txt").read_text().splitlines() if not line.startswith("# ")]


def suite() -> list[dict[str, Any]]:
    """The outside cases, none where they are not."""
    path = SUITE / "cases.jsonl"
    return [msgspec.json.decode(line) for line in path.read_bytes().splitlines()] if path.exists() else []


def spoiled(seeds: list[str], chance: random.Random) -> Iterator[str]:
    """Lines without end: seeds with characters and words put in, taken out, doubled and joined."""
    while True:
        line = chance.choice(seeds)
        for _ in range(chance.choice((1, 1, 1, 2, 3, 5))):
            line = _spoil(line, seeds, chance)
        yield line


def _spoil(line: str, seeds: list[str], chance: random.Random) -> str:
    at = chance.randint(0, len(line))
    match chance.randrange(8):
        case 0 | 1:
            return line[:at] + chance.choice(_ODD) + line[at:]
        case 2:
            return line[:at] + line[at + chance.randint(1, 4) :]
        case 3:
            return line[:at] + chance.choice(_ODD) + line[at + 1 :]
        case 4:
            words = line.split(" ")
            chance.shuffle(words)
            return " ".join(words)
        case 5:
            other = chance.choice(seeds)
            return line + chance.choice((" ", "; ", " | ", " && ", "\n", "")) + other
        case 6:
            other = chance.choice(seeds)
            return line[:at] + other[chance.randint(0, len(other)) :]
        case _:
            return line[:at] + line[at : at + 6] * 2 + line[at + 6 :]


class Jail:
    """A namespace without network in which the only programs are stubs that write down their names; shells and quiet
    wrappers run what they carry after that."""

    _THROUGH = ("bash", "sh", "zsh", "dash", "env", "timeout", "nice", "stdbuf", "xargs")
    _STUB = (
        '#!/jail/real/bash\nname="${0##*/}"\nprintf "%s\\n" "$name" >> /jail/log/log\n'
        'if [ -x "/jail/real/$name" ]; then exec "/jail/real/$name" "$@"; fi\n'
    )
    _DRIVER = (
        # What a line leaves behind is waited for, so that it is not taken for the next one's.
        "alone() { local all=(/proc/[0-9]*); [ ${#all[@]} -le $count ]; }\nall=(/proc/[0-9]*); count=${#all[@]}\n"
        "number=0\nwhile IFS= read -r -d '' line; do\n"
        'printf "\\n%s\\n" "$number" >> /jail/log/log; number=$((number+1))\n'
        '/jail/real/timeout 5 /jail/real/bash -c "$line" </dev/null >/dev/null 2>&1\n'
        "for ((look = 0; look < 50000; look++)); do alone && break; done\ndone < /jail/log/lines\nexit 0\n"
    )

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.workspace = folder / "workspace"
        for name in ("real", "stubs", "log", "workspace/src", "workspace/tests"):
            (folder / name).mkdir(parents=True, exist_ok=True)
        for name in ("README.md", "a.txt", "b.txt", "package.json", "src/main.py", "file with spaces.txt", "-oPWNED"):
            (self.workspace / name).write_text(f"{name} x\n")
        for name in self._THROUGH:
            found = shutil.which("bash" if name in ("sh", "zsh", "dash") else name)
            shutil.copy(str(found), folder / "real" / name)
        (folder / "stub").write_text(self._STUB)
        (folder / "stub").chmod(0o755)

    def run(self, lines: list[str]) -> list[set[str]]:
        """What each line started, by name. Raises AssertionError naming the lines when a file has changed."""
        for name in {word for line in lines for word in re.findall(r"[\w.+-]+", line)} | set(self._THROUGH):
            if name not in (".", "..") and len(name) < 200:
                stub = self._folder / "stubs" / name
                if not stub.exists():
                    os.link(self._folder / "stub", stub)
        before = self._tree()
        (self._folder / "log" / "lines").write_bytes(b"".join(line.encode() + b"\0" for line in lines))
        (self._folder / "log" / "log").write_text("")
        (self._folder / "log" / "driver").write_text(self._DRIVER)
        subprocess.run(self._command(), check=True, timeout=30 + 6 * len(lines), stdin=subprocess.DEVNULL)
        assert self._tree() == before, f"one of {lines} changed a file"
        parts = re.split(r"\n(\d+)\n", "\n" + (self._folder / "log" / "log").read_text())
        called = {int(number): set(names.split()) for number, names in zip(parts[1::2], parts[2::2], strict=True)}
        return [called.get(number, set()) for number in range(len(lines))]

    def _command(self) -> list[str]:
        at = str(self._folder)
        binds = []
        for place in ("/lib", "/lib64", "/usr/lib", "/usr/lib64"):
            if os.path.isdir(place):
                binds += ["--ro-bind", place, place]
        for place in ("/bin", "/usr/bin"):
            binds += ["--ro-bind", f"{at}/stubs", place]
        return [
            "bwrap", "--unshare-all", "--die-with-parent", "--new-session", "--clearenv", "--setenv", "PATH",
            "/usr/bin:/bin", "--setenv", "HOME", "/home/me", "--tmpfs", "/", *binds, "--dev", "/dev", "--proc", "/proc",
            "--dir", "/home/me", "--ro-bind", f"{at}/real", "/jail/real", "--bind", f"{at}/log", "/jail/log",
            "--bind", str(self.workspace), "/work", "--chdir", "/work", "/jail/real/bash", "/jail/log/driver",
        ]  # fmt: skip

    def _tree(self) -> dict[str, bytes | None]:
        found = sorted(self.workspace.rglob("*"))
        return {str(path): path.read_bytes() if path.is_file() else None for path in found}


def named(judged: ShellJudgement) -> set[str]:
    """The programs that an analysis says a line runs."""
    return {os.path.basename(command.argv[0]) for command in judged.commands if command.argv}


def table(rows: Iterable[dict[str, Any]], judge: Any) -> dict[str, int]:
    """How outside cases come out: leaks, friction and deny answered ask, with their sums."""
    counts = dict.fromkeys(("safe", "approval", "deny", "leaks", "friction", "softened"), 0)
    for row in rows:
        verdict = judge(row["cmd"])
        counts[row["label"]] += 1
        counts["leaks"] += row["label"] != "safe" and verdict == "allow"
        counts["friction"] += row["label"] == "safe" and verdict != "allow"
        counts["softened"] += row["label"] == "deny" and verdict == "ask"
    return counts
