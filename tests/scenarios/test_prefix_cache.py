"""A long session against a server that counts prefix hits honestly: what is kept, what is not, and who says why."""

import contextlib
import inspect
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from codewhale.app.compose import App, AppOptions, open_app
from codewhale.protocol.events import ContextAppended, Event, RequestSent, TurnFinished, UsageReported
from codewhale.protocol.modes import Authority, Mode
from codewhale.protocol.ops import CloseSession, CommandOutput, OpenSession, RunCommand, SendMessage, SessionUsage
from codewhale.testing import collect
from support.cacheserver import BLOCK, CacheServer, Reply, Served
from support.scenes import only

CONFIG = """
provider = "p"
model = "large"
[providers.p]
dialect = "openai-chat"
base_url = "{url}"
context_window = 1000000
[providers.p.facts]
cache_block = {block}
[providers.p.prices."*"]
miss = 2.0
hit = 0.1
output = 8.0
"""
TURNS = 300


def respond(payload: dict[str, Any]) -> Reply:
    """Read a file in every third turn; else say something whose length differs."""
    messages = payload["messages"]
    last = messages[-1]
    if last["role"] == "user" and last["content"].startswith("Turn"):
        number = int(last["content"].split()[1])
        if number % 3 == 0:
            return {"calls": [("read_file", {"path": f"part{number % 7}.txt"})]}
    return {"text": f"Noted, {len(messages)} messages so far. " + "And so it goes on. " * (len(messages) % 11)}


@contextlib.asynccontextmanager
async def opened(home: Path, workspace: Path, server: CacheServer) -> AsyncIterator[App]:
    """An application whose model is the server, of a person with a skill."""
    skill(home, "slides", "Making slides.")
    home.mkdir(exist_ok=True)
    (home / "config.toml").write_text(CONFIG.format(url=server.url, block=BLOCK))
    for number in range(7):
        (workspace / f"part{number}.txt").write_text(f"Line {number} of a file\n" * (number + 3))
    async with open_app(AppOptions(home=str(home), workspace=str(workspace)), environ={}) as app:
        yield app


def skill(home: Path, name: str, says: str) -> None:
    """The person has this skill from now on."""
    folder = home / "skills" / name
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "SKILL.md").write_text(f"---\nname: {name}\ndescription: {says}\n---\nBegin.\n")


class Long:
    """One session that is talked to turn by turn."""

    def __init__(self, app: App, session: str, workspace: str = "") -> None:
        self.client, self.session = app.client, session
        self.workspace = workspace
        self.events: list[Event] = []

    async def turn(self, number: int) -> None:
        """One turn."""
        await self.client.submit(
            SendMessage(self.session, f"Turn {number} of the long talk. " + "Why? " * (number % 5))
        )
        seq = self._seq
        found = await collect(self.client.events(self.session, from_seq=seq))
        self._seq = found[-1].seq
        self.events += [envelope.event for envelope in found]

    _seq = 0

    async def resume(self) -> None:
        """Close the session and go on with it."""
        await self.client.submit(CloseSession(self.session))
        opening = OpenSession(self.workspace, Mode.AGENT, Authority.AUTO, resume=self.session)
        assert await self.client.submit(opening) == self.session

    async def say(self, line: str) -> None:
        """One slash command."""
        output: CommandOutput = await self.client.submit(RunCommand(self.session, line))
        assert output.ok, output.text


