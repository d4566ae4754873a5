"""/permissions, /network and /approval: the rules as a person sees and changes them."""

from pathlib import Path

import pytest

from codewhale.protocol.events import ApprovalAsked, TurnFinished
from codewhale.protocol.modes import Authority, Mode
from codewhale.protocol.ops import Answer, CommandOutput, RunCommand, SendMessage
from codewhale.testing import Harness, harness
from support.machine import MAKES_FILES
from support.scenes import only, results, watching


async def said(stage: Harness, session: str, line: str) -> CommandOutput:
    """What a command says."""
    output = await stage.client.submit(RunCommand(session, line))
    assert isinstance(output, CommandOutput)
    return output


async def test_rules_are_listed_added_and_removed(home: Path, workspace: Path) -> None:
    async with harness(home, workspace, []) as stage:
        session = await stage.open()
        assert "No rules" in (await said(stage, session, "/permissions")).text
        saved = await said(stage, session, "/permissions deny git push --force")
        assert saved.ok and "deny" in saved.text and str(home / "permissions.toml") in saved.text
        assert (await said(stage, session, "/permissions allow make test")).ok
        assert (await said(stage, session, "/network ask .example.com")).ok
        listed = (await said(stage, session, "/permissions list")).text.splitlines()
        assert [line.split()[2] for line in listed] == ["deny", "allow", "ask"]
        assert listed[1].endswith(f"make test in {workspace}")
        assert (await said(stage, session, "/network")).text.split()[-1] == ".example.com"
        removed = await said(stage, session, "/permissions remove 1")
        assert removed.ok and "git push --force" in removed.text
        assert len((await said(stage, session, "/permissions")).text.splitlines()) == 2


@pytest.mark.parametrize(
    "line",
    [
        "/permissions allow python", "/permissions allow git", "/permissions allow sudo make", "/permissions allow rm",
        "/permissions allow npm run", "/permissions allow 'x", "/permissions allow", "/permissions forbid x",
        "/permissions remove", "/permissions remove 7", "/permissions remove x", "/network allow", "/network allow a/b",
        "/network allow https://example.com", "/approval sometimes", "/permissions deny 'x",
    ],
)  # fmt: skip
async def test_what_cannot_be_done_is_said_and_changes_nothing(line: str, home: Path, workspace: Path) -> None:
    async with harness(home, workspace, []) as stage:
        output = await said(stage, await stage.open(), line)
    assert not output.ok and output.text and not (home / "permissions.toml").exists()


@MAKES_FILES
async def test_approval_decides_what_becomes_of_an_ask(home: Path, workspace: Path) -> None:
    call = {"name": "exec_shell", "arguments": {"command": "touch made"}}
    turn = [{"calls": [call]}, {"text": "Done."}]
    async with harness(home, workspace, [*turn, *turn, *turn]) as stage:
        session = await stage.open(mode=Mode.AGENT, authority=Authority.PERSON)
        assert "suggest" in (await said(stage, session, "/approval")).text
        assert (await said(stage, session, "/approval never")).ok
        refused = results(await stage.turn("One.", session))[0]
        assert refused.error == "permission_denied" and "approval never" in refused.content
        assert (await said(stage, session, "/approval auto")).ok
        assert "approval auto" in (await said(stage, session, "/status")).text
        assert results(await stage.turn("Two.", session))[0].ok and (workspace / "made").exists()
        await said(stage, session, "/approval suggest")
        async with watching(stage, session) as watch:
            await stage.client.submit(SendMessage(session, "Three."))
            asked = await watch.until(ApprovalAsked)
            busy = await said(stage, session, "/approval auto")
            assert not busy.ok and "a turn is running" in busy.text
            await stage.client.submit(Answer(session, asked.request_id, allowed=False))
            await watch.until(TurnFinished)
            assert len(only(watch.events, ApprovalAsked)) == 1
