"""Arguments that came as an array of objects: the same object again and again is one call, anything else is none."""

import json
from pathlib import Path
from typing import Any

import pytest

from codewhale.catalog.registry import Catalog
from codewhale.protocol.events import CallStarted
from codewhale.repair.judge import judge
from codewhale.testing import harness
from support.goodcalls import GOOD
from support.known import know_every_tool
from support.scenes import only, results

CATALOG = Catalog.load()


def arrays(one: dict[str, Any]) -> dict[str, list[Any]]:
    """Arrays that begin with a good call and are not that call alone."""
    other = {**one, "path": "elsewhere", "query": "other", "content": "other"}
    return {
        "two": [one, other],
        "the last of three": [one, one, other],
        "the first of three": [other, one, one],
        "a text": [one, "elsewhere"],
        "nothing": [one, None],
        "a list": [one, [one]],
        "less": [{**one, "more": 1}, one],
        "true and 1": [{**one, "flag": True}, {**one, "flag": 1}],
        "1 and 1.0": [{**one, "flag": 1}, {**one, "flag": 1.5}],
    }


@pytest.mark.parametrize("tool", CATALOG.names())
def test_an_array_of_more_than_one_call_is_refused_for_every_tool(tool: str) -> None:
    for name, given in arrays(GOOD[tool]).items():
        verdict = judge(tool, json.dumps(given), CATALOG)
        assert verdict.error is not None and verdict.arguments is None, name
        assert (verdict.error.kind, verdict.error.field) == ("invalid_input", "arguments"), name
        assert verdict.error.received == "an array, not an object", name


@pytest.mark.parametrize("tool", CATALOG.names())
def test_the_same_call_again_is_that_call(tool: str) -> None:
    for count, code in ((1, "A12"), (3, "P10")):
        verdict = judge(tool, json.dumps([GOOD[tool]] * count), CATALOG)
        assert (verdict.error, verdict.lossy) == (None, False)
        assert verdict.arguments == judge(tool, json.dumps(GOOD[tool]), CATALOG).arguments
        assert code in verdict.repairs


async def test_of_an_array_of_two_calls_none_begins(home: Path, workspace: Path) -> None:
    know_every_tool(home)
    (workspace / "a.txt").write_text("one\n")
    tools = ("write_file", "edit_file", "apply_patch", "exec_shell", "task_shell_start", "revert_turn", "note")
    calls = [{"name": tool, "arguments": json.dumps(given)} for tool in tools for given in arrays(GOOD[tool]).values()]
    assert len(calls) < 64
    async with harness(home, workspace, [{"calls": calls}, {"text": "Done."}]) as stage:
        events = await stage.turn("Go")
    assert only(events, CallStarted) == [] and not any(result.ok for result in results(events))
    assert len(results(events)) >= len(tools)
    assert [path.name for path in workspace.iterdir()] == ["a.txt"]
    assert (workspace / "a.txt").read_text() == "one\n"
