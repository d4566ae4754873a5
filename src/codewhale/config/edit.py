"""Changing one key of config.toml: comments and order stay, a value that would not load is refused."""

import os
import re
from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Struct

from codewhale.config import files, values
from codewhale.config.paths import config_file
from codewhale.config.values import Path
from codewhale.lib.files import atomic_write, private_dir
from codewhale.protocol.errors import ConfigError

_KEY = re.compile(r"""\s*(?:"([^"\\]+)"|'([^']+)'|([A-Za-z0-9_-]+))\s*(\.|$)""")


def parse_key(text: str) -> Path:
    """A dotted key as a path; parts with dots of their own stand in quotes. Raises ConfigError."""
    path: list[str] = []
    position = 0
    while True:
        match = _KEY.match(text, position)
        if match is None:
            raise ConfigError(f"{text!r} is not a key; write it like provider or providers.NAME.base_url")
        path.append(match[1] or match[2] or match[3])
        position = match.end()
        if match[4] == "":
            return tuple(path)


def kind_at(shape: type[Struct], path: Path) -> Any:
    """The type of the value at a key path. Raises ConfigError naming the closest known key."""
    kind: Any = shape
    for index, key in enumerate(path):
        inner = values.child_kind(kind, key)
        if inner is None:
            raise ConfigError(_no_such_key(kind, path, index))
        kind = inner
    return kind


def _no_such_key(kind: Any, path: Path, index: int) -> str:
    known = values.fields(kind) or {}
    place = values.dotted(path[:index])
    if not known:
        return f"{place} is a value, not a table: it has no key {path[index]!r}"
    near = values.closest(path[index], known)
    hint = f"did you mean {values.dotted((*path[:index], near))}?" if near else f"known: {', '.join(known)}"
    return f"{values.dotted(path)} is not a known key; {hint}"


def set_value(home: str, key: str, text: str, shape: type[Struct]) -> tuple[Path, Any]:
    """Set `key` in config.toml to what `text` says, as the type of that key wants it; returns path and value.
    The file is replaced whole, mode 0600. Raises ConfigError, and then nothing has changed."""
    path = parse_key(key)
    kind = kind_at(shape, path)
    if values.is_table(kind):
        inner = ", ".join(values.fields(kind) or ("NAME",))
        raise ConfigError(f"{values.dotted(path)} is a table; set one value in it, such as {key}.{inner.split(',')[0]}")
    value = _value(path, text, kind)
    set_values(home, {path: value}, shape)
    return path, value


def set_values(home: str, changes: Mapping[Path, Any], shape: type[Struct]) -> str:
    """Set every key of `changes` in config.toml at once; returns the file's path. Raises ConfigError, and then nothing
    has changed."""
    target = os.path.realpath(config_file(home))
    new = files.read_bytes(target) or b""
    for path, value in changes.items():
        tree = files.parse(target, new)
        new = _edited(target, new, path, value)
        _validate(target, values.merge(tree, values.nested(path, value)), shape, path)
    try:
        private_dir(home)
        atomic_write(target, new, 0o600)
    except OSError as error:
        raise ConfigError(f"{target}: cannot be written: {error.strerror or error}") from error
    return target


def _value(path: Path, text: str, kind: Any) -> Any:
    if "\0" in text:
        raise ConfigError(f"{values.dotted(path)}: a value cannot contain a NUL byte")
    try:
        return values.from_text(text, kind)
    except msgspec.ValidationError as error:
        fault = f"{values.dotted(path)}: {values.wanted(kind, error)}; it is {text!r}; nothing was changed"
        raise ConfigError(fault) from error


def _validate(file: str, tree: dict[str, Any], shape: type[Struct], path: Path) -> None:
    fault = values.find_fault(tree[path[0]], values.child_kind(shape, path[0]), path[:1])
    if fault is None:
        return
    if path[: len(fault.path)] == fault.path or fault.path[: len(path)] == path:
        key = values.dotted(fault.path)
        raise ConfigError(f"{file}: {key}: {fault.wanted}; nothing was changed")


def _edited(file: str, data: bytes, path: Path, value: Any) -> bytes:
    import tomlkit
    from tomlkit.exceptions import TOMLKitError

    files.parse(file, data)
    try:
        document = tomlkit.parse(data.decode("utf-8-sig"))
        table: Any = document
        for key in path[:-1]:
            if key not in table:
                inline = isinstance(table, tomlkit.items.InlineTable)
                table[key] = tomlkit.inline_table() if inline else tomlkit.table(is_super_table=None)
            table = table[key]
        table[path[-1]] = value
        new = tomlkit.dumps(document).encode()
    except (TOMLKitError, TypeError, ValueError, AttributeError) as error:
        raise ConfigError(f"{file}: {values.dotted(path)} cannot be set: {error}; nothing was changed") from error
    if values.lookup(files.parse(file, new), path) != value:
        raise ConfigError(f"{file}: {values.dotted(path)} cannot be set here; edit the file by hand")
    return new
