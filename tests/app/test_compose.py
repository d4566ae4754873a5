"""Building everything, closing it in reverse, and what stops it from being built."""

import json
from pathlib import Path

import pytest

from codewhale.app.compose import AppOptions, open_app
from codewhale.protocol.errors import ConfigError, SessionError
from codewhale.protocol.events import CallFinished
from codewhale.protocol.ops import CloseSession, Limits, OpenSession, RunCommand, SendMessage, SessionStatus
from codewhale.testing import collect, harness

SCRIPTED = 'provider = "play"\nmodel = "script"\n[providers.play]\ndialect = "scripted"\nscript = "{script}"\n'


def configure(home: Path, text: str) -> None:
    (home / "config.toml").write_text(text)


async def test_a_configured_provider_and_model_are_used(home: Path, workspace: Path, tmp_path: Path) -> None:
    script = tmp_path / "script.jsonl"
    script.write_text('{"text": "Hello."}\n')
    configure(home, SCRIPTED.format(script=script))
    async with open_app(AppOptions(str(home), str(workspace)), environ={}) as app:
        session = await app.client.submit(OpenSession(str(workspace)))
        status = await app.client.query(SessionStatus(session))
        assert (status.provider, status.model) == ("play", "script")


async def test_the_command_line_wins_over_the_file(home: Path, workspace: Path, tmp_path: Path) -> None:
    script = tmp_path / "script.jsonl"
    script.write_text("")
    configure(home, SCRIPTED.format(script=script))
    options = AppOptions(str(home), str(workspace), model="other")
    async with open_app(options, environ={}) as app:
        session = await app.client.submit(OpenSession(str(workspace)))
        assert (await app.client.query(SessionStatus(session))).model == "other"


async def test_another_provider_is_asked_for_its_own_model(home: Path, workspace: Path) -> None:
    other = '[providers.other]\ndialect = "scripted"\nscript = "{script}"\ndefault_model = "theirs"\n'
    (home / "script.jsonl").write_text('{"text": "Hello."}\n' * 3)
    configure(home, (SCRIPTED + other).format(script=home / "script.jsonl"))
    async with open_app(AppOptions(str(home), str(workspace)), environ={}) as app:

        async def opened(**fields: str) -> tuple[str, str, str]:
            session = await app.client.submit(OpenSession(str(workspace), **fields))
            status = await app.client.query(SessionStatus(session))
            return session, status.provider, status.model

        assert (await opened(provider="other"))[1:] == ("other", "theirs")
        assert (await opened(provider="other", model="mine"))[1:] == ("other", "mine")
        first, *route = await opened()
        assert route == ["play", "script"]
        told = app.client.events(first)
        await app.client.submit(SendMessage(first, "Hello"))
        await collect(told)
        await app.client.submit(CloseSession(first))
        assert (await opened(resume=first, provider="other"))[1:] == ("other", "theirs")


async def test_an_unknown_provider_is_named_with_those_there_are(home: Path, workspace: Path) -> None:
    options = AppOptions(str(home), str(workspace), provider="nowhere")
    async with open_app(options, environ={}) as app:
        with pytest.raises(ConfigError, match=r"'nowhere'.*deepseek.*\[providers.nowhere\].*config.toml"):
            await app.client.submit(OpenSession(str(workspace)))


async def test_a_session_that_never_had_a_turn_leaves_nothing(home: Path, workspace: Path) -> None:
    options = AppOptions(str(home), str(workspace), provider="scripted", model="script")
    async with open_app(options, environ={}) as app:
        session = await app.client.submit(OpenSession(str(workspace)))
        assert (home / "sessions" / session).exists()
    assert not (home / "sessions" / session).exists()


async def test_closing_the_application_closes_its_sessions(home: Path, workspace: Path) -> None:
    options = AppOptions(str(home), str(workspace), provider="scripted", model="script")
    async with open_app(options, environ={}) as app:
        session = await app.client.submit(OpenSession(str(workspace)))
        client = app.client
    with pytest.raises(SessionError, match="not open here"):
        await client.query(SessionStatus(session))


async def test_a_bound_on_cost_needs_a_price(home: Path, workspace: Path) -> None:
    (home / "config.toml").write_text('[providers.local]\nbase_url = "http://127.0.0.1:9/v1"\n')
    options = AppOptions(str(home), str(workspace), provider="local", model="m")
    async with open_app(options, environ={}) as app:
        with pytest.raises(ConfigError, match="price of m is unknown"):
            await app.client.submit(OpenSession(str(workspace), limits=Limits(cost=1.0)))
        assert not list((home / "sessions").glob("2*"))


async def test_a_disabled_tool_is_sent_but_refused(home: Path, workspace: Path, tmp_path: Path) -> None:
    call = {"name": "write_file", "arguments": {"path": "a.txt", "content": "a"}}
    script = [{"calls": [call]}, {"text": "It is switched off."}]
    configure(home, '[tools]\ndisabled = ["write_file"]\n')
    async with harness(home, workspace, script) as stage:
        events = await stage.turn("Write it")
        body = json.loads(stage.provider.requests[0])
    (finished,) = [event for event in events if isinstance(event, CallFinished)]
    assert not finished.ok and "tools.disabled" in finished.content
    assert "write_file" in [tool["function"]["name"] for tool in body["tools"]]
    assert not (workspace / "a.txt").exists()


async def test_disabling_a_tool_that_does_not_exist_is_an_error(home: Path, workspace: Path) -> None:
    configure(home, '[tools]\ndisabled = ["write_files"]\n')
    with pytest.raises(ConfigError, match=r"'write_files'.*write_file"):
        async with open_app(AppOptions(str(home), str(workspace)), environ={}):
            pass


async def test_what_asks_no_model_needs_no_key(home: Path, workspace: Path) -> None:
    async with open_app(AppOptions(str(home), str(workspace)), environ={}) as app:
        session = await app.client.submit(OpenSession(str(workspace)))
        assert (await app.client.submit(RunCommand(session, "/status"))).ok
        with pytest.raises(ConfigError, match="DEEPSEEK_API_KEY is not set"):
            await app.client.submit(SendMessage(session, "hello"))
        assert (await app.client.query(SessionStatus(session))).turns == 0
