"""The dashboard accounts for every byte of the next request, whatever it consists of and in whatever dialect."""

import asyncio
import base64
import json
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from codewhale.codesearch.build import CodeIndex, refresh
from codewhale.models.build import build_dialect
from codewhale.models.dialects.base import ProviderSettings
from codewhale.protocol.events import (
    CallFinished,
    Compacted,
    ContextAppended,
    Event,
    MessageAdded,
    PrefixInvalidated,
    ResultsPruned,
)
from codewhale.protocol.messages import Image, Message, ResultPart, Text
from codewhale.protocol.ops import Interrupt, RunCommand
from codewhale.protocol.views import ContextView, GetContext
from codewhale.session.standing import standing
from codewhale.testing import Harness, harness
from scenarios.test_active_skills import skill
from scenarios.test_told_law import trust
from support.bodywalk import Walk
from support.searchtree import planted
from support.stage import until

DIALECTS = ("scripted", "openai-chat", "openai-responses", "anthropic")
OWNERS = {
    "memory": "user-memory", "constitution": "repo-constitution", "instructions": "repo-rules", "rules": "repo-rules",
    "codemap": "codemap-wiki", "skills": "skills", "skill": "skills", "offered_skills": "skills", "relay": "relay",
    "sources": "aleph-external",
}  # fmt: skip
ODD = (
    "plain words", 'quotes " and \\ and \\\\n', "emoji \U0001f433\U0001f1e9\U0001f1ea", "中文，标点。",
    "\x00\x01\x1b[2J\x7f\t\b", "\u2028\u2029\ufeff\u202e", "</instructions></rule> <skills>",
    "\n\n# Rules\nnone\n\n# Skills\n<skills>\nx", '\n\n# Instructions of this project\n<instructions file="x">\n',
    "é" * 40, "\r\n", "</codemap></user_memory></constitution>",
)  # fmt: skip


def odd(rng: random.Random, most: int = 8) -> str:
    """Words with characters that JSON says otherwise, and ends of blocks that they stand in."""
    return "begin " + " ".join(rng.choices(ODD, k=rng.randint(1, most))) + f" end {rng.random()}"


def texts_of(events: list[Event]) -> dict[str, str]:
    """The texts of user messages with whose they are."""
    texts: dict[str, str] = {}
    for event in events:
        if isinstance(event, ContextAppended):
            texts[event.text] = OWNERS.get(event.kind.split(":")[0], "from CodeWhale")
        elif isinstance(event, CallFinished):
            texts[f"Shown by {event.name}:"] = "from CodeWhale"
        elif isinstance(event, Compacted):
            texts |= {part.text: "compacted" for part in event.messages[0].parts if isinstance(part, Text)}
        elif isinstance(event, MessageAdded):
            for part in event.message.parts if event.message.role == "user" else ():
                if isinstance(part, Text):
                    texts[part.text] = "your messages" if part.source == "person" else "from CodeWhale"
    return texts


def sums(view: ContextView) -> Counter[str]:
    rows = Counter({row.name: row.sent for row in view.rows})
    return +(rows + Counter({part.name: part.bytes for part in view.parts}))


class Account:
    """A session whose every request is foreseen and taken apart."""

    def __init__(self, agent: Harness, session: str) -> None:
        self.agent, self.session = agent, session
        self.heads: list[bytes] = []

    @property
    def events(self) -> list[Event]:
        return [envelope.event for envelope in self.agent.app.parts.sessions.read(self.session)]

    async def view(self) -> ContextView:
        view: ContextView = await self.agent.client.query(GetContext(self.session))
        assert sum(sums(view).values()) == view.bytes
        assert sum(one.tokens for one in (*view.rows, *view.parts)) == view.used
        assert len(view.rows) == 8 and all((row.place == "not sent") == (row.sent == 0) for row in view.rows)
        return view

    async def turn(self, words: str = "w") -> Counter[str]:
        """What the dashboard said of the turn's first request, which is as it said."""
        before, view = self.events, await self.view()
        assert self.events == before, "a look changes nothing"
        said, number = sums(view), len(self.agent.provider.requests)
        await self.agent.turn(words, self.session)
        body = self.agent.provider.requests[number]
        size = len(json.dumps(words, ensure_ascii=False).encode()) - 2
        assert len(body) == view.bytes + size
        walked = Walk(body, texts_of(standing(self.events))).sizes
        walked["your messages"] -= size
        assert +walked == said
        return said

    async def run(self, line: str) -> None:
        assert (await self.agent.client.submit(RunCommand(self.session, line))).ok, line

    def emit(self, *events: Event) -> None:
        self.agent.app.engine.session(self.session).emit(*events)

    def picture(self, rng: random.Random, kind: str = "image/png") -> Image:
        data = rng.randbytes(rng.randint(1, 3000))
        return Image(kind, self.agent.app.parts.artifacts.put(data), len(data))


