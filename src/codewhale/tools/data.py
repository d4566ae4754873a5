"""Checking data files: does this JSON or TOML parse, and where does it not."""

import asyncio
from typing import Annotated, Any, Literal

import msgspec

from codewhale.lib.jsontext import pretty
from codewhale.lib.text import one_line
from codewhale.process.isolated import AT_ONCE, MEMORY, NO_MEMORY, SECONDS, IsolatedWork
from codewhale.protocol.errors import ErrorKind, NextCall, ToolError
from codewhale.protocol.tools import CallContext, Effect, PathSubject, Subject, ToolResult
from codewhale.tools.base import Args, Doc, tool
from codewhale.workspace.files import Workspaces

LIMIT = 16 * 1024 * 1024
_MODULE = "codewhale.workspace.dataformats"


class ValidateData(Args, frozen=True):
    """What to check."""

    path: Annotated[str, Doc("File to check, relative to the workspace. Give this or content.")] | None = None
    content: Annotated[str, Doc("Text to check. Give this or path.")] | None = None
    format: Annotated[
        Literal["auto", "json", "toml"],
        Doc("auto goes by the file's ending, else by what parses."),
    ] = "auto"


def _subjects(args: ValidateData) -> tuple[Subject, ...]:
    return (PathSubject(args.path),) if args.path is not None else ()


class DataTools:
    """The tool that checks structured data."""

    def __init__(self, workspaces: Workspaces) -> None:
        self._workspaces = workspaces
        self._judging = asyncio.Semaphore(AT_ONCE)

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
            read = self._workspaces.of(call).read
            data = (await asyncio.to_thread(read, args.path, "", LIMIT)).data
        else:
            data = (args.content or "").encode("utf-8", "surrogatepass")
        async with self._judging:
            verdict = await _judged(data, args)
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


async def _judged(data: bytes, args: ValidateData) -> dict[str, Any]:
    """The verdict of a process of its own: what a file holds may keep a parser busy for hours, or take all memory."""
    source = args.path if args.path is not None else "content"
    done = await IsolatedWork(_MODULE, data, (source, args.format)).do()
    if done.timed_out:
        raise _too_much(args, "timeout", f"more than {SECONDS:g} seconds")
    if done.exit_code != 0:
        lacks = done.exit_code == NO_MEMORY
        raise _too_much(args, "execution_failed", f"more than {MEMORY >> 20} MB of memory" if lacks else "too much")
    return msgspec.json.decode(done.stdout, type=dict[str, Any])


def _too_much(args: ValidateData, kind: ErrorKind, what: str) -> ToolError:
    name = args.path if args.path is not None else "content"
    return ToolError(
        kind,
        f"Parsing {one_line(name)} takes {what}: it is too large or nested too deeply to be checked here",
        field="content" if args.path is None else "path",
        expected="data of an ordinary size and depth",
        received=one_line(name),
    )
