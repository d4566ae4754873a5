"""Markdown files with a YAML head that steer the harness: how they are read, and where those of commands stand."""

import hashlib
import os
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from codewhale.lib.bounded import check_nesting, read_regular
from codewhale.lib.jsontext import encode

COMMAND_FOLDER = ".codewhale/commands"
AGENT_FOLDER = ".codewhale/agents"
HEAD_LIMIT = 16_384
FILE_LIMIT = 64 << 10
MOST_COMMANDS = 200
_HEAD = re.compile(r"\A\ufeff?---[ \t]*\r?\n(.*?)^---[ \t]*(?:\r?\n|\Z)", re.DOTALL | re.MULTILINE)
# What stands before the value of a line, and the value.
_VALUE = re.compile(r"((?: *- +)*(?: *[\w.-]+:[ \t]+)?)(?<=[ \t])(\S.*?)\s*\Z")
_MOST_QUOTED = 16


def command_files(folder: str) -> list[str]:
    """The paths of a folder's commands, by name."""
    return [str(path) for path in sorted(Path(folder).glob("*.md"))[:MOST_COMMANDS]]


def read_markdown(file: str, limit: int) -> bytes | None:
    """The bytes of a regular file of at most `limit`, None where there is no such file."""
    try:
        return read_regular(os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), limit)
    except OSError:
        return None


def split_head(text: str) -> tuple[str | None, str]:
    """The head of a text (None where there is none) and what stands behind it."""
    head = _HEAD.match(text)
    return (None, text) if head is None else (head.group(1), text[head.end() :])


def head_members(head: str) -> dict[str, Any]:
    """The members of a YAML head, none of one that cannot be read."""
    try:
        return parse_head(head)
    except ValueError:
        return {}


def parse_head(head: str, *, texts: bool = False) -> dict[str, Any]:
    """The members of a YAML head, with `texts` every scalar as the text that it is. A line that is not YAML, most often
    for a colon or a star within a text, is read as a text. Raises ValueError with what is wrong."""
    import yaml

    loader = (getattr(yaml, "CBaseLoader", yaml.BaseLoader) if texts else
              getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # fmt: skip
    check_nesting(head.encode("utf-8", "replace"))
    lines = head.split("\n")
    for _ in range(_MOST_QUOTED):
        text = "\n".join(lines)
        try:
            if _aliased(yaml.parse(text, loader)):
                raise ValueError("its header repeats parts of itself")
            members = yaml.load(text, loader)
            break
        except (yaml.YAMLError, RecursionError, ValueError) as error:
            mark = getattr(error, "problem_mark", None)
            if mark is None or not _quote(lines, mark.line):
                raise ValueError(_why(error)) from None
    else:
        raise ValueError("its header is not valid YAML")
    if not isinstance(members, dict | None):
        raise ValueError("its header is no table of names and values")
    return members or {}


def _why(error: Exception) -> str:
    mark, problem = getattr(error, "problem_mark", None), getattr(error, "problem", None)
    if mark is None:
        why = getattr(error, "reason", "")  # of a character that cannot stand there
        return str(error) if type(error) is ValueError else f"its header is not valid YAML{why and ': ' + why}"
    return f"its header is not valid YAML: {problem} at line {mark.line + 2}"


def _quote(lines: list[str], at: int) -> bool:
    """Put the value at a line, with the lines that it goes on over, into quotes; False where there is none or it has
    them."""
    at = min(at, len(lines) - 1)
    while at > 0 and _indent(lines[at]) > _indent(lines[at - 1]) and _plain(lines[at - 1]):
        at -= 1
    match = _VALUE.match(lines[at])
    if match is None or not _plain(lines[at]):
        return False
    end = at + 1
    while end < len(lines) and lines[end].strip() and _indent(lines[end]) > _indent(lines[at]):
        end += 1
    value = " ".join(line.strip() for line in (match.group(2), *lines[at + 1 : end]))
    lines[at:end] = [match.group(1) + encode(value).decode()] + [""] * (end - at - 1)
    return True


def _plain(line: str) -> bool:
    """Whether a line has a value that could be put into quotes."""
    match = _VALUE.match(line)
    return match is not None and not re.match(r'[|>][-+\d]*\s*\Z|"(?:[^"\\]|\\.)*"\s*\Z', match.group(2))


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip(" "))


def _aliased(events: Iterable[Any]) -> bool:
    """Whether a text of YAML repeats parts of itself: a few lines of that can stand for more than there is room for."""
    names = [(type(event).__name__, getattr(event, "anchor", None)) for event in events]
    marked = {anchor for kind, anchor in names if kind != "AliasEvent" and anchor}
    return any(kind == "AliasEvent" and anchor in marked for kind, anchor in names)


def steering_bytes(path: str, root: str, holds: Callable[[str, str], bool]) -> bytes:
    """The bytes of a file that steers the harness; of one of a project (`root`), where `holds(path, sha256)` says that
    it is trusted. Raises ValueError with why it cannot be used, ConfigError."""
    if root and os.path.commonpath((root, os.path.realpath(path))) != root:
        raise ValueError("it is a link out of the workspace")
    data = read_markdown(path, FILE_LIMIT)
    if data is None:
        raise ValueError(f"it must be a readable file of at most {FILE_LIMIT:,} bytes")
    if root and not holds(path, hashlib.sha256(data).hexdigest()):
        raise ValueError(f"not trusted; to use it: /trust add {os.path.relpath(path, root)}")
    return data


def head_and_body(data: bytes) -> tuple[dict[str, Any], str]:
    """The members of a file's head and the text below it. Raises ValueError with what is wrong with it."""
    try:
        text = data.decode("utf-8").replace("\r\n", "\n")
    except UnicodeDecodeError:
        raise ValueError("it is not UTF-8") from None
    head, body = split_head(text)
    if head is None and text.lstrip("\ufeff").startswith("---\n"):
        raise ValueError("its header does not end: a line --- is missing")
    if head is not None and len(head) > HEAD_LIMIT:
        raise ValueError(f"its header is longer than {HEAD_LIMIT:,} characters")
    members = head_members(head) if head is not None else {}
    if head is not None and head.strip() and not members:
        raise ValueError("its header is not valid YAML")
    if not body.strip():
        raise ValueError("it is empty below the header")
    return members, body
