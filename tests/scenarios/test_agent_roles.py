"""Roles of a person's own, what hooks hear of sub-agents, and answers that must fit a schema."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from codewhale.agent.roles import built_in, own_roles
from codewhale.protocol.children import READING_ROLES, ListChildren, StopChild, TellChild
from codewhale.protocol.errors import SessionError
from codewhale.protocol.events import ApprovalAsked, CallFinished, Event
from codewhale.protocol.modes import Authority, Mode
from codewhale.protocol.ops import Answer, CloseSession
from codewhale.protocol.tools import Effect
from codewhale.testing import harness
from scenarios.test_children import by_task, call, results, text_of

WRITER = "---\ndescription: writes papers\nmay: reads, writes\npaths: [docs]\naliases: scribe\n---\nYou write papers.\n"


def refused(events: list[Event]) -> str:
    (result,) = [one for one in events if isinstance(one, CallFinished) and one.name == "agent_open" and not one.ok]
    return result.content


def test_the_roles_that_only_read_are_opened_without_a_question() -> None:
    names = {
        name
        for role in built_in().values()
        if set(role.scope.effects) <= {Effect.READS, Effect.NETWORK}
        for name in (role.name, *role.aliases)
    }
    assert {name.replace("-", "_") for name in READING_ROLES} == names


async def test_a_role_of_ones_own_holds_its_folders(home: Path, workspace: Path) -> None:
    (home / "agents").mkdir()
    (home / "agents" / "writer.md").write_text(WRITER)
    (workspace / "docs").mkdir()
    asked: list[str] = []
    turns = [
        call("write_file", path="docs/a.md", content="a"),
        call("write_file", path="docs/../b.md", content="b"),
        call("exec_shell", command="touch c"),
        {"text": "SUMMARY: written"},
    ]

    def model(request: dict[str, Any]) -> dict[str, Any]:
        words = [str(one.get("content")) for one in request["messages"] if one["role"] == "user"]
        answers = sum(one["role"] == "assistant" for one in request["messages"])
        if any("Write papers" in word for word in words):
            asked.append(words[0])
            return turns[answers]
        return [call("agent_open", prompt="Write papers", role="Scribe"), {"text": "Opened."}, {"text": "Over."}][
            answers
        ]

    async with harness(home, workspace, [model] * 10) as here:
        session = await here.open(mode=Mode.YOLO, authority=Authority.AUTO)
        await here.turn("Start", session)
        (view,) = await here.client.query(ListChildren(session))
    assert view.role == "writer" and "You write papers." in asked[0]
    assert sorted(path.name for path in workspace.rglob("*")) == ["a.md", "docs"]


@pytest.mark.parametrize(
    ("name", "text", "problem"),
    [
        ("explore", "words", "by no built-in role"),
        ("Bad Name", "words", "lower-case"),
        ("mine", "---\nmay: everything\n---\nwords", "may holds 'everything'"),
        ("mine", "---\npaths: /etc\n---\nwords", "below the workspace"),
        ("mine", "---\npaths: ../up\n---\nwords", "below the workspace"),
        ("mine", "---\ncolour: red\n---\nwords", "'colour'"),
        ("mine", "---\nmodel: [a]\n---\nwords", "model is not a text"),
        ("mine", "---\ntools: {a: 1}\n---\nwords", "tools is not a list"),
        ("mine", "---\nmay: reads\n---\n", "empty below"),
        ("mine", "---\nmay: reads\nwords", "does not end"),
    ],
)
def test_a_role_that_cannot_be_used_says_why(name: str, text: str, problem: str, tmp_path: Path) -> None:
    (tmp_path / f"{name}.md").write_text(text)
    roles = own_roles([(str(tmp_path), "")], lambda path, sha256: False)
    assert problem in roles[name].problem and f"{name}.md" in roles[name].problem


async def test_a_projects_role_waits_for_trust(home: Path, workspace: Path) -> None:
    folder = workspace / ".codewhale" / "agents"
    folder.mkdir(parents=True)
    (folder / "writer.md").write_text(WRITER)
    model = by_task({"Start": [call("agent_open", prompt="Write", role="writer"), {"text": "It may not."}]})
    async with harness(home, workspace, [model] * 4) as here:
        events = await here.turn("Start", await here.open(mode=Mode.AGENT, authority=Authority.HEADLESS))
    assert "not trusted; to use it: /trust add .codewhale/agents/writer.md" in refused(events)


async def test_an_answer_that_does_not_fit_is_asked_for_once_more(home: Path, workspace: Path) -> None:
    schema = {"type": "object", "properties": {"count": {"type": "integer"}}, "required": ["count"]}
    model = by_task(
        {
            "Count well": [{"text": "There are three."}, {"text": '```json\n{"count": 3}\n```'}],
            "Count badly": [{"text": "Three of them."}, {"text": '{"count": "three"}'}],
            "Start": [
                call("agent_open", prompt="Count well", name="well", role="explore", output_schema=schema),
                call("agent_open", prompt="Count badly", name="badly", role="explore", output_schema=schema),
                call("agent_eval", name="well"),
                call("agent_eval", name="badly"),
                {"text": "Counted both of them."},
            ],
        }
    )
    async with harness(home, workspace, [model] * 20) as here:
        events = await here.turn("Start", await here.open(mode=Mode.AGENT, authority=Authority.HEADLESS))
    well, badly = results(events, "agent_eval")
    assert well["status"] == "completed" and '"count": 3' in well["result"]
    assert badly["status"] == "failed" and "count must be an integer" in badly["error"]
    assert badly["result"] == '{"count": "three"}'


async def test_hooks_hear_of_a_sub_agents_beginning_and_end(home: Path, workspace: Path) -> None:
    heard = workspace / "heard"
    hooks = "".join(
        f'[[hooks.hooks]]\nevent = "{event}"\ncommand = "cat >> {heard}; echo >> {heard}"\nsandbox = "none"\n'
        for event in ("subagent_spawn", "subagent_complete")
    )
    (home / "config.toml").write_text(f"[hooks]\nenabled = true\n{hooks}")
    model = by_task(
        {
            "Look": [{"text": "SUMMARY: seen"}],
            "Start": [
                call("agent_open", prompt="Look", name="scout", role="explore"),
                {"text": "It runs."},
                {"text": "Over."},
            ],
        }
    )
    async with harness(home, workspace, [model] * 10) as here:
        await here.turn("Start", await here.open(mode=Mode.AGENT, authority=Authority.HEADLESS))
    moments = [json.loads(line) for line in heard.read_text().splitlines() if line.strip()]
    assert [(one["event"], one["tool"], one["message"]) for one in moments] == [
        ("subagent_spawn", "scout", "Look"),
        ("subagent_complete", "scout", "seen"),
    ]


async def test_a_child_of_which_nothing_comes_is_stopped_and_one_without_words_has_failed(
    home: Path, workspace: Path
) -> None:
    (home / "config.toml").write_text("[subagents]\nsilence_seconds = 1.0\n")
    model = by_task(
        {
            "Sleep": [{"text": "late", "delay": 600}],
            "Say nothing": [{"text": ""}] * 4,
            "Start": [
                call("agent_open", prompt="Sleep", name="sleeper", role="explore"),
                call("agent_open", prompt="Say nothing", name="mute", role="explore"),
                call("agent_eval", name="sleeper", timeout_ms=60_000),
                call("agent_eval", name="mute", timeout_ms=60_000),
                {"text": "Neither of them said a word."},
            ],
        }
    )
    async with harness(home, workspace, [model] * 20) as here:
        events = await here.turn("Start", await here.open(mode=Mode.AGENT, authority=Authority.HEADLESS))
    sleeper, mute = results(events, "agent_eval")
    assert sleeper["status"] == "failed" and "nothing came from the model" in sleeper["error"]
    assert mute["status"] == "failed" and mute["error"]


async def test_looks_that_show_nothing_new_say_when_the_next_is_worth_it(home: Path, workspace: Path) -> None:
    then = iter([call("agent_close", name="sleeper"), {"text": "It is stopped."}])

    def model(request: dict[str, Any]) -> dict[str, Any]:
        if not any(text_of(one).startswith("Start") for one in request["messages"] if one["role"] == "user"):
            return {"text": "late", "delay": 600}
        looks = [text_of(one) for one in request["messages"] if one["role"] == "tool"]
        if not looks:
            return call("agent_open", prompt="Sleep", name="sleeper", role="explore")
        # It may begin to ask its model between two looks.
        still = any(json.loads(look).get("unchanged", 0) >= 2 for look in looks[1:])
        return next(then) if still else call("agent_eval", name="sleeper", block=False)

    async with harness(home, workspace, [model] * 200) as here:
        events = await here.turn("Start", await here.open(mode=Mode.AGENT, authority=Authority.HEADLESS))
    first, *others, last = results(events, "agent_eval")
    assert "next_look_after_s" not in first
    assert last["next_look_after_s"] >= 30 and last["unchanged"] == 2
    assert all(look.get("next_look_after_s", 30) <= last["next_look_after_s"] for look in others)


async def test_what_a_person_allowed_for_the_session_its_children_may(home: Path, workspace: Path) -> None:
    command = {"command": "./tool run"}
    (workspace / "tool").write_text("#!/bin/sh\necho ran >> ran\n")
    (workspace / "tool").chmod(0o755)
    model = by_task(
        {
            "Run it": [call("exec_shell", **command), {"text": "SUMMARY: ran"}],
            "Start": [
                call("exec_shell", **command),
                call("agent_open", prompt="Run it", name="runner", role="verifier"),
                call("agent_eval", name="runner", timeout_ms=60_000),
                {"text": "It ran two times."},
            ],
        }
    )
    async with harness(home, workspace, [model] * 20) as here:
        session = await here.open(mode=Mode.AGENT, authority=Authority.PERSON)
        asked: list[str] = []

        async def answer() -> None:
            async for envelope in here.client.events(session, -1):
                if isinstance(envelope.event, ApprovalAsked):
                    asked.append(envelope.event.tool)
                    remember = "session" if envelope.event.tool == "exec_shell" else ""
                    await here.client.submit(
                        Answer(session, envelope.event.request_id, allowed=True, remember=remember, exact=True)
                    )

        answering = asyncio.create_task(answer())
        await asyncio.sleep(0)
        await here.turn("Start", session)
        answering.cancel()
    assert asked == ["exec_shell", "agent_open"] and (workspace / "ran").read_text() == "ran\nran\n"


async def test_a_parent_that_is_closed_is_named(home: Path, workspace: Path) -> None:
    async with harness(home, workspace, []) as here:
        session = await here.open()
        await here.client.submit(CloseSession(session))
        for op in (TellChild(session, "one", "Go on"), StopChild(session, "one")):
            with pytest.raises(SessionError, match=f"session {session} is not open"):
                await here.client.submit(op)


async def test_waiting_for_any_waits_for_news_behind_an_end_that_is_known(home: Path, workspace: Path) -> None:
    model = by_task(
        {
            "Quick": [{"text": "SUMMARY: quick"}],
            "Slow": [call("exec_shell", command="while [ ! -e go ]; do sleep 0.02; done"), {"text": "SUMMARY: slow"}],
            "Start": [
                call("agent_open", prompt="Quick", name="quick", role="explore"),
                call("agent_eval", name="quick", timeout_ms=60_000),
                call("agent_open", prompt="Slow", name="slow"),
                {
                    "calls": [
                        {"name": "exec_shell", "arguments": {"command": "(sleep 1; touch go) &", "background": True}},
                        {"name": "agent_eval", "arguments": {"timeout_ms": 60_000}},
                    ]
                },
                {"text": "Both of them are over."},
            ],
        }
    )
    async with harness(home, workspace, [model] * 20) as here:
        events = await here.turn("Start", await here.open(mode=Mode.YOLO, authority=Authority.AUTO))
    _, both = results(events, "agent_eval")
    assert [one["status"] for one in both["agents"]] == ["completed", "completed"]
