"""A server that the agent starts: reached after a question, and never unsaid where it cannot be."""

import asyncio
import socket
import sys
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from codewhale.process.confinement import sandbox
from codewhale.protocol.events import ApprovalAsked
from codewhale.protocol.modes import Approval, Authority, Mode
from codewhale.testing import harness
from support.machine import HELD
from support.patience import HANG
from support.scenes import answered, only, results

DONE = {"text": "Done."}
PERSON: dict[str, Any] = {"mode": Mode.AGENT, "authority": Authority.PERSON}
APART = pytest.mark.skipif(sandbox().mechanism != "bubblewrap", reason="needs network namespaces (bubblewrap)")


@pytest.fixture
def port() -> int:
    """A port of 127.0.0.1 that nobody uses."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        found: int = server.getsockname()[1]
    return found


@pytest.fixture
def served(workspace: Path) -> Path:
    """A workspace with a file to serve, and a client of its own."""
    (workspace / "page.txt").write_text("the page\n")
    (workspace / "get.py").write_text(
        "import sys, time, urllib.request\n"
        "for _ in range(100):\n"
        "    try:\n"
        "        print(urllib.request.urlopen(sys.argv[1], timeout=60).read().decode())\n"
        "        break\n"
        "    except OSError as error:\n"
        "        print(error)\n"
        "        time.sleep(0.1)\n"
    )
    return workspace


def shell(command: str, **more: Any) -> dict[str, Any]:
    """A command of a script."""
    return {"calls": [{"name": "exec_shell", "arguments": {"command": command, **more}}]}


def server(port: int, **more: Any) -> dict[str, Any]:
    """A background job that serves the workspace."""
    return shell(f"{sys.executable} -m http.server {port} --bind 127.0.0.1", background=True, **more)


async def got(port: int, tries: int = 100) -> str:
    """What this machine gets of the server, "" for nothing."""

    def get() -> str:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/page.txt", timeout=HANG) as answer:
            return str(answer.read().decode())

    for _ in range(tries):
        try:
            return await asyncio.to_thread(get)
        except (OSError, urllib.error.URLError):
            await asyncio.sleep(0.1)
    return ""


@HELD
async def test_after_a_yes_the_person_and_other_commands_reach_it(home: Path, served: Path, port: int) -> None:
    fetch = shell(f"{sys.executable} get.py http://127.0.0.1:{port}/page.txt", loopback=True)
    async with harness(home, served, [server(port, loopback=True), fetch, DONE]) as stage:
        session = await stage.open(**PERSON)
        events = await answered(stage, session)
        page = await got(port)
    asks = only(events, ApprovalAsked)
    assert [ask.rule for ask in asks] == ["sandbox.loopback"] * 2
    assert "127.0.0.1" in asks[0].reason and "network" in asks[0].reason and asks[0].offer is None
    assert asks[0].allowances.count("network") == 1
    assert page == "the page\n" and "the page" in results(events)[1].content
    assert "cannot be reached" not in results(events)[0].content


@APART
async def test_unasked_it_cannot_be_reached_and_the_result_says_how(home: Path, served: Path, port: int) -> None:
    async with harness(home, served, [server(port), DONE]) as stage:
        events = await answered(stage, await stage.open(**PERSON))
        (started,) = results(events)
        assert await got(port, tries=10) == ""
    assert "cannot be reached" in started.content and "loopback true" in started.content


@HELD
async def test_neither_a_rule_nor_an_automatic_yes_opens_it(home: Path, served: Path, port: int) -> None:
    (home / "permissions.toml").write_text('[[rules]]\naction = "allow"\ntool = "exec_shell"\n')
    for fields in ({"mode": Mode.AGENT, "authority": Authority.AUTO}, {**PERSON, "approval": Approval.AUTO}):
        async with harness(home, served, [server(port, loopback=True), DONE]) as stage:
            events = await answered(stage, await stage.open(**fields), allowed=False)
            assert results(events)[0].error == "permission_denied" and await got(port, tries=2) == ""
        assert len(only(events, ApprovalAsked)) == (1 if "approval" in fields else 0)


@HELD
async def test_where_the_network_is_off_it_is_refused(home: Path, served: Path, port: int) -> None:
    (home / "config.toml").write_text('[sandbox]\nnetwork = "off"\n')
    async with harness(home, served, [server(port, loopback=True), DONE]) as stage:
        events = await answered(stage, await stage.open(**PERSON))
    assert only(events, ApprovalAsked) == [] and "sandbox.network = off" in results(events)[0].content
