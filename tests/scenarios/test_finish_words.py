"""How answers end, in every dialect's own words: nothing of an answer that was cut runs, and what came whole does."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from codewhale.agent.collect import _LENGTHS, Collector
from codewhale.models.build import DIALECTS
from codewhale.models.dialects.anthropic_stream import _REASONS
from codewhale.models.dialects.openai_stream import _GAVE_UP
from codewhale.protocol.events import CallStarted, MessageAdded, TurnFinished
from codewhale.protocol.stream import Finished
from support.scenes import only, results
from support.wire import Reply, delta, sse, stream
from support.wired import wired

# What endpoints say of an answer that hit a limit, under whatever dialect.
CUT = (
    "max_tokens", "max_output_tokens", "max_length", "model_length", "token_limit", "context_length",
    "context_length_exceeded", "model_context_window_exceeded", "incomplete",
)  # fmt: skip
CLAUDE = {
    "end_turn": "stop", "stop_sequence": "stop", "tool_use": "tool_calls", "max_tokens": "length",
    "model_context_window_exceeded": "length",
}  # fmt: skip
GAVE_UP = ("error", "network_error", "abort", "insufficient_system_resource")
Say = Callable[[str, bool], Reply]


def write(reason: str) -> dict[str, str]:
    """The arguments of a call that comes with this word."""
    return {"path": f"{reason or 'none'}.txt", "content": "x\n"}


def chat(reason: str, call: bool) -> Reply:
    """An answer in the chat dialect, with a call or without."""
    made = {"index": 0, "id": "c", "function": {"name": "write_file", "arguments": json.dumps(write(reason))}}
    said = delta(tool_calls=[made]) if call else delta(content="Done.")
    return Reply([stream(sse(said, delta(reason), "[DONE]"))])


def claude(reason: str, call: bool) -> Reply:
    """An answer in the Messages dialect."""
    made = {"type": "tool_use", "id": "c", "name": "write_file", "input": write(reason)}
    block = made if call else {"type": "text", "text": "Done."}
    begun = {"type": "content_block_start", "index": 0, "content_block": block}
    end = {"type": "message_delta", "delta": {"stop_reason": reason}, "usage": {"output_tokens": 7}}
    return Reply([stream(sse(begun, {"type": "content_block_stop", "index": 0}, end, {"type": "message_stop"}))])


def responses(reason: str, call: bool) -> Reply:
    """An answer in the Responses dialect; the reason "completed" is none."""
    made = {"type": "function_call", "call_id": "c", "name": "write_file", "arguments": json.dumps(write(reason))}
    item = made if call else {"type": "message", "content": [{"type": "output_text", "text": "Done."}]}
    status = "completed" if reason == "completed" else "incomplete"
    end: dict[str, Any] = {"status": status, "output": [item], "usage": {}}
    end |= {} if reason == "completed" else {"incomplete_details": {"reason": reason} if reason else None}
    done = {"type": "response.output_item.done", "output_index": 0, "item": item}
    return Reply([stream(sse(done, {"type": f"response.{status}", "response": end}))])


# Dialect -> how it is said, its words for a cut answer, for a whole one, and for one that it gave up.
WORDS: dict[str, tuple[Say, tuple[str, ...], tuple[str, ...], tuple[str, ...]]] = {
    "openai-chat": (chat, ("length", "MAX_TOKENS", *CUT), ("stop", "tool_calls", "function_call", "eos"), GAVE_UP),
    "anthropic": (
        claude,
        tuple(dict.fromkeys(("length", *CUT, *(word for word, meant in CLAUDE.items() if meant == "length")))),
        tuple(word for word, meant in CLAUDE.items() if meant != "length"),
        (),
    ),
    "openai-responses": (responses, ("", "length", *CUT), ("completed",), ()),
}
ROWS = [(dialect, kind) for dialect in WORDS for kind in ("cut", "whole")]


def test_every_dialect_and_every_row_of_its_tables_is_tried() -> None:
    assert set(WORDS) == set(DIALECTS) - {"scripted"}
    assert set(CUT) == _LENGTHS and CLAUDE == _REASONS and set(GAVE_UP) == set(_GAVE_UP)


@pytest.mark.parametrize("word", [*CUT, "length"])
def test_a_length_limit_has_one_name_under_every_word(word: str) -> None:
    for said in (word, word.upper(), word.title()):
        collector = Collector(lambda event: None)
        collector.add(Finished(said))
        assert collector.answer().finish == ("length" if word != "length" or said == word else said)


@pytest.mark.parametrize(("dialect", "kind"), ROWS)
async def test_no_call_of_a_cut_answer_runs_and_every_call_of_a_whole_one_does(
    dialect: str, kind: str, home: Path, workspace: Path
) -> None:
    say, cut, whole, _ = WORDS[dialect]
    words = cut if kind == "cut" else whole
    last = "completed" if dialect == "openai-responses" else "end_turn" if dialect == "anthropic" else "stop"
    replies = [reply for word in words for reply in (say(word, True), say(last, False))]
    async with wired(home, workspace, replies, dialect=dialect) as agent:
        for word in words:
            made = workspace / write(word)["path"]
            events, ended = await agent.turn(f"Go: {word}")
            (result,) = results(events)
            assert ended["status"] == "done", (word, ended)
            assert (made.exists(), result.ok, len(only(events, CallStarted))) == (
                (False, False, 0) if kind == "cut" else (True, True, 1)
            ), (word, result.content)
            if kind == "cut":
                assert "hit its length limit" in result.content
                assert only(events, MessageAdded)[1].finish == "length", word


@pytest.mark.parametrize("word", GAVE_UP)
async def test_an_answer_that_was_given_up_is_asked_for_again_and_its_call_does_not_run(
    word: str, home: Path, workspace: Path
) -> None:
    async with wired(home, workspace, [chat(word, True), chat("stop", False)]) as agent:
        events, _ = await agent.turn("Go")
        assert len(agent.wire.requests) == 2
    assert results(events) == [] and list(workspace.iterdir()) == []
    assert only(events, TurnFinished)[0].status == "done"


@pytest.mark.parametrize(
    ("dialect", "reply"),
    [("anthropic", claude("refusal", True)), ("openai-responses", responses("content_filter", True))],
)
async def test_a_call_of_an_answer_that_was_refused_does_not_run(
    dialect: str, reply: Reply, home: Path, workspace: Path
) -> None:
    async with wired(home, workspace, [reply], dialect=dialect) as agent:
        events, ended = await agent.turn("Go")
    assert (ended["status"], results(events), list(workspace.iterdir())) == ("failed", [], [])
