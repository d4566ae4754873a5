"""What may be done instead of a call that is not allowed. Pure."""

import re
import shlex
from collections.abc import Iterator
from typing import Any

from codewhale.protocol.errors import NextCall
from codewhale.protocol.modes import Authority
from codewhale.protocol.tools import ToolSpec

LOOK = NextCall("list_dir", {"path": "."})
# A command line with any of these does more than one plain thing.
_MORE = re.compile(r"[|&;<>$`(){}*?\n\\~]")
_GIT = {"status": "git_status", "diff": "git_diff", "log": "git_log"}


def instead(spec: ToolSpec, arguments: dict[str, Any], authority: Authority) -> Iterator[NextCall]:
    """Calls to make in place of one that is not allowed, the best first: a look at the same thing, a question to the
    person where there is one, the tool's own rescue. None of them changes anything."""
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
    yield LOOK


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
    plain = [word for word in words if not word.startswith("-")]
    if any(word.startswith("/") or ".." in word.split("/") for word in plain[1:]):
        return None
    match plain:
        case ["ls" | "dir"] | ["pwd"]:
            return LOOK
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
