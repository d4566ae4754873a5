"""The tools of other harnesses as calls of ours: rows of `foreign.json`, and what a row may do to arguments.

A row is taken where all it asks for holds; what it cannot say without loss stays as it is, for validation to refuse.
"""

import re
import shlex
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from codewhale.repair.fit import fold, other_names, spelt

Given = dict[str, Any]
FOREIGN_FILE = Path(__file__).with_name("foreign.json")


class _Instead(Struct, frozen=True):
    """A call to make instead. Text such as `$path|file_path|.` is the first of these members, else the last word."""

    name: str
    arguments: dict[str, Any] = {}


class ForeignRow(Struct, frozen=True):
    """A tool of other harnesses by its `names`, and the `tool` of ours (or one of our verbs) it stands for, or why
    there is none (`refuse`) and what to call `instead`, with the first of what stands in `first` where several came.

    Asked for: `when` members have these values (or one of a list of them; null: absent or empty), `needs` are there,
    `lacks` are not, `one` holds a list of one. Done, in this order: what stands in `one` moves up; `ops` are applied to
    members; `rename`; `drop` goes away; `put` is added, `default` only where nothing is."""

    names: tuple[str, ...]
    tool: str = ""
    verb: str = ""
    when: dict[str, Any] = {}
    needs: tuple[str, ...] = ()
    lacks: tuple[str, ...] = ()
    one: str = ""
    ops: dict[str, Any] = {}
    rename: dict[str, str] = {}
    drop: tuple[str, ...] = ()
    put: dict[str, Any] = {}
    default: dict[str, Any] = {}
    refuse: str = ""
    instead: _Instead | None = None
    first: str = ""


class Translated(Struct, frozen=True):
    """Arguments under our names; `chosen` where there was a choice."""

    arguments: Given
    chosen: bool = False


def rows_of(name: str) -> tuple[ForeignRow, ...]:
    """The rows of a name, in the order in which they are to be tried."""
    return _table().get(fold(name), ())


def applies(row: ForeignRow, given: Given) -> bool:
    """Whether all that a row asks for holds."""
    inner = given.get(row.one) if row.one else None
    if row.one and not (isinstance(inner, list) and len(inner) == 1 and isinstance(inner[0], dict | str)):
        return False
    held = all(_is(given.get(key), value) for key, value in row.when.items())
    return held and all(given.get(key) is not None for key in row.needs) and not any(key in given for key in row.lacks)


def _is(value: Any, wanted: Any) -> bool:
    if wanted is None:
        return value in (None, "", [], {})
    return value in wanted if isinstance(wanted, list) else value == wanted and isinstance(value, type(wanted))


def translate(row: ForeignRow, given: Given) -> Translated | None:
    """A foreign tool's arguments as ours; None where an operation finds what it cannot do."""
    given = {key: value for key, value in given.items() if value is not None}
    if row.one:
        inner = given.pop(row.one)[0]
        given = {**given, **(inner if isinstance(inner, dict) else {row.rename.get(row.one, row.one): inner})}
    chosen = False
    for key in [key for key in row.ops if key in given]:
        kind, *details = [row.ops[key]] if isinstance(row.ops[key], str) else row.ops[key]
        done = _OPS[kind](given, key, *details)
        if done is None:
            return None
        chosen = chosen or done
    told: Given = dict(row.default)
    for key, value in given.items():
        if key in row.drop or (key in row.when and key not in row.rename):
            continue
        name = row.rename.get(key, key)
        told[key if name in told and name not in row.default else name] = value
    return Translated({**told, **row.put}, chosen)


def instead(row: ForeignRow, given: Given) -> tuple[str, Given] | None:
    """The call to make instead of a refused one, filled with what came."""
    if row.instead is None:
        return None
    if row.first:
        several = given.get(row.first)
        first = several[0] if isinstance(several, list) and several else {}
        rest = {key: value for key, value in given.items() if key != row.first}
        return row.instead.name, {**rest, **(first if isinstance(first, dict) else {"path": first})}
    return row.instead.name, {key: _filled(value, given) for key, value in row.instead.arguments.items()}


def _filled(value: Any, given: Given) -> Any:
    if isinstance(value, list):
        return [_filled(item, given) for item in value]
    if isinstance(value, dict):
        return {key: _filled(item, given) for key, item in value.items()}
    if not isinstance(value, str) or "$" not in value:
        return value
    lead, _, names = value.partition("$")
    *keys, last = names.split("|")
    said = next((given[key] for key in keys if isinstance(given.get(key), str) and given[key]), last)
    return lead + (shlex.quote(said) if lead else said)


