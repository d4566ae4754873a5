"""What a session is shown of the catalog: its gates, its mode, and what it knows already."""

from functools import partial
from pathlib import Path

import pytest

from codewhale.agent.discovery import Discovery
from codewhale.catalog.registry import Catalog
from codewhale.permissions.policy import decide
from codewhale.protocol.errors import ToolError
from codewhale.protocol.modes import Authority, Mode
from codewhale.protocol.tools import Effect, ToolSpec
from support.stage import Stage, staged

LANE = ToolSpec("tool_agent", "agents", "Hand a small job to a quick helper.", {"type": "object"}, (Effect.READS,))
CATALOG = Catalog([*Catalog.load().rows.values(), LANE])


def discovery(stage: Stage, disabled: frozenset[str] = frozenset()) -> Discovery:
    """Over the whole catalog and a lane of its own, for the sessions of a stage."""
    return Discovery(CATALOG, stage.engine.session, partial(decide, disabled=disabled))


@pytest.mark.parametrize("model", ["deepseek-v4-flash", "deepseek-v4-pro", "trinity-large-thinking", "deepseek-v3"])
@pytest.mark.parametrize(("query", "pattern"), [("hand a small job to a quick helper", False), ("tool_agent", True)])
async def test_the_fast_lane_is_found_by_its_models_alone_and_stays_registered(
    model: str, query: str, pattern: bool, home: Path, workspace: Path
) -> None:
    async with staged(home, workspace) as stage:
        session = stage.open(model=model)
        found = discovery(stage).find(session.id, query, 8, pattern=pattern)
        names = [tool.name for tool in found.tools] + [name for name, _ in found.unavailable]
    assert ("tool_agent" in names) is ("v4" in model)
    assert CATALOG.resolve("tool_agent") is not None
    assert "tool_agent" not in {row.name for profile in ("default", "compact") for row in CATALOG.head_of(profile)}


async def test_what_the_array_holds_is_known_and_the_rest_is_not(home: Path, workspace: Path) -> None:
    async with staged(home, workspace) as stage:
        session = stage.open()
        tools = discovery(stage).find(session.id, "^(read_file|git_blame)$", 8, pattern=True).tools
    assert [(tool.name, tool.known) for tool in tools] == [("git_blame", False), ("read_file", True)]


async def test_what_cannot_be_used_takes_no_place_from_what_can(home: Path, workspace: Path) -> None:
    async with staged(home, workspace) as stage:
        session = stage.open(Mode.PLAN, Authority.PERSON)
        found = discovery(stage, frozenset({"git_log"})).find(session.id, "^(git_|exec_)", 3, pattern=True)
    assert [tool.name for tool in found.tools] == ["exec_shell_wait", "git_blame", "git_diff"]
    assert all("exec_" in name and "agent mode" in why for name, why in found.unavailable)


async def test_a_pattern_that_cannot_be_used_names_its_field(home: Path, workspace: Path) -> None:
    async with staged(home, workspace) as stage:
        session = stage.open()
        with pytest.raises(ToolError) as caught:
            discovery(stage).find(session.id, "(", 3, pattern=True)
    assert (caught.value.kind, caught.value.field, caught.value.received) == ("invalid_input", "query", "(")


async def test_it_is_the_view_of_the_catalog(home: Path, workspace: Path) -> None:
    async with staged(home, workspace) as stage:
        view = discovery(stage)
    assert view.names() == CATALOG.names() and view.spec("tool_agent") == LANE and view.spec("todo_write") is None
