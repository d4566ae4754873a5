"""/context and /compact through the client."""

import json
from pathlib import Path

from codewhale.protocol.events import Compacted
from codewhale.protocol.ops import CommandOutput, RunCommand
from codewhale.testing import Harness, harness


async def run(agent: Harness, session: str, line: str) -> CommandOutput:
    """A slash command."""
    output: CommandOutput = await agent.client.submit(RunCommand(session, line))
    return output


async def test_context_tells_window_room_and_layers(home: Path, workspace: Path) -> None:
    (workspace / "AGENTS.md").write_text("Use tabs.\n")
    async with harness(home, workspace, [{"text": "Hello."}]) as agent:
        session = await agent.open()
        assert "estimated until the provider counts" in (await run(agent, session, "/context")).text
        await agent.turn("Hi", session)
        text = (await run(agent, session, "/context")).text
        for word in ("window", "as configured", "instruction files", "tools", "your messages", "for answers", "billed"):
            assert word in text
        view = json.loads((await run(agent, session, "/context json")).text)
        assert view["window"] == 1_000_000 and view["calibrated"] is True and view["spendable"] > view["used"] > 0
        assert not (await run(agent, session, "/context xml")).ok


async def test_compact_and_its_undoing(home: Path, workspace: Path) -> None:
    script = [{"text": "one " * 900}, {"text": "two " * 900}, {"text": "SUMMARY"}]
    async with harness(home, workspace, script) as agent:
        session = await agent.open()
        output = await run(agent, session, "/compact")
        assert not output.ok and "nothing to compact" in output.text
        assert not (await run(agent, session, "/compact undo")).ok
        await agent.turn("One", session)
        await agent.turn("Two", session)
        output = await run(agent, session, "/compact the names")
        assert output.ok and output.text.startswith("Compacted: about ")
        assert b"keep above all: the names" in agent.provider.requests[-1]
        assert "1 compactions in effect" in (await run(agent, session, "/context")).text
        assert "Compaction 1 undone" in (await run(agent, session, "/compact undo")).text
        events = [envelope.event for envelope in agent.app.engine.session(session).log.read()]
        assert sum(isinstance(event, Compacted) for event in events) == 1
