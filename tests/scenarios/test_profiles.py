"""Which array a session begins with: by configuration, by the provider, and for as long as its model is the same."""

import json
from pathlib import Path

import pytest

from codewhale.app.compose import AppOptions, open_app
from codewhale.catalog.lifecycle import NOT_YET, PROFILES
from codewhale.protocol.errors import ConfigError
from codewhale.protocol.events import CallStarted, HeaderPinned
from codewhale.protocol.ops import CloseSession
from codewhale.testing import Harness, harness
from support.scenes import only, results

DONE = {"text": "Done."}


def configure(home: Path, text: str) -> None:
    """The table of tools."""
    home.mkdir(exist_ok=True)
    (home / "config.toml").write_text(f"[tools]\n{text}\n")


def names(stage: Harness, number: int = -1) -> list[str]:
    """The array of a request."""
    return [tool["function"]["name"] for tool in json.loads(stage.provider.requests[number])["tools"]]


@pytest.mark.parametrize(
    ("configured", "fact", "wanted"),
    [
        ("", "", "default"),
        ("", "arcee", "arcee"),
        ("compact", "arcee", "compact"),
        ("default", "arcee", "default"),
        ("intent", "", "intent"),
    ],
)
async def test_the_configuration_wins_over_the_provider(
    configured: str, fact: str, wanted: str, home: Path, workspace: Path
) -> None:
    configure(home, f'profile = "{configured}"')
    async with harness(home, workspace, [DONE], facts={"tool_profile": fact} if fact else None) as stage:
        events = await stage.turn("Go.", session := await stage.open())
        head = stage.app.engine.session(session).state.header
        shown = names(stage)
    assert events and isinstance(head, HeaderPinned) and head.profile == ("" if wanted == "default" else wanted)
    if wanted != "intent":
        assert set(shown) == PROFILES[wanted] - NOT_YET
    assert set(shown) <= PROFILES[wanted]


async def test_a_session_keeps_the_profile_it_began_with(home: Path, workspace: Path) -> None:
    configure(home, 'profile = "arcee"')
    async with harness(home, workspace, [DONE]) as stage:
        session = await stage.open()
        await stage.turn("Go.", session)
        await stage.client.submit(CloseSession(session))
        before = stage.provider.requests[-1]
    configure(home, 'profile = "compact"')
    async with harness(home, workspace, [DONE]) as stage:
        await stage.turn("Go on.", await stage.open(resume=session))
        assert json.loads(stage.provider.requests[-1])["tools"] == json.loads(before)["tools"]


async def test_what_is_always_loaded_stands_behind_the_head(home: Path, workspace: Path) -> None:
    configure(home, 'always_load = ["note", "git_blame", "read_file"]')
    note = {"name": "note", "arguments": {"content": "x"}}
    async with harness(home, workspace, [{"calls": [note]}, DONE]) as stage:
        events = await stage.turn("Note it.")
        shown = names(stage)
    assert shown[-2:] == ["git_blame", "note"] and shown[:-2] == sorted(PROFILES["default"] - NOT_YET)
    assert results(events)[0].ok and len(only(events, CallStarted)) == 1


@pytest.mark.parametrize(
    ("text", "said"),
    [('always_load = ["git_blam"]', "git_blame"), ('profile = "tiny"', "profile"), ("always_load = 3", "always_load")],
)
async def test_what_there_is_not_is_told(text: str, said: str, home: Path, workspace: Path) -> None:
    configure(home, text)
    with pytest.raises(ConfigError, match=said):
        async with open_app(AppOptions(str(home), str(workspace)), environ={}):
            pass


async def test_a_profile_of_a_provider_that_there_is_not_is_told(home: Path, workspace: Path) -> None:
    async with harness(home, workspace, [DONE], facts={"tool_profile": "tiny"}) as stage:
        with pytest.raises(ConfigError, match="no tool profile 'tiny'"):
            await stage.open()


async def test_tools_outside_a_small_head_are_shown_before_they_change_anything(home: Path, workspace: Path) -> None:
    configure(home, 'profile = "arcee"')
    write = {"name": "write_file", "arguments": {"path": "a.txt", "content": "a"}}
    async with harness(home, workspace, [{"calls": [write]}, {"calls": [write]}, DONE]) as stage:
        shown, written = results(await stage.turn("Write."))
        assert names(stage)[-1] == "write_file"
    assert shown.metadata["executed"] is False and written.ok and (workspace / "a.txt").read_text() == "a"


async def test_a_verb_of_the_array_runs_at_once(home: Path, workspace: Path) -> None:
    configure(home, 'profile = "intent"')
    call = {"name": "shell_run", "arguments": {"command": "echo hello"}}
    async with harness(home, workspace, [{"calls": [call]}, DONE]) as stage:
        (ran,) = results(await stage.turn("Run."))
    assert ran.ok and ran.name == "exec_shell" and "hello" in ran.content and "executed" not in ran.metadata
