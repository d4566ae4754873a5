"""Retired names of sub-agents: none of them runs anything, however it is spelt; each refusal names the live tools and,
where the arguments say enough, the call to make instead."""

import json
from typing import Any

import pytest

from codewhale.catalog.lifecycle import NOT_YET, PROMISED, RETIRED
from codewhale.catalog.registry import Catalog
from codewhale.catalog.schema import check
from codewhale.repair.judge import judge

CATALOG = Catalog.load()
NAMES = """agent_spawn spawn_agent agent_result agent_wait wait agent_send_input send_input agent_assign assign_agent
agent_list agent_cancel agent_resume resume_agent close_agent delegate_to_agent agent_swarm spawn_agents_on_csv
report_agent_job_result swarm_run swarm_wait swarm_anything""".split()
GIVEN: list[dict[str, Any]] = [
    {}, {"prompt": "look"}, {"task_id": "shell_1", "input": "y\n"}, {"command": "ls"}, {"agent_id": "agent_1"},
    {"id": "shell_1", "timeout_ms": 1000}, {"path": "a.py"}, {"message": "go on"}, {"items": []}, {"query": "x"},
]  # fmt: skip
SPELT = (
    "{}", "functions.{}", "{}:0", "agents.{}", "{}_tool", lambda name: name.title().replace("_", ""),
    lambda name: name.replace("_", "-"), str.upper,
)  # fmt: skip


def refusal(name: str, given: dict[str, Any]) -> Any:
    found = judge(name, json.dumps(given), CATALOG)
    assert found.error is not None and found.spec is None, (name, given, found)
    return found.error


def test_the_list_is_whole() -> None:
    assert {name for name in NAMES if not name.startswith("swarm_")} == RETIRED


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("extent", ["full", "names", "off"])
def test_no_retired_name_runs_and_each_names_the_live_tools(name: str, extent: Any) -> None:
    for given in GIVEN:
        found = judge(name, json.dumps(given), CATALOG, extent=extent)
        assert found.error is not None and found.spec is None
        assert found.error.kind == "not_available" and found.error.field == "name"
        assert "agent_open, agent_eval and agent_close" in found.error.message
        fix = found.error.fix
        assert fix is None or not check(fix.arguments, CATALOG.rows[fix.name].parameters)


@pytest.mark.parametrize("name", NAMES)
def test_another_spelling_is_refused_too(name: str) -> None:
    for spelling in SPELT:
        spelt = spelling.format(name) if isinstance(spelling, str) else spelling(name)
        if (spelt, name) == ("agents.wait", "wait"):
            continue
        assert "It is retired" in refusal(spelt, {"task_id": "shell_1", "input": "y\n"}).message, spelt


@pytest.mark.parametrize(
    ("name", "given", "tool", "wanted"),
    [
        ("spawn_agent", {"message": "x", "agent_type": "explorer"}, "agent_open", {"prompt": "x", "role": "explore"}),
        ("agent_spawn", {"prompt": "look", "name": "a"}, "agent_open", {"prompt": "look", "name": "a"}),
        ("delegate_to_agent", {"task": "x", "agent_name": "reviewer"}, "agent_open", {"prompt": "x", "role": "review"}),
        ("agent_wait", {"ids": ["agent_1"], "timeout_ms": 500}, "agent_eval", {"name": "agent_1", "timeout_ms": 500}),
        ("wait", {"ids": ["agent_1", "agent_2"]}, "agent_eval", {}),
        ("wait", {"task_id": "shell_1"}, "exec_shell_wait", {"task_id": "shell_1"}),
        ("agent_result", {"agent_id": "agent_1"}, "agent_eval", {"name": "agent_1"}),
        ("agent_list", {}, "agent_eval", {}),
        ("send_input", {"id": "agent_1", "message": "go on"}, "agent_eval", {"name": "agent_1", "message": "go on"}),
        ("agent_assign", {"agent_id": "a", "task": "go"}, "agent_eval", {"name": "a", "message": "go"}),
        ("resume_agent", {"id": "agent_1"}, "agent_eval", {"name": "agent_1"}),
        ("close_agent", {"id": "agent_1"}, "agent_close", {"name": "agent_1"}),
        ("agent_cancel", {"agent_id": "agent_1"}, "agent_close", {"name": "agent_1"}),
    ],
)  # fmt: skip
def test_the_call_to_make_instead(name: str, given: dict[str, Any], tool: str, wanted: dict[str, Any]) -> None:
    fix = refusal(name, given).fix
    assert fix is not None and (fix.name, fix.arguments) == (tool, wanted)


@pytest.mark.parametrize(
    ("name", "given"),
    [("spawn_agent", {}), ("send_input", {"message": "x"}), ("close_agent", {}), ("swarm_x", {"a": 1})],
)
def test_nothing_is_made_up_where_the_arguments_say_too_little(name: str, given: dict[str, Any]) -> None:
    assert refusal(name, given).fix is None


@pytest.mark.parametrize("name", sorted(NOT_YET | PROMISED))
def test_what_is_not_built_yet_says_so_whatever_comes_with_it(name: str) -> None:
    for given in [*GIVEN, {"query": "x", "url": "https://example.org"}]:
        error = refusal(name, given)
        assert "not available in this version" in error.message and error.fix is None