@cache
def _table() -> dict[str, tuple[ForeignRow, ...]]:
    found: dict[str, tuple[ForeignRow, ...]] = {}
    for row in msgspec.json.decode(FOREIGN_FILE.read_bytes(), type=list[ForeignRow]):
        for name in dict.fromkeys(fold(name) for name in row.names):
            found[name] = (*found.get(name, ()), row)
    return found


# ---------------------------------------------------------------------- operations
# Each changes `given` in place and tells whether it chose; None where it cannot be done.

_BLOCK = re.compile(
    r"\s*<{5,9} ?SEARCH>?\n(?::start_line:\s*\d+\n)?(?::end_line:\s*\d+\n)?(?:-{5,9}\n)?(?P<old>.*?)\n?={5,9}\n"
    r"(?P<new>.*?)\n?>{5,9} ?REPLACE\s*",
    re.S,
)
_HEREDOC = re.compile(r"\s*apply_patch\s*<<-?\s*(['\"]?)(\w+)\1\s*\n(?P<patch>.*?)\n\2\s*", re.S)
# In double quotes a shell would put other things in the place of some of it.
_QUOTED_PATCH = re.compile(
    r"\s*apply_patch\s+(?:'\s*(?P<one>\*\*\* Begin Patch\n[^']*?\*\*\* End Patch)\s*'"
    r"|\"\s*(?P<two>\*\*\* Begin Patch\n[^\"$`\\]*?\*\*\* End Patch)\s*\")\s*"
)
_BOX = re.compile(r"\s*(?:[-*+]|\d+[.)])?\s*\[(?P<mark>[ xX~/-])\]\s+(?P<what>\S.*)")
_MARKS = {" ": "pending", "x": "completed", "X": "completed"}
_SPECIAL = re.compile(r"[\\.+*?()|\[\]{}^$]")


def _milliseconds(given: Given, key: str) -> bool | None:
    """A time limit in seconds, or in milliseconds where it is too long for that."""
    value = given[key]
    if isinstance(value, str) and re.fullmatch(r"\d{1,7}", value):
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int | float) or value <= 0:
        return None
    given.pop(key)
    given["timeout_ms"] = min(600_000, int(value if value >= 1_000 else value * 1_000))
    return False


def _from_zero(given: Given, key: str) -> bool | None:
    if not isinstance(given[key], int) or isinstance(given[key], bool) or given[key] < 0:
        return None
    given["start_line"] = given.pop(key) + 1
    return False


def _last_line(given: Given, key: str, start: str = "start_line", base: int = 1) -> bool | None:
    """The last line wanted, beside the first under whatever name: how many lines that is."""
    start = spelt(given, "start_line") or start if base and start not in given else start
    first, last = given.pop(start, base), given.pop(key)
    numbers = [int(item) if isinstance(item, str) and item.isdecimal() else item for item in (first, last)]
    if any(isinstance(item, bool) or not isinstance(item, int) for item in numbers):
        return None
    first, last = (item + 1 - base for item in numbers)
    given["start_line"] = max(1, first)
    if last != -1:
        if last < given["start_line"]:
            return None
        given["max_lines"] = last - given["start_line"] + 1
    return False


def _range(given: Given, key: str) -> bool | None:
    """First and last line as a pair, -1 for the end."""
    pair = given[key]
    if not isinstance(pair, list) or len(pair) != 2:
        return None
    given["start_line"], given[key] = pair
    return _last_line(given, key)


def _opposite(given: Given, key: str, name: str) -> bool | None:
    value = {"true": True, "false": False}.get(str(given.pop(key)).lower())
    if value is None:
        return None
    given[name] = not value
    return False


def _literal(given: Given, key: str, pattern: str, when: bool) -> bool | None:
    """A switch that tells whether a pattern is a plain text."""
    if {"true": True, "false": False}.get(str(given.pop(key)).lower()) is when and isinstance(given.get(pattern), str):
        given[pattern] = _SPECIAL.sub(r"\\\g<0>", given[pattern])
    return False


def _file_type(given: Given, key: str) -> bool | None:
    globs = other_names().file_types.get(str(given.pop(key)).lower())
    if globs is None or "include" in given or "glob" in given:
        return None
    given["include"] = globs
    return False


