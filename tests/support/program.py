"""Running the real program in a process of its own, with a home of its own."""

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import codewhale

SOURCES = str(Path(codewhale.__file__).parent.parent)


def environment(home: Path, extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """What the program sees: PATH, a home below `home`, nothing of the person's own."""
    return {
        "PATH": os.environ.get("PATH", os.defpath),
        "HOME": str(home),
        "CODEWHALE_HOME": str(home / "state"),
        "PYTHONPATH": SOURCES,
        "PYTHONWARNINGS": "error",
        **(extra or {}),
    }


def codewhale_program(
    home: Path,
    *arguments: str,
    stdin: bytes | None = None,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
) -> "subprocess.CompletedProcess[str]":
    """Run `codewhale ARGUMENTS...` to its end; stdin is /dev/null when None, else a pipe with these bytes."""
    done = subprocess.run(
        [sys.executable, "-m", "codewhale", *arguments],
        input=stdin,
        stdin=subprocess.DEVNULL if stdin is None else None,
        capture_output=True,
        cwd=cwd or home,
        env=environment(home, env),
        timeout=60,
        check=False,
    )
    return subprocess.CompletedProcess(done.args, done.returncode, done.stdout.decode(), done.stderr.decode())


def configure(home: Path, text: str) -> Path:
    """Write config.toml below `home`; returns its path."""
    path = home / "state" / "config.toml"
    path.parent.mkdir(mode=0o700, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def scripted(home: Path, *turns: str) -> Path:
    """Configure a provider that plays these turns, each a JSON object; returns the script."""
    script = home / "script.jsonl"
    script.write_text("".join(turn + "\n" for turn in turns), encoding="utf-8")
    configure(
        home, f'provider = "played"\nmodel = "m"\n[providers.played]\ndialect = "scripted"\nscript = "{script}"\n'
    )
    return script
