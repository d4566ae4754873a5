"""Each role and every tool: what the role's scope forbids is refused where calls are dispatched and not offered by
search; what it leaves is not. The array of tools is the same in all roles and modes."""

import json
from pathlib import Path
from typing import Any

import pytest

from codewhale.catalog.registry import Catalog
from codewhale.protocol.events import CallFinished
from codewhale.protocol.modes import Authority, Mode
from codewhale.testing import harness
from support.children import Model
from support.goodcalls import GOOD

CATALOG = Catalog.load()
AGENTS = ("agent_open", "agent_eval", "agent_close", "tool_agent")
RECURSIVE = ("rlm_session_objects", "rlm_open", "rlm_eval", "rlm_configure", "rlm_close")
# Role -> the effects that its calls may have, and the tools that it may not call all the same.
ROLES: dict[str, tuple[str, tuple[str, ...]]] = {
    "general": ("reads writes executes network", ()),
    "explore": ("reads network", ()),
    "plan": ("reads network", ()),
    "review": ("reads network", AGENTS),
    "implementer": ("reads writes executes network", ()),
    "verifier": ("reads executes", ()),
    "tool_agent": ("reads writes executes network", (*AGENTS, *RECURSIVE)),
    "custom": ("reads writes executes network", tuple(set(CATALOG.names()) - {"read_file", "tool_search_tool_regex"})),
}
FACTS = {"fim": "completions", "fast_model": "deepseek-v4-flash"}
SEARCH = "tool_search_tool_regex"


def forbidden(role: str) -> set[str]:
    effects, without = ROLES[role]
    beyond = {name for name, row in CATALOG.rows.items() if not set(row.effects) <= set(effects.split())}
    return beyond | set(without)


def opening(role: str, task: str) -> dict[str, Any]:
    tools = {"allowed_tools": ["read_file", SEARCH]} if role == "custom" else {}
    return {"prompt": task, "role": role, "name": role, **tools}


def test_the_table_speaks_of_every_tool() -> None:
    assert set(GOOD) == set(CATALOG.names())
    assert {role: len(forbidden(role)) > 0 for role in ROLES} == {
        role: role not in ("general", "implementer") for role in ROLES
    }


UNASKED = {"github_close_issue", "github_close_pr", "github_comment"}  # a person is asked, and there is none


@pytest.mark.parametrize("role", ROLES)
async def test_a_scope_holds_at_dispatch_and_in_search(role: str, home: Path, git_workspace: Path) -> None:
    (git_workspace / "a.txt").write_text("one\n")
    model = Model()
    searches = [(SEARCH, {"query": f"^{name}$"}) for name in CATALOG.names()]
    calls = [(name, GOOD[name]) for name in CATALOG.names()]
    model.tasks["Work through"] = [searches[:40], searches[40:], calls[:40], calls[40:]]  # 64 are the most of an answer
    async with harness(home, git_workspace, model, facts=FACTS) as here:
        session = await here.open(authority=Authority.AUTO, model="deepseek-v4-pro")
        await here.turn(model.ask(("agent_open", opening(role, "Work through"))), session)
    offered = [
        [row["tool_name"] for row in json.loads(text)["tool_references"]] for text in model.heard[: len(searches)]
    ]
    results = dict(zip(CATALOG.names(), model.heard[len(searches) :], strict=True))
    said = {name: text for name, text in results.items() if not text.startswith("{")}  # no list of what was said
    refused = {name for name, text in said.items() if f"(rule scope.{role})" in text}
    assert refused == forbidden(role)
    found = {name for names in offered for name in names}
    assert found & forbidden(role) == set()
    assert found | forbidden(role) | UNASKED == set(CATALOG.names())
    for name in sorted(refused) if role != "custom" else ():
        _, _, said = results[name].partition("To see what is there: ")
        look, _, arguments = said.partition("\n")[0].partition(" ")
        assert look in CATALOG.rows and look not in forbidden(role), name
        assert look != "read_file" or (git_workspace / json.loads(arguments)["path"]).is_file()
    assert not (git_workspace / "new.txt").exists() or "write_file" not in forbidden(role)


@pytest.mark.parametrize("mode", list(Mode))
async def test_the_array_of_tools_is_that_of_the_parent_in_every_role_and_mode(
    mode: Mode, home: Path, workspace: Path
) -> None:
    model = Model()
    async with harness(home, workspace, model, facts=FACTS) as here:
        session = await here.open(mode=mode, authority=Authority.AUTO)
        opened = []
        for role in ROLES:
            events = await here.turn(model.ask(("agent_open", opening(role, "Work once"))), session)
            opened += [one for one in events if isinstance(one, CallFinished) and one.ok]
        arrays = {tools_of(body) for body in here.provider.requests}
        asked = len(here.provider.requests)
    assert len(opened) == len(ROLES) and asked >= 2 * len(ROLES) + len(opened)
    assert len(arrays) == 1


def tools_of(body: bytes) -> str:
    """The array of tools as it stands in a request."""
    text = body.decode()
    begin = text.index('"tools":') + len('"tools":')
    return text[begin : json.JSONDecoder().raw_decode(text, begin)[1]]
