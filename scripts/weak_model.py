"""`make weak-model`: what repairs are worth to a model that errs. The same weak model does the same tasks through the
real engine with repair on, for names only, and off; every error rate has its source in frail/rates.json. Exit 1
where repair does not raise the share of tasks finished, or leaves a file as nobody meant it."""

import argparse
import asyncio
import json
import math
import re
import statistics
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from codewhale.app.compose import AppOptions, open_app
from codewhale.models.dialects.base import ProviderSettings
from codewhale.models.scripted import ScriptedProvider
from codewhale.protocol.modes import Authority, Mode
from codewhale.protocol.ops import Limits, OpenSession, SendMessage
from codewhale.testing import collect
from support.frailmodel import FrailModel

DATA = Path(__file__).resolve().parent / "frail"
EXTENTS = ("full", "names", "off")
MOST_STEPS = 40


class Outcome(NamedTuple):
    """What became of one task in one session. `strange` files hold what no step of the task would leave."""

    extent: str
    task: str
    seed: int
    finished: bool
    turns: int
    tokens: int
    damaged: int
    strange: int


def load(name: str) -> Any:
    """A data file of the measurement."""
    return json.loads((DATA / f"{name}.json").read_text())


def _lay(task: dict[str, Any], workspace: Path) -> None:
    for path, text in task.get("files", {}).items():
        place = workspace / path
        place.parent.mkdir(parents=True, exist_ok=True)
        made = "".join(f"value-{number}\n" for number in range(1, 301)) if text == "@300 lines" else text
        place.write_text(made)


def assess(task: dict[str, Any], workspace: Path, before: dict[str, str], answer: str) -> tuple[bool, int]:
    """Whether the task is finished, and how many files hold what nobody meant."""
    now = _files(workspace)
    expect = task.get("expect", {})
    sent = [given.get("content") for name, given in task["steps"] if name == "write_file"]
    strange = 0
    for path, text in now.items():
        strange += text not in (before.get(path), expect.get(path), *sent)
    strange += len(set(before) - set(now))
    right = all(now.get(path) == text for path, text in expect.items())
    if "answer" in task:
        right = right and re.search(f"The answer is {task['answer']}\\.", answer) is not None
    return right, strange


def _files(workspace: Path) -> dict[str, str]:
    found = (path for path in workspace.rglob("*") if path.is_file())
    shown = {path.relative_to(workspace).as_posix(): path for path in found if "__pycache__" not in path.parts}
    return {name: path.read_text() for name, path in shown.items() if not name.startswith(".codewhale/")}


async def play(task: dict[str, Any], rates: dict[str, Any], extent: str, seed: int) -> Outcome:
    """One task once."""
    model = FrailModel(task, rates, f"{task['id']}/{seed}")
    with tempfile.TemporaryDirectory() as folder:
        workspace = Path(folder) / "work"
        workspace.mkdir()
        _lay(task, workspace)
        before = _files(workspace)
        provider = ScriptedProvider(model, settings=ProviderSettings(dialect="scripted"))
        options = AppOptions(
            str(Path(folder) / "home"), str(workspace), "scripted", "scripted", overrides={"tools.repair": extent}
        )
        async with open_app(options, environ={}, providers={"scripted": provider}) as app:
            opening = OpenSession(
                workspace=str(workspace), mode=Mode.YOLO, authority=Authority.AUTO, limits=Limits(turns=MOST_STEPS)
            )
            session: str = await app.client.submit(opening)
            events = app.client.events(session, from_seq=-1)
            waiting = asyncio.ensure_future(collect(events))
            await asyncio.sleep(0)
            await app.client.submit(SendMessage(session, task["ask"]))
            end = (await waiting)[-1].event
        result = end.result  # type: ignore[union-attr]
        finished, strange = assess(task, workspace, before, str(result.get("answer") or ""))
        tokens = sum(len(body) for body in provider.requests) // 4
    return Outcome(extent, task["id"], seed, finished, len(provider.requests), tokens, model.damaged, strange)


def scaled(rates: dict[str, Any], times: float) -> dict[str, Any]:
    """The same rates with every error so many times as frequent."""
    rows = {key: [{**row, "share": row["share"] * times} for row in rates[key]] for key in ("slips", "beliefs")}
    return {**rates, **rows}


def play_seed(seed: int, times: float = 1.0) -> list[Outcome]:
    """Every task at every extent, with one seed."""
    tasks, rates = load("tasks"), scaled(load("rates"), times)
    return [asyncio.run(play(task, rates, extent, seed)) for extent in EXTENTS for task in tasks]


def interval(values: list[float]) -> tuple[float, float]:
    """Mean and half the width of its 95 % interval, over seeds."""
    spread = statistics.stdev(values) if len(values) > 1 else math.nan
    return statistics.mean(values), 1.96 * spread / math.sqrt(len(values))


def summary(outcomes: list[Outcome]) -> dict[str, Any]:
    """Per extent: tasks finished (%), turns and tokens per task, each as mean and half width; files left strange."""
    told: dict[str, Any] = {}
    seeds = sorted({row.seed for row in outcomes})
    for extent in EXTENTS:
        rows = [row for row in outcomes if row.extent == extent]
        of_seed = [[row for row in rows if row.seed == seed] for seed in seeds]
        told[extent] = {
            "finished": interval([100 * statistics.mean(row.finished for row in some) for some in of_seed]),
            "turns": interval([statistics.mean(row.turns for row in some) for some in of_seed]),
            "tokens": interval([statistics.mean(row.tokens for row in some) for some in of_seed]),
            "strange": sum(row.strange for row in rows),
            "damaged": sum(row.damaged for row in rows),
        }
    gains = []
    for seed in seeds:
        share = {
            extent: 100 * statistics.mean(row.finished for row in outcomes if (row.extent, row.seed) == (extent, seed))
            for extent in EXTENTS
        }
        gains.append(share["full"] - share["off"])
    told["gain"] = interval(gains)
    return told


def main() -> int:
    """0 when repairing pays and does no harm."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=50)
    parser.add_argument("--times", type=float, default=1.0, help="every error so many times as frequent (0 to 2.5)")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--json", action="store_true", help="one line of JSON in place of the table")
    parser.add_argument("--rows", help="write every outcome to this file, one JSON line each")
    asked = parser.parse_args()
    begun = time.monotonic()
    with ProcessPoolExecutor(asked.workers) as pool:
        outcomes = [row for rows in pool.map(partial(play_seed, times=asked.times), range(asked.seeds)) for row in rows]
    told = summary(outcomes)
    if asked.rows:
        Path(asked.rows).write_text("".join(json.dumps(row._asdict()) + "\n" for row in outcomes))
    if asked.json:
        print(json.dumps({**told, "seeds": asked.seeds, "sessions": len(outcomes)}))
    else:
        print(f"{len(outcomes)} sessions, {asked.seeds} seeds, {time.monotonic() - begun:.0f} s (mean ± 95 % interval)")
        for extent in EXTENTS:
            row = told[extent]
            said = "   ".join(
                f"{key} {row[key][0]:,.1f} ± {row[key][1]:,.1f}" for key in ("finished", "turns", "tokens")
            )
            print(f"  repairing {extent:<6} {said}   strange files {row['strange']}")
        print(f"  gained by repairing: {told['gain'][0]:.1f} ± {told['gain'][1]:.1f} tasks in a hundred")
    pays = told["gain"][0] - told["gain"][1] > 0
    return 0 if pays and told["full"]["strange"] == 0 else 1


if __name__ == "__main__":
    sys.exit(main())
