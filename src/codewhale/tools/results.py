"""Reading back what was too long to show: kept tool outputs, by handle, in slices."""

import asyncio
import os
import re
from typing import Annotated, Any, Literal

from codewhale.lib.jsontext import pretty
from codewhale.process.artifacts import ArtifactStore
from codewhale.protocol.errors import NextCall, ToolError
from codewhale.protocol.tools import CallContext, Effect, ToolResult
from codewhale.tools.base import Args, Doc, tool

DEFAULT_LINES, DEFAULT_BYTES, DEFAULT_MATCHES, DEFAULT_CONTEXT = 40, 8_192, 20, 1
SIGNAL_LIMIT, SIGNAL_WIDTH = 40, 300
_SIGNAL = re.compile(
    r"error|failed|failure|panic|warning|exception|traceback|assertion|exit code|test result|thread '", re.IGNORECASE
)
_HEX = re.compile(r"[0-9a-f]{8,64}")
_FORMS = "art_<16 hex digits>, a call id, sha:<64 hex digits>, tool_result:<any of these>, artifacts/<sha>"


class RetrieveToolResult(Args, frozen=True):
    """Which kept output, and what of it."""

    ref: Annotated[
        str, Doc("The handle a cut result named: art_<id>, a call id, or sha:<64 hex digits>.", min_length=1)
    ]
    mode: (
        Annotated[
            Literal["summary", "head", "tail", "lines", "query"],
            Doc("Default summary; query when query is given, lines when lines or start_line is."),
        ]
        | None
    ) = None
    query: Annotated[str, Doc("For mode query: text to find, in any case; no pattern.", min_length=1)] | None = None
    lines: Annotated[str, Doc('For mode lines: "N" or "N-M", from 1.', pattern=r"^\s*\d+\s*(-\s*\d+\s*)?$")] | None = (
        None
    )
    start_line: Annotated[int, Doc("For mode lines: the first line.", ge=1)] | None = None
    end_line: Annotated[int, Doc("For mode lines: the last line.", ge=1)] | None = None
    line_count: Annotated[int, Doc("Lines for head and tail.", ge=1, le=500)] = DEFAULT_LINES
    max_bytes: Annotated[int, Doc("Most bytes of text to return.", ge=1, le=131_072)] = DEFAULT_BYTES
    max_matches: Annotated[int, Doc("Most matches for query.", ge=1, le=100)] = DEFAULT_MATCHES
    context_lines: Annotated[int, Doc("Lines around each match.", ge=0, le=5)] = DEFAULT_CONTEXT


class ResultTools:
    """The tool that reads kept outputs."""

    def __init__(self, artifacts: ArtifactStore) -> None:
        self._artifacts = artifacts

    @tool("retrieve_tool_result", effects={Effect.READS}, parallel=True, fetches=True)
    async def retrieve_tool_result(self, args: RetrieveToolResult, call: CallContext) -> ToolResult:
        """Read a tool output that was too long to show whole, by the handle in its cut result (art_...). Modes:
        summary (sizes, lines that look like errors, head and tail), head, tail, lines (a range), query (lines
        holding a text, with their surroundings). Text comes as "N: line". Returns JSON: ref, path, mode and what
        the mode gives; next_start_line is there when a range was cut at max_bytes (8192 unless given). Narrow by
        query or lines instead of raising max_bytes.
        """
        mode = args.mode or _implied(args)
        if mode == "query" and not args.query:
            raise _needs(args, "query", "the text to find")
        sha = self._find(args.ref, call.session)
        try:
            data = await asyncio.to_thread(self._artifacts.get, sha)
        except KeyError:
            raise self._missing(args.ref, call.session, [f"artifacts/{sha} (no longer whole)"]) from None
        found = await asyncio.to_thread(_view, mode, data, args)
        return ToolResult(pretty({"ref": args.ref, "path": f"artifacts/{sha}", "mode": mode, **found}))

    def _find(self, ref: str, session: str) -> str:
        name = ref.strip()
        name = name.removeprefix("tool_result:").strip()
        tried = []
        known = self._artifacts.recall(session, name)
        tried.append(f"call id {name}")
        if known is not None:
            return known
        digits = _digits(name)
        if _HEX.fullmatch(digits):
            matches = self._artifacts.find(digits)
            tried.append(f"artifacts/{digits}" + ("" if len(digits) == 64 else "*"))
            if len(matches) == 1:
                return matches[0]
            if matches:
                tried[-1] += f" ({len(matches)} artifacts begin so)"
        raise self._missing(ref, session, tried)

    def _missing(self, ref: str, session: str, tried: list[str]) -> ToolError:
        kept = self._artifacts.remembered(session)
        last = f"art_{kept[-1][1][:16]}" if kept else ""
        fix = NextCall("retrieve_tool_result", {"ref": last}) if kept else None
        there = f" The last kept output of this session is {last}." if kept else " This session has kept no output."
        return ToolError(
            "invalid_input",
            f"There is no kept output {ref!r}. Tried: {', '.join(tried)}. Accepted forms: {_FORMS}.{there}",
            field="ref",
            expected=_FORMS,
            received=repr(ref),
            fix=fix,
        )


