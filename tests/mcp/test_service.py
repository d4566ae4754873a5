"""The servers of a workspace while their files change, and while they say more than anybody asked."""

import asyncio
import json
import sys
import threading
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from codewhale.app.mcpparts import open_servers
from codewhale.lib.clock import SystemClock
from codewhale.mcp.approvals import MOST_PLACES, Approvals
from codewhale.mcp.entries import Times, read_entry
from codewhale.mcp.relisting import Relisting
from codewhale.mcp.rows import MOST_NAMES, NameOwner, NameOwners
from codewhale.mcp.service import McpService
from codewhale.mcp.terms import OfferedTool
from codewhale.protocol.errors import ToolError
from support.mcpsite import Silent
from support.mcpworld import McpWorld, remember

RUDE = Path(__file__).with_name("rude_server.py")


@pytest.fixture
def world(tmp_path: Path) -> McpWorld:
    return McpWorld(tmp_path)


@pytest.fixture
async def service(world: McpWorld) -> AsyncIterator[McpService]:
    """The servers of the world."""
    made = opened(world)
    yield made
    await made.aclose()


def opened(world: McpWorld, work: Path | None = None) -> McpService:
    return open_servers(str(world.home), str(work or world.work), str(world.file), {"PATH": "/usr/bin:/bin"})


async def test_a_name_never_passes_to_the_tool_of_another(world: McpWorld, service: McpService) -> None:
    name, one, two = "mcp_a_b_c", {"a": [OfferedTool("b_c")]}, {"a_b": [OfferedTool("c")]}
    remember(world, {**one, **two})
    service.refresh()
    assert service.table.tools[name] == ("a", "b_c")
    remember(world, {**two, **one})
    service.refresh()
    assert service.table.tools[name] == ("a", "b_c")  # whatever stands first in the file
    remember(world, two)
    service.refresh()
    assert service.rows() == () and name not in service.table.tools
    assert "has stood for b_c of a since CodeWhale was started; start it anew" in service.table.refused[0].line
    with pytest.raises(ToolError, match="not offered any more, and nothing was sent; look for another tool"):
        await service.call(name, {}, Silent())
    service.approve_tool(name)
    remember(world, {"a": [OfferedTool("b_c", "Says something else.")]})
    service.refresh()
    assert service.table.tools[name] == ("a", "b_c")


def test_an_entry_that_moves_keeps_its_names_and_names_are_bounded() -> None:
    owners, row = NameOwners(), {"command": "true"}
    here, moved, other = (
        NameOwner.of(read_entry("a", entry, file, "user", Times()), "t")
        for entry, file in ((row, "one.json"), (row, "two.json"), ({"command": "false"}, "three.json"))
    )
    owners.give("mcp_a_t", here)
    assert owners.why_not("mcp_a_t", moved) == "" != owners.why_not("mcp_a_t", other)
    for number in range(MOST_NAMES):
        owners.give(f"mcp_a_{number}", here)
    assert "start it anew" in owners.why_not("mcp_a_more", here) and owners.why_not("mcp_a_1", here) == ""


