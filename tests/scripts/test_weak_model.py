"""The weak model and its measurement: sound data, the same sessions for the same seeds, and a gain that is there."""

import asyncio
import json
import sys
from pathlib import Path

import pytest

from codewhale.catalog.registry import Catalog
from codewhale.catalog.schema import check
from support.frailmodel import FrailModel
from support.house import ROOT
from support.mutator import ARGUMENTS, PAYLOAD

sys.path.insert(0, str(ROOT / "scripts"))
from weak_model import EXTENTS, Outcome, assess, interval, load, play, summary

RATES, TASKS = load("rates"), load("tasks")
CATALOG = Catalog.load()


def test_every_rate_has_its_source() -> None:
    rows = [*RATES["slips"], *RATES["beliefs"], *RATES["conduct"].values()]
    for row in rows:
        assert row["source"].startswith("https://") and row["reading"] and row["basis"] in ("reported", "placed")
    assert sum(row["share"] for row in RATES["slips"]) < 0.5
    known = {"payload": PAYLOAD, "arguments": ARGUMENTS}
    for row in RATES["slips"]:
        assert row["code"] in known.get(row["kind"], (row["code"],))


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task["id"])
def test_calls_of_a_task_are_right_as_the_model_means_them(task: dict[str, object]) -> None:
    steps = task["steps"]
    assert isinstance(steps, list) and ("expect" in task or "answer" in task)
    for name, given in steps:
        assert not check(given, CATALOG.rows[name].parameters)


def no_errors() -> dict[str, object]:
    slips = [{**row, "share": 0.0} for row in RATES["slips"]]
    return {**RATES, "slips": slips, "beliefs": [{**row, "share": 0.0} for row in RATES["beliefs"]]}


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task["id"])
def test_model_that_does_not_err_finishes_each_task(task: dict[str, object]) -> None:
    outcome = asyncio.run(play(task, no_errors(), "off", 0))
    steps = task["steps"]
    assert isinstance(steps, list)
    assert (outcome.finished, outcome.strange, outcome.damaged, outcome.turns) == (True, 0, 0, len(steps) + 1)


def spoilt(code: str) -> dict[str, object]:
    """Rates by which every call has this one error and beliefs are right."""
    rates = no_errors()
    slips = rates["slips"]
    assert isinstance(slips, list)
    return {**rates, "slips": [{**row, "share": float(row["code"] == code)} for row in slips]}


@pytest.mark.parametrize("code", ["P1", "P3", "A3", "A9", "N1", "N4", "T1", "T2"])
def test_error_that_can_be_repaired_costs_nothing_where_it_is(code: str) -> None:
    task = next(task for task in TASKS if task["id"] == "checklist")
    repaired, plain = (asyncio.run(play(task, spoilt(code), extent, 1)) for extent in ("full", "off"))
    assert (repaired.finished, repaired.turns, repaired.strange) == (True, 4, 0)
    assert repaired.damaged >= 2 and not plain.finished and plain.strange == 0


def test_same_seed_gives_the_same_session() -> None:
    task = next(task for task in TASKS if task["id"] == "two_files")
    assert asyncio.run(play(task, RATES, "full", 7)) == asyncio.run(play(task, RATES, "full", 7))


def test_model_learns_from_the_text_alone() -> None:
    task = {"id": "x", "steps": [["read_file", {"path": "a"}]]}
    believing = {**no_errors(), "beliefs": [{**row, "share": float(row["code"] == "N3")} for row in RATES["beliefs"]]}
    believing["conduct"] = {**RATES["conduct"], "heeds_name": {"share": 1.0}, "follows_fix": {"share": 0.0}}
    model = FrailModel(task, believing, "0")
    request = {"messages": [{"role": "user", "content": "go"}], "tools": []}
    assert model(request)["calls"][0]["name"] == "Read"

    def answered(text: str) -> str:
        request["messages"] += [{"role": "assistant"}, {"role": "tool", "content": text}]
        return str(json.dumps(model(request)))

    assert '"Read"' in answered("Error (not_available) in Read: there is no such tool.")
    assert '"read_file"' in answered("Error (not_available) in Read: did you mean read_file?")


def test_files_that_nobody_meant_are_counted(tmp_path: Path) -> None:
    task = next(task for task in TASKS if task["id"] == "sql")
    right = task["expect"]["query.sql"]
    for text, expected in ((right, (True, 0)), (right.replace("'", ""), (False, 1)), (right[:30], (False, 1))):
        (tmp_path / "query.sql").write_text(text)
        assert assess(task, tmp_path, {}, "Done.") == expected
    (tmp_path / "query.sql").write_text(right)
    assert assess(task, tmp_path, {"gone.py": "x"}, "Done.") == (True, 1)


def test_figures_are_means_over_seeds() -> None:
    rows = [
        Outcome(extent, "a", seed, extent == "full" or seed == 1, 2, 10, 1, 0) for extent in EXTENTS for seed in (0, 1)
    ]
    told = summary(rows)
    assert told["full"]["finished"] == (100.0, 0.0) and told["off"]["finished"][0] == 50.0
    assert told["gain"][0] == 50.0 and interval([1.0, 3.0])[0] == 2.0
