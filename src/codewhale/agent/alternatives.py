"""What shows the same as a command line or an address that is not allowed. Pure."""

import shlex
from collections.abc import Mapping

from codewhale.lib.patterns import lazy
from codewhale.protocol.errors import Look

# A command line with any of these does more than one plain thing.
_MORE = lazy(r"[|&;<>$`(){}*?\n\\~]")
_GIT = {"status": "git_status", "diff": "git_diff", "log": "git_log"}


def elsewhere(arguments: Mapping[str, object]) -> Look | None:
    """What may find what stands at an address that may not be read."""
    url = arguments.get("url")
    if not isinstance(url, str) or not url:
        return None
    if url.startswith("file:"):
        return Look("file_search", {"query": url.rstrip("/").rpartition("/")[2] or "."})
    return Look.of_address(url)


def alternative(arguments: Mapping[str, object]) -> Look | None:
    """The call of a tool that only reads and shows what a plain command line would have shown, None for any other."""
    command = arguments.get("command")
    try:
        words = [] if not isinstance(command, str) or _MORE().search(command) else shlex.split(command)
    except ValueError:
        return None
    plain = [word for word in words if not word.startswith("-")]
    if any(word.startswith("/") or ".." in word.split("/") for word in plain[1:]):
        return None
    match plain:
        case ["ls" | "dir"] | ["pwd"]:
            return Look("list_dir", {"path": "."})
        case ["ls" | "dir", path]:
            return Look("list_dir", {"path": path})
        case ["cat" | "less" | "more" | "nl", path]:
            return Look("read_file", {"path": path})
        case ["grep" | "rg", pattern] if pattern:
            return Look("grep_files", {"pattern": pattern})
        case ["grep" | "rg", pattern, path] if pattern:
            return Look("grep_files", {"pattern": pattern, "path": path})
        case ["git", "status" | "diff" | "log" as verb]:
            return Look(_GIT[verb], {})
        case _:
            return None
