"""`make crash`: kill -9 the harness at random moments of a scripted session and look for loss.

After each kill the session must open, hold every event that was acknowledged on stdout, hold no event twice, and
resume to a finished turn without running a finished side effect again.
"""

import argparse
import json
import os
import random
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

BIN = Path(sys.executable).parent
STEPS = 12


class Fate(NamedTuple):
    """How one life ended: after how long, how many events were acknowledged, what was found wrong."""

    seed: int
    lived: float
    acknowledged: int
    resume: float
    faults: tuple[str, ...]


def turns() -> list[dict[str, Any]]:
    """A session of writes and commands, each leaving one line that only it writes."""
    script: list[dict[str, Any]] = []
    for step in range(STEPS):
        command = f"echo step-{step} >> effects.txt"
        script.append({"text": f"Step {step}.", "calls": [{"name": "exec_shell", "arguments": {"command": command}}]})
        page = {"path": f"page_{step}.txt", "content": f"page {step}\n" * 50}
        script.append({"calls": [{"name": "write_file", "arguments": page}, {"name": "list_dir", "arguments": {}}]})
    return [*script, {"text": "All steps are done."}]


def configure(home: Path, script: list[dict[str, Any]]) -> None:
    """A home whose model is this script."""
    home.mkdir(exist_ok=True)
    (home / "script.jsonl").write_text("".join(json.dumps(turn) + "\n" for turn in script))
    (home / "config.toml").write_text(
        'provider = "scripted"\nmodel = "script"\n[providers.scripted]\ndialect = "scripted"\n'
        f"script = {json.dumps(str(home / 'script.jsonl'))}\n"
    )


def door(home: Path, work: Path, *arguments: str) -> list[str]:
    """A command line of the front door on this workspace."""
    return [str(BIN / "codewhale"), *arguments[:1], "-w", str(work), *arguments[1:]]


def environment(home: Path) -> dict[str, str]:
    """This process's environment with its own home."""
    return {**os.environ, "CODEWHALE_HOME": str(home), "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}"}


def live(home: Path, work: Path, seconds: float) -> bytes:
    """Run the session for `seconds`, kill it, and return what it had acknowledged by then."""
    command = door(home, work, "exec", "--yolo", "--output-format", "stream-json", "Do all steps.")
    acknowledged = home / "acknowledged.jsonl"
    with acknowledged.open("wb") as out:
        child = subprocess.Popen(
            command, env=environment(home), stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.DEVNULL
        )
        try:
            child.wait(seconds)
        except subprocess.TimeoutExpired:
            child.send_signal(signal.SIGKILL)
            child.wait()
    return acknowledged.read_bytes()


def ask(home: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """One command of the front door, waited for."""
    return subprocess.run(
        [str(BIN / "codewhale"), *arguments],
        env=environment(home), stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip


def keyed(text: str) -> list[tuple[int, str]]:
    """(seq, event) of each whole line of envelopes."""
    rows = [json.loads(line) for line in text.split("\n") if line.endswith("}")]
    return [(row["seq"], json.dumps(row["event"], sort_keys=True)) for row in rows]


def judge(home: Path, work: Path, acknowledged: str) -> tuple[list[str], float]:
    """What is wrong with what the dead session left, and how long resuming took."""
    seen = keyed(acknowledged)
    session = json.loads(acknowledged.split("\n", 1)[0])["session"]
    shown = ask(home, "sessions", "show", session, "--events")
    if shown.returncode:
        return [f"cannot be opened: {shown.stderr.strip()[:200]}"], 0.0
    kept = keyed(shown.stdout)
    faults = []
    if lost := set(seen) - set(kept):
        faults.append(f"{len(lost)} acknowledged events lost: {sorted(lost)[0]}")
    if len({seq for seq, _ in kept}) != len(kept):
        faults.append("an event stands twice")
    before = (work / "effects.txt").read_text().split() if (work / "effects.txt").exists() else []
    configure(home, [{"text": "Resumed and done."}])
    begun = time.monotonic()
    resumed = subprocess.run(
        door(home, work, "exec", "--yolo", "--resume", session, "Go on."),
        env=environment(home), stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    took = time.monotonic() - begun
    if resumed.returncode or "Resumed and done." not in resumed.stdout:
        faults.append(f"resume ended with {resumed.returncode}: {resumed.stderr.strip()[-200:]}")
    after = (work / "effects.txt").read_text().split() if (work / "effects.txt").exists() else []
    if after != before or len(set(after)) != len(after):
        faults.append(f"side effects ran again: {after}")
    partial = [path.name for path in work.glob("page_*.txt") if path.stat().st_size not in (350, 400)]
    return ([*faults, f"half-written files: {partial}"] if partial else faults), took


def whole_life() -> float:
    """How long the session takes when nobody kills it, in seconds."""
    with tempfile.TemporaryDirectory(prefix="codewhale-crash-") as folder:
        home, work = Path(folder) / "home", Path(folder) / "work"
        work.mkdir()
        configure(home, turns())
        begun = time.monotonic()
        if b'"turn_finished"' not in live(home, work, 120):
            raise SystemExit("crash: the session does not even end when it is left alone")
        return time.monotonic() - begun


def one(seed: int, life: float) -> Fate:
    """One life and its judgement: killed at a moment drawn from a tenth of a whole life to a little beyond it."""
    lived = random.Random(seed).uniform(0.1 * life, 1.1 * life)
    folder = Path(tempfile.mkdtemp(prefix="codewhale-crash-"))
    try:
        home, work = folder / "home", folder / "work"
        work.mkdir()
        configure(home, turns())
        acknowledged = live(home, work, lived)
        whole = acknowledged[: acknowledged.rfind(b"\n") + 1].decode()
        if not whole:
            return Fate(seed, lived, 0, 0.0, ())
        faults, resume = judge(home, work, whole)
        return Fate(seed, lived, whole.count("\n"), resume, tuple(faults))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def main() -> int:
    """0 when no life lost anything."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=1000)
    parser.add_argument("--first", type=int, default=None, help="the first seed; drawn when absent")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    first = asked.first if asked.first is not None else random.SystemRandom().randrange(1_000_000)
    print(f"{asked.kills} kills, seeds from {first} (again with --first {first})", flush=True)
    begun = time.monotonic()
    with ThreadPoolExecutor(asked.workers) as workers:
        life = max(workers.map(lambda _: whole_life(), range(asked.workers)))
        print(f"left alone, the session takes {life:.2f} s", flush=True)
        fates = list(workers.map(lambda seed: one(seed, life), range(first, first + asked.kills)))
    wrong = [fate for fate in fates if fate.faults]
    for fate in wrong[:20]:
        print(f"seed {fate.seed}, killed after {fate.lived:.3f} s: {'; '.join(fate.faults)}")
    begun_sessions = [fate for fate in fates if fate.acknowledged]
    figures = {
        "kills": len(fates),
        "sessions_begun": len(begun_sessions),
        "events_acknowledged": sum(fate.acknowledged for fate in fates),
        "faulty": len(wrong),
        "resume_median_s": round(statistics.median([fate.resume for fate in begun_sessions] or [0.0]), 3),
        "seconds": round(time.monotonic() - begun, 1),
    }
    print(", ".join(f"{key.replace('_', ' ')} {value}" for key, value in figures.items()))
    if asked.json:
        print(json.dumps(figures))
    return 1 if wrong or (asked.kills >= 20 and not begun_sessions) else 0


if __name__ == "__main__":
    sys.exit(main())
