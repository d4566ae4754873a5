"""`make crash`: kill -9 the harness at random and at named moments, damage its logs, fill its disk, cut its power.

After each the session must open, hold every event that was printed, hold none twice, and go on to a finished turn
without repeating a side effect. The last line is one JSON object with all counts.
"""

import argparse
import itertools
import json
import random
import shutil
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from aftermath import Door, Life, judge, long_turns
from disasters import damaged_logs, full_disks, long_resume, power_cuts, tiny_disks

STEPS = 24
AIMED = 0.25
T = TypeVar("T")


class Aim(NamedTuple):
    """The lives of one case before the last: for each its options and the failpoint, with the highest hit tried."""

    name: str
    lives: tuple[tuple[str, str, int], ...]


TORN = ("", "log.append.mid", 80)
DEAD = ("", "log.append.after", 80)
AIMS = (
    Aim("log.append.before", (("", "log.append.before", 110),)),
    Aim("log.append.mid", (("", "log.append.mid", 110),)),
    Aim("log.append.after", (("", "log.append.after", 110),)),
    Aim("log.sync.before", (("", "log.sync.before", 30),)),
    Aim("log.sync.after", (("", "log.sync.after", 30),)),
    Aim("disk.write", (("", "disk.write", 120),)),
    Aim("session.created", (("", "session.created", 1),)),
    Aim("artifact.before_rename", (("", "artifact.before_rename", 6),)),
    Aim("artifact.after_rename", (("", "artifact.after_rename", 6),)),
    Aim("log.repair.before", (TORN, ("--resume", "log.repair.before", 1))),
    Aim("log.repair.after", (TORN, ("--resume", "log.repair.after", 1))),
    Aim("resume, before a record", (TORN, ("--resume", "log.append.before", 8))),
    Aim("resume, in a record", (DEAD, ("--resume", "log.append.mid", 20))),
    Aim("resume, after a record", (DEAD, ("--resume", "log.append.after", 8))),
    Aim("resume, before a sync", (DEAD, ("--resume", "log.sync.before", 4))),
    Aim("listing.before_rename", (DEAD, ("--continue", "listing.before_rename", 1))),
    Aim("listing.after_rename", (DEAD, ("--continue", "listing.after_rename", 1))),
    Aim("fork.before_rename", (DEAD, ("--fork", "fork.before_rename", 1))),
    Aim("fork.after_rename", (DEAD, ("--fork", "fork.after_rename", 1))),
    Aim("fork, in a record", (DEAD, ("--fork", "log.append.mid", 8))),
)


class Fate(NamedTuple):
    """One case: how often it was killed and where, what was acknowledged, what was found wrong, how long each
    resume took."""

    seed: int
    name: str
    kills: tuple[str, ...]
    acknowledged: int
    sessions: int
    resumes: tuple[float, ...]
    faults: tuple[str, ...]


def one(seed: int, span: tuple[float, float], aim: Aim | None) -> Fate:
    """One case and its judgement: aimed, or killed at a moment drawn from `span`, in seconds."""
    chance = random.Random(seed)
    folder = Path(tempfile.mkdtemp(prefix="codewhale-crash-"))
    try:
        door = Door(folder)
        if aim is None:
            return random_case(door, seed, chance, span)
        lives = list(aimed_lives(door, seed, chance, aim))
        kills = tuple(point for killed, point in lives if killed.killed)
        return verdict(door, seed, aim.name, kills, [killed for killed, _ in lives])
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def random_case(door: Door, seed: int, chance: random.Random, span: tuple[float, float]) -> Fate:
    """Killed at any moment; every fifth is killed once more while it is taken up again."""
    door.configure(long_turns(seed, STEPS))
    lives = [door.live("Do all steps.", seconds=chance.uniform(*span))]
    begun = door.begun()
    if begun and seed % 5 == 0:
        door.configure(long_turns(seed + 1_000_000, STEPS))
        lives.append(door.live("Go on.", "--resume", begun[0], seconds=chance.uniform(*span)))
    return verdict(door, seed, "any moment", tuple("any moment" for one in lives if one.killed), lives)


def aimed_lives(door: Door, seed: int, chance: random.Random, aim: Aim) -> Iterator[tuple[Life, str]]:
    """The lives of an aim, each with the point it was aimed at."""
    for number, (option, point, most) in enumerate(aim.lives):
        begun = door.begun()
        if option and not begun:
            return
        options = [] if not option else [option] if option == "--continue" else [option, begun[0]]
        door.configure(long_turns(seed + number * 1_000_000, STEPS))
        armed = f"{point}=kill@{chance.randint(1, most)}"
        yield door.live("Do all steps.", *options, failpoints=armed), point


def verdict(door: Door, seed: int, name: str, kills: tuple[str, ...], lives: list[Life]) -> Fate:
    """The judgement of every session that these lives left."""
    faults: list[str] = [f"hung: {life.said[-200:]}" for life in lives if life.hung]
    faults += [f"a traceback: {life.said[-300:]}" for life in lives if "Traceback" in life.said]
    resumes = []
    sessions = door.sessions()
    named = {row["session"] for life in lives for row in life.rows}
    if missing := (named | set(door.begun())) - set(sessions):
        faults.append(f"sessions not listed: {missing}")
    for session in sessions:
        own = [one for one in lives if any(row["session"] == session for row in one.rows[:1])]
        found, took = judge(door, session, own, ask=seed % 10 == 0)
        faults += [f"{session}: {fault}" for fault in found]
        resumes.append(took)
    heard = sum(len(life.rows) for life in lives)
    return Fate(seed, name, kills, heard, len(sessions), tuple(resumes), tuple(faults))