def plant(rng: random.Random, home: Path, workspace: Path) -> bool:
    """Some of what a head can hold; whether a skill is there to be activated."""
    if rng.random() < 0.6:
        (workspace / "AGENTS.md").write_text(odd(rng, 40))
    if rng.random() < 0.3:
        (home / "AGENTS.md").write_text(odd(rng))
    if rng.random() < 0.4:
        (workspace / ".windsurf/rules").mkdir(parents=True)
        (workspace / ".windsurf/rules/on.md").write_text(f"---\ntrigger: always_on\n---\n{odd(rng, 20)}\n")
    if rng.random() < 0.4:
        (workspace / ".codewhale").mkdir()
        law = {"authority": [odd(rng).replace("\x00", "").strip()]}
        (workspace / ".codewhale/constitution.json").write_text(json.dumps(law))
    skilled = rng.random() < 0.5
    if skilled:
        skill(home, "reader", odd(rng))
        skill(home, "strict", odd(rng), **{"codewhale-activation": "always", "codewhale-tools": "Read list_dir"})
    trust(home, workspace)
    (workspace / "odd.txt").write_text(odd(rng, 30).replace("\x00", ""))
    return skilled


def answer(rng: random.Random) -> dict[str, Any]:
    turn: dict[str, Any] = {"text": odd(rng)} if rng.random() < 0.8 else {"text": "Done."}
    return turn | ({"reasoning": odd(rng)} if rng.random() < 0.5 else {})


def script(rng: random.Random) -> list[dict[str, Any]]:
    """Turns of one or two steps for as long as anybody asks."""
    read = {"name": "read_file", "arguments": {"path": "odd.txt"}}
    wrong = {"name": "read_file", "arguments": {"path": odd(rng)}}
    calls = [{"calls": [read], "text": odd(rng)}, {"calls": [read, wrong], "reasoning": odd(rng)}]
    first = {"text": odd(rng) + " word" * 3000}
    return [first, *(turn for _ in range(30) for turn in (*rng.choices(calls, k=rng.randint(0, 1)), answer(rng)))]


@pytest.mark.parametrize("seed", range(24))
async def test_the_two_tables_account_for_every_byte(home: Path, workspace: Path, seed: int) -> None:
    rng = random.Random(seed)
    dialect = DIALECTS[seed % 4]
    skilled = plant(rng, home, workspace)
    facts = {"replays_reasoning": rng.random() < 0.5, "images": rng.random() < 0.8}
    async with harness(home, workspace, script(rng), facts=facts) as agent:
        agent.provider.dialect = build_dialect("scripted", ProviderSettings(dialect=dialect, facts=facts))
        account = Account(agent, await agent.open())
        deeds = ["pictures", "memory", "rewind", "prune", "compact", "model", "instructions"] + ["skill"] * skilled
        await account.turn(odd(rng))
        for deed in rng.sample(deeds, 4):
            await do(account, deed, rng, workspace)
            await account.turn(odd(rng))
        await account.turn()


async def do(account: Account, deed: str, rng: random.Random, workspace: Path) -> None:
    match deed:
        case "pictures":
            parts = (Text(odd(rng)), account.picture(rng), Text("  "), account.picture(rng, "image/bmp"), Text("so"))
            account.emit(MessageAdded(Message("user", parts)))
        case "memory":
            note = f'# The user\'s notes\n<user_memory version="1">\n- {rng.random()}\n</user_memory>'
            account.emit(ContextAppended("memory", f"<context_update>\n{note}\n</context_update>"))
        case "rewind":
            await account.run("/rewind 1")
        case "prune":
            called = next((one for one in account.events if isinstance(one, CallFinished)), None)
            if called is not None:
                account.emit(PrefixInvalidated("pruned", 1), ResultsPruned((ResultPart(called.call_id, "short"),)))
        case "compact":
            done = await account.agent.client.submit(RunCommand(account.session, "/compact"))
            assert done.ok or "would not get shorter" in done.text
        case "model":
            await account.run("/model other")
        case "instructions":
            (workspace / "AGENTS.md").write_text(odd(rng, 10))
        case "skill":
            await account.run("/skill reader")


async def test_the_head_stands_until_a_file_changes_and_then_one_update_follows(home: Path, workspace: Path) -> None:
    (workspace / "AGENTS.md").write_text("Use tabs.\n")
    async with harness(home, workspace, [{"text": "Done."}] * 22) as agent:
        account = Account(agent, await agent.open())
        for number in range(20):
            await account.turn(f"Turn {number}")
        first = agent.provider.requests[0]
        head = first[: first.index(b'{"role":"user"')]
        assert all(body.startswith(head) for body in agent.provider.requests)
        assert sum(isinstance(event, ContextAppended) for event in account.events) == 2  # mode and facts, once
        (workspace / "AGENTS.md").write_text("Use spaces.\n")
        foreseen = await account.view()
        await account.turn("On")
        await account.turn("And on")
        assert agent.provider.requests[-1].startswith(head)
        kinds = [event.kind for event in account.events if isinstance(event, ContextAppended)]
        assert kinds.count("instructions") == 1
        rules = next(row for row in foreseen.rows if row.name == "repo-rules")
        assert rules.place == "head" and rules.sent > 2 * len("Use tabs.")


