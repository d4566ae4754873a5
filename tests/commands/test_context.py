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
        for word in ("window", "as configured", "repo-rules", "tools", "your messages", "for answers", "billed"):
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


async def test_a_layer_is_shown_by_any_of_its_words_and_its_actions_run(home: Path, workspace: Path) -> None:
    (workspace / "AGENTS.md").write_text("Use tabs.\n")
    async with harness(home, workspace, [{"text": "Hello."}]) as agent:
        session = await agent.open()
        whole = await run(agent, session, "/context")
        assert all(len(line) <= 80 for line in whole.text.split("layer of memory")[1].splitlines())
        shown = await run(agent, session, "/context rules")
        assert "repo-rules" in shown.text and "AGENTS.md" in shown.text
        assert (await run(agent, session, "/context REPO-RULES")).text == shown.text
        assert "could be repo-constitution, repo-rules" in (await run(agent, session, "/context rep")).text
        unknown = await run(agent, session, "/context attic")
        assert unknown.misused and "'attic'; they are user-memory, repo-constitution" in unknown.text
        missing = await run(agent, session, "/context user add")
        assert missing.misused and "add needs TEXT: say /memory add TEXT." in missing.text
        assert (await run(agent, session, "/context user add Tea is hot")).ok
        view = json.loads((await run(agent, session, "/context user --json")).text)
        assert [item["text"] for item in view["items"]] == ["Tea is hot"] and view["layer"]["items"] == 1
        assert "Tea is hot" in (await run(agent, session, "/context user")).text
        refused = await run(agent, session, "/context user fly")
        assert refused.misused and "offers: add" in refused.text
        whole = json.loads((await run(agent, session, "/context --json")).text)
        assert (
            sum(row["sent"] for row in whole["rows"] if "sent" in row) + sum(part["bytes"] for part in whole["parts"])
            == whole["bytes"]
        )