def _glob(given: Given, key: str) -> bool | None:
    """A glob as what file_search finds: exact for an ending or a name in any folder, else the nearest there is."""
    said = given.pop(key)
    if not isinstance(said, str) or not said.strip():
        return None
    folder, _, last = said.strip().removeprefix("./").rpartition("/")
    folder = folder.removesuffix("**").rstrip("/")
    wild = re.search(r"[*?\[{]", folder)
    if folder and not wild and not given.get("path"):
        given["path"], folder = folder, ""
    given.setdefault("limit", 200)
    ending = re.fullmatch(r"\*\.(?:\{([\w,.]+)\}|([\w.]+))", last)
    if ending:
        endings = (ending[1] or ending[2]).split(",")
        given["query"], given["extensions"] = ".", endings
        return bool(folder) or "**" not in said
    given["query"] = re.sub(r"[*?\[\]{},!]+", "", last) or (re.sub(r"[*?\[\]{},!]+", "", folder).strip("/") or ".")
    return True


# What items of other harnesses hold beside a text and a status.
_ORNAMENTS = frozenset("id priority activeform notes details description dependencies tags created updated".split())


def _items(given: Given, key: str, keep: list[str], rename: dict[str, str] | None = None) -> bool | None:
    """The items of a list with only the members ours have, under our names; what is no ornament of theirs is a loss."""
    found = given.pop(key)
    if isinstance(found, str):
        try:
            found = msgspec.json.decode(found)
        except msgspec.DecodeError:
            return None
    if not isinstance(found, list) or not all(isinstance(item, dict) for item in found):
        return None
    named = [{(rename or {}).get(name, name): value for name, value in item.items()} for item in found]
    given["todos"] = [{name: item[name] for name in keep if name in item} for item in named]
    return any(fold(name) not in _ORNAMENTS for item in named for name in item if name not in keep)


def _boxes(given: Given, key: str) -> bool | None:
    lines = [line for line in str(given.pop(key)).splitlines() if line.strip()]
    found = [_BOX.fullmatch(line) for line in lines]
    if not lines or not all(found):
        return None
    given["todos"] = [
        {"content": match["what"].strip(), "status": _MARKS.get(match["mark"], "in_progress")}
        for match in found
        if match
    ]
    return False


def _questions(given: Given, key: str) -> bool | None:
    found = given[key]
    if not isinstance(found, list) or not all(isinstance(item, dict) for item in found):
        return None
    if any(item.get("multiSelect") or item.get("multiple") for item in found):
        return None
    given[key] = [
        {"id": f"q{number}", **{name: value for name, value in item.items() if name not in ("multiSelect", "multiple")}}
        for number, item in enumerate(found, start=1)
    ]
    return False


def _block(given: Given, key: str) -> bool | None:
    match = _BLOCK.fullmatch(given.pop(key) if isinstance(given[key], str) else "")
    if match is None or re.search(r"^<{5,9} ?SEARCH", match["new"], re.M):
        return None
    given["search"], given["replace"] = match["old"], match["new"]
    return False


def patch_within(command: str) -> str:
    """The patch that a command line hands to a program which applies it, "" where it does anything else."""
    match = _HEREDOC.fullmatch(command)
    if match is not None:
        return match["patch"] + "\n"
    quoted = _QUOTED_PATCH.fullmatch(command)
    return (quoted["one"] or quoted["two"]) + "\n" if quoted is not None else ""


def _patch_in(given: Given, key: str) -> bool | None:
    """A patch handed to a program of that name on a command line."""
    said = given.pop(key)
    if isinstance(said, list) and len(said) == 2 and said[0] in ("apply_patch", "applypatch"):
        given["patch"] = said[1]
        return False
    text = said[2] if isinstance(said, list) and len(said) == 3 and str(said[1]).startswith("-") else said
    patch = patch_within(text) if isinstance(text, str) else ""
    if not patch:
        return None
    given["patch"] = patch
    return False


def _formed(given: Given, key: str, name: str, form: str) -> bool | None:
    value = given.pop(key)
    if not isinstance(value, str) or not value.strip() or "\n" in value or "\r" in value:
        return None
    given[name] = form.replace("{}", value)
    return False


def _mapped(given: Given, key: str, values: dict[str, Any], other: str = "") -> bool | None:
    """One word for another; `other` for what stands not there."""
    said = str(given[key]).lower()
    if said not in values and not other:
        return None
    given[key] = values.get(said, other)
    return said not in values


_OPS: dict[str, Callable[..., bool | None]] = {
    "milliseconds": _milliseconds, "from_zero": _from_zero, "last_line": _last_line, "range": _range,
    "opposite": _opposite, "literal": _literal, "file_type": _file_type, "glob": _glob, "items": _items,
    "boxes": _boxes, "questions": _questions, "block": _block, "patch_in": _patch_in, "formed": _formed,
    "mapped": _mapped,
}  # fmt: skip
