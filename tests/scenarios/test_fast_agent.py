"""The fast lane of sub-agents: the model that the provider's facts name, without thinking, or advice what to call."""

import json
from pathlib import Path
from typing import Any

import pytest

from codewhale.protocol.children import ListChildren
from codewhale.protocol.events import CallFinished
from codewhale.protocol.modes import Authority
from codewhale.testing import Harness, harness
from support.children import Call, Model

FAST = {"fast_model": "deepseek-v4-flash", "effort_off": '"thinking":{"type":"disabled"}'}
TASK: Call = ("tool_agent", {"prompt": "Work once", "name": "quick", "allowed_tools": ["read_file"]})


async def made(here: Harness, model: Model, session: str, call: Call) -> CallFinished:
    events = await here.turn(model.ask(call), session)
    (result,) = [event for event in events if isinstance(event, CallFinished)]
    return result


async def asked(here: Harness, model: Model, session: str, call: Call) -> dict[str, Any]:
    """The first request of the sub-agent that a call opened."""
    before = len(here.provider.requests)
    result = await made(here, model, session, call)
    assert result.ok, result.content
    bodies = [json.loads(body) for body in here.provider.requests[before:]]
    users = [json.dumps([one for one in body["messages"] if one["role"] == "user"]) for body in bodies]
    return dict(next(body for body, said in zip(bodies, users, strict=True) if "Call " not in said))


@pytest.mark.parametrize("model", ["deepseek-v4-pro", "trinity-large-thinking"])
@pytest.mark.parametrize("call", [TASK, ("agent_open", {"prompt": "Work once", "role": "executor"})])
async def test_it_runs_on_the_model_of_the_fact_without_thinking(
    model: str, call: Call, home: Path, workspace: Path
) -> None:
    script = Model()
    async with harness(home, workspace, script, facts=FAST) as here:
        session = await here.open(authority=Authority.HEADLESS, model=model, effort="high")
        request = await asked(here, script, session, call)
        (view,) = await here.client.query(ListChildren(session))
    assert (request["model"], request["thinking"]) == ("deepseek-v4-flash", {"type": "disabled"})
    assert (view.model, view.role, view.status) == ("deepseek-v4-flash", "tool_agent", "completed")


async def test_a_configured_model_of_the_role_comes_before_the_fact(home: Path, workspace: Path) -> None:
    (home / "config.toml").write_text('[subagents.models]\ntool_agent = "my-fast-one"\n')
    script = Model()
    async with harness(home, workspace, script, facts=FAST) as here:
        session = await here.open(authority=Authority.HEADLESS)
        assert (await asked(here, script, session, TASK))["model"] == "my-fast-one"


async def test_without_a_fast_model_it_names_the_call_that_does_the_same(home: Path, workspace: Path) -> None:
    script = Model()
    async with harness(home, workspace, script) as here:
        session = await here.open(authority=Authority.HEADLESS, model="deepseek-v4-pro")
        refused = await made(here, script, session, TASK)
        assert not refused.ok and "agent_open" in refused.content and "facts.fast_model" in refused.content
        fix = refused.metadata["error"]["fix"]
        assert fix == {"name": "agent_open", "arguments": TASK[1]}
        assert (await made(here, script, session, (fix["name"], fix["arguments"]))).ok
        (view,) = await here.client.query(ListChildren(session))
        assert (view.name, view.model, view.role) == ("quick", "deepseek-v4-pro", "general")


@pytest.mark.parametrize(
    ("facts", "model", "offered"),
    [(FAST, "deepseek-v4-pro", True), (FAST, "trinity-large-thinking", False), ({}, "deepseek-v4-pro", False)],
)
async def test_search_offers_it_to_deepseek_v4_that_has_a_fast_model(
    facts: dict[str, Any], model: str, offered: bool, home: Path, workspace: Path
) -> None:
    script = Model()
    async with harness(home, workspace, script, facts=facts) as here:
        session = await here.open(model=model)
        searches = {"regex": "^tool_agent$", "bm25": "a quick and cheap model for mechanical chores"}
        for call in [(f"tool_search_tool_{kind}", {"query": query}) for kind, query in searches.items()]:
            result = await made(here, script, session, call)
            answer = json.loads(result.content)
            named = [row["tool_name"] for row in answer["tool_references"]]
            closed = [row["tool_name"] for row in answer.get("unavailable_tool_references", [])]
            assert ("tool_agent" in named) is offered and "tool_agent" not in closed
