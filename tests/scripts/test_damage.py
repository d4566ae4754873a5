"""Thousands of spoiled calls of every tool, drawn by a seed: each comes back exactly or is refused with a next call."""

import json
import sys
from pathlib import Path
from typing import Any

from codewhale.catalog.registry import Catalog
from codewhale.catalog.schema import check
from codewhale.cli.offline.check import Checker
from support.damaged import CALLS, Tally, own_calls, run_rows, same, share, spoiled_rows, wilson
from support.house import ROOT
from support.mutator import ARGUMENTS, PAYLOAD

sys.path.insert(0, str(ROOT / "scripts"))
import damage

WAYS = 30


def test_every_tool_has_three_calls_that_fit() -> None:
    told: dict[str, list[dict[str, Any]]] = json.loads(CALLS.read_text("utf-8"))
    for name, spec in Catalog.load().rows.items():
        assert len(told[name]) == 3
        assert [check(arguments, spec.parameters) for arguments in told[name]] == [[], [], []], name


def test_spoiled_calls_come_back_or_are_refused() -> None:
    tally = run_rows(spoiled_rows(own_calls(), "the suite's", WAYS), Checker(), Catalog.load())
    assert tally.good_enough(), "\n".join([*tally.lines(), *tally.worst[:20]])
    assert tally.rows > 2000 and tally.exact_rows > 1000


def test_every_operator_spoils_some_call() -> None:
    used = {code for row in spoiled_rows(own_calls(), "1", 0) for code in row.damaged.operator.split("+")}
    assert {*PAYLOAD, *ARGUMENTS} - used == set()


def test_the_account_tells_wrong_from_right() -> None:
    catalog = Catalog.load()
    rows = list(spoiled_rows(own_calls(), "1", 1))[:1]
    good = rows[0].good
    wrong = {"outcome": "run", "name": good.tool, "arguments": {"path": "elsewhere"}, "error": None}
    tally = Tally()
    tally.add(rows[0], wrong, catalog)
    assert (tally.wrong_reads + tally.wrong_others, tally.good_enough()) == (1, False)
    unhelpful = {"outcome": "refuse", "name": good.tool, "arguments": None, "error": {"fix": {"name": "no_such_tool"}}}
    tally.add(rows[0], unhelpful, catalog)
    assert (tally.rows, tally.bad_fixes) == (2, 1)


def test_sameness_and_intervals() -> None:
    assert same({"a": 5}, {"a": 5.0}) and not same({"a": 1}, {"a": True}) and not same([1], [1, 2])
    low, high = wilson(97, 100)
    assert (round(low, 3), round(high, 3)) == (0.915, 0.990)
    assert share(0, 0) == "0/0 = 0.00 % [0.00, 100.00]"


def test_a_leaderboard_s_accepted_calls_go_through_the_door(tmp_path: Path) -> None:
    function = {"name": "m.add", "parameters": {"type": "dict", "properties": {"a": {"type": "integer"}, "b": {}}}}
    accepted = [{"m.add": {"a": [1, 2], "b": ["", 5]}}, {"m.add": {"a": ["no number"]}}, {"m.sub": {"a": [1]}}]
    (tmp_path / "possible_answer").mkdir()
    (tmp_path / "BFCL_x.json").write_text(json.dumps({"id": "x", "function": [function]}) + "\n")
    answers = tmp_path / "possible_answer" / "BFCL_x.json"
    answers.write_text(json.dumps({"id": "x", "ground_truth": accepted}) + "\n")
    functions, goods = damage.leaderboard(tmp_path)
    assert [(good.tool, good.arguments, good.reads) for good in goods] == [("m.add", {"a": 1}, False)]
    rows = list(spoiled_rows(goods, "1", 8))
    catalog = Checker(json.dumps(functions).encode()).catalog
    tally = damage.through_the_door(rows, functions, catalog)
    assert tally.good_enough() and tally.rows == 8


def test_every_hostile_text_is_a_mebibyte_or_so() -> None:
    sizes = {name: len(text) for name, text in damage.hostile()}
    assert len(sizes) > 20 and min(sizes.values()) > 900_000
