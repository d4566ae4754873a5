"""`make bench`: speed and size against bounds, beside a floor agent (the least a Python agent can be) in the same run.

The bench itself lies outside the repository: a folder `shared/bench` beside it, or wherever CODEWHALE_BENCH names.
It is copied to .scratch/bench, since it writes beside itself. `--json` prints the rows as one JSON line at the end.
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from policy_server import Policy, PolicyServer, Turn

ROOT = Path(__file__).resolve().parent.parent
COPY = ROOT / ".scratch" / "bench"
OURS, FLOOR = "codewhale", "floor-httpx"


class Row(NamedTuple):
    """A figure against its bound. `ratio` is measured over bound; `floor` the floor agent's figure, if it has one."""

    id: str
    bound: float
    measured: float | None
    floor: float | None = None
    at_least: bool = False

    @property
    def ok(self) -> bool:
        """Whether the bound holds."""
        if self.measured is None:
            return False
        return self.measured >= self.bound if self.at_least else self.measured <= self.bound

    def told(self) -> dict[str, Any]:
        """The row as data."""
        ratio = None if self.measured is None else round(self.measured / self.bound, 3)
        return {"id": self.id, "bound": self.bound, "measured": self.measured, "ratio": ratio, "ok": self.ok} | (
            {"floor": self.floor} if self.floor is not None else {}
        )


def outside() -> Path:
    """The bench's folder. Raises SystemExit with the remedy when there is none."""
    found = Path(os.environ.get("CODEWHALE_BENCH", ROOT.parent / "shared" / "bench"))
    if not (found / "bench.py").exists():
        raise SystemExit(f"bench: no bench.py in {found}: name its folder, CODEWHALE_BENCH=/path/to/bench make bench")
    return found


def prepare() -> None:
    """A copy of the bench with both agents installed."""
    COPY.mkdir(parents=True, exist_ok=True)
    for item in outside().iterdir():
        if item.is_dir():
            shutil.copytree(item, COPY / item.name, dirs_exist_ok=True)
        elif item.is_file():
            shutil.copy(item, COPY / item.name)
    subprocess.run(["chmod", "-R", "u+w", str(COPY)], check=True)
    install("codewhale", "--force-reinstall", "--no-deps", str(ROOT), first=(str(ROOT),))
    install("floor", "httpx", first=())


def install(name: str, *packages: str, first: tuple[str, ...]) -> None:
    """A virtual environment for one agent, beside the bench."""
    python = COPY / "venvs" / name / "bin" / "python"
    pip = [str(python), "-m", "pip", "install", "-q", "--disable-pip-version-check"]
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", str(python.parent.parent)], check=True)
        if first:
            subprocess.run([*pip, *first], check=True)
    subprocess.run([*pip, *packages], check=True)


def bench(*arguments: str) -> None:
    """One command of the bench; its lines are shown as they come."""
    print("$ bench.py", *arguments, flush=True)
    subprocess.run([sys.executable, "bench.py", *arguments], cwd=COPY, check=True)


def result(agent: str, key: str) -> dict[str, Any]:
    """What the bench wrote about an agent."""
    loaded: dict[str, Any] = json.loads((COPY / "results" / f"{agent}.json").read_text())
    return dict(loaded[key])


