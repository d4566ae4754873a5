"""The gate as the application wires it: built late, looking things up, and saying who watches what."""

import os
from pathlib import Path

import pytest

from codewhale.app.compose import AppOptions, open_app
from codewhale.protocol.decisions import CallView, DecisionRequest
from codewhale.protocol.errors import ConfigError
from codewhale.protocol.events import Notice
from codewhale.protocol.modes import Authority, Mode
from codewhale.protocol.ops import CloseSession
from codewhale.protocol.tools import CommandSubject, Effect, JobSubject, Subject, UrlSubject
from codewhale.testing import Harness, harness
from support.scenes import watching


def asking(stage: Harness, session: str, *subjects: Subject, tool: str = "exec_shell") -> DecisionRequest:
    """A question about a call."""
    effects = (Effect.READS, Effect.NETWORK) if tool == "fetch_url" else (Effect.EXECUTES,)
    return DecisionRequest(
        tool, effects, subjects, Mode.AGENT, Authority.PERSON, session, workspace=str(stage.workspace), call="call_1"
    )


async def test_nothing_is_built_before_a_call_is_decided(home: Path, workspace: Path) -> None:
    async with harness(home, workspace, [{"text": "Hi."}]) as stage:
        session = await stage.open()
        await stage.turn("Hello.", session)
        assert not stage.app.parts.built("permissions")
        await stage.client.submit(CloseSession(session))
        assert not stage.app.parts.built("permissions") and not (home / "audit.log").exists()


async def test_permissions_that_cannot_be_read_are_told_before_anything_begins(home: Path, workspace: Path) -> None:
    (home / "permissions.toml").write_text("deny = 'x'\n")
    with pytest.raises(ConfigError, match=r"permissions\.toml: deny must be a list"):
        async with open_app(AppOptions(str(home), str(workspace)), environ={}):
            pass


async def test_lines_and_addresses_are_judged_where_they_would_go(home: Path, workspace: Path) -> None:
    (workspace / "sub").mkdir()
    async with harness(home, workspace, [], {"MY_TOKEN": "hunter2hunter2"}) as stage:
        gate = stage.app.parts.gateway
        session = await stage.open()
        assert gate.decide(asking(stage, session, CommandSubject("ls", "sub"))).verdict == "allow"
        assert gate.decide(asking(stage, session, CommandSubject("rm -rf .git", "."))).verdict != "allow"
        assert gate.decide(asking(stage, session, CommandSubject("rm -rf /"))).rule.startswith("floor.")
        for url, verdict in (
            ("http://127.0.0.1/", "deny"),
            ("https://docs.python.org/3/", "allow"),
            ("https://docs.python.org/?q=hunter2hunter2", "ask"),
        ):
            assert gate.decide(asking(stage, session, UrlSubject(url), tool="fetch_url")).verdict == verdict
    assert "hunter2" not in (home / "audit.log").read_text()


async def test_a_rule_may_name_a_tool_by_any_of_its_names(home: Path, workspace: Path) -> None:
    (home / "permissions.toml").write_text('[[rules]]\naction = "deny"\ntool = "exec_interact"\n')
    async with harness(home, workspace, []) as stage:
        gate = stage.app.parts.gateway
        asked = asking(stage, await stage.open(), JobSubject("job", "x"), tool="exec_shell_interact")
        assert gate.decide(asked).rule == "permissions.user.1"


async def test_an_untrusted_projects_rules_are_told_of(home: Path, workspace: Path) -> None:
    file = workspace / ".codewhale" / "permissions.toml"
    file.parent.mkdir()
    file.write_text('deny = ["ls"]\n')
    async with harness(home, workspace, []) as stage:
        gate = stage.app.parts.gateway
        session = await stage.open()
        async with watching(stage, session) as watch:
            for _ in range(2):
                assert gate.decide(asking(stage, session, CommandSubject("ls"))).verdict == "allow"
            notice = await watch.until(Notice)
    assert str(file) in notice.text and "not trusted" in notice.text


@pytest.mark.parametrize(
    ("tool", "effects", "watched"),
    [
        ("read_file", (Effect.READS,), False),
        ("checklist_write", (), False),
        ("write_file", (Effect.WRITES,), True),
        ("exec_shell", (Effect.EXECUTES,), True),
        ("revert_turn", (Effect.WRITES,), False),
    ],
)
async def test_what_changes_nothing_is_watched_by_nobody(
    tool: str, effects: tuple[Effect, ...], watched: bool, home: Path, workspace: Path
) -> None:
    async with harness(home, workspace, []) as stage:
        view = CallView("s", "call_1", tool, {}, effects, (), os.fspath(workspace), Mode.AGENT)
        assert bool(stage.app.parts.observers(view)) is watched
