"""Does the next call that an error suggests really work? Runs it the way a model would: by name, from JSON."""

import json
from typing import Any

import msgspec

from codewhale.protocol.errors import Look, NextCall, ToolError
from codewhale.protocol.modes import Mode
from codewhale.protocol.tools import CallContext, Effect, ToolResult
from codewhale.tools.base import Args, BoundTool


def context(workspace: str, session: str = "s") -> CallContext:
    """A call's surroundings for a test."""
    return CallContext("call_1", session, workspace, Mode.AGENT, lambda text: None, lambda: False)


def arguments(tool: BoundTool, values: dict[str, Any]) -> Args:
    """An argument struct from JSON-able values, bounds and unknown fields checked."""
    return msgspec.convert(json.loads(json.dumps(values)), type=tool.args)


async def invoke(tools: dict[str, BoundTool], workspace: str, name: str, /, **values: Any) -> ToolResult:
    """Call a tool by name."""
    return await tools[name].run(arguments(tools[name], values), context(workspace))


async def run_fix(
    tools: dict[str, BoundTool], workspace: str, error: ToolError, name: str = "", given: dict[str, Any] | None = None
) -> ToolResult | None:
    """Execute the error's fix literally, the look it suggests too; None where there is no fix. Fails where the fix is
    of another tool than the one `name` that was called with `given`, and where it does not succeed."""
    fix: NextCall | Look | None = error.fix
    sure = error.correction is not None and (error.correction.sure or tools[name].decl.effects == (Effect.READS,))
    if fix is None and sure and error.correction is not None and given is not None:
        fix = NextCall(name, {**given, **error.correction.arguments})
    assert fix is None or fix.name == (name or fix.name), f"the fix names {fix.name}"
    if fix is None:
        fix = error.look if error.look is not None and error.look.name in tools else None
    if fix is None:
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
        await run_fix(tools, workspace, error, name, values)
        return error
    raise AssertionError(f"{name} was not refused: {result.content[:300]}")
