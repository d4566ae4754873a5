"""TOML of a settings file as a tree. What would make a parser slow or deep is refused before it sees a byte."""

import re
from typing import Any

from codewhale.lib.bounded import check_nesting

_PARTS = 16  # of one dotted key
_BREAKS = re.compile(rb"[=,{}\n]")
_DOT = re.compile(rb"[\w\"'-][ \t]*\.[ \t]*(?=[\w\"'-])")


def parse_toml(data: bytes) -> dict[str, Any]:
    """The tree. Raises ValueError, saying where, for what is no UTF-8, no TOML, or nested too deeply."""
    import tomllib

    check_toml(data)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(f"is not UTF-8 text (byte {error.start})") from None
    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise ValueError(f"is not valid TOML: {error}") from None


def check_toml(data: bytes) -> None:
    """Raises ValueError for brackets or a key nested deeper than any settings are: both make parsers slow."""
    check_nesting(data)
    begin = 0
    for mark in (*_BREAKS.finditer(data), None):
        end = len(data) if mark is None else mark.start()
        if data.count(b".", begin, end) >= _PARTS and len(_DOT.findall(data, begin, end)) >= _PARTS:
            line = data.count(b"\n", 0, begin) + 1
            raise ValueError(f"is nested too deeply: a key of more than {_PARTS} parts at line {line}")
        begin = end + 1
