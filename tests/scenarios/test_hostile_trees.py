"""Every tool ends in its time in a workspace that is as hostile as can be, and nothing else stands still meanwhile."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from codewhale.catalog.registry import Catalog
from codewhale.protocol.ops import SendMessage
from codewhale.testing import collect, harness
from support.hostiletree import calls, lay
from support.repos import raw_git
from support.scenes import ending, results

MOST, ALL = 400.0, 800.0  # seconds of one call, and of a turn, on a slow and busy machine
STILL = 100.0  # seconds for which nothing else ran
ASKING = {"request_user_input", "github_close_issue", "github_close_pr", "github_comment"}  # each needs a person


@pytest.fixture(scope="module", params=["plain", "git"])
def tree(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    top = tmp_path_factory.mktemp("hostile") / "work"
    top.mkdir()
    lay(top)
    if request.param == "git":
        raw_git(top, "init", "-q", "--template=")
    return top


@contextlib.asynccontextmanager
async def heartbeat() -> AsyncIterator[list[float]]:
    """The longest time for which the event loop did nothing else."""
    longest = [0.0]

    async def beat() -> None:
        while True:
            began = time.monotonic()
            await asyncio.sleep(0.05)
            longest[0] = max(longest[0], time.monotonic() - began)

    task = asyncio.create_task(beat())
    try:
        yield longest
    finally:
        task.cancel()


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(set(Catalog.load().rows) - ASKING))
async def test_each_tool_ends_in_its_time(home: Path, tree: Path, name: str) -> None:
    if name == "grep_files" and (tree / ".git").exists():
        pytest.skip("searched as the plain folder is, which takes long enough")
    spec = Catalog.load().rows[name]
    told = [{"name": name, "arguments": arguments} for arguments in calls(name, spec.parameters["properties"])]
    script = [*({"calls": told[at : at + 10]} for at in range(0, len(told), 10)), {"text": "Done."}]
    async with harness(home, tree, script) as stage, heartbeat() as longest:
        session = await stage.open()
        told_of = asyncio.ensure_future(collect(stage.client.events(session, from_seq=-1), ALL))
        await asyncio.sleep(0)
        await stage.client.submit(SendMessage(session, "Look at everything"))
        events = [envelope.event for envelope in await told_of]
    slow = [(item.ms, item.content[:200]) for item in results(events) if item.ms > MOST * 1000]
    assert not slow
    assert longest[0] < STILL
    assert ending(events).status in ("done", "failed")
    assert not [item.content[:300] for item in results(events) if "The tool itself failed" in item.content]