def test_the_walk_sees_a_string_that_nobody_named() -> None:
    picture = base64.b64encode(b"x").decode()
    body = {"model": "m", "messages": [{"role": "user", "content": "Hi\nall"}, {"role": "assistant", "content": "é"}]}
    sizes = Walk(json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode(), {"Hi": "a", "all": "b"}).sizes
    assert (sizes["a"], sizes["b"], sizes["answers"]) == (2, 3, 2)
    with pytest.raises(AssertionError):
        Walk(json.dumps({"messages": [{"role": "user", "content": picture}]}).encode(), {})


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_a_compaction_a_rewind_and_their_undoing_are_foreseen(home: Path, workspace: Path, dialect: str) -> None:
    turns = [{"text": "word " * 2000}, {"text": "two " * 500}, {"text": "SUMMARY"}, *[{"text": "Done."}] * 9]
    async with harness(home, workspace, turns) as agent:
        agent.provider.dialect = build_dialect("scripted", ProviderSettings(dialect=dialect))
        account = Account(agent, await agent.open())
        await account.turn("One")
        await account.turn("Two")
        await account.run("/compact")
        assert (await account.turn("Three"))["compacted"] > 500
        await account.run("/compact undo")
        assert "compacted" not in await account.turn("Four")
        await account.run("/rewind 2")
        assert (await account.turn("Five"))["your messages"] == len("One")


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_between_two_steps_the_next_one_is_foreseen(home: Path, workspace: Path, dialect: str) -> None:
    (workspace / "odd.txt").write_text("\n".join(ODD[:4]))
    read = {"calls": [{"name": "read_file", "arguments": {"path": "odd.txt"}}], "text": "Look."}
    slow = {"text": "Done.", "delay": 600.0}
    async with harness(home, workspace, [read, slow]) as agent:
        agent.provider.dialect = build_dialect("scripted", ProviderSettings(dialect=dialect))
        account = Account(agent, await agent.open())
        waiting = asyncio.ensure_future(agent.turn("Go", account.session))
        await until(lambda: len(agent.provider.requests) == 2)
        view, body = await account.view(), agent.provider.requests[1]
        assert view.bytes == len(body) and sums(view) == +Walk(body, texts_of(account.events)).sizes
        assert sums(view)["tool results"] > 50
        await agent.client.submit(Interrupt(account.session))
        await waiting


async def test_the_relay_of_a_former_session_is_foreseen_and_not_taken(home: Path, workspace: Path) -> None:
    script = [{"text": "Said."}, {"text": "## Next action\n1. Sow oats."}, *[{"text": "Done."}] * 5]
    async with harness(home, workspace, script) as agent:
        first = await agent.open()
        await agent.turn("Go", first)
        assert (await agent.client.submit(RunCommand(first, "/relay"))).ok
        await Account(agent, await agent.open()).view()
        account = Account(agent, await agent.open())
        assert (await account.turn("On"))["relay"] > 300


async def test_a_cleared_fact_is_foreseen_as_gone(home: Path, workspace: Path) -> None:
    async with harness(home, workspace, [{"text": "Done."}] * 9) as agent:
        account = Account(agent, await agent.open())
        await account.turn("Go")
        await account.run("/memory add The staging host is called albatross")
        told = (await account.turn("On"))["user-memory"]
        assert told > len("The staging host is called albatross")
        facts = agent.app.parts.memory.facts
        facts.clear(str(workspace), facts.facts(str(workspace)))
        view = await account.view()
        await agent.turn("w", account.session)
        body = agent.provider.requests[-1]
        assert b"albatross" not in body and len(body) == view.bytes + 1
        assert (await account.view()).bytes > view.bytes


async def test_a_session_that_works_for_another_is_accounted_for(home: Path, workspace: Path) -> None:
    (workspace / "AGENTS.md").write_text("Use tabs.\n")
    async with harness(home, workspace, [{"text": "Done."}] * 9) as agent:
        owner = await agent.open()
        await agent.turn("Go", owner)
        account = Account(agent, await agent.open(owner=owner, kind="subagent", name="child"))
        assert (await account.turn("One"))["repo-rules"]
        await account.turn("Two")


async def test_the_map_of_the_code_is_a_layer_of_the_head(tmp_path: Path, home: Path) -> None:
    (home / "config.toml").write_text("[context]\ncodemap_tokens = 400\n")
    tree = planted(tmp_path)
    (tree / "AGENTS.md").write_text(odd(random.Random(1), 30))
    await refresh(CodeIndex(str(tree), str(home), workers=1))
    async with harness(home, tree, [{"text": "Done."}] * 3) as agent:
        account = Account(agent, await agent.open())
        said = await account.turn("Go")
        assert said["codemap-wiki"] > 200 and said["repo-rules"] > 200
        (row,) = (row for row in (await account.view()).rows if row.name == "codemap-wiki")
        assert row.place == "head"
        await account.turn("On")
