"""The provider, model and effort that a person chose, and which of them the next session begins with."""

import json
from collections.abc import Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from codewhale.app.compose import AppOptions, open_app
from codewhale.app.settings import open_config
from codewhale.protocol.modes import Authority
from codewhale.protocol.ops import OpenSession, RunCommand, SessionStatus, SetEffort, SetModel
from support.program import codewhale_program, configure

TWO = """provider = "one"
model = "m1"
[providers.one]
dialect = "scripted"
script = "{home}/one.jsonl"
[providers.two]
dialect = "scripted"
script = "{home}/two.jsonl"
"""


@pytest.fixture
def home(tmp_path: Path) -> Path:
    for name in ("one", "two"):
        (tmp_path / f"{name}.jsonl").write_text(json.dumps({"text": f"I am {name}."}) + "\n")
    configure(tmp_path, TWO.format(home=tmp_path))
    for name in ("shop", "bank"):
        (tmp_path / name).mkdir()
    return tmp_path


@asynccontextmanager
async def session(home: Path, folder: str, authority: Authority = Authority.PERSON):
    """(client, session) of a person in a workspace."""
    workspace = str(home / folder)
    async with open_app(AppOptions(str(home / "state"), workspace), environ={}) as app:
        yield app.client, await app.client.submit(OpenSession(workspace, authority=authority))


def route(home: Path, folder: str, environ: Mapping[str, str] | None = None, **flags: str) -> tuple[str, str]:
    config = open_config(str(home / "state"), str(home / folder), environ or {}, flags)
    return config.get("provider"), config.get("model")


async def test_a_choice_holds_in_its_workspace_and_where_nothing_else_was_chosen(home: Path) -> None:
    async with session(home, "shop") as (client, name):
        await client.submit(SetModel(name, "m2", "two"))
        await client.submit(SetEffort(name, "high"))
    async with session(home, "bank") as (client, name):
        status = await client.query(SessionStatus(name))
        assert (status.provider, status.model, status.effort) == ("two", "m2", "high")
        assert (await client.submit(RunCommand(name, "/model one m3"))).ok
    async with session(home, "shop") as (client, name):
        status = await client.query(SessionStatus(name))
        assert (status.provider, status.model) == ("two", "m2")
    (home / "third").mkdir()
    assert route(home, "third") == ("one", "m3")
    assert not list((home / "shop").iterdir())
    kept = home / "state" / "choices.json"
    assert kept.stat().st_mode & 0o077 == 0
    shown = open_config(str(home / "state"), str(home / "shop"), {}, {}).origin("model")
    assert shown == "your last choice in this workspace"


async def test_flags_and_environment_and_a_changed_file_win(home: Path) -> None:
    async with session(home, "shop") as (client, name):
        await client.submit(SetModel(name, "m2", "two"))
    assert route(home, "shop") == ("two", "m2")
    assert route(home, "shop", provider="one", model="m9") == ("one", "m9")
    assert route(home, "shop", {"CODEWHALE_MODEL": "m8"}) == ("two", "m8")
    assert route(home, "shop", {"CODEWHALE_PROVIDER": "one"}) == ("one", "m1")  # never the model of another provider
    config = home / "state" / "config.toml"
    config.write_text(config.read_text().replace('"m1"', '"m5"'))
    assert route(home, "shop") == ("one", "m5")
    config.write_text(config.read_text().replace('"m5"', '"m1"').replace("[providers.two]", "[providers.three]"))
    assert route(home, "shop") == ("one", "m1")  # its provider is no more


async def test_what_nobody_chose_is_not_remembered(home: Path) -> None:
    async with session(home, "shop", Authority.AUTO) as (client, name):
        await client.submit(SetModel(name, "m2", "two"))
    assert route(home, "shop") == ("one", "m1")
    assert not (home / "state" / "choices.json").exists()


def test_exec_asks_what_was_chosen_unless_told_otherwise(home: Path) -> None:
    where = str((home / "shop").resolve())
    row = {"provider": "two", "model": "m2", "over": {"provider": "one", "model": "m1"}, "at": 1.0}
    (home / "state" / "choices.json").write_text(json.dumps({"version": 1, "choices": {where: row}}))
    ask = ("exec", "-w", where)
    assert codewhale_program(home, *ask, "Who?").stdout == "I am two.\n"
    assert codewhale_program(home, *ask, "--provider", "one", "--model", "m1", "Who?").stdout == "I am one.\n"
    assert codewhale_program(home, "exec", "-w", str(home / "bank"), "Who?").stdout == "I am one.\n"


@pytest.mark.parametrize("bytes", [b"{", b"[]", b'{"choices":{"*":{"provider":7}}}', b"\xff" * 10])
def test_a_damaged_memory_is_a_notice_and_no_failure(home: Path, bytes: bytes) -> None:
    (home / "state" / "choices.json").write_bytes(bytes)
    config = open_config(str(home / "state"), str(home / "shop"), {}, {})
    assert config.get("provider") == "one"
    assert any("choices.json" in notice and "choose the model again" in notice for notice in config.notices)


async def test_the_oldest_workspaces_are_forgotten(home: Path) -> None:
    rows = {f"/gone/{number}": {"provider": "two", "model": "m2", "at": float(number)} for number in range(600)}
    (home / "state" / "choices.json").write_text(json.dumps({"version": 1, "choices": rows}))
    async with session(home, "shop") as (client, name):
        await client.submit(SetModel(name, "m2", "two"))
    kept = json.loads((home / "state" / "choices.json").read_text())["choices"]
    assert len(kept) <= 502 and str((home / "shop").resolve()) in kept and "*" in kept and "/gone/599" in kept
