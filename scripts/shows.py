"""`make shows`: the demonstration lines. Each is run here and now, printed as {id, bound, measured, ratio, ok,
seconds} and written to shows.json. Ends within its time: what does not fit is shown as not measured.

Where a figure of a machine that does other work too is above its bound, its group is measured twice more; the middle of
the three counts, and may be above the bound by a tenth. `pace` beside a time says how much slower the machine was just
then than it can be; it excuses nothing.
"""

import argparse
import json
import re
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from pace import pace

ROOT = Path(__file__).resolve().parent.parent
RESULT = ROOT / "shows.json"
OUTPUT = ROOT / ".scratch" / "shows"  # what groups printed of which a line does not hold
MINUTES = 150.0
RUNS, TENTH = 3, 1.1
TIME = re.compile(r"(?<![A-Za-z'])(s|ms|us)(?![A-Za-z])")  # the unit in the name of a line

Rows = list[dict[str, Any]]


class Show(NamedTuple):
    """A group of lines from one command: its script and arguments, the time it may take, how to read it. `timed`: its
    figures depend on what else the machine does."""

    id: str
    command: tuple[str, ...]
    minutes: float
    read: Callable[[int, str], Rows]
    timed: bool = False


def row(name: str, bound: float, measured: float | None, at_least: bool = False) -> dict[str, Any]:
    """One line against its bound."""
    ok = measured is not None and (measured >= bound if at_least else measured <= bound)
    ratio = None if measured is None or not bound else round(measured / bound, 3)
    return {"id": name, "bound": bound, "measured": measured, "ratio": ratio, "ok": ok}


def last_json(printed: str) -> Any:
    """The JSON of the last line that is JSON; None when there is none."""
    for line in reversed(printed.splitlines()):
        if line[:1] in ("{", "["):
            try:
                return json.loads(line)
            except ValueError:
                continue
    return None


def exit_zero(name: str) -> Callable[[int, str], Rows]:
    """A line that is shown by its exit code alone, unless the script says that it was skipped here."""

    def read(code: int, printed: str) -> Rows:
        skipped = printed.startswith("skipped")
        return [row(f"{name}: skipped", 0, None) if skipped else row(f"{name}: exit code", 0, code)]

    return read


def bench_rows(code: int, printed: str) -> Rows:
    """The figures of the bench."""
    return [{**found, "id": f"bench: {found['id']}"} for found in last_json(printed) or []] or [row("bench: ran", 0, 1)]


def real_rows(code: int, printed: str) -> Rows:
    """Repairs of each package, and the control without edits."""
    rows = []
    for found in (last_json(printed) or {"packages": []})["packages"]:
        name = f"real: {found['package']}"
        rows.append(row(f"{name}: repaired", 0.8 * found["seeds"], found["repaired"], at_least=True))
        rows.append(row(f"{name}: repaired with edit_file switched off", 0, float(found["repaired_without_edits"])))
    return rows or [row("real: ran", 0, 1)]