def whole_life(seed: int) -> tuple[float, float]:
    """How long the session takes to begin and to end when nobody kills it, in seconds."""
    with tempfile.TemporaryDirectory(prefix="codewhale-crash-") as folder:
        door = Door(Path(folder))
        door.configure(long_turns(seed, STEPS))
        begun = time.time()
        life = door.live("Do all steps.")
        if life.code or life.rows[-1]["event"]["type"] != "turn_finished":
            raise SystemExit(f"crash: the session does not even end when it is left alone: {life.said}")
        return datetime.fromisoformat(life.rows[0]["at"]).timestamp() - begun, life.seconds


def run_all(work: Callable[..., T], cases: Iterable[tuple[Any, ...]], workers: int) -> Iterator[T]:
    """The results as they come; cases are drawn one ahead of the workers, for as long as somebody asks."""
    with ThreadPoolExecutor(workers) as pool:
        waiting = {pool.submit(work, *case) for case in itertools.islice(cases, workers)}
        while waiting:
            done, waiting = wait(waiting, return_when=FIRST_COMPLETED)
            waiting |= {pool.submit(work, *case) for case in itertools.islice(cases, len(done))}
            for future in done:
                yield future.result()


def kill(kills: int, first: int, workers: int) -> tuple[dict[str, Any], list[str]]:
    """Kill until `kills` have died; the figures and the faults."""
    begun = time.monotonic()
    start, life = min(run_all(whole_life, iter([(first,), (first + 1,)]), workers))
    print(f"left alone, the session begins after {start:.2f} s and takes {life:.2f} s", flush=True)
    span = (start / 2, min(life, max(2.0, 2 * start)))
    fates: list[Fate] = []
    counted: Counter[str] = Counter()
    aims = itertools.cycle(AIMS)

    def cases() -> Iterator[tuple[int, tuple[float, float], Aim | None]]:
        for number in itertools.count(first):
            if counted.total() >= kills:
                return
            aimed = counted.total() - counted["any moment"]
            yield number, span, (next(aims) if aimed < AIMED * (counted.total() + 1) else None)

    for fate in run_all(one, cases(), workers):
        fates.append(fate)
        counted.update(fate.kills)
        if len(fates) % 100 == 0:
            print(f"{counted.total()} kills after {time.monotonic() - begun:.0f} s", flush=True)
        if fate.faults:
            print(f"seed {fate.seed} ({fate.name}, {', '.join(fate.kills)}): {'; '.join(fate.faults)}", flush=True)
    resumes = [took for fate in fates for took in fate.resumes]
    figures = {
        "kills": counted.total(),
        "aimed": counted.total() - counted["any moment"],
        "points": {name: counted[name] for name in sorted(counted)},
        "cases": len(fates),
        "sessions_begun": sum(fate.sessions for fate in fates),
        "events_acknowledged": sum(fate.acknowledged for fate in fates),
        "faulty": sum(bool(fate.faults) for fate in fates),
        "resume_median_s": round(statistics.median(resumes or [0.0]), 3),
        "kill_seconds": round(time.monotonic() - begun, 1),
    }
    return figures, [fault for fate in fates for fault in fate.faults]


def main() -> int:
    """0 when nothing was lost."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("only", nargs="*", choices=[[], "kills", "damage", "power", "full", "long"], help="(all)")
    parser.add_argument("--kills", type=int, default=1000)
    parser.add_argument("--first", type=int, default=None, help="the first seed; drawn when absent")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--json", action="store_true", help="print nothing else at the end")
    asked = parser.parse_args()
    first = asked.first if asked.first is not None else random.SystemRandom().randrange(1_000_000)
    print(f"{asked.kills} kills, seeds from {first} (again with --first {first})", flush=True)
    begun = time.monotonic()
    share = min(1.0, asked.kills / 1000)
    parts: dict[str, Callable[[], tuple[dict[str, Any], list[str]]]] = {
        "kills": lambda: kill(asked.kills, first, asked.workers),
        "damage": lambda: damaged_logs(max(50, round(500 * share)), first),
        "power": power_cuts,
        "full": lambda: full_disks(max(6, round(300 * share)), lambda *all: run_all(*all, asked.workers)),
        "tiny": lambda: tiny_disks(max(2, round(6 * share))),
        "long": lambda: long_resume(max(1_000, round(10_000 * share))),
    }
    if share < 1 and not asked.only:
        del parts["power"]  # a test of the suite, which a short run comes beside
    figures: dict[str, Any] = {}
    wrong: list[str] = []
    for name, part in parts.items():
        if not asked.only or name in asked.only or (name == "tiny" and "full" in asked.only):
            told, faults = part()
            figures |= told
            wrong += faults
            print(f"{name}: {', '.join(f'{key} {value}' for key, value in told.items())}", flush=True)
            for fault in faults[:20] if name != "kills" else ():
                print(f"  {fault}", flush=True)
    figures["faults"] = len(wrong)
    figures["seconds"] = round(time.monotonic() - begun, 1)
    print(json.dumps(figures))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
