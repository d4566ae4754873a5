"""Reading a kept value in parts: what a result gave as a handle, never more than asked for."""

import asyncio
from collections.abc import Callable, Mapping
from typing import Annotated, Any

from msgspec import Struct

from codewhale.lib.jsontext import pretty
from codewhale.process.artifacts import ArtifactStore
from codewhale.protocol.errors import Corrected, Look, NextCall, ToolError
from codewhale.protocol.handles import PREVIEW, VarHandle
from codewhale.protocol.tools import CallContext, Effect, Origin, ToolResult
from codewhale.rlm.handles import find_value
from codewhale.rlm.projections import MOST_SHOWN, PATH_CHARS, SHOWN, KeptValue, ProjectionError, Unit
from codewhale.tools.base import Args, Doc, tool

_PROJECTIONS = ("slice", "range", "count", "jsonpath", "introspect")
_USAGE = (
    'exactly one of {"slice": {"start": 0, "end": 2000}}, {"range": {"start": 1, "end": 50}}, {"count": true}, '
    '{"jsonpath": "$.items[0]"}, {"introspect": true}'
)
Written = Annotated[str, Doc("The handle: session_id/name, as a result gave it.", min_length=1, max_length=300)]


class TextSlice(Struct, frozen=True, forbid_unknown_fields=True):
    """From start, 0 is the first, to before end."""

    start: Annotated[int, Doc("The first, from 0.", ge=0)] = 0
    end: Annotated[int, Doc("The one behind the last; left out: to the end.", ge=0)] | None = None
    unit: Annotated[Unit, Doc("chars (default) or lines.")] = "chars"


class LineRange(Struct, frozen=True, forbid_unknown_fields=True):
    """Lines, both included."""

    start: Annotated[int, Doc("The first line, from 1.", ge=1)]
    end: Annotated[int, Doc("The last line.", ge=1)]


class HandleRead(Args, frozen=True):
    """Which value, and what of it."""

    handle: Written
    sha256: Annotated[str, Doc("The handle's sha256, to be sure that it is that value.")] | None = None
    slice: Annotated[TextSlice, Doc("A part of its text: {start, end, unit}.")] | None = None
    range: Annotated[LineRange, Doc("Lines of its text, from 1, both included: {start, end}.")] | None = None
    count: Annotated[bool, Doc("true: how many characters, lines, bytes, members.")] | None = None
    jsonpath: (
        Annotated[str, Doc("RFC 9535, of a value that is no text: $.items[0].name", max_length=PATH_CHARS)] | None
    ) = None
    introspect: Annotated[bool, Doc("true: what it is and how it can be read.")] | None = None
    max_chars: Annotated[int, Doc("Most characters to return.", ge=1, le=MOST_SHOWN)] = SHOWN


