"""`make chaos`: tasks in three wire formats against `llmock`, a mock of model providers that breaks on purpose and
judges its client. It is installed in an environment of its own. Exit 1 where a task, a call or its verdict fails.
"""

import argparse
import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parent.parent
PLACE = ROOT / ".scratch" / "chaos"
PACKAGE = "llmock==0.2.2"
SEEDED = "import random, sys; random.seed(17); from llmock.cli import app; sys.argv[0] = 'llmock'; app()"
DIALECTS = {"openai-chat": "/v1", "openai-responses": "/v1", "anthropic": "/anthropic"}
# With 45 faults in 100 one of 240 answers needs more than ten tries in one run of twelve, more than fifteen in 600.
PATIENT = {"request_retries": 14, "stream_retries": 14, "first_token_timeout": 10, "gap_timeout": 3}
TASK_SECONDS = 900


class Phase(NamedTuple):
    """Tasks against a server with these faults; all must be done unless `may_fail`, and then each that is not says
    after how many tries it gave up."""

    name: str
    tasks: int
    faults: tuple[str, ...]
    settings: dict[str, int]
    may_fail: bool = False


def stream_faults(**rates: float) -> tuple[str, ...]:
    """Options of the server for streams that break."""
    return tuple(word for kind, rate in rates.items() for word in ("--stream-fault", f"{kind}={rate}"))


def statuses(**rates: float) -> tuple[str, ...]:
    """Options of the server for requests that are refused."""
    return tuple(word for code, rate in rates.items() for word in ("--error-rate", f"{code[1:]}={rate}"))


PHASES = (
    Phase("streams that break", 36, stream_faults(disconnect=0.15, truncate=0.15, malformed=0.1, stall=0.05), PATIENT),
    Phase("requests that are refused", 36, statuses(_429=0.2, _503=0.15, _500=0.1), PATIENT),
    Phase("defaults, streams", 9, stream_faults(disconnect=0.45, truncate=0.25, malformed=0.1), {}, True),
    Phase("defaults, requests", 9, statuses(_429=0.3, _503=0.3, _500=0.2), {}, True),
)


class Done(NamedTuple):
    """How a task ended. `twice` are calls that began more than once, or had more results than one."""

    code: int
    error: str
    retries: int
    broke: int
    calls: int
    twice: tuple[str, ...]


def prepare() -> Path:
    """The interpreter of the mock's own environment, made at the first time."""
    python = PLACE / "venv" / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", str(PLACE / "venv")], check=True)
    found = subprocess.run([python, "-c", "import llmock"], check=False, capture_output=True)
    if found.returncode:
        print(f"Installing {PACKAGE} into {PLACE.relative_to(ROOT)} ...", flush=True)
        subprocess.run([python, "-m", "pip", "install", "-q", PACKAGE], check=True)
    return python


def free_port() -> int:
    """A port that nothing listens on now."""
    import socket

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@contextlib.contextmanager
def serving(python: Path, faults: tuple[str, ...]) -> Iterator[str]:
    """The address of a mock with these faults."""
    port = free_port()
    command = [python, "-c", SEEDED, "serve", "--host", "127.0.0.1", "--port", str(port), "--log-level", "error"]
    with open(PLACE / "server.log", "ab") as log:
        server = subprocess.Popen([*command, "--stream-stall-seconds", "30", *faults], stdout=log, stderr=log)
    try:
        url = f"http://127.0.0.1:{port}"
        for _ in range(600):
            with contextlib.suppress(OSError):
                get(f"{url}/_llmock/scenario")
                break
            if server.poll() is not None:
                raise SystemExit(f"llmock ended with {server.returncode}; see {PLACE / 'server.log'}")
            time.sleep(0.1)
        yield url
    finally:
        server.terminate()
        server.wait(20)


LAST_TRY = "truncated_stream_accepted"
UNANSWERED = (LAST_TRY, "malformed_chunk_ignored")  # findings that a later request of the same body answers