async def test_a_server_that_always_changes_is_listed_at_times(
    world: McpWorld, service: McpService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("codewhale.mcp.relisting.PAUSE_SECONDS", 3600)
    world.name(rude={"command": sys.executable, "args": [str(RUDE)], "connect_timeout": 120})
    world.approve("rude")
    await service.ready("rude")
    for _ in range(3):
        await service.call("mcp_rude_flood", {"count": 2000}, Silent())
    outcome = await service.call("mcp_rude_lists", {}, Silent())
    assert int(outcome.pieces[0].text) <= 2


async def test_one_listing_runs_and_one_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("codewhale.mcp.relisting.PAUSE_SECONDS", 0)
    begun, ended, tasks = list[str](), asyncio.Event(), list[asyncio.Future[None]]()

    async def listing(name: str) -> None:
        begun.append(name)
        await ended.wait()

    relisting = Relisting(lambda work: tasks.append(asyncio.ensure_future(work)), listing)
    for _ in range(1000):
        relisting.changed("one")
        await asyncio.sleep(0)
    relisting.changed("two")
    await asyncio.sleep(0)
    assert begun == ["one", "two"] and len(tasks) == 2
    ended.set()
    await asyncio.gather(*tasks)
    assert begun == ["one", "two", "one"]  # what changed while it was listed is listed
    relisting.changed("one")
    await asyncio.gather(*tasks)
    assert begun[3:] == ["one"]


@pytest.mark.parametrize("what", ["read", "prompt"])
async def test_one_that_is_switched_off_while_it_starts_is_not_asked(
    world: McpWorld, service: McpService, what: str
) -> None:
    switch = world.script.with_name("switch")
    off = json.dumps({"servers": {"notes": world.entry(disabled=True)}})
    line = f"import os\nif os.path.exists({str(switch)!r}):\n    open({str(world.file)!r}, 'w').write({off!r})\n"
    world.script.write_text(line + world.script.read_text())
    world.name(notes=world.entry())
    world.approve("notes")
    switch.touch()
    asked = [
        service.read("notes", "notes://all", Silent()) if what == "read" else
        service.prompt("notes", "summary", {"style": "short"}, Silent()) for _ in range(2)
    ]  # fmt: skip
    found = await asyncio.gather(*asked, return_exceptions=True)
    assert [type(one) for one in found] == [ToolError, ToolError], found
    assert "changed while it started; nothing was sent" in str(found[0]) and "is off" in str(found[1])
    assert world.calls == ["started"] and service.state("notes").state == "idle"


def test_rows_hold_while_a_server_is_taken_out(world: McpWorld) -> None:
    found: list[object] = []

    def look() -> None:
        try:
            found.append(service.rows())
        except Exception as error:
            found.append(error)

    looking = threading.Thread(target=look)

    def publish(server: str, rows: object) -> dict[str, str]:
        if rows is None and service.configured.get(server) is None:
            looking.start()
            looking.join(0.5)
        return {}

    remember(world, {"one": [OfferedTool("t")], "two": [OfferedTool("t")]})
    service = opened(world)
    service._publish = publish
    assert len(service.refresh().servers) == len(service.rows()) == 2
    remember(world, {"two": [OfferedTool("t")]})
    service.refresh()
    looking.join(60)
    assert [[spec.name for _, spec, _ in rows] for rows in found] == [["mcp_two_t"]], found  # type: ignore[attr-defined]


def test_approvals_in_two_workspaces_both_stand(world: McpWorld, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    world.name(here=world.entry(), fixed=world.entry(cwd=str(tmp_path)))
    one, two = opened(world), opened(world, other)
    for service in (one, two):
        pending = service.pending("here")
        assert pending is not None and pending.standing == "new"
        service.approve("here", pending.fingerprint)
    assert one.pending("here") is two.pending("here") is None
    fixed = one.pending("fixed")
    assert fixed is not None
    one.approve("fixed", fixed.fingerprint)
    assert two.pending("fixed") is None  # its folder is the same everywhere
    world.script.write_text("import os\n" + world.script.read_text())
    changed = two.pending("here")
    assert changed is not None and changed.standing == "changed" and changed.before != changed.card
    two.approve("here", changed.fingerprint)
    assert two.pending("here") is None is not one.pending("here")
    server = one.server("here")
    one.forget(server)
    assert [service.pending("here") is None for service in (one, two)] == [False, False]


def test_approvals_of_before_hold_where_they_were_given_and_are_bounded(world: McpWorld, tmp_path: Path) -> None:
    world.name(here=world.entry())
    one = opened(world)
    pending = one.pending("here")
    assert pending is not None
    approvals, key = Approvals(str(world.home), SystemClock()), one.server("here").key
    approvals.add(key, pending.server.identity)  # under its key alone
    assert one.pending("here") is None
    elsewhere = opened(world, tmp_path / "server").pending("here")
    assert elsewhere is not None and elsewhere.standing == "new"
    for number in range(MOST_PLACES + 5):
        approvals.add(key, pending.server.identity, f"/place/{number}")
    assert approvals.get(key, "/place/0") is None is not approvals.get(key, f"/place/{MOST_PLACES + 4}")
    assert one.pending("here") is None
