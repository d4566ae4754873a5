"""Tools of another source, registered while the process runs: found, activated, repaired, called, refused, replaced and
gone, while the head of the session keeps its bytes."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from codewhale.agent.activation import tool_name
from codewhale.catalog.registry import Catalog, ToolSource
from codewhale.protocol.events import HeaderPinned, PrefixInvalidated, ToolActivated
from codewhale.protocol.modes import Mode
from codewhale.protocol.ops import CloseSession, SetModel
from codewhale.protocol.tools import BoundCall, CallContext, Effect, Origin, ToolResult, ToolSpec
from codewhale.testing import Harness, harness
from support.scenes import only, results

DONE = {"text": "Done."}
NAME = "weather__set_alarm"
PARAMETERS: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {
        "place": {
            "type": "object",
            "properties": {"lat": {"type": "number", "minimum": -90, "maximum": 90}, "lon": {"type": "number"}},
            "required": ["lat", "lon"],
            "additionalProperties": False,
        },
        "metres": {"type": "integer", "exclusiveMinimum": 0, "multipleOf": 5},
    },
    "properties": {
        "place": {"$ref": "#/$defs/place"},
        "when": {
            "oneOf": [
                {
                    "type": "object",
                    "properties": {"kind": {"const": "wind"}, "speed": {"type": "integer"}},
                    "required": ["kind", "speed"],
                },
                {
                    "type": "object",
                    "properties": {"kind": {"const": "rain"}, "depth": {"$ref": "#/$defs/metres"}},
                    "required": ["kind", "depth"],
                },
            ]
        },
        "note": {"type": ["object", "null"], "properties": {"text": {"type": "string"}}, "required": ["text"]},
        "unit": {"const": "metric"},
    },
    "required": ["place", "when", "unit"],
    "additionalProperties": False,
}
RIGHT = {"place": {"lat": 1.5, "lon": 2}, "when": {"kind": "wind", "speed": 5}, "unit": "metric", "note": None}
SEARCH = {
    "name": "tool_search_tool_bm25",
    "arguments": {"query": "alarm for the wind", "max_results": 1},
}


def source(
    calls: list[dict[str, Any]],
    parameters: dict[str, Any] = PARAMETERS,
    version: str = "1",
    effect: Effect = Effect.NETWORK,
) -> ToolSource:
    """A source whose one tool keeps the arguments it was called with."""

    def bind(spec: ToolSpec, arguments: dict[str, Any]) -> BoundCall:
        async def run(call: CallContext) -> ToolResult:
            calls.append(arguments)
            return ToolResult(f"set by version {version}")

        return BoundCall((), run)

    row = ToolSpec(NAME, "", "Set an alarm for wind or rain at a place.", parameters, (effect,))
    return ToolSource("weather", (row,), bind, version)


def catalog(stage: Harness) -> Catalog:
    """The catalog of the running application."""
    there = stage.app.parts.catalog
    assert isinstance(there, Catalog)
    return there


def registering(box: list[Harness], *sources: ToolSource | None) -> Callable[[Any], dict[str, Any]]:
    """An answer of the model during which sources come, or (None) the one of the weather goes."""

    def answer(request: Any) -> dict[str, Any]:
        for one in sources:
            if one is None:
                catalog(box[0]).remove("weather")
            else:
                assert catalog(box[0]).register(one) == {}
        return {"calls": [SEARCH]}

    return answer


def call(arguments: Any, name: str = NAME) -> dict[str, Any]:
    """An answer with a call, its arguments as a model wrote them."""
    return {"calls": [{"name": name, "arguments": arguments}]}


def sent(stage: Harness, number: int) -> list[dict[str, Any]]:
    """The tools of request `number`."""
    tools: list[dict[str, Any]] = json.loads(stage.provider.requests[number])["tools"]
    return tools


async def test_a_tool_registered_while_a_turn_runs_is_found_repaired_called_and_refused(
    home: Path, workspace: Path
) -> None:
    calls: list[dict[str, Any]] = []
    box: list[Harness] = []
    damaged = (
        "{'place': '{\"lat\": 1.5, \"lon\": 2}', 'when': {'kind': 'Wind', 'speed': '5'}, 'unit': 'Metric', note: None,}"
    )
    wrong = [
        {**RIGHT, "unit": "imperial"},
        {**RIGHT, "when": {"kind": "snow"}},
        {**RIGHT, "when": {"kind": "rain", "depth": 7}},
        {**RIGHT, "place": {"lat": 91, "lon": "east"}},
        {**RIGHT, "note": {}},
        {"place": {"lat": 1.5, "lon": 2}},
        {**RIGHT, "colour": 1},
    ]
    script = [registering(box, source(calls)), call(damaged), *map(call, wrong), call(RIGHT), DONE]
    async with harness(home, workspace, script) as stage:
        box.append(stage)
        session = await stage.open()
        events = await stage.turn("Set it.", session)
        arrays = [sent(stage, number) for number in range(len(script))]
        prefix = [body[: body.index(b'"messages"')] for body in stage.provider.requests]
    # The head did not move: the new tool stands behind it, with the bytes of its schema as they came.
    head = len(arrays[0])
    assert NAME not in map(tool_name, arrays[0])
    assert all(array[:head] == arrays[0] and len(array) == head + 1 for array in arrays[1:])
    assert arrays[-1][-1]["function"]["parameters"] == PARAMETERS
    assert len(set(prefix[1:])) == 1
    assert [edge.reason for edge in only(events, PrefixInvalidated)] == ["activation"]
    (known,) = only(events, ToolActivated)
    assert known.spec is not None
    assert (known.spec.parameters, known.spec.source, known.spec.version) == (PARAMETERS, "weather", "1")
    found, repaired, *refusals, whole = results(events)
    assert [row["tool_name"] for row in json.loads(found.content)["tool_references"]] == [NAME]
    assert repaired.ok and whole.ok, repaired.content
    assert calls == [RIGHT, RIGHT]
    assert repaired.origin is whole.origin is Origin.MCP
    said = [
        "`unit` must be the string 'metric'; got the string 'imperial'",
        "`when.kind` must be one of wind, rain; got the string 'snow'",
        "`when.depth` must be an integer of at least 1 (it is not a multiple of 5); got the number 7",
        "`place.lat` must be a number from -90 to 90; got the number 91. "
        "`place.lon` must be a number; got the string 'east'",
        "`note.text` is missing (nothing came): it must be a string",
        "`when` is missing (nothing came): it must be an object with kind, speed or an object with kind, depth",
        "`colour` is not an argument of this tool (the number 1 came); it takes place, when, note, unit",
    ]
    assert [(refusal.ok, words in refusal.content) for refusal, words in zip(refusals, said, strict=True)] == [
        (False, True)
    ] * len(said), [refusal.content for refusal in refusals]


async def test_a_tool_that_may_not_run_in_this_mode_is_refused_and_not_run(home: Path, workspace: Path) -> None:
    calls: list[dict[str, Any]] = []
    async with harness(home, workspace, [{"calls": [SEARCH]}, call(RIGHT), DONE]) as stage:
        catalog(stage).register(source(calls, effect=Effect.WRITES))
        session = await stage.open(mode=Mode.PLAN)
        found, refused = results(await stage.turn("Set it.", session))
    assert [row["tool_name"] for row in json.loads(found.content)["unavailable_tool_references"]] == [NAME]
    assert not refused.ok and refused.error == "permission_denied" and calls == []


async def test_a_resume_under_another_version_sends_the_old_bytes(home: Path, workspace: Path) -> None:
    old_calls: list[dict[str, Any]] = []
    new_calls: list[dict[str, Any]] = []
    async with harness(home, workspace, [{"calls": [SEARCH]}, call(RIGHT), DONE]) as stage:
        catalog(stage).register(source(old_calls))
        session = await stage.open()
        await stage.turn("Set it.", session)
        before = stage.provider.requests[-1]
        await stage.client.submit(CloseSession(session))
    other = {**PARAMETERS, "properties": {**PARAMETERS["properties"], "until": {"type": "string"}}}
    other["required"] = [*PARAMETERS["required"], "until"]
    script = [call(RIGHT), call({**RIGHT, "until": "noon"}), DONE]
    async with harness(home, workspace, script) as stage:
        catalog(stage).register(source(new_calls, other, "2"))
        await stage.open(resume=session)
        events = await stage.turn("Again.", session)
        after = stage.provider.requests
    head = before[: before.index(b'"messages"')]
    assert all(body[: body.index(b'"messages"')] == head for body in after)
    assert after[0][: len(before) - 200] == before[: len(before) - 200]
    assert only(events, HeaderPinned) == [] and only(events, ToolActivated) == []
    refused, run = results(events)
    assert not refused.ok and "`until` is missing" in refused.content
    assert '"until":{"type":"string"}' in refused.content  # the schema as it is now
    assert run.ok and run.content == "set by version 2" and new_calls == [{**RIGHT, "until": "noon"}]


async def test_a_head_that_is_pinned_anew_holds_the_tool_as_it_was_shown(home: Path, workspace: Path) -> None:
    calls: list[dict[str, Any]] = []
    other = {**PARAMETERS, "properties": {**PARAMETERS["properties"], "until": {"type": "string"}}}
    async with harness(home, workspace, [{"calls": [SEARCH]}, DONE, call(RIGHT), DONE]) as stage:
        catalog(stage).register(source(calls))
        session = await stage.open()
        await stage.turn("Find it.", session)
        catalog(stage).register(source(calls, other, "2"))
        await stage.client.submit(SetModel(session, "scripted-other"))
        (run,) = results(await stage.turn("Set it.", session))
        before, after = sent(stage, 1), sent(stage, 2)
    assert after == before and tool_name(after[-1]) == NAME
    assert run.content == "set by version 2"


@pytest.mark.parametrize("name", ["search_files", "search", "test", "str_replace_editor", "create_file"])
async def test_a_tool_that_goes_by_a_name_of_other_harnesses_is_what_its_source_says(
    home: Path, workspace: Path, name: str
) -> None:
    calls: list[dict[str, Any]] = []
    where = {"type": "object", "properties": {"uri": {"type": "string"}, "regex": {"type": "string"}}}
    arguments = {"uri": "file:///a/b", "regex": "x", "reason": "why"}
    async with harness(home, workspace, [call(arguments, name), call("{'uri': 'file:///a',}", name), DONE]) as stage:
        one = source(calls, where, effect=Effect.READS)
        row = msgspec.structs.replace(one.rows[0], name=name)
        assert catalog(stage).register(msgspec.structs.replace(one, rows=(row,))) == {}
        whole, damaged = results(await stage.turn("Look."))
    assert whole.ok and damaged.ok, (whole.content, damaged.content)
    assert calls == [arguments, {"uri": "file:///a"}]


async def test_a_tool_whose_source_went_says_so_and_comes_back(home: Path, workspace: Path) -> None:
    calls: list[dict[str, Any]] = []
    box: list[Harness] = []
    script = [
        registering(box, source(calls)),
        registering(box, None),
        call(RIGHT),
        registering(box, source(calls, version="2")),
        call(RIGHT),
        DONE,
    ]
    async with harness(home, workspace, script) as stage:
        box.append(stage)
        events = await stage.turn("Set it.")
        arrays = [body[: body.index(b'"messages"')] for body in stage.provider.requests]
    first, second, refused, third, run = results(events)
    assert NAME in first.content and NAME not in second.content and NAME in third.content
    assert not refused.ok and "It came from weather, which is not connected any more." in refused.content
    assert run.ok and run.content == "set by version 2"
    assert len(set(arrays[1:])) == 1


def test_rows_that_cannot_be_taken_are_named_with_why() -> None:
    def row(name: str, parameters: Any = PARAMETERS) -> ToolSpec:
        return ToolSpec(name, "", "", parameters, (Effect.READS,))

    def refs(count: int) -> dict[str, Any]:
        parts = {f"p{n}": {"allOf": [{"$ref": f"#/$defs/p{n + 1}"}] * 2} for n in range(count)}
        return {"type": "object", "properties": {"a": {"$ref": "#/$defs/p0"}}, "$defs": {**parts, f"p{count}": {}}}

    deep: dict[str, Any] = {"type": "string"}
    for _ in range(70):
        deep = {"type": "array", "items": deep}
    rows = {
        "far": {"type": "object", "properties": {"a": {"$ref": "https://example.com/schema.json"}}},
        "file": {"type": "object", "properties": {"a": {"$ref": "file:///etc/passwd"}}},
        "deep": {"type": "object", "properties": {"a": deep}},
        "long": {"type": "object", "properties": {"a": {"description": "x" * 40_000}}},
        "many": refs(20),
        "chain": {
            "type": "object",
            "properties": {"a": {"$ref": "#/$defs/p0"}},
            "$defs": {f"p{n}": {"$ref": f"#/$defs/p{n + 1}"} for n in range(700)} | {"p700": {}},
        },
        "none": {"type": "object", "properties": {"a": {"$ref": "#/$defs/nothing"}}},
        "odd": {"type": "object", "properties": {"a": {"type": "strin"}}},
        "list": {"type": "array"},
    }
    words = {
        "far": "refers to 'https://example.com/schema.json', which is not fetched",
        "file": "refers to 'file:///etc/passwd', which is not fetched",
        "deep": "nested more than 64 deep",
        "long": "at most 32,768 are taken",
        "many": "unfold to more than 20,000 parts",
        "chain": "unfold to more than 20,000 parts",
        "none": "not valid",
        "odd": "not valid at properties.a.type",
        "list": "must be `object`",
        "read_file": "one of our own",
        "Exec-Shell": "one of our own",
        "todo_write": "one of our own",
        "agent_spawn": "one of our own",
        "a b": "letters, digits",
        "twice": "two tools of this name",
        "other_tool": "another source",
    }
    tools = Catalog.load()
    bind = source([]).bind
    assert tools.register(ToolSource("other", (row("other_tool"),), bind)) == {}
    own = [
        row(name)
        for name in ("read_file", "Exec-Shell", "todo_write", "agent_spawn", "a b", "twice", "twice", "other_tool")
    ]
    left_out = tools.register(ToolSource("bad", (*(row(name, one) for name, one in rows.items()), *own), bind))
    assert {name: words[name] in why for name, why in left_out.items()} == dict.fromkeys(words, True), left_out
    assert tools.spec("twice") is not None and tools.head == Catalog.load().head
