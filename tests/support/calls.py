"""Calling a tool the way dispatch does: JSON arguments in, result out, every suggested next call made good."""

import asyncio
from typing import Any

import msgspec

from codewhale.protocol.errors import ToolError
from codewhale.protocol.modes import Mode
from codewhale.protocol.tools import CallContext, ToolResult
from codewhale.tools.base import bound


def context(workspace: object = "/nowhere", *, session: str = "s", mode: Mode = Mode.AGENT) -> CallContext:
    """The surroundings of a call."""
    return CallContext("call_1", session, str(workspace), mode, lambda text: None, lambda: False)


def call(family: object, name: str, arguments: dict[str, Any], at: CallContext | None = None) -> ToolResult:
    """The tool's result; ToolError and msgspec.ValidationError pass."""
    tool = bound(family)[name]
    args = msgspec.convert(arguments, tool.args, strict=True)
    return asyncio.run(tool.run(args, at or context()))  # type: ignore[arg-type]


def refused(family: object, name: str, arguments: dict[str, Any], at: CallContext | None = None) -> ToolError:
    """The error of a call that must fail; it says what was wanted and where."""
    try:
        result = call(family, name, arguments, at)
    except ToolError as error:
        assert error.field
        assert error.expected
        assert error.received
        assert error.fix is None or error.fix.name == name
        return error
    raise AssertionError(f"{name} {arguments} was not refused: {result.content}")


def payload(result: ToolResult) -> Any:
    """The JSON in a result's content, after its sentence if it has one."""
    return msgspec.json.decode(result.content[result.content.index("{") :].encode())
