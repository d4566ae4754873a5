"""What a call that may not run is answered with besides the reason: what would be allowed, what came, and a next call
that is allowed here: a look at the same thing where there is one, the person where one can be asked."""

import re
import shlex
from collections.abc import Callable, Iterator
from typing import Any

from codewhale.engine.guard import block
from codewhale.engine.outputs import error_metadata
from codewhale.engine.prepare import Prepared
from codewhale.protocol.errors import NextCall, ToolError
from codewhale.protocol.modes import Authority
from codewhale.protocol.tools import Effect, ToolResult, ToolSpec

_DOES = {Effect.WRITES: "writes", Effect.EXECUTES: "runs a program", Effect.NETWORK: "uses the network"}
# A command line with any of these does more than one plain thing.
_MORE = re.compile(r"[|&;<>$`(){}*?\n\\~]")
_GIT = {"status": "git_status", "diff": "git_diff", "log": "git_log"}
_LOOK = NextCall("list_dir", {"path": "."})


def denied(error: ToolError, prepared: Prepared, authority: Authority, allowed: Callable[[str], bool]) -> ToolError:
    """The refusal with all its parts. `allowed` tells whether a tool that only reads may be called."""
    spec = prepared.spec
    if spec is None:
        return error
    if error.fix is None:
        error.fix = _next(spec, prepared.arguments, authority, allowed)
    does = " and ".join(said for effect, said in _DOES.items() if effect in spec.effects) or "reads"
    error.expected = error.expected or f"a call that is allowed here, such as {error.fix.name}"
    error.received = error.received or f"{spec.name}, which {does}"
    return error


def repeated(tool: str, count: int) -> ToolResult:
    """The answer to a call that is not run any more because it goes round in circles."""
    fix = NextCall("checklist_list", {}) if tool == _LOOK.name else _LOOK
    error = ToolError(
        "not_available",
        block(tool, count),
        expected="another call, or the answer",
        received=f"{tool} with the same arguments {count} times",
        fix=fix,
    )
    return ToolResult(block(tool, count), ok=False, metadata=error_metadata(error))


def _next(spec: ToolSpec, arguments: dict[str, Any], authority: Authority, allowed: Callable[[str], bool]) -> NextCall:
    for call in _candidates(spec, arguments, authority):
        if allowed(call.name):
            return call
    return NextCall("checklist_list", {})


def _candidates(spec: ToolSpec, arguments: dict[str, Any], authority: Authority) -> Iterator[NextCall]:
    command, path = arguments.get("command"), arguments.get("path")
    looking = _looking(command) if isinstance(command, str) else None
    if looking is not None:
        yield looking
    if authority is Authority.PERSON:
        yield _question(spec.name)
    if spec.name in ("edit_file", "fim_edit") and isinstance(path, str):
        yield NextCall("read_file", {"path": path})
    if spec.rescue_tool != spec.name:
        yield NextCall(spec.rescue_tool, spec.rescue)
    yield _LOOK


def _question(tool: str) -> NextCall:
    options = [
        {"label": "Go on without it", "description": "The task is done as far as it goes without that call."},
        {"label": "Stop here", "description": "Nothing more is done; what was found so far is told."},
    ]
    asked = {"id": "next", "header": "Not allowed", "question": f"A call of {tool} was not allowed. What now?"}
    return NextCall("request_user_input", {"questions": [{**asked, "options": options}]})


def _looking(command: str) -> NextCall | None:
    """The call that shows what a plain command line would have shown, None for any other."""
    try:
        words = [] if _MORE.search(command) else shlex.split(command)
    except ValueError:
        return None
    match [word for word in words if not word.startswith("-")]:
        case ["ls" | "dir"] | ["pwd"]:
            return _LOOK
        case ["ls" | "dir", path]:
            return NextCall("list_dir", {"path": path})
        case ["cat" | "less" | "more" | "nl", path]:
            return NextCall("read_file", {"path": path})
        case ["grep" | "rg", pattern] if pattern:
            return NextCall("grep_files", {"pattern": pattern})
        case ["grep" | "rg", pattern, path] if pattern:
            return NextCall("grep_files", {"pattern": pattern, "path": path})
        case ["git", "status" | "diff" | "log" as verb]:
            return NextCall(_GIT[verb], {})
        case _:
            return None
