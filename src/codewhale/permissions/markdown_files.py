"""Markdown files with a YAML head that steer the harness: how they are read, and where those of commands stand."""

import os
import re
from collections.abc import Iterable, Iterator
from typing import Any

from codewhale.lib.bounded import check_nesting, read_regular

COMMAND_FOLDER = ".codewhale/commands"
HEAD_LIMIT = 16_384
MOST_COMMANDS = 200
_HEAD = re.compile(r"\A\ufeff?---[ \t]*\r?\n(.*?)^---[ \t]*(?:\r?\n|\Z)", re.DOTALL | re.MULTILINE)
_MEMBER = re.compile(r"^([a-z][a-z-]*):[ \t]*(.+?)[ \t]*$", re.MULTILINE)


def command_files(folder: str) -> Iterator[str]:
    """The paths of a folder's commands, by name."""
    try:
        names = sorted(name for name in os.listdir(folder) if name.endswith(".md"))
    except OSError:
        return
    yield from (os.path.join(folder, name) for name in names[:MOST_COMMANDS])


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
    """The members of a YAML head; of one that is not YAML, most often for a colon within a text, the texts by their
    lines."""
    import yaml

    try:
        check_nesting(head.encode("utf-8", "replace"))
        if _aliased(yaml.parse(head)):
            return {}
        members = yaml.safe_load(head)
    except (yaml.YAMLError, RecursionError, ValueError):
        members = dict(_MEMBER.findall(head))
    return members if isinstance(members, dict) else {}


def _aliased(events: Iterable[Any]) -> bool:
    """Whether a text of YAML repeats parts of itself: merged into one another, a few lines of that stand for more than
    there is room for."""
    names = [(type(event).__name__, getattr(event, "anchor", None)) for event in events]
    marked = {anchor for kind, anchor in names if kind != "AliasEvent" and anchor}
    return any(kind == "AliasEvent" and anchor in marked for kind, anchor in names)
