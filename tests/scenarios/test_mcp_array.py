"""Three hundred tools of twenty servers: what the array holds of them, in which mode, and that it never moves."""

import json
from pathlib import Path

import pytest

from codewhale.agent.activation import MOST_BYTES
from codewhale.mcp.terms import OfferedTool
from codewhale.protocol.events import HeaderPinned, Notice
from codewhale.protocol.modes import Mode
from codewhale.protocol.ops import OpenSession, SetMode
from codewhale.testing import Harness, harness
from support.mcpworld import McpWorld, remember
from support.scenes import only
from support.toolneeds import others

DONE = {"text": "Done."}
SERVERS = 20


def offered() -> dict[str, list[OfferedTool]]:
    """The tools of the corpus as those of twenty servers."""
    rows = others()
    each = len(rows) // SERVERS
    return {
        f"server{number:02}": [
            OfferedTool(row.name.removeprefix("mcp_"), row.description, input_schema=row.parameters)
            for row in rows[number * each : (number + 1) * each]
        ]
        for number in range(SERVERS)
    }


@pytest.fixture
def world(tmp_path: Path) -> McpWorld:
    return McpWorld(tmp_path)


def array(body: bytes) -> list[str]:
    """The tools of a request, each as its bytes."""
    return [json.dumps(tool) for tool in json.loads(body)["tools"]]


async def first_array(stage: Harness, mode: Mode) -> list[str]:
    session = await stage.open(mode=mode)
    await stage.turn("Go", session)
    return array(stage.provider.requests[-1])


async def test_the_array_of_each_mode(world: McpWorld) -> None:
    async with harness(world.home, world.work, [DONE]) as stage:
        native = await first_array(stage, Mode.AGENT)
    remember(world, offered())
    async with harness(world.home, world.work, [DONE] * 3) as stage:
        for mode in (Mode.AGENT, Mode.PLAN):
            assert await first_array(stage, mode) == native, "not a byte of a server outside yolo mode"
        session = await stage.open(mode=Mode.YOLO)
        events = await stage.turn("Go", session)
        yolo = array(stage.provider.requests[-1])
        read = [envelope.event for envelope in stage.app.parts.sessions.read(session)]
    assert yolo[: len(native)] == native, "the native head is equal in all modes"
    shown = [json.loads(tool) for tool in yolo[len(native) :]]
    behind = len(json.dumps(shown, separators=(",", ":"), ensure_ascii=False).encode())
    assert 0 < behind <= MOST_BYTES and len(yolo) - len(native) > 20
    (header,) = only(read, HeaderPinned)
    assert [spec.name for spec in header.served] == sorted(spec.name for spec in header.served)
    (told,) = [event for event in read if isinstance(event, Notice) and event.code == "mcp_served"]
    assert f"{300 - len(header.served)} more are found by search" in told.text
    assert events


async def test_a_pinned_array_never_moves(world: McpWorld) -> None:
    servers = offered()
    remember(world, servers)
    script = [DONE] * 6
    async with harness(world.home, world.work, script) as stage:
        session = await stage.open(mode=Mode.YOLO)
        await stage.turn("Go", session)
        first = array(stage.provider.requests[-1])
        # A server that lists other tools now, one that is gone, and a change of the mode.
        changed = {name: tools[:1] for name, tools in servers.items() if name != "server00"}
        remember(world, changed)
        await stage.turn("Go", session)
        await stage.client.submit(SetMode(session, Mode.AGENT))
        await stage.turn("Go", session)
        assert [array(body) for body in stage.provider.requests] == [first] * 3
        other = await stage.open(mode=Mode.AGENT)
        await stage.client.submit(SetMode(other, Mode.YOLO))
        await stage.turn("Go", other)
        assert len(array(stage.provider.requests[-1])) < len(first), "it was not opened in yolo mode"
    async with harness(world.home, world.work, [DONE]) as stage:
        again = await stage.client.submit(OpenSession(str(world.work), resume=session))
        await stage.turn("Go", again)
        assert array(stage.provider.requests[-1]) == first, "nor when it is resumed"


async def test_always_load_joins_every_array(world: McpWorld) -> None:
    tools = [OfferedTool(name, f"Do {name}.", input_schema={"type": "object"}) for name in ("one", "two")]
    remember(world, {"few": tools})
    row = {"command": "false", "always_load": ["two"]}
    world.name(few=row)
    async with harness(world.home, world.work, [DONE]) as stage:
        session = await stage.open(mode=Mode.PLAN)
        await stage.turn("Go", session)
        names = [json.loads(tool)["function"]["name"] for tool in array(stage.provider.requests[-1])]
    assert names[-1] == "mcp_few_two" and "mcp_few_one" not in names
