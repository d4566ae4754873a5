"""Thousands of spoiled calls of every tool, drawn by a seed: each comes back exactly or is refused with a next call."""

import json
from typing import Any

from codewhale.app.check import Checker
from codewhale.catalog.registry import Catalog
from codewhale.catalog.schema import check
from support.damaged import CALLS, Tally, own_calls, run_rows, same, share, spoiled_rows, wilson
from support.mutator import ARGUMENTS, PAYLOAD

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
    unhelpful = {"outcome": "refuse", "name": good.tool, "arguments": None, "error": {"fix": None}}
    tally.add(rows[0], unhelpful, catalog)
    assert (tally.rows, tally.bad_fixes) == (2, 1)


def test_sameness_and_intervals() -> None:
    assert same({"a": 5}, {"a": 5.0}) and not same({"a": 1}, {"a": True}) and not same([1], [1, 2])
    low, high = wilson(97, 100)
    assert (round(low, 3), round(high, 3)) == (0.915, 0.990)
    assert share(0, 0) == "0/0 = 0.00 % [0.00, 100.00]"
