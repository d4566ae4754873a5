"""Does the next call that an error suggests really work? Runs it the way a model would: by name, from JSON."""

import json
from typing import Any

import msgspec

from codewhale.protocol.errors import NextCall, ToolError
from codewhale.protocol.modes import Mode
from codewhale.protocol.tools import CallContext, ToolResult
from codewhale.tools.base import Args, BoundTool

ASKS = ("request_user_input",)


def context(workspace: str, session: str = "s") -> CallContext:
    """A call's surroundings for a test."""
    return CallContext("call_1", session, workspace, Mode.AGENT, lambda text: None, lambda: False)


def arguments(tool: BoundTool, values: dict[str, Any]) -> Args:
    """An argument struct from JSON-able values, bounds and unknown fields checked."""
    return msgspec.convert(json.loads(json.dumps(values)), type=tool.args)


async def invoke(tools: dict[str, BoundTool], workspace: str, name: str, /, **values: Any) -> ToolResult:
    """Call a tool by name."""
    return await tools[name].run(arguments(tools[name], values), context(workspace))


async def run_fix(tools: dict[str, BoundTool], workspace: str, error: ToolError) -> ToolResult | None:
    """Execute the error's fix literally; None when it asks a person. Fails where there is no fix, where it names
    no tool, or where it does not succeed."""
    fix: NextCall | None = error.fix
    if fix is None or fix.name in ASKS:
        return None
    assert fix.name in tools, f"the fix names {fix.name}"
    try:
        result = await invoke(tools, workspace, fix.name, **fix.arguments)
    except ToolError as second:
        raise AssertionError(f"the fix {fix} of {error.message!r} fails: {second.message}")
    assert result.ok, f"the fix {fix} of {error.message!r} fails: {result.content}"
    return result


async def refused(tools: dict[str, BoundTool], workspace: str, name: str, /, **values: Any) -> ToolError:
    """The error a call raises, once its parts are there and its fix was seen to work."""
    try:
        result = await invoke(tools, workspace, name, **values)
    except ToolError as error:
        assert error.message and error.expected and error.field, error.message
        await run_fix(tools, workspace, error)
        return error
    raise AssertionError(f"{name} was not refused: {result.content[:300]}")