async def test_three_hundred_turns_keep_their_prefix(home: Path, workspace: Path) -> None:
    (workspace / "AGENTS.md").write_text("Use four spaces.\n")
    before = {
        75: lambda talk: (workspace / "AGENTS.md").write_text("Use two spaces.\n"),
        95: lambda talk: skill(home, "notes", "How release notes are written."),
        110: lambda talk: talk.say("/mode plan"),
        140: lambda talk: talk.say("/mode agent"),
        170: lambda talk: talk.say("/compact"),
        205: lambda talk: talk.resume(),
        230: lambda talk: talk.say("/model small"),
        245: lambda talk: skill(home, "slides", "Making slides, shorter."),
        260: lambda talk: (workspace / "AGENTS.md").write_text("Use tabs.\n"),
    }
    async with CacheServer(respond) as server, opened(home, workspace, server) as app:
        opening = OpenSession(str(workspace), Mode.AGENT, Authority.AUTO)
        talk = Long(app, await app.client.submit(opening), str(workspace))
        edges: dict[int, int] = {}
        for number in range(1, TURNS + 1):
            if number in before:
                done = before[number](talk)
                if inspect.isawaitable(done):
                    await done
                edges[number] = len(server.served)
            await talk.turn(number)
        view = await app.client.query(SessionUsage(talk.session))
    told = [event.kind for event in only(talk.events, ContextAppended)]
    assert (told.count("instructions"), told.count("skills")) == (2, 2)
    _check(talk.events, server.served, {edges[170], edges[230]})
    assert {cause: count["calls"] for cause, count in view.total["misses"].items()} == {
        "cold": 1, "compaction": 1, "model": 1,
    }  # fmt: skip
    saved = sum(served.hit for served in server.served) * 1.9 / 1e6
    assert abs(view.total["saved"]["USD"] - saved) < 1e-9


def _check(events: list[Event], served: list[Served], edges: set[int]) -> None:
    ends = only(events, TurnFinished)
    sent, reports = only(events, RequestSent), only(events, UsageReported)
    assert [end.status for end in ends] == ["done"] * TURNS
    assert len(sent) == len(reports) == len(served) > TURNS * 1.3
    # What an earlier request said is said again to the byte, but for the first one and those behind an edge.
    talk = [at for at, event in enumerate(sent) if not event.purpose]
    moved = [at for at in talk[1:] if served[at].kept < 1]
    assert len(moved) == len(edges), moved
    assert [reports[at].cause for at in moved] == ["compaction", "model"]
    assert reports[0].cause == "cold"
    rest = [report.cause for at, report in enumerate(reports) if at not in moved and at]
    assert set(rest) == {""}
    # What was to be expected of the cache, from the bytes alone and before sending, is what the server counted.
    true = sum(one.hit for one in served) / sum(one.input for one in served)
    told = sum(event.expected_hit for event in sent) / sum(event.bytes for event in sent)
    counted = sum(report.expected_hit for report in reports) / sum(one.input for one in served)
    assert true > 0.97
    assert abs(told - true) < 0.01, (told, true)
    assert abs(counted - true) < 0.002, (counted, true)


async def test_a_lost_cache_is_the_providers_own(home: Path, workspace: Path) -> None:
    async with CacheServer(respond) as server, opened(home, workspace, server) as app:
        talk = Long(app, await app.client.submit(OpenSession(str(workspace), Mode.AGENT, Authority.AUTO)))
        await talk.turn(1)
        await talk.turn(2)
        server.forget()
        await talk.turn(4)
        await talk.turn(5)
    reports = only(talk.events, UsageReported)
    assert [report.cause for report in reports] == ["cold", "", "provider", ""]
    assert reports[2].expected_hit > reports[2].usage.cache_hit == 0


async def test_undoing_a_compaction_finds_the_old_prefix(home: Path, workspace: Path) -> None:
    async with CacheServer(respond) as server, opened(home, workspace, server) as app:
        talk = Long(app, await app.client.submit(OpenSession(str(workspace), Mode.AGENT, Authority.AUTO)))
        for number in range(1, 13):
            await talk.turn(number)
        await talk.say("/compact")
        await talk.turn(13)
        await talk.say("/compact undo")
        await talk.turn(14)
    sent, reports = only(talk.events, RequestSent), only(talk.events, UsageReported)
    causes = [report.cause for report in reports if report.cause]
    assert causes == ["cold", "compaction", "undo"]
    found = [(report.expected_hit, report.usage.cache_hit) for report in reports[1:]]
    assert all(abs(expected - hit) <= 2 * BLOCK for expected, hit in found), found
    assert sent[-1].expected_hit / sent[-1].bytes > 0.9
