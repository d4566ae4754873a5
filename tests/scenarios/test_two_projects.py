"""Two sessions of one process in two workspaces with two project configurations: each obeys its own."""

import json
from pathlib import Path
from typing import Any

import pytest

from codewhale.app.compose import AppOptions, open_app
from codewhale.permissions.trust import TrustStore
from codewhale.protocol.events import CallFinished, Envelope, Notice
from codewhale.protocol.modes import Approval, Authority, Mode
from codewhale.protocol.ops import CloseSession, OpenSession, SessionStatus
from codewhale.protocol.views import GetSettings, GetTools
from codewhale.testing import Harness, harness

KEY = "acmetok_" + "Zq7Lm2Xv9Rt4"


def project(root: Path, home: Path, config: str, instructions: str) -> Path:
    """A workspace with a trusted configuration of its own."""
    (root / ".codewhale").mkdir(parents=True)
    file = root / ".codewhale" / "config.toml"
    file.write_text(config)
    (root / "AGENTS.md").write_text(instructions)
    (root / "notes.txt").write_text(f"the key is {KEY}\n")
    store = TrustStore(str(home))
    for item in store.survey(str(root)):
        store.add(item)
    return root


@pytest.fixture
def strict(tmp_path: Path, home: Path) -> Path:
    """A project that narrows what it can."""
    config = (
        'model = "careful"\napproval = "never"\n[tools]\nprofile = "compact"\ndisabled = ["list_dir"]\n'
        f'[sandbox]\nnetwork = "off"\n[secrets]\nprefixes = ["{KEY[:8]}"]\n'
    )
    return project(tmp_path / "strict", home, config, "Answer in verse.\n")


@pytest.fixture
def plain(tmp_path: Path, home: Path) -> Path:
    """A project that says little."""
    return project(tmp_path / "plain", home, 'model = "quick"\n', "Answer in prose.\n")


async def opened(stage: Harness, root: Path, **fields: Any) -> str:
    """A session in a workspace."""
    return await stage.client.submit(OpenSession(str(root), authority=Authority.AUTO, **fields))


def head(body: bytes) -> tuple[str, set[str]]:
    """The system text and the names of the tools of a request."""
    request = json.loads(body)
    return request["messages"][0]["content"], {tool["function"]["name"] for tool in request["tools"]}


SCRIPT = [
    {"calls": [{"name": "read_file", "arguments": {"path": "notes.txt"}},
               {"name": "list_dir", "arguments": {}}]},
    {"text": "Done."},
]  # fmt: skip


@pytest.mark.parametrize("first", ["strict", "plain"])
async def test_each_session_obeys_the_project_it_works_in(first: str, home: Path, strict: Path, plain: Path) -> None:
    roots = {"strict": strict, "plain": plain}
    async with harness(home, roots[first], SCRIPT * 2) as stage:
        answers: dict[str, list[CallFinished]] = {}
        heads: dict[str, tuple[str, set[str]]] = {}
        sessions = {name: await opened(stage, root, mode=Mode.YOLO) for name, root in roots.items()}
        for name, session in sessions.items():
            events = await stage.turn("Go.", session)
            answers[name] = [event for event in events if isinstance(event, CallFinished)]
            heads[name] = head(stage.provider.requests[-2])
        approvals = {name: (await stage.client.query(SessionStatus(id))).approval for name, id in sessions.items()}
        profiles = {name: (await stage.client.query(GetTools(id))).profile for name, id in sessions.items()}
        rows = {
            name: {row.key: row.shown for row in await stage.client.query(GetSettings(id))}
            for name, id in sessions.items()
        }
        logs = {name: "".join(map(str, stage.app.parts.sessions.read(id))) for name, id in sessions.items()}
    assert approvals == {"strict": Approval.NEVER, "plain": Approval.SUGGEST}
    assert profiles["strict"] == "compact" != profiles["plain"]
    assert "Answer in verse" in heads["strict"][0] and "Answer in prose" not in heads["strict"][0]
    assert "Answer in prose" in heads["plain"][0] and "Answer in verse" not in heads["plain"][0]
    assert heads["strict"][1] != heads["plain"][1]
    assert KEY not in answers["strict"][0].content and "[redacted" in answers["strict"][0].content
    assert KEY in answers["plain"][0].content
    assert KEY not in logs["strict"] and KEY in logs["plain"]
    assert not answers["strict"][1].ok and "tools.disabled" in answers["strict"][1].content
    assert answers["plain"][1].ok
    assert (rows["strict"]["sandbox.network"], rows["plain"]["sandbox.network"]) == ('"off"', '"ask"') or (
        rows["plain"].get("sandbox.network") in (None, '"ask"') and rows["strict"]["sandbox.network"] == '"off"'
    )


async def test_the_sandbox_of_each_workspace_is_its_own(home: Path, strict: Path, plain: Path) -> None:
    async with harness(home, plain, []) as stage:
        options = {}
        for name, root in (("strict", strict), ("plain", plain)):
            await opened(stage, root)
            options[name] = stage.app.parts.settings(str(root)).sandbox.network
    assert options == {"strict": "off", "plain": "ask"}


async def test_a_session_begins_with_the_model_of_its_project(home: Path, strict: Path, plain: Path) -> None:
    script = home / "script.jsonl"
    script.write_text('{"text": "Hello."}\n')
    (home / "config.toml").write_text(
        f'provider = "play"\n[providers.play]\ndialect = "scripted"\nscript = "{script}"\ndefault_model = "own"\n'
    )
    async with open_app(AppOptions(str(home), str(plain)), environ={}) as app:
        models = []
        for root in (plain, strict, plain):
            session = await app.client.submit(OpenSession(str(root)))
            models.append((await app.client.query(SessionStatus(session))).model)
    assert models == ["quick", "careful", "quick"]


async def test_what_changed_holds_from_the_next_session_on(home: Path, strict: Path, plain: Path) -> None:
    async with harness(home, plain, []) as stage:
        first = await opened(stage, plain)
        (home / "config.toml").write_text('approval = "auto"\n')
        status = await stage.client.query(SessionStatus(first))
        await stage.client.submit(CloseSession(first))
        second = await opened(stage, plain)
        assert status.approval is Approval.SUGGEST
        assert (await stage.client.query(SessionStatus(second))).approval is Approval.AUTO


async def test_a_project_that_is_not_trusted_is_told_of_in_its_session(home: Path, tmp_path: Path, plain: Path) -> None:
    other = tmp_path / "other"
    (other / ".codewhale").mkdir(parents=True)
    (other / ".codewhale" / "config.toml").write_text('approval = "never"\n')
    async with harness(home, plain, []) as stage:
        await opened(stage, plain)
        session = await opened(stage, other)
        told: list[Envelope] = list(stage.app.engine.session(session).log.read())
        assert (await stage.client.query(SessionStatus(session))).approval is Approval.SUGGEST
    texts = [event.event.text for event in told if isinstance(event.event, Notice)]
    assert any("not trusted" in text for text in texts), texts