def cpu_of(pid: int) -> float:
    """CPU seconds of a process and the children it has waited for, on Linux."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return sum(int(field) for field in fields[11:15]) / os.sysconf("SC_CLK_TCK")


def start_cpu(times: int) -> float:
    """Median CPU seconds from process start to the first model request, where no control group counts it."""
    seen: list[float] = []
    home = COPY / "start-home"
    shutil.rmtree(home, ignore_errors=True)
    home.mkdir()
    running: list[subprocess.Popen[bytes]] = []

    def begin(words: str) -> Policy:
        seen.append(cpu_of(running[-1].pid))
        yield Turn("Done.")

    with PolicyServer(begin) as server:
        (home / "config.toml").write_text(
            f'provider = "fake"\nmodel = "fake"\n[providers.fake]\ndialect = "openai-chat"\n'
            f'base_url = "{server.base_url}"\napi_key_env = "FAKE_KEY"\n'
        )
        own = {**os.environ, "CODEWHALE_HOME": str(home), "FAKE_KEY": "x"}
        command = [str(COPY / "venvs/codewhale/bin/codewhale"), "exec", "-w", str(home), "--yolo", "Say done."]
        for _ in range(times + 1):
            running.append(subprocess.Popen(command, env=own, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL))
            if running[-1].wait():
                raise SystemExit("bench: codewhale exec failed")
            time.sleep(0.01)
    return statistics.median(seen[1:])


def measure(short: int, long: int, times: int) -> list[Row]:
    """All rows: start, a short loop run several times, a long loop once."""
    bench("smoke", OURS)
    checks = result(OURS, "smoke")
    bench("start", OURS, FLOOR, "-n", "20")
    version = result(OURS, "start")["version"]["wall"], result(FLOOR, "start")["version"]["wall"]
    bench("run", OURS, FLOOR, "-n", str(times), "-t", str(short))
    loop, floor = result(OURS, "loop"), result(FLOOR, "loop")
    bench("run", OURS, FLOOR, "-n", "2", "-t", str(long), "--timeout", "600")
    grown, floor_grown = result(OURS, "loop"), result(FLOOR, "loop")
    first = loop["cpu_first"] if loop["cpu_first"] is not None else start_cpu(10)
    smoke = float(all(checks["checks"].values()) and checks["rc"] == 0)
    prefix = min(loop["prefix_min"], grown["prefix_min"])
    shared = "cross_session_prefix"
    return [
        Row("smoke: four effects, exit 0", 1, smoke, at_least=True),
        Row("start to first request, CPU s", 0.35, first, floor["cpu_first"]),
        Row("turn overhead, median ms", 4.0, 1e3 * loop["gap_median"], 1e3 * floor["gap_median"]),
        Row("last 10 turns over first 10, CPU", 1.2, growth(OURS, cpu), growth(FLOOR, cpu)),
        Row("the same in wall time, over the floor's", 1.1, share(growth(OURS, wall), growth(FLOOR, wall)), 1.0),
        Row("turns completed", long, grown["n_main"] - 1, floor_grown["n_main"] - 1, at_least=True),
        Row("TCP connections", 1, max(loop["conns"], grown["conns"]), floor["conns"]),
        Row("prefix kept, worst turn", 1.0, prefix, floor["prefix_min"], at_least=True),
        Row("prefix two sessions share", 1.0, loop[shared], floor[shared], at_least=True),
        Row("peak PSS, MB", 60, loop["peak_pss"] / 1e6, floor["peak_pss"] / 1e6),
        Row("--version, median wall s", 0.10, version[0], version[1]),
    ]


Request = dict[str, Any]


def growth(agent: str, cost: Callable[[Request, Request], float | None]) -> float | None:
    """How much dearer the last 10 turns of the long runs are than the first 10; None where it cannot be told."""
    ratios = []
    for path in sorted((COPY / "runs" / agent).glob("loop_[0-9]*/requests.jsonl")):
        sent = [json.loads(line) for line in path.read_text().splitlines()]
        turns = [request for request in sent if request["kind"] == "main"]
        costs = [cost(one, other) for one, other in pairwise(turns)]
        if None in costs or len(costs) < 20:
            return None
        ratios.append(statistics.median(costs[-10:]) / statistics.median(costs[:10]))  # type: ignore[type-var]
    return statistics.median(ratios) if ratios else None


def cpu(one: Request, other: Request) -> float | None:
    """CPU seconds of the agent's process tree between two requests; None where no control group counts them."""
    return None if one.get("cpu") is None else float(other["cpu"] - one["cpu"])


def wall(one: Request, other: Request) -> float:
    """Seconds between a reply and the next request, less what the server spends there on its own log: it writes the
    whole request down before it reads on, and that grows with the conversation whoever the agent is."""
    with tempfile.TemporaryFile("w", buffering=1) as log:
        least = min(timed(lambda: log.write(json.dumps(one, ensure_ascii=False) + "\n")) for _ in range(3))
    return float(other["t_conn"] - one["t_end"]) - least


def share(ours: float | None, floor: float | None) -> float | None:
    """Ours in parts of the floor's."""
    return None if ours is None or floor is None else ours / floor


def timed(work: Callable[[], object]) -> float:
    """Seconds that a piece of work takes."""
    begun = time.perf_counter()
    work()
    return time.perf_counter() - begun


def figure(value: float | None) -> str:
    """A figure for a table."""
    return "–" if value is None else f"{value:.3f}".rstrip("0").rstrip(".")


def main() -> int:
    """0 when every bound holds."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=50)
    parser.add_argument("--long", type=int, default=1000)
    parser.add_argument("-n", type=int, default=5)
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    prepare()
    rows = measure(asked.turns, asked.long, asked.n)
    print(f"\n{'figure':38} {'bound':>10} {'measured':>10} {'floor':>10}")
    for row in rows:
        sign = ">=" if row.at_least else "<="
        state = "ok" if row.ok else "MISSED"
        bound = f"{sign} {figure(row.bound)}"
        print(f"{row.id:38} {bound:>10} {figure(row.measured):>10} {figure(row.floor):>10}  {state}")
    if asked.json:
        print(json.dumps([row.told() for row in rows]))
    return 0 if all(row.ok for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
