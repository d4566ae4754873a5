"""Checking data files: does this JSON or TOML parse, and where does it not."""

import asyncio
import re
from collections.abc import Callable
from typing import Annotated, Any, Literal

from msgspec import Struct

from codewhale.lib.jsontext import pretty
from codewhale.protocol.errors import NextCall, ToolError
from codewhale.protocol.tools import CallContext, Effect, PathSubject, Subject, ToolResult
from codewhale.services.workspace import Workspaces
from codewhale.tools.base import Args, Doc, tool

Format = Literal["json", "toml"]
LIMIT = 16 * 1024 * 1024
_TOML_PLACE = re.compile(r"\(at (?:line (\d+), column (\d+)|end of document)\)")


class ValidateData(Args, frozen=True):
    """What to check."""

    path: Annotated[str, Doc("File to check, relative to the workspace. Give this or content.")] | None = None
    content: Annotated[str, Doc("Text to check. Give this or path.")] | None = None
    format: Annotated[
        Literal["auto", "json", "toml"],
        Doc("auto goes by the file's ending, else by what parses."),
    ] = "auto"


class Fault(Struct, frozen=True):
    """Why text does not parse; `line` and `column` count from 1, 0 when unknown."""

    message: str
    line: int = 0
    column: int = 0


def _subjects(args: ValidateData) -> tuple[Subject, ...]:
    return (PathSubject(args.path),) if args.path is not None else ()


class DataTools:
    """The tool that checks structured data."""

    def __init__(self, workspaces: Workspaces) -> None:
        self._workspaces = workspaces

    @tool("validate_data", effects={Effect.READS}, subjects=_subjects, parallel=True)
    async def validate_data(self, args: ValidateData, call: CallContext) -> ToolResult:
        """Check that JSON or TOML parses: a file (path) or a text (content), exactly one of the two. Use it after
        you have edited a configuration or data file. Strict: no comments or trailing commas in JSON. Up to 16 MiB.
        Returns JSON: valid, format, source and a summary of the top level, or when invalid an error with its
        message, line, column and that line's text.
        """
        if (args.path is None) == (args.content is None):
            raise _one_of_two(args)
        if args.path is not None:
            read = self._workspaces.at(call.workspace).read
            data = (await asyncio.to_thread(read, args.path, "", LIMIT)).data
        else:
            data = (args.content or "").encode("utf-8", "surrogatepass")
        verdict = await asyncio.to_thread(_judge, data, args)
        return ToolResult(pretty(verdict), ok=verdict["valid"], metadata=verdict)


def _one_of_two(args: ValidateData) -> ToolError:
    both = args.path is not None
    fix = NextCall("validate_data", {"content": args.content}) if both else None
    return ToolError(
        "invalid_input",
        "Give exactly one of `path` and `content`; got " + ("both." if both else "neither."),
        field="path",
        expected="path or content",
        received="both" if both else "neither",
        fix=fix,
    )


def _judge(data: bytes, args: ValidateData) -> dict[str, Any]:
    source = args.path if args.path is not None else "content"
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        fault = Fault(f"not UTF-8: byte 0x{data[error.start]:02x} at offset {error.start}", line)
        kind = _by_name(source) if args.format == "auto" else args.format
        return _invalid(kind or "json", source, "", fault)
    kinds: list[Format] = [args.format] if args.format != "auto" else _candidates(source, text)
    faults = []
    for kind in kinds:
        found = _PARSERS[kind](text)
        if not isinstance(found, Fault):
            return {"valid": True, "format": kind, "source": source, "summary": _summary(found[0])}
        faults.append((kind, found))
    return _invalid(faults[0][0], source, text, faults[0][1])


def _by_name(source: str) -> Format | None:
    name = source.lower()
    if name.endswith((".toml", "pipfile", "cargo.lock", "poetry.lock", "uv.lock")):
        return "toml"
    return "json" if name.endswith((".json", ".webmanifest", ".ipynb", ".geojson", ".har")) else None


def _candidates(source: str, text: str) -> list[Format]:
    """What to try, the likelier first; its fault is the one told."""
    named = _by_name(source)
    if named is not None:
        return [named]
    start = text.lstrip()
    table = re.match(r"\[\[?\s*[\w\"'.-]+\s*\]\]?\s*(#.*)?$", start, re.MULTILINE)
    assignment = re.search(r"^\s*[\w.\"'-]+\s*=", text, re.MULTILINE)
    likely_toml = not start.startswith(("{", '"')) and (table or assignment)
    return ["toml", "json"] if likely_toml else ["json", "toml"]


def _json(text: str) -> tuple[Any] | Fault:
    import json

    def constant(word: str) -> None:
        raise ValueError(f"{word} is not JSON")

    try:
        # Numbers are not converted: one of a million digits is still valid.
        return (json.loads(text, parse_constant=constant, parse_int=_number, parse_float=_number),)
    except json.JSONDecodeError as error:
        return Fault(error.msg, error.lineno, error.colno)
    except (ValueError, RecursionError) as error:
        return Fault("nested too deeply" if isinstance(error, RecursionError) else str(error))


def _toml(text: str) -> tuple[Any] | Fault:
    import tomllib

    try:
        return (tomllib.loads(text),)
    except (ValueError, RecursionError) as error:
        if isinstance(error, RecursionError):
            return Fault("nested too deeply")
        place = _TOML_PLACE.search(str(error))
        message = _TOML_PLACE.sub("", str(error)).strip()
        if place is None:
            return Fault(message)
        if place[1] is None:
            lines = text.split("\n")
            return Fault(f"{message} at the end", len(lines), len(lines[-1]) + 1)
        return Fault(message, int(place[1]), int(place[2]))


_PARSERS: dict[Format, Callable[[str], tuple[Any] | Fault]] = {"json": _json, "toml": _toml}


def _number(_: str) -> int:
    return 0


def _summary(value: Any) -> str:
    if isinstance(value, dict):
        keys = ", ".join(str(key) for key in list(value)[:20])
        more = f" and {len(value) - 20} more" if len(value) > 20 else ""
        return f"object with {len(value)} keys" + (f": {keys}{more}" if keys else "")
    if isinstance(value, list):
        kinds = sorted({_kind(item) for item in value})
        return f"array of {len(value)} items" + (f" ({', '.join(kinds)})" if kinds else "")
    return _kind(value)


def _kind(value: Any) -> str:
    if value is None:
        return "null"
    names = {bool: "boolean", int: "number", float: "number", str: "string", list: "array", dict: "object"}
    return names.get(type(value), "date or time")


def _invalid(kind: Format, source: str, text: str, fault: Fault) -> dict[str, Any]:
    error: dict[str, Any] = {"message": fault.message}
    if fault.line:
        error["line"] = fault.line
        error["column"] = fault.column
        lines = text.split("\n")
        if fault.line <= len(lines):
            error["text"] = lines[fault.line - 1][:200]
    where = f" at line {fault.line}, column {fault.column}" if fault.line else ""
    summary = f"not valid {kind.upper()}: {fault.message}{where}"
    return {"valid": False, "format": kind, "source": source, "summary": summary, "error": error}
