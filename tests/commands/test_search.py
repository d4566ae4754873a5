"""/search: what a person reads, the same as JSON, and words that are no query."""

import json
from pathlib import Path

from codewhale.protocol.ops import CommandOutput, RunCommand
from codewhale.testing import Harness, harness
from support.repos import write
from support.searchtree import FILES


async def run(agent: Harness, session: str, line: str) -> CommandOutput:
    """What the command says."""
    output: CommandOutput = await agent.client.submit(RunCommand(session, line))
    return output


async def test_it_shows_places_with_reasons(home: Path, workspace: Path) -> None:
    write(workspace, FILES)
    async with harness(home, workspace, []) as agent:
        session = await agent.open()
        text = await run(agent, session, "/search how are expired tokens refreshed")
        found = await run(agent, session, "/search json how are expired tokens refreshed")
        nothing = await run(agent, session, "/search xyzzyplugh")
    assert text.ok and "src/auth/token_store.py:" in text.text.splitlines()[0] and "lexical +" in text.text
    assert json.loads(found.text)["results"][0]["path"] == "src/auth/token_store.py"
    assert nothing.ok and nothing.text.startswith("no matches. No file here contains a query word.")


async def test_words_that_are_no_query_are_told_how_to_ask(home: Path, workspace: Path) -> None:
    async with harness(home, workspace, []) as agent:
        session = await agent.open()
        for line in ("/search", "/search json", "/search json   ", "/search !?"):
            output = await run(agent, session, line)
            assert not output.ok and "Use /search QUERY" in output.text
    assert not (home / "index").exists()
