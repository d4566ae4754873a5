"""`make smoke`: every command-line door once, from a wheel installed where nothing else is.

Each row is a command line, what it may exit with, and a word that its stdout must hold.
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
SCRATCH = ROOT / ".scratch" / "smoke"


class Door(NamedTuple):
    """A command line after `codewhale`, with what it must do."""

    arguments: tuple[str, ...]
    exits: tuple[int, ...] = (0,)
    says: str = ""
    stdin: str = ""


PATCH = "*** Begin Patch\n*** Add File: new.txt\n+hello\n*** End Patch\n"
DOORS = (
    Door(("--version",), says="codewhale"),
    Door(("--help",), says="exec"),
    Door(("exec", "--help"), says="--output-format"),
    Door(("nonsense",), exits=(2,)),
    Door(("exec", "-w", "work", "--yolo", "List the files."), says="Listed."),
    Door(("exec", "-w", "work", "--yolo", "--output-format", "json", "Again."), says='"schema_version":1'),
    Door(("exec", "-w", "work", "--yolo", "--output-format", "stream-json", "Again."), says='"turn_finished"'),
    Door(("exec", "-w", "work", "--yolo", "-"), says="Listed.", stdin="List the files."),
    Door(("exec", "-w", "work", "--continue", "/status"), says="work"),
    Door(("sessions", "list", "--json", "--all"), says='"state":"idle"'),
    Door(("sessions", "show", "latest", "--messages"), says="Listed."),
    Door(("sessions", "rm", "nothing-of-that-name"), exits=(1, 2)),
    Door(("stats", "--json"), says='"hit_rate"'),
    Door(("apply", "-w", "work", "--json"), says='"success":true', stdin=PATCH),
    Door(("apply", "-w", "work"), exits=(1, 2), stdin="no patch\n"),
    Door(("tools", "list", "--json"), says='"read_file"'),
    Door(("tools", "head"), says='"read_file"'),
    Door(("config", "--help"), says="usage"),
    Door(("doctor",), exits=(0, 1)),
)


def install() -> Path:
    """The wheel, built and installed alone; returns the program."""
    shutil.rmtree(SCRATCH, ignore_errors=True)
    SCRATCH.mkdir(parents=True)
    pip = ["-m", "pip", "-q", "--disable-pip-version-check"]
    subprocess.run([sys.executable, *pip, "wheel", "--no-deps", "-w", str(SCRATCH), str(ROOT)], check=True)
    subprocess.run([sys.executable, "-m", "venv", str(SCRATCH / "venv")], check=True)
    wheel = next(SCRATCH.glob("*.whl"))
    subprocess.run([str(SCRATCH / "venv/bin/python"), *pip, "install", str(wheel)], check=True)
    return SCRATCH / "venv" / "bin" / "codewhale"


def lay_out() -> dict[str, str]:
    """A workspace and a home with a scripted model; returns the environment."""
    work, home = SCRATCH / "work", SCRATCH / "home"
    work.mkdir()
    home.mkdir()
    (work / "a.txt").write_text("a\n")
    turns = [{"calls": [{"name": "list_dir", "arguments": {}}]}, {"text": "Listed."}]
    (home / "script.jsonl").write_text("".join(json.dumps(turn) + "\n" for turn in turns))
    (home / "config.toml").write_text(
        'provider = "scripted"\nmodel = "script"\n[providers.scripted]\ndialect = "scripted"\n'
        f"script = {json.dumps(str(home / 'script.jsonl'))}\n"
    )
    return {"PATH": os.environ["PATH"], "HOME": str(home), "CODEWHALE_HOME": str(home), "LANG": "C.UTF-8"}


def wrong(door: Door, program: Path, environment: dict[str, str]) -> str:
    """What is wrong with a door; "" when nothing is."""
    done = subprocess.run(
        [str(program), *door.arguments],
        cwd=SCRATCH, env=environment, input=door.stdin, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    if done.returncode not in door.exits:
        return f"exit {done.returncode}, wanted {door.exits}: {done.stderr.strip()[-300:]}"
    if door.says not in done.stdout:
        return f"stdout lacks {door.says!r}: {done.stdout.strip()[-300:]}"
    return "a traceback on stderr" if "Traceback" in done.stderr else ""


def main() -> int:
    """0 when every door does what it must."""
    program, environment = install(), lay_out()
    failed = 0
    for door in DOORS:
        fault = wrong(door, program, environment)
        failed += bool(fault)
        print(f"{'FAILED' if fault else 'ok':7}codewhale {' '.join(door.arguments)}  {fault}".rstrip(), flush=True)
    print(f"{len(DOORS) - failed} of {len(DOORS)} doors")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
