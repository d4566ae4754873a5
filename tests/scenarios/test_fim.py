"""Filling in the middle in whole turns: from a model's call over the endpoint and the person to the file."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from codewhale.app.compose import AppOptions, open_app
from codewhale.catalog.registry import Catalog
from codewhale.cli.offline.stored_sessions import request_body
from codewhale.protocol.blocks import DiffBlock
from codewhale.protocol.events import (
    ApprovalAsked,
    BudgetReserved,
    BudgetSettled,
    CallFinished,
    CallStarted,
    FileChanged,
    RequestSent,
    TextStreamed,
    TurnFinished,
    UsageReported,
)
from codewhale.protocol.modes import Authority, Mode
from codewhale.protocol.ops import Answer, Interrupt, Limits, OpenSession, SendMessage
from codewhale.testing import Harness, collect, harness
from support.known import know_every_tool
from support.scenes import Watch, ending, only, results, watching
from support.wire import Reply, Wire, answer, delta, sse, stream

CODE = "def add(a, b):\n    pass\n\n\nprint(add(1, 2))\n"
CALL = {
    "name": "fim_edit",
    "arguments": {"path": "a.py", "prefix_anchor": "def add(a, b):\n", "suffix_anchor": "\n\n\nprint"},
}
MIDDLE = {"text": "    return a + b"}
DONE = {"text": "Filled in."}
FACTS = {"fim": "completions"}
PERSON: dict[str, Any] = {"mode": Mode.AGENT, "authority": Authority.PERSON}
FILLED = CODE.replace("    pass", "    return a + b")


@pytest.fixture
def code(home: Path, workspace: Path) -> Path:
    """The file with the gap, in a workspace whose sessions know every tool."""
    know_every_tool(home)
    (workspace / "a.py").write_text(CODE)
    return workspace / "a.py"


@asynccontextmanager
async def asked(
    home: Path, workspace: Path, script: list[Any], **fields: Any
) -> AsyncIterator[tuple[Harness, str, Watch]]:
    """A session of a person whose model has been sent a message."""
    async with harness(home, workspace, script, facts=FACTS) as stage:
        session = await stage.open(**{**PERSON, **fields})
        async with watching(stage, session) as watch:
            await stage.client.submit(SendMessage(session, "Implement add."))
            yield stage, session, watch


@pytest.mark.parametrize("allowed", [True, False])
async def test_a_person_decides_on_the_diff(home: Path, workspace: Path, code: Path, allowed: bool) -> None:
    async with asked(home, workspace, [{"calls": [CALL]}, MIDDLE, DONE]) as (stage, session, watch):
        question = await watch.until(ApprovalAsked)
        assert code.read_text() == CODE and only(watch.events, CallStarted) == []
        await stage.client.submit(Answer(session, question.request_id, allowed=allowed))
        await watch.until(TurnFinished)
    (diff,) = question.display
    assert isinstance(diff, DiffBlock) and "-    pass\n+    return a + b\n" in diff.diff
    assert question.tool == "fim_edit" and "look at the diff" in question.reason
    assert code.read_text() == (FILLED if allowed else CODE)
    assert [change.change.path for change in only(watch.events, FileChanged)] == (["a.py"] if allowed else [])
    (result,) = results(watch.events)
    assert result.ok is allowed and (result.error or "none") == ("none" if allowed else "permission_denied")
    assert ending(watch.events).status == ("done" if allowed else "denied")
    # The middle is no part of what the model is seen to say.
    assert "".join(event.text for event in only(watch.events, TextStreamed)) == DONE["text"]


async def test_what_was_approved_is_what_is_written_or_nothing(home: Path, workspace: Path, code: Path) -> None:
    async with asked(home, workspace, [{"calls": [CALL]}, MIDDLE, DONE]) as (stage, session, watch):
        question = await watch.until(ApprovalAsked)
        code.write_text(CODE + "# a change of the person's own\n")
        await stage.client.submit(Answer(session, question.request_id, allowed=True))
        await watch.until(TurnFinished)
    (result,) = results(watch.events)
    assert not result.ok and "changed on disk" in result.content and "To see what is there: read_file" in result.content
    assert code.read_text() == CODE + "# a change of the person's own\n"


async def test_nobody_there_fills_in_as_it_writes(home: Path, workspace: Path, code: Path) -> None:
    script = [{"calls": [CALL]}, MIDDLE, DONE]
    async with harness(home, workspace, script, facts=FACTS) as stage:
        session = await stage.open(mode=Mode.AGENT, authority=Authority.HEADLESS)
        events = await stage.turn("Implement add.", session)
    assert code.read_text() == FILLED and only(events, ApprovalAsked) == []
    assert ending(events).status == "done"
    assert [sent.purpose for sent in only(events, RequestSent)] == ["", "infill", ""]


async def test_plan_mode_asks_no_model(home: Path, workspace: Path, code: Path) -> None:
    async with harness(home, workspace, [{"calls": [CALL]}, DONE], facts=FACTS) as stage:
        events = await stage.turn("Implement add.", await stage.open(mode=Mode.PLAN))
        assert len(stage.provider.requests) == 2
    assert "mode.plan" in results(events)[0].content and code.read_text() == CODE


async def test_without_the_fact_it_is_refused_with_what_works(home: Path, workspace: Path, code: Path) -> None:
    async with harness(home, workspace, [{"calls": [CALL]}, DONE]) as stage:
        events = await stage.turn("Implement add.")
        assert len(stage.provider.requests) == 2
    (result,) = results(events)
    assert (result.ok, result.error) == (False, "not_available")
    assert "edit_file" in result.content and 'To see what is there: read_file {"path":"a.py"}' in result.content


@pytest.mark.parametrize("at", ["the model", "the person"])
async def test_an_interrupt_changes_nothing_and_the_session_goes_on(
    home: Path, workspace: Path, code: Path, at: str
) -> None:
    slow = {**MIDDLE, "delay": 30} if at == "the model" else MIDDLE
    async with asked(home, workspace, [{"calls": [CALL]}, slow, DONE]) as (stage, session, watch):
        await (watch.until(RequestSent, 2) if at == "the model" else watch.until(ApprovalAsked))
        await stage.client.submit(Interrupt(session))
        end = await watch.until(TurnFinished)
        assert end.status == "interrupted" and code.read_text() == CODE
        again = await stage.turn("Never mind.", session)
    assert ending(again).status == "done"
    (result,) = results(watch.events)[:1]
    assert "changed nothing" in result.content
    assert len(only(watch.events, BudgetReserved)) == len(only(watch.events, BudgetSettled))


async def test_a_bound_stops_it_before_the_call(home: Path, workspace: Path, code: Path) -> None:
    async with harness(home, workspace, [{"calls": [CALL]}, MIDDLE, DONE], facts=FACTS) as stage:
        events = await stage.turn("Implement add.", limits=Limits(turns=1))
        assert len(stage.provider.requests) == 1
    (result,) = results(events)
    assert "limit of 1 model calls" in result.content and code.read_text() == CODE
    assert ending(events).status == "budget"


def test_no_head_carries_a_tool_that_some_providers_lack() -> None:
    catalog = Catalog.load()
    spec = catalog.spec("fim_edit")
    assert spec is not None and spec.gate == "fim" and spec.previews
    assert "fim_edit" not in {row.name for row in catalog.head}


def replies() -> list[Reply]:
    """A chat endpoint's call, the completions endpoint's middle, the chat endpoint's last word."""
    function = {"name": "fim_edit", "arguments": json.dumps(CALL["arguments"])}
    call = [{"index": 0, "id": "call_a", "type": "function", "function": function}]
    usage = {"prompt_tokens": 40, "completion_tokens": 6, "prompt_cache_hit_tokens": 0, "prompt_cache_miss_tokens": 40}
    middle = {"choices": [{"text": MIDDLE["text"], "index": 0, "finish_reason": "stop"}], "usage": usage}
    return [
        Reply([stream(sse(delta(tool_calls=call), delta("tool_calls"), "[DONE]"))]),
        Reply([answer(200, json.dumps(middle).encode())]),
        Reply([stream(sse(delta(content="Filled in."), delta("stop"), "[DONE]"))]),
    ]