def findings_of(verdict: dict[str, Any], requests: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What llmock found, but for broken answers that it says were taken where the request was sent again: it counts a
    repeat as another call when an earlier try with the same body ended on the server after that had begun."""
    bodies = {one["seq"]: one["fingerprint"] for one in requests}
    last = {one["fingerprint"]: one["seq"] for one in sorted(requests, key=lambda one: int(one["seq"]))}
    return [
        found
        for found in verdict["findings"]
        if found["code"] not in UNANSWERED or last[bodies[max(found["requests"])]] <= max(found["requests"])
    ]


def get(url: str) -> Any:
    """The JSON at a loopback address."""
    with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(url, timeout=30) as answer:
        return json.load(answer)


def run_task(url: str, number: int, settings: dict[str, int]) -> Done:
    """One question through `codewhale exec`, in a folder and a home of its own."""
    dialect = list(DIALECTS)[number % len(DIALECTS)]
    with tempfile.TemporaryDirectory(prefix="chaos-") as folder:
        home, work = Path(folder, "home"), Path(folder, "work")
        home.mkdir()
        work.mkdir()
        (work / "note.txt").write_text(f"note {number}\n")
        lines = ['provider = "mock"', 'model = "mock-model"', "[providers.mock]", f'dialect = "{dialect}"']
        lines += [f'base_url = "{url}{DIALECTS[dialect]}"', *(f"{key} = {value}" for key, value in settings.items())]
        (home / "config.toml").write_text("\n".join(lines) + "\n")
        prompt = f"Task {number}: read the file note.txt and say what it holds."
        command = [sys.executable, "-m", "codewhale", "exec", "--auto", "--output-format", "stream-json", "--deltas"]
        environ = {**os.environ, "CODEWHALE_HOME": str(home)}
        ran = subprocess.run(
            [*command, prompt], cwd=work, env=environ, capture_output=True, timeout=TASK_SECONDS, check=False
        )
    events = [json.loads(line)["event"] for line in ran.stdout.splitlines() if line.strip()]
    return judge(ran.returncode, events, ran.stderr.decode("utf-8", "replace"))


def judge(code: int, events: list[dict[str, Any]], said: str) -> Done:
    """What the events of a task add up to."""
    of = {kind: [event for event in events if event["type"] == kind] for kind in {event["type"] for event in events}}
    begun = Counter(event["call_id"] for event in of.get("call_started", []))
    ended = Counter(event["call_id"] for event in of.get("call_finished", []))
    ends = of.get("turn_finished", [])
    error = str((ends[-1].get("result") or {}).get("error") or "") if ends else said[-400:]
    return Done(
        code,
        error,
        len(of.get("retry_countdown", [])),
        len(of.get("answer_dropped", [])),
        len(begun),
        tuple(call for call in {*begun, *ended} if begun[call] > 1 or ended[call] != 1),
    )


def run_phase(python: Path, phase: Phase, workers: int) -> bool:
    """Run the tasks of a phase, print what came of them; whether all is as it must be."""
    begun = time.monotonic()
    with serving(python, phase.faults) as url, ThreadPoolExecutor(workers) as pool:
        done = list(pool.map(lambda number: run_task(url, number, phase.settings), range(phase.tasks)))
        verdict = get(f"{url}/_llmock/verdict")
        findings = findings_of(verdict, get(f"{url}/_llmock/requests")["requests"])
    finished = sum(one.code == 0 for one in done)
    twice = [call for one in done for call in one.twice]
    failed = [one for one in done if one.code]
    untold = [one for one in failed if one.code != 75 or " times)" not in one.error]
    calls, retries, broke = (sum(getattr(one, name) for one in done) for name in ("calls", "retries", "broke"))
    print(f"{phase.name}: {finished} of {phase.tasks} done, {len(failed)} not, in {time.monotonic() - begun:.0f} s")
    print(f"  {retries} retries ({broke} of streams), {calls} calls ran, {len(twice)} of them twice")
    errors = [finding["code"] for finding in findings if finding["severity"] == "error"]
    print(
        f"  llmock: {verdict['attempts']} attempts, {verdict['faults_injected']} faults, {len(errors)} errors,"
        f" {len(findings) - len(errors)} warnings"
    )
    for finding in findings:
        print(f"    {finding['severity']}: {finding['code']}: {finding['title']}")
    for one in failed if not phase.may_fail else untold:
        print(f"  ended with {one.code}: {one.error}")
    # Nothing follows the last of a task's tries.
    allowed = min(errors.count(LAST_TRY), len(failed)) if phase.may_fail else 0
    good = not twice and len(errors) <= allowed and not untold
    return good and (phase.may_fail or finished == phase.tasks)


def main() -> int:
    """Run, print, judge."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workers", type=int, default=3)
    parser.add_argument("--only", type=int, help="one phase, counted from 1")
    options = parser.parse_args()
    PLACE.mkdir(parents=True, exist_ok=True)
    python = prepare()
    chosen = PHASES if options.only is None else PHASES[options.only - 1 : options.only]
    good = [run_phase(python, phase, options.workers) for phase in chosen]
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