def crash_rows(code: int, printed: str) -> Rows:
    """Sessions that lost something, and how many were there to lose."""
    found = last_json(printed) or {}
    if not found:
        return [row("crash: ran", 0, 1)]
    rows = [
        row("crash: faulty sessions", 0, found["faulty"]),
        row("crash: sessions begun", found["kills"] / 2, found["sessions_begun"], at_least=True),
        row("crash: kills at named points", found["kills"] / 5, found.get("aimed"), at_least=True),
        row("crash: resume, median s", 1.0, found["resume_median_s"]),
        row("crash: resume of 10,000 messages, s", 1.0, found.get("long_resume_s")),
        row("crash: damaged logs opened", 500, found.get("damaged_opened"), at_least=True),
        row("crash: states after a power cut", 5000, found.get("powercut_states"), at_least=True),
        row("crash: full disks", min(300, found["kills"] * 3 // 10), found.get("disk_full_cases"), at_least=True),
    ]
    kinds = ("damaged_faulty", "disk_full_faulty", "tiny_disk_faulty")
    return [*rows, row("crash: faulty otherwise", 0, sum(found.get(kind, 0) for kind in kinds))]


def weak_rows(code: int, printed: str) -> Rows:
    """What repairs are worth to a model that errs: means over seeds, the gain by the lower end of its interval."""
    found = last_json(printed)
    if not isinstance(found, dict):
        return [row("weak model: ran", 0, 1)]
    gain, half = found["gain"]
    return [
        row("weak model: tasks finished in a hundred", 95, round(found["full"]["finished"][0], 1), at_least=True),
        row("weak model: gained by repairing, at least", 5, round(gain - half, 1), at_least=True),
        row("weak model: model calls a task", 4, round(found["full"]["turns"][0], 2)),
        row("weak model: files that nobody meant", 0, found["full"]["strange"]),
    ]


def test_rows(code: int, printed: str) -> Rows:
    """The time and outcome of the suite without its slow tests."""
    took = re.search(r"in ([\d.]+)s", printed.splitlines()[-1] if printed.strip() else "")
    return [row("tests: exit code", 0, code), row("tests: seconds", 360, float(took[1]) if took else None)]


def burst_rows(code: int, printed: str) -> Rows:
    """What a streamed event costs, in each way of sending it."""
    found = last_json(printed) or {"rows": []}
    rows = [
        {
            **row(f"burst: {one['events_per_chunk']} a chunk, us of CPU an event", found["bound_us"], one["us"]),
            "floor": one["floor_us"],
        }
        for one in found["rows"]
    ]
    return rows or [row("burst: ran", 0, 1)]


def job_rows(code: int, printed: str) -> Rows:
    """What a thousand background jobs and a flood of output take, each with its bound."""
    found = [
        row(f"jobs: {one['name']}, {one['unit']}".rstrip(", "), one["bound"], round(one["value"], 3))
        for one in last_json(printed) or []
    ]
    return found or [row("jobs: exit code", 0, code or 1)]


def figures(name: str) -> Callable[[int, str], Rows]:
    """A group that prints its figures, each with its bound, as a list of JSON."""

    def read(code: int, printed: str) -> Rows:
        rows = [row(f"{name}: {one['id']}", one["bound"], one["measured"]) for one in last_json(printed) or []]
        return rows or [row(f"{name}: ran", 0, 1)]

    return read


def escape_rows(code: int, printed: str) -> Rows:
    """What got out of the sandbox, of how many tries."""
    found = last_json(printed) or {"escapes": None, "ran": 0}
    return [{**row("escapes: got out", 0, found["escapes"]), "tries": found["ran"]}, row("escapes: exit code", 0, code)]


def shell_rows(code: int, printed: str) -> Rows:
    """What the analysis of command lines lets through and asks for nothing, and its time."""
    found = re.search(r"(\d+) leaks, friction ([\d.]+)%, softened ([\d.]+)%", printed)
    counts = [float(text) for text in found.groups()] if found else [None, None, None]
    names = (("leaks", 0), ("friction, percent", 15), ("refusals softened, percent", 5))
    rows = [row(f"shell lines: {name}", bound, count) for (name, bound), count in zip(names, counts, strict=True)]
    times = re.findall(r"up to (\d+) bytes, .* p99 ([\d.]+) ms of ([\d.]+)", printed)
    rows += [row(f"shell lines: p99 ms up to {size} bytes", float(bound), float(slow)) for size, slow, bound in times]
    rows += [] if times else [row("shell lines: p99 ms", 0, None)]
    return [
        *rows,
        row("shell lines: exit code", 0, 0 if code == 2 else code),
    ]  # 2: times, which have lines of their own


INDEX_BOUNDS = {
    "build_s": 25,
    "memory_mb": 1000,
    "database_share": 1.2,
    "check_ms": 40,
    "edit_p50_ms": 10,
    "edit_p95_ms": 30,
    "rank_p50_ms": 25,
    "rank_p95_ms": 50,
    "cold_answer_s": 2,
}


def index_rows(code: int, printed: str) -> Rows:
    """What the index of 10,000 files costs to make, to check and to keep true, and a question."""
    found = last_json(printed) or {}
    return [row(f"index: {name}", bound, found.get(name)) for name, bound in INDEX_BOUNDS.items()]


def named(name: str, *paths: str) -> tuple[str, tuple[str, ...], float, Callable[[int, str], Rows]]:
    """A group that is shown by tests: how many passed, and that none failed."""

    def read(code: int, printed: str) -> Rows:
        passed = re.search(r"(\d+) passed", printed)
        return [{**row(f"{name}: exit code", 0, code), "passed": int(passed[1]) if passed else 0}]

    return name, (*PYTEST, *(f"tests/{path}" for path in paths)), 3, read


CHECK = ("-c", "import subprocess, sys; sys.exit(subprocess.run(['make', '-s', 'check']).returncode)")
PYTEST = ("-m", "pytest", "-n", "4", "--dist", "loadfile", "--no-loadscope-reorder")
SHOWS = (
    Show("demo", ("scripts/demo.py",), 2, exit_zero("demo")),
    Show("check", CHECK, 4, exit_zero("check")),
    Show("attacks", ("scripts/attacks.py",), 1, exit_zero("attacks: rows in order")),
    Show("escapes", ("scripts/escapes.py",), 8, escape_rows),
    Show("jobs", ("scripts/jobs.py", "--json"), 3, job_rows, timed=True),
    Show("tests", (*PYTEST, "-m", "not slow"), 15, test_rows),
    Show("tests-slow", (*PYTEST, "-m", "slow"), 20, exit_zero("slow tests")),
    Show("shell-policy", ("scripts/shellpolicy.py", "--lines", "100000", "--jail", "2000"), 4, shell_rows, timed=True),
    Show("smoke", ("scripts/smoke.py",), 4, exit_zero("smoke")),
    Show("burst", ("scripts/burst.py", "--json"), 2, burst_rows, timed=True),
    Show(*named("models: conformance, every cut", "models/test_exchange_conformance.py")),
    Show(*named("models: vendors' request types and stream parsers", "models/sdk")),
    Show(*named("models: prefix kept and hits foreseen over 300 turns", "scenarios/test_prefix_cache.py")),
    Show(*named("models: what a compaction keeps, and its undoing", "scenarios/test_compaction.py")),
    Show(*named("models: budgets under interleavings", "session/test_budget.py", "scenarios/test_limits.py")),
    Show(*named("catalog: lifecycle and head", "catalog", "house/test_golden.py")),
    Show(*named("repair: names, text, damage", "repair")),
    Show(*named("weak model: every rule, through the front door", "weakmodel")),
    Show("damage", ("scripts/damage.py",), 4, exit_zero("damage: bounds")),
    Show("findtools", ("scripts/findtools.py",), 2, exit_zero("findtools: bounds")),
    Show("peers-cases", ("scripts/peers_cases.py",), 3, exit_zero("peers' cases: bounds")),
    Show("weak-model", ("scripts/weak_model.py", "--seeds", "10", "--json"), 3, weak_rows),
    Show("ignore-trees", ("scripts/ignoretrees.py",), 4, exit_zero("ignore rules: 2,000 random trees as git has them")),
    Show("chaos", ("scripts/chaos.py",), 12, exit_zero("chaos: each task done, or given up after how many tries")),
    Show("real-server", ("scripts/real_server.py",), 12, exit_zero("real server: found out, called, restarted")),
    Show("tui", ("scripts/tui.py",), 7, figures("tui"), timed=True),
    Show(*named("tui: hostile text and hardship on a terminal", "attacks/test_screen.py", "tui")),
    Show("index-speed", ("scripts/indexspeed.py", "--json"), 3, index_rows, timed=True),
    Show(*named("undo: fifty mixed edits", "scenarios/test_undo.py")),
    Show("bench", ("scripts/bench.py", "--json"), 8, bench_rows, timed=True),
    Show("tasks-bench", ("scripts/tasksbench.py",), 3, exit_zero("tasks: ten thousand listed, read and claimed")),
    Show("schedules", ("scripts/schedules.py",), 4, exit_zero("automations: 400 days of an obeying clock")),
    Show("journal-damage", ("scripts/journaldamage.py",), 3, exit_zero("journal: spoiled in 200 places")),
    Show("work-crash", ("scripts/workcrash.py", "--kills", "60"), 6, exit_zero("tasks: none lost, none done twice")),
    Show("children-bench", ("scripts/children.py",), 4, figures("children"), timed=True),
    Show("pages", ("scripts/pages.py",), 3, exit_zero("web: what is kept of pages")),
    Show("speech", ("scripts/speech.py",), 3, exit_zero("speech: 200 sentences")),
    Show("mcp-bench", ("scripts/mcp_bench.py",), 3, figures("mcp"), timed=True),
    Show("mcp-crash", ("scripts/mcp_crash.py", "--kills", "40"), 4, exit_zero("mcp: no call lost, none twice")),
    Show("crash", ("scripts/crash.py", "--kills", "1000", "--json"), 24, crash_rows),
    Show("index-crash", ("scripts/indexcrash.py",), 8, exit_zero("index: equals a rebuild after changes and kills")),
    Show("real", ("scripts/real.py", "--json"), 45, real_rows),
)


def middle(runs: list[dict[str, Any]]) -> dict[str, Any]:
    """Of one line that was measured several times the one whose figure lies between the others; the first that failed
    of one that is no figure."""
    measured = [found for found in runs if found["ratio"] is not None]
    if len(measured) < RUNS:
        return next((found for found in runs if not found["ok"]), runs[0])
    found = sorted(measured, key=lambda one: float(one["ratio"]))[RUNS // 2]
    return {**found, "ok": found["ok"] or 1 < found["ratio"] <= TENTH, "runs": [one["measured"] for one in runs]}


def show_rows(show: Show, end: float) -> Rows:
    """The lines of one group before a moment of the clock, measured more than once where that tells more."""
    rows = paced_rows(show, end)
    if not show.timed or all(found["ok"] for found in rows):
        return rows
    runs = [rows, *(paced_rows(show, end) for _ in range(RUNS - 1))]
    named = [{found["id"]: found for found in one} for one in runs]
    return [middle([one[found["id"]] for one in named if found["id"] in one]) for found in rows]


def paced_rows(show: Show, end: float) -> Rows:
    """The lines of one run of a group, with the pace of the machine before and after it at those that are times."""
    before = pace()
    rows = run(show, end - time.monotonic())
    slower = round((before + pace()) / 2, 2)
    return [{**found, "pace": slower} if TIME.search(found["id"]) else found for found in rows]


def run(show: Show, left: float) -> Rows:
    """Run one group within its time and what is left of the whole; `left` in seconds."""
    begun = time.monotonic()
    limit = min(show.minutes * 60, left)
    if limit < 5:
        return [{**row(f"{show.id}: not measured, no time left", 0, None), "seconds": 0.0}]
    child = subprocess.Popen(
        [sys.executable, *show.command], cwd=ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True
    )
    try:
        printed, _ = child.communicate(timeout=limit)
    except subprocess.TimeoutExpired:
        child.kill()
        printed, _ = child.communicate()
        return [{**row(f"{show.id}: not ended in time", 0, None), "seconds": round(limit, 1)}]
    seconds = round(time.monotonic() - begun, 1)
    rows = [{**found, "seconds": seconds} for found in show.read(child.returncode, printed)]
    if not all(found["ok"] for found in rows):
        OUTPUT.mkdir(parents=True, exist_ok=True)
        (OUTPUT / f"{show.id.replace(': ', '-').replace(' ', '-')}.txt").write_text(printed)
    return rows


def version() -> str:
    """The commit that is shown, with a mark where files differ from it."""
    told = ("git", "describe", "--always", "--dirty", "--abbrev=12")
    return subprocess.run(told, cwd=ROOT, capture_output=True, text=True, check=False).stdout.strip()


def held_before(commit: str) -> dict[str, Rows]:
    """The groups of which every line held in the last run, if that was of this commit, with no file changed."""
    if not commit or commit.endswith("-dirty") or not RESULT.exists():
        return {}
    groups: dict[str, Rows] = {}
    for found in json.loads(RESULT.read_text()):
        groups.setdefault(found.get("group", ""), []).append(found)
    return {
        name: rows
        for name, rows in groups.items()
        if all(found["ok"] and found.get("commit") == commit for found in rows)
    }


def main() -> int:
    """0 when every line holds."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("only", nargs="*", choices=[[], *(show.id for show in SHOWS)], help="groups to run (all)")
    parser.add_argument("--missed", action="store_true", help="not those that held in the last run of the same commit")
    asked = parser.parse_args()
    end, commit = time.monotonic() + MINUTES * 60, version()
    groups = held_before(commit) if asked.missed else {}
    rows: Rows = []
    for show in SHOWS:
        if asked.only and show.id not in asked.only:
            continue
        if show.id not in groups:
            groups[show.id] = [{**found, "group": show.id, "commit": commit} for found in show_rows(show, end)]
            RESULT.write_text(json.dumps([found for each in groups.values() for found in each], indent=1) + "\n")
        for found in groups[show.id]:
            print(json.dumps(found), flush=True)
        rows += groups[show.id]
    held = sum(found["ok"] for found in rows)
    print(f"{held} of {len(rows)} lines hold")
    return 0 if held == len(rows) else 1


if __name__ == "__main__":
    sys.exit(main())
