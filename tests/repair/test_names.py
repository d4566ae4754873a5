"""Names of tools as models say them: each known one becomes the call it means, each other is refused with one that
is right. `names.json` holds groups of names with cases: arguments, then the tool meant and its arguments, or "refuse"
and the tool of the call to make instead."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from codewhale.catalog.lifecycle import ALIASES
from codewhale.catalog.registry import Catalog
from codewhale.catalog.schema import check
from codewhale.protocol.tools import Effect, ToolSpec
from codewhale.repair.foreign import FOREIGN_FILE, rows_of
from codewhale.repair.names import known
from codewhale.repair.repairer import CallRepairer

CATALOG = Catalog.load()
REPAIR = CallRepairer(CATALOG)


def cases() -> Iterator[tuple[str, dict[str, Any], str, Any]]:
    for group in json.loads(Path(__file__).with_name("names.json").read_text()):
        for name in group["names"]:
            for given, tool, wanted in group["cases"]:
                yield name, given, tool, wanted


def test_there_are_names_enough() -> None:
    assert len({name for name, *_ in cases()}) >= 300


def test_each_name_means_what_it_says() -> None:
    wrong = [case for case in cases() if not means(*case)]
    assert wrong == []


def means(name: str, given: dict[str, Any], tool: str, wanted: Any) -> bool:
    """Whether a call under this name comes to what is wanted, or is refused with a call that fits."""
    verdict = REPAIR.judge(name, json.dumps(given))
    if tool == "refuse":
        fix = verdict.error.fix if verdict.error is not None else None
        fits = fix is None or not check(fix.arguments, CATALOG.rows[fix.name].parameters)
        return verdict.error is not None and fits and (fix.name if fix is not None else None) == wanted
    named = name == tool or name in ALIASES or bool(verdict.repairs)
    return named and (verdict.error, verdict.name, verdict.arguments, verdict.lossy) == (None, tool, wanted, False)


def test_arguments_one_level_too_deep_mean_the_same() -> None:
    wrong = []
    for name, given, tool, wanted in cases():
        if tool != "refuse" and given and "parallel" not in name:
            verdict = REPAIR.judge(name, json.dumps({"arguments": given}))
            if (verdict.error, verdict.name, verdict.arguments) != (None, tool, wanted):
                wrong.append((name, given, verdict))
    assert wrong == []


def test_rows_name_tools_and_verbs_that_there_are() -> None:
    known_tools = set(CATALOG.rows)
    for row in json.loads(FOREIGN_FILE.read_text()):
        assert row.get("refuse") or row.get("verb") or row["tool"] in known_tools, row["names"]
        assert "refuse" in row or "instead" not in row, row["names"]
        for name in row["names"]:
            assert rows_of(name), name


def test_a_slip_of_the_hand_is_a_guess() -> None:
    reads = REPAIR.judge("raed_file", '{"path": "a.py"}')
    assert (reads.name, reads.error, reads.lossy, reads.repairs) == ("read_file", None, True, ("N5",))
    writes = REPAIR.judge("wrte_file", '{"path": "a.py", "content": "x"}')
    assert writes.error is not None
    assert writes.error.fix is not None
    assert writes.error.fix.arguments == {"path": "a.py", "content": "x"}


def test_a_switch_that_cannot_be_said_keeps_a_command_from_running() -> None:
    for extra in ({"sandbox": True}, {"user": "root"}, {"env": {"A": "1"}}, {"shell": "fish"}):
        verdict = REPAIR.judge("Bash", json.dumps({"command": "ls", **extra}))
        assert verdict.error is not None, extra


def test_a_wildcard_in_the_middle_is_said_aloud() -> None:
    verdict = REPAIR.judge("Glob", '{"pattern": "src/*/test_*.py"}')
    assert (verdict.error, verdict.lossy, verdict.name) == (None, True, "file_search")


def test_functions_of_others_are_never_taken_for_ours() -> None:
    row = ToolSpec("exec_shell", "", "", {"type": "object", "properties": {"command": {}}}, (Effect.EXECUTES,))
    other = Catalog([row])
    assert CallRepairer(other).judge("Bash", '{"command": "ls"}').error is not None
    assert not known("frobnicate", CATALOG.rows)
    assert known("str_replace_editor", CATALOG.rows)


@pytest.mark.parametrize("name", ["", " ", "a" * 5000, "::::", "___", "функция", "\x00"])
def test_a_name_that_is_none_is_refused(name: str) -> None:
    verdict = REPAIR.judge(name, "{}")
    assert verdict.error is not None
    assert verdict.error.kind == "not_available"
    assert verdict.error.fix is None


def test_a_tool_of_somebody_else_may_begin_like_one_that_is_not_built() -> None:
    spec = ToolSpec("finance.review", "", "A tool.", {"type": "object", "properties": {}, "required": []}, ())
    assert CallRepairer(Catalog([spec])).judge("finance.review", "{}").error is None
    assert CallRepairer(Catalog([spec])).judge("functions.finance.review:0", "{}").spec in (spec, None)
