"""Changing one entry of a file that names servers: every other byte of it stays, and what would not be read again is
not written."""

import json
import os
import re
from collections.abc import Sequence
from typing import Any

from codewhale.lib.files import atomic_write, private_dir
from codewhale.mcp.config import MAX_BYTES, TABLES, parse_tree
from codewhale.mcp.entries import EntryFault
from codewhale.protocol.errors import ConfigError

_SPACE = re.compile(r"[ \t\r\n]*")
NEW = '{\n  "servers": {}\n}\n'


def set_server(path: str, name: str, row: dict[str, Any]) -> None:
    """Write the entry of a server, in the place of the one of its name or behind the others. Raises ConfigError."""
    text = read_text(path) or NEW
    text = text if text.strip() else NEW
    table = _table(path, text, name)
    if table not in parse(path, text):
        text = set_member(text, (table,), {})
    _write(path, set_member(text, (table, name), row))


def set_key(path: str, name: str, key: str, value: Any) -> None:
    """Write one key of an entry; None takes it out. Raises ConfigError."""
    text = read_text(path)
    place = (_table(path, text, name), name, key)
    entry = parse(path, text)[place[0]][name]
    if value is not None:
        _write(path, set_member(text, place, value))
    elif isinstance(entry, dict) and key in entry:
        _write(path, drop_member(text, place))


def drop_server(path: str, name: str) -> None:
    """Take the entry of a server out. Raises ConfigError."""
    text = read_text(path)
    _write(path, drop_member(text, (_table(path, text, name), name)))


def read_text(path: str) -> str:
    """What stands in a file, "" where there is none. Raises ConfigError."""
    try:
        with open(path, "rb") as file:
            return file.read(MAX_BYTES + 1).decode("utf-8")
    except FileNotFoundError:
        return ""
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: cannot be read: {getattr(error, 'strerror', None) or 'it is no UTF-8'}") from None


def parse(path: str, text: str) -> dict[str, Any]:
    """The object in a text. Raises ConfigError."""
    try:
        return parse_tree(text.encode())
    except EntryFault as wrong:
        raise ConfigError(f"{path}: {wrong.key}: {wrong.text}. {wrong.remedy}.") from None


def _table(path: str, text: str, name: str) -> str:
    """The table that an entry stands in, or would."""
    tree = parse(path, text)
    there = [table for table in TABLES if isinstance(tree.get(table), dict)]
    return next((table for table in there if name in tree[table]), there[0] if there else TABLES[0])


def set_member(text: str, place: Sequence[str], value: Any) -> str:
    """A JSON text with one member of an object in it replaced, or added as the last."""
    start, rows = _object(text, place[:-1])
    inner = _indented(value, _indent(text, start))
    for key, _, begin, end in rows:
        if key == place[-1]:
            return f"{text[:begin]}{inner}{text[end:]}"
    member = f"{json.dumps(place[-1], ensure_ascii=False)}: {inner}"
    before = _indent(text, start)
    if not rows:
        end = text.index("}", start)
        return f"{text[: start + 1]}\n{before}  {member}\n{before}{text[end:]}"
    last = rows[-1][3]
    return f"{text[:last]},\n{before}  {member}{text[last:]}"


def drop_member(text: str, place: Sequence[str]) -> str:
    """A JSON text with one member of an object taken out."""
    start, rows = _object(text, place[:-1])
    at = next(number for number, row in enumerate(rows) if row[0] == place[-1])
    if len(rows) == 1:
        end = text.index("}", rows[0][3])
        return f"{text[: start + 1]}{text[end:]}"
    if at:
        return text[: rows[at - 1][3]] + text[rows[at][3] :]
    return text[: rows[0][1]] + text[rows[1][1] :]


_Row = tuple[str, int, int, int]  # a member's key, where that begins, where its value begins and ends


def _object(text: str, place: Sequence[str]) -> tuple[int, list[_Row]]:
    """Where an object begins, and its members."""
    start = _skip(text, 1 if text.startswith("\ufeff") else 0)
    rows = _members(text, start)
    for key in place:
        start = next(begin for name, _, begin, _ in rows if name == key)
        rows = _members(text, start)
    return start, rows


def _members(text: str, start: int) -> list[_Row]:
    decoder, rows, at = json.JSONDecoder(), list[_Row](), _skip(text, start + 1)
    while text[at] != "}":
        key, end = decoder.raw_decode(text, at)
        begin = _skip(text, _skip(text, end) + 1)
        _, stop = decoder.raw_decode(text, begin)
        rows.append((key, at, begin, stop))
        at = _skip(text, stop)
        if text[at] == ",":
            at = _skip(text, at + 1)
    return rows


def _skip(text: str, at: int) -> int:
    match = _SPACE.match(text, at)
    return match.end() if match else at


def _indent(text: str, at: int) -> str:
    """The white space that the line of a place begins with."""
    line = text[text.rfind("\n", 0, at) + 1 :]
    return line[: len(line) - len(line.lstrip(" \t"))]


def _indented(value: Any, before: str) -> str:
    shown = json.dumps(value, ensure_ascii=False, indent=2)
    return shown.replace("\n", f"\n{before}  ")


def _write(path: str, text: str) -> None:
    parse(path, text)
    data = text.encode()
    if len(data) > MAX_BYTES:
        raise ConfigError(f"{path}: would be larger than {MAX_BYTES:,} bytes; nothing was changed")
    try:
        target = os.path.realpath(path)
        if not os.path.isdir(os.path.dirname(target)):
            private_dir(os.path.dirname(target))
        atomic_write(target, data, 0o600)
    except OSError as error:
        raise ConfigError(f"{path}: cannot be written: {error.strerror or error}") from None
