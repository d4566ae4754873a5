"""Reading a configuration file: bounded, regular files only, every failure told with the file's name."""

import os
import stat
from typing import Any

from codewhale.lib.toml import parse_toml
from codewhale.protocol.errors import ConfigError

MAX_BYTES = 1 << 18


def read_bytes(path: str) -> bytes | None:
    """The file's bytes, None when there is no such file. Raises ConfigError for anything that is not a readable
    regular file of at most 256 KiB."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}") from error
    try:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise ConfigError(f"{path}: is not a regular file")
        with os.fdopen(handle, "rb", closefd=False) as file:
            data = file.read(MAX_BYTES + 1)
    finally:
        os.close(handle)
    if len(data) > MAX_BYTES:
        raise ConfigError(f"{path}: is larger than {MAX_BYTES} bytes; a configuration file cannot be so large")
    return data


def parse(path: str, data: bytes) -> dict[str, Any]:
    """TOML bytes as a tree. Raises ConfigError naming file, line and column."""
    try:
        return parse_toml(data)
    except ValueError as error:
        raise ConfigError(f"{path}: {error}") from error


def read(path: str) -> dict[str, Any]:
    """The tree of a file; empty when there is none."""
    data = read_bytes(path)
    return {} if data is None else parse(path, data)