class HandleTools:
    """The tool that reads handles. `values` gives those of a conversation under session_id/name; `transcript` that of
    a sub-agent, by conversation and its id; `of_task` the sha256 of an artifact of a durable task, "" for none."""

    def __init__(
        self,
        artifacts: ArtifactStore,
        values: Callable[[str], Mapping[str, VarHandle]],
        transcript: Callable[[str, str], str | None],
        of_task: Callable[[str, str], str],
    ) -> None:
        self._artifacts = artifacts
        self._values = values
        self._transcript = transcript
        self._of_task = of_task

    @tool("handle_read", effects={Effect.READS}, parallel=True, fetches=True)
    async def handle_read(self, args: HandleRead, call: CallContext) -> ToolResult:
        """Read part of a value that a result kept as a var_handle (rlm_eval's final and output, a sub-agent's
        transcript, an artifact of a durable task as task_id/name). Give one of slice, range, count, jsonpath; none, or
        introspect, says what it is and how to read it. Example: {"handle":
        "rlm:0123456789ab/final_0", "slice": {"start": 0, "end": 2000}}; for JSON {"handle":
        "rlm:0123456789ab/final_0", "jsonpath": "$[?@.ok == false].name"}. Returns at most max_chars (12000) and what
        was left out; meta.next_start says where to go on.
        """
        asked = [name for name in _PROJECTIONS if getattr(args, name) not in (None, False)]
        value = await asyncio.to_thread(self._value, args, call.session)
        if len(asked) > 1:
            raise _one_projection(args, asked)
        way = asked[0] if asked else "introspect"
        try:
            row = await asyncio.to_thread(_projected, value, way, args)
        except ProjectionError as error:
            raise ToolError(
                "invalid_input", str(error), field=way, expected=_USAGE, received=repr(getattr(args, way)),
                fix=NextCall("handle_read", {"handle": args.handle, "introspect": True}),
            ) from None  # fmt: skip
        handle = f"{value.handle.session_id}/{value.handle.name}"
        return ToolResult(pretty({"handle": handle, "projection": way, **row}), origin=Origin.WORKSPACE)

    def _value(self, args: HandleRead, session: str) -> KeptValue:
        name = args.handle.strip()
        values = self._values(session)
        handle = find_value(values, session, name)
        if handle is None and name.startswith("agent:") and name.endswith("/transcript"):
            return self._of_agent(args, session, name)
        if handle is None and name.startswith("task_"):
            handle = self._artifact(name)
        if handle is None:
            raise self._unknown(name, values)
        if args.sha256 and args.sha256 != handle.sha256:
            raise ToolError(
                "invalid_input", f"{name} has another sha256: {handle.sha256}. Leave sha256 out, or give this one.",
                field="sha256", expected=handle.sha256, received=args.sha256,
                fix=Corrected({**_given(args), "sha256": handle.sha256}),
            )  # fmt: skip
        try:
            return KeptValue(handle, self._artifacts.get(handle.sha256))
        except KeyError:
            why = f"What {name} stood for is not kept any more (artifacts/{handle.sha256})."
            raise ToolError("not_available", f"{why} Make the value again.", field="handle") from None
        except ProjectionError as error:
            raise ToolError("execution_failed", str(error), field="handle") from None

    def _artifact(self, name: str) -> VarHandle | None:
        """The handle of an artifact of a durable task, as text."""
        task, _, base = name.partition("/")
        sha = self._of_task(task, base) if base else ""
        try:
            text = self._artifacts.get(sha).decode("utf-8", "replace") if sha else ""
        except KeyError:
            return None
        return VarHandle(task, base, "str", len(text), text[:PREVIEW], sha) if sha else None

    def _of_agent(self, args: HandleRead, session: str, name: str) -> KeptValue:
        place, _, base = name.rpartition("/")
        text = self._transcript(session, place.removeprefix("agent:"))
        if text is None:
            raise self._unknown(name, self._values(session))
        handle = VarHandle(place, base, "str", len(text), text[:PREVIEW], "")
        return KeptValue(handle, text.encode("utf-8", "replace"))

    def _unknown(self, name: str, values: Mapping[str, VarHandle]) -> ToolError:
        last = next(reversed(list(values)), "")
        known = f"The last one of this conversation is {last}." if last else "This conversation has kept no value."
        if name.startswith(("art_", "sha", "call_")) or name.endswith(".txt"):
            known = "That is a kept tool output: read it with retrieve_tool_result, its handle as ref."
        fix: NextCall | Look | None = NextCall("handle_read", {"handle": last, "introspect": True}) if last else None
        if name.startswith("task_"):
            known, fix = "task_read names what a durable task has kept; each is task_id/name.", Look("task_list", {})
        return ToolError(
            "invalid_input", f"There is no value {name!r}. {known}", field="handle",
            expected="session_id/name of a handle that a result gave", received=repr(name), fix=fix,
        )  # fmt: skip


def _projected(value: KeptValue, name: str, args: HandleRead) -> dict[str, Any]:
    if args.slice is not None and name == "slice":
        part = args.slice
        if part.end is not None and part.end < part.start:
            raise ProjectionError(f"The slice ends at {part.end}, before it begins at {part.start}.")
        return value.slice(part.start, part.end, part.unit, args.max_chars)
    if args.range is not None and name == "range":
        if args.range.end < args.range.start:
            raise ProjectionError(f"The range ends at line {args.range.end}, before its start {args.range.start}.")
        return value.range(args.range.start, args.range.end, args.max_chars)
    if args.jsonpath is not None and name == "jsonpath":
        return value.select(args.jsonpath, args.max_chars)
    return value.count() if name == "count" else value.introspect()


def _one_projection(args: HandleRead, asked: list[str]) -> ToolError:
    which = " and ".join(asked)
    return ToolError(
        "invalid_input",
        f"Give one projection; got {which}.",
        field=asked[1],
        expected=_USAGE,
        received=which,
        fix=NextCall("handle_read", {"handle": args.handle, "introspect": True}),
    )


def _given(args: HandleRead) -> dict[str, Any]:
    return {name: given for name in ("handle", "sha256") if (given := getattr(args, name)) is not None}
