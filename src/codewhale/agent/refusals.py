"""What a call that may not run is answered with besides the reason: what was wanted, what came, and the same call made
right where there is one."""

import os
from collections.abc import Callable, Sequence

from codewhale.agent.alternatives import alternative, elsewhere
from codewhale.agent.guard import block
from codewhale.agent.pending_call import PendingCall
from codewhale.catalog.schema import fits
from codewhale.lib.text import one_line
from codewhale.protocol.errors import Look, NextCall, ToolError
from codewhale.protocol.events import CallFinished, Event, Notice
from codewhale.protocol.messages import ToolCall
from codewhale.protocol.tools import Effect, ToolResult
from codewhale.session.outputs import error_metadata

_WANTED = {
    "invalid_input": "arguments that fit",
    "missing_field": "every required argument",
    "path_escape": "a path inside the workspace",
    "execution_failed": "a call that can succeed now",
    "timeout": "a call that ends in time",
    "not_available": "a call of what is here",
    "permission_denied": "a call that is allowed here",
}
# What a sub-agent that was refused a call can go on with.
_LOOKS = (Look("list_dir", {"path": "."}), Look("git_status", {}), Look("checklist_list", {}))
_DOES = {Effect.WRITES: "writes", Effect.EXECUTES: "runs a program", Effect.NETWORK: "uses the network"}


def denied(
    error: ToolError, call: PendingCall, allowed: Callable[[str], bool], scoped: str = "", rule: str = ""
) -> ToolError:
    """The refusal with all its parts. `allowed` tells whether a tool that only reads may be called; `scoped` is the
    workspace where it is the session's role that refuses: there is something else to go on with; `rule` is what
    refused."""
    spec = call.spec
    if spec is None:
        return error
    look = elsewhere(call.arguments) if rule.startswith("network.") else alternative(call.arguments)
    if look is None and scoped:
        path = call.arguments.get("path")
        there = isinstance(path, str) and os.path.isfile(os.path.join(scoped, path))
        looks = [Look("read_file", {"path": path})] if there else []
        look = next((one for one in (*looks, *_LOOKS) if allowed(one.name)), None)
    if look is not None and allowed(look.name):
        error.look = error.look or look
    does = " and ".join(said for effect, said in _DOES.items() if effect in spec.effects) or "reads"
    error.expected = error.expected or "a call that is allowed here"
    error.received = error.received or f"{spec.name}, which {does}"
    return error


def completed(error: ToolError, call: PendingCall) -> ToolError:
    """The error of a call with all its parts; what its tool did not say is said of its kind."""
    spec, correction = call.spec, error.correction
    if spec is not None and correction is not None and (correction.sure or spec.effects == (Effect.READS,)):
        arguments = {**call.arguments, **correction.arguments}
        if fits(arguments, spec.parameters):
            error.fix = NextCall(spec.name, arguments)
    error.expected = error.expected or _WANTED[error.kind]
    if not error.received and not error.field:
        error.received = one_line(f"{call.name} {call.call.sent_arguments}", 160)
    return error


def unless_gone(error: ToolError, workspace: str) -> ToolError:
    """The error of a call; where the workspace itself is no more, that, for no other call can do better."""
    if os.path.isdir(workspace):
        return error
    return ToolError(
        "not_available",
        f"The workspace {workspace} is gone: it was deleted or moved while this session ran. Nothing in it can be read "
        "or written, and no program can run in it. Tell the user and end your turn.",
        expected="a workspace that is there",
        received=workspace,
    )


def repeated(tool: str, count: int) -> ToolResult:
    """The answer to a call that is not run any more because it goes round in circles."""
    error = ToolError(
        "not_available",
        block(tool, count),
        expected="another call, or the answer",
        received=f"{tool} with the same arguments {count} times",
    )
    return ToolResult(block(tool, count), ok=False, metadata=error_metadata(error), error=error.kind)


def beyond(calls: Sequence[ToolCall], most: int) -> tuple[Event, ...]:
    """The results of calls that stood behind the `most` of one answer that run, and a line for the person."""
    text = (
        f"Error (not_available): not run. At most {most} calls of one answer run, and this answer held "
        f"{most + len(calls):,}. Send what is still needed in your next answer."
    )
    told = Notice(
        "warning", f"The model sent {most + len(calls):,} calls in one answer; the first {most} ran.", "calls"
    )
    return (*(CallFinished(call.id, call.sent_name, False, text, error="not_available") for call in calls), told)