def _digits(name: str) -> str:
    """The hex digits in a handle: its prefix, folders and ending taken off."""
    name = os.path.basename(name) if "/" in name else name
    name = name.removesuffix(".txt")
    for prefix in ("art_", "sha:", "sha_", "sha256:"):
        name = name.removeprefix(prefix)
    return name.lower()


def _implied(args: RetrieveToolResult) -> str:
    if args.query:
        return "query"
    return "lines" if args.lines or args.start_line or args.end_line else "summary"


def _needs(args: RetrieveToolResult, field: str, what: str) -> ToolError:
    return ToolError(
        "missing_field",
        f"Mode {args.mode} needs `{field}`: {what}.",
        field=field,
        expected=what,
        received="nothing",
    )


def _view(mode: str, data: bytes, args: RetrieveToolResult) -> dict[str, Any]:
    lines = data.decode("utf-8", "replace").split("\n")
    if lines[-1] == "":
        lines.pop()
    if mode == "summary":
        return {"summary": _summary(data, lines, args.max_bytes)}
    if mode == "query":
        return _query(lines, args)
    if mode == "lines":
        return _range(lines, args)
    count = min(args.line_count, len(lines))
    first = 1 if mode == "head" else len(lines) - count + 1
    excerpt, shown = _excerpt(lines, first, first + count - 1, args.max_bytes, from_end=mode == "tail")
    return {"total_lines": len(lines), "line_count": shown, "excerpt": excerpt}


def _summary(data: bytes, lines: list[str], max_bytes: int) -> dict[str, Any]:
    signals = [{"line": n, "text": line[:SIGNAL_WIDTH]} for n, line in enumerate(lines, 1) if _SIGNAL.search(line)]
    head, _ = _excerpt(lines, 1, min(DEFAULT_LINES, len(lines)), max_bytes // 2)
    start = max(len(lines) - DEFAULT_LINES + 1, 1)
    tail, _ = _excerpt(lines, start, len(lines), max_bytes // 2, from_end=True)
    return {
        "total_bytes": len(data),
        "total_lines": len(lines),
        "non_empty_lines": sum(1 for line in lines if line.strip()),
        "signal_lines": signals[:SIGNAL_LIMIT],
        **({"signal_lines_total": len(signals)} if len(signals) > SIGNAL_LIMIT else {}),
        "head": head,
        "tail": tail,
        "hint": 'For more: mode "lines" with lines "N-M", or mode "query" with the text to find.',
    }


def _range(lines: list[str], args: RetrieveToolResult) -> dict[str, Any]:
    first, last = args.start_line or 1, args.end_line
    if args.lines:
        start, _, stop = args.lines.partition("-")
        first, last = int(start), int(stop or start)
    if last is None:
        last = first + args.line_count - 1
    if first > last or first < 1:
        raise ToolError(
            "invalid_input",
            f"The range {first}-{last} is empty: it must go from a line (1 or more) to one not before it.",
            field="lines",
            expected="N-M with 1 <= N <= M",
            received=f"{first}-{last}",
            fix=NextCall("retrieve_tool_result", {"ref": args.ref, "mode": "lines", "lines": f"{max(last, 1)}"}),
        )
    last = min(last, len(lines))
    excerpt, shown = _excerpt(lines, first, last, args.max_bytes)
    end = first + shown - 1
    result = {"total_lines": len(lines), "start_line": first, "end_line": end, "excerpt": excerpt}
    if end < last:
        result["next_start_line"] = end + 1
    if first > len(lines):
        result["note"] = f"Line {first} is after the end: there are {len(lines)} lines."
    return result


def _query(lines: list[str], args: RetrieveToolResult) -> dict[str, Any]:
    wanted = (args.query or "").casefold()
    matched = [n for n, line in enumerate(lines, 1) if wanted in line.casefold()]
    results: list[dict[str, Any]] = []
    room = args.max_bytes
    for n in matched[: args.max_matches]:
        first, last = max(1, n - args.context_lines), min(len(lines), n + args.context_lines)
        excerpt, shown = _excerpt(lines, first, last, room)
        if shown <= last - first:
            if results:
                break
            excerpt, _ = _excerpt(lines, n, n, room)
        room -= len(excerpt.encode())
        results.append({"line": n, "excerpt": excerpt})
    return {
        "query": args.query,
        "total_lines": len(lines),
        "matched_lines": len(matched),
        "matches_returned": len(results),
        "results": results,
    }


def _excerpt(lines: list[str], first: int, last: int, room: int, *, from_end: bool = False) -> tuple[str, int]:
    """Lines `first` to `last` as "N: text" in at most `room` bytes, and how many they are; what does not fit is
    left off at the end (`from_end`: at the beginning). A single line too long for the room is cut."""
    numbers = range(last, first - 1, -1) if from_end else range(first, last + 1)
    taken: list[str] = []
    for n in numbers:
        text = f"{n}: {lines[n - 1]}"
        size = len(text.encode()) + 1
        if size > room and taken:
            break
        if size > room:
            whole = len(text.encode())
            text = text.encode()[: max(room - 40, 0)].decode("utf-8", "ignore")
            taken.append(f"{text} [line cut: {whole} bytes]" if text else "")
            break
        room -= size
        taken.append(text)
    taken = [text for text in taken if text]
    return "\n".join(reversed(taken) if from_end else taken), len(taken)