async def test_over_the_wire_the_chat_and_the_gap_go_to_one_host_with_one_key(
    home: Path, workspace: Path, code: Path
) -> None:
    async with Wire(replies()) as wire:
        home.mkdir(exist_ok=True)
        (home / "config.toml").write_text(
            f'provider = "mine"\nmodel = "m"\n[providers.mine]\nbase_url = "{wire.url}"\napi_key_env = "MINE_KEY"\n'
            '[providers.mine.facts]\nfim = "deepseek"\n[tools]\nalways_load = ["fim_edit"]\n'
        )
        options = AppOptions(home=str(home), workspace=str(workspace))
        async with open_app(options, environ={"MINE_KEY": "sk-0123456789"}) as app:
            opened = OpenSession(workspace=str(workspace), mode=Mode.AGENT, authority=Authority.HEADLESS)
            session: str = await app.client.submit(opened)
            events = app.client.events(session, from_seq=-1)
            waiting = asyncio.ensure_future(collect(events))
            await asyncio.sleep(0)
            await app.client.submit(SendMessage(session, "Implement add."))
            told = [envelope.event for envelope in await waiting]
    assert code.read_text() == FILLED
    places = [request.head.split(" ")[1] for request in wire.requests]
    assert places == ["/v1/chat/completions", "/beta/completions", "/v1/chat/completions"]
    assert {request.headers["authorization"] for request in wire.requests} == {"Bearer sk-0123456789"}
    assert json.loads(wire.requests[1].body)["prompt"] == "def add(a, b):\n"
    assert [request_body(str(home), session, number) for number in (1, 2, 3)] == [it.body for it in wire.requests]
    # Nothing before the end of the conversation has moved.
    first, _, third = (request.body for request in wire.requests)
    messages = json.dumps(json.loads(first)["messages"])[:-1]
    assert json.dumps(json.loads(third)["messages"]).startswith(messages)
    gap = only(told, UsageReported)[0]
    assert (gap.request, gap.usage.input, gap.usage.output, gap.usage.cache_miss) == (2, 40, 6, 40)
    (result,) = only(told, CallFinished)
    assert json.loads(result.content)["generated_text"] == MIDDLE["text"]
