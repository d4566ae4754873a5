"""Whether data is JSON or TOML, and where it is not. Run as a program it judges standard input, in a process that can
be ended: a parser may never come to an end."""

import json
import re
import sys
import tomllib
from collections.abc import Callable
from typing import Any

from msgspec import Struct

_TOML_PLACE = re.compile(r"\(at (?:line (\d+), column (\d+)|end of document)\)")


class ParseFault(Struct, frozen=True):
    """Why text does not parse; `line` and `column` count from 1, 0 when unknown."""

    message: str
    line: int = 0
    column: int = 0


def judge(data: bytes, source: str, wanted: str) -> dict[str, object]:
    """The verdict on data of that name; `wanted` is json, toml, or auto for what the name and the text suggest."""
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        fault = ParseFault(f"not UTF-8: byte 0x{data[error.start]:02x} at offset {error.start}", line)
        return _invalid((_by_name(source) or "json") if wanted == "auto" else wanted, source, "", fault)
    kinds = [wanted] if wanted != "auto" else _candidates(source, text)
    faults = []
    for kind in kinds:
        parsed = _PARSERS[kind](text)
        if not isinstance(parsed, ParseFault):
            return {"valid": True, "format": kind, "source": source, "summary": _summary(parsed[0])}
        faults.append((kind, parsed))
    return _invalid(faults[0][0], source, text, faults[0][1])


def _by_name(source: str) -> str | None:
    name = source.lower()
    if name.endswith((".toml", "pipfile", "cargo.lock", "poetry.lock", "uv.lock")):
        return "toml"
    return "json" if name.endswith((".json", ".webmanifest", ".ipynb", ".geojson", ".har")) else None


def _candidates(source: str, text: str) -> list[str]:
    """What to try, the likelier first; its fault is the one told."""
    named = _by_name(source)
    if named is not None:
        return [named]
    start = text.lstrip()
    table = re.match(r"\[\[?\s*[\w\"'.-]+\s*\]\]?\s*(#.*)?$", start, re.MULTILINE)
    assignment = re.search(r"^\s*[\w.\"'-]+\s*=", text, re.MULTILINE)
    likely_toml = not start.startswith(("{", '"')) and (table or assignment)
    return ["toml", "json"] if likely_toml else ["json", "toml"]


def _json(text: str) -> tuple[Any] | ParseFault:
    def constant(word: str) -> None:
        raise ValueError(f"{word} is not JSON")

    try:
        # Numbers are not converted: one of a million digits is still valid.
        return (json.loads(text, parse_constant=constant, parse_int=_number, parse_float=_number),)
    except json.JSONDecodeError as error:
        return ParseFault(error.msg, error.lineno, error.colno)
    except (ValueError, RecursionError) as error:
        return ParseFault("nested too deeply" if isinstance(error, RecursionError) else str(error))


def _toml(text: str) -> tuple[Any] | ParseFault:
    try:
        return (tomllib.loads(text),)
    except (ValueError, RecursionError) as error:
        if isinstance(error, RecursionError):
            return ParseFault("nested too deeply")
        place = _TOML_PLACE.search(str(error))
        message = _TOML_PLACE.sub("", str(error)).strip()
        if place is None:
            return ParseFault(message)
        if place[1] is None:
            lines = text.split("\n")
            return ParseFault(f"{message} at the end", len(lines), len(lines[-1]) + 1)
        return ParseFault(message, int(place[1]), int(place[2]))


_PARSERS: dict[str, Callable[[str], tuple[Any] | ParseFault]] = {"json": _json, "toml": _toml}


def _number(_: str) -> int:
    return 0


def _summary(value: Any) -> str:
    if isinstance(value, dict):
        keys = ", ".join(str(key) for key in list(value)[:20])
        more = f" and {len(value) - 20} more" if len(value) > 20 else ""
        return f"object with {len(value)} keys" + (f": {keys}{more}" if keys else "")
    if isinstance(value, list):
        kinds = sorted({_kind(item) for item in value})
        return f"array of {len(value)} items" + (f" ({', '.join(kinds)})" if kinds else "")
    return _kind(value)


def _kind(value: Any) -> str:
    if value is None:
        return "null"
    names = {bool: "boolean", int: "number", float: "number", str: "string", list: "array", dict: "object"}
    return names.get(type(value), "date or time")


def _invalid(kind: str, source: str, text: str, fault: ParseFault) -> dict[str, object]:
    error: dict[str, object] = {"message": fault.message}
    if fault.line:
        error["line"] = fault.line
        error["column"] = fault.column
        lines = text.split("\n")
        if fault.line <= len(lines):
            error["text"] = lines[fault.line - 1][:200]
    where = f" at line {fault.line}, column {fault.column}" if fault.line else ""
    summary = f"not valid {kind.upper()}: {fault.message}{where}"
    return {"valid": False, "format": kind, "source": source, "summary": summary, "error": error}


if __name__ == "__main__":
    sys.stdout.write(json.dumps(judge(sys.stdin.buffer.read(), *sys.argv[1:])))
