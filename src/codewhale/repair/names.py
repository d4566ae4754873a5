"""What a model's name for a tool means: our own names, aliases, other spellings, other harnesses' tools.

`foreign.json` holds the tools of other harnesses as rows: the names they go by, the tool of ours, how arguments are
called here, and what must hold for the row to apply.
"""

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from codewhale.catalog.lifecycle import ALIASES
from codewhale.protocol.tools import ToolSpec
from codewhale.repair.fit import fold
from codewhale.repair.intents import lower

FOREIGN_FILE = Path(__file__).with_name("foreign.json")
_PREFIX = re.compile(r"^(?:functions?|tools?|default_api|multi_tool_use|namespace|assistant|builtin|mcp__\w+?_)[.:/_]+")
_SUFFIX = re.compile(r"(?:[:#@]\d+|\(\s*\)|[.:_-]?(?:tool|function))+$", re.I)
_LONGEST = 100


class ForeignRow(Struct, frozen=True):
    """A tool of other harnesses. `when` are argument values the row is for; `rename` is their argument to ours, `put`
    arguments that are added, `drop` ones that mean nothing here; `refuse` says why there is no such call here."""

    names: tuple[str, ...]
    tool: str = ""
    when: dict[str, Any] = {}
    rename: dict[str, str] = {}
    put: dict[str, Any] = {}
    drop: tuple[str, ...] = ()
    refuse: str = ""


class Named(Struct, frozen=True):
    """A name that was understood: the tool, the deprecated or hidden alias it was called by, the repair codes, and
    the foreign row whose arguments need translating, or the arguments that an intent came to. A guess is lossy."""

    spec: ToolSpec
    alias: str = ""
    repairs: tuple[str, ...] = ()
    lossy: bool = False
    row: ForeignRow | None = None
    given: dict[str, Any] | None = None


class NameRefused(Exception):
    """A name that stands for something we know and do not have; the text says what to do instead."""


def resolve(name: str, arguments: Any, rows: Mapping[str, ToolSpec]) -> Named | None:
    """What `name` means among `rows`, None when nothing. `arguments` (as far as they could be read) tell one foreign
    tool from another of that name. Raises NameRefused, Unclear."""
    said = name.strip()[:_LONGEST]
    bare = _SUFFIX.sub("", _PREFIX.sub("", said)) or said
    for form in dict.fromkeys((name, said, bare)):
        found = (
            _intent(form, arguments, rows)
            or _own(form, rows)
            or _respelt(form, rows)
            or _foreign(form, arguments, rows)
        )
        if found is not None:
            return found if form in (name, said) else msgspec.structs.replace(found, repairs=("N4", *found.repairs))
    return _near(bare, rows)


def translate(row: ForeignRow, arguments: dict[str, Any]) -> dict[str, Any]:
    """A foreign tool's arguments under our names."""
    kept = {key: value for key, value in arguments.items() if key not in row.drop and key not in row.when}
    return {**row.put, **{row.rename.get(key, key): value for key, value in kept.items()}}


def _intent(name: str, arguments: Any, rows: Mapping[str, ToolSpec]) -> Named | None:
    """One of the verbs, as the call it stands for. Raises Unclear."""
    call = lower(name, arguments, rows)
    if call is None:
        return None
    return Named(rows[call.tool], repairs=call.codes, lossy=call.chosen, given=call.arguments)


def _own(name: str, rows: Mapping[str, ToolSpec]) -> Named | None:
    if name in rows:
        return Named(rows[name])
    alias = ALIASES.get(name)
    if alias is not None and alias.state != "removed" and alias.canonical in rows:
        return Named(rows[alias.canonical], alias=name, repairs=("N2",) if alias.state == "deprecated" else ())
    return None


def _respelt(name: str, rows: Mapping[str, ToolSpec]) -> Named | None:
    """The only name that differs in case and separators alone."""
    same = [known for known in (*rows, *ALIASES) if fold(known) == fold(name)]
    found = _own(same[0], rows) if len(same) == 1 else None
    return found and msgspec.structs.replace(found, repairs=("N1", *found.repairs))


def _foreign(name: str, arguments: Any, rows: Mapping[str, ToolSpec]) -> Named | None:
    for row in _table().get(fold(name), ()):
        given = arguments if isinstance(arguments, dict) else {}
        if all(given.get(key) == value for key, value in row.when.items()):
            if row.refuse:
                raise NameRefused(row.refuse)
            if row.tool in rows:
                return Named(rows[row.tool], repairs=("N3",), row=row)
    return None


def _near(name: str, rows: Mapping[str, ToolSpec]) -> Named | None:
    """The only name within two slips of the hand, which is a guess."""
    folded = fold(name)
    if len(folded) < 4:
        return None
    near = sorted((distance, known) for known in rows if (distance := _distance(folded, fold(known))) <= 2)
    if not near or (len(near) > 1 and near[1][0] == near[0][0]):
        return None
    return Named(rows[near[0][1]], repairs=("N5",), lossy=True)


def _distance(one: str, two: str) -> int:
    """Edits (insert, delete, replace, swap of neighbours) between two names, 3 for more than two (Damerau 1964)."""
    if abs(len(one) - len(two)) > 2:
        return 3
    before: list[int] = []
    last = list(range(len(two) + 1))
    for i, left in enumerate(one, start=1):
        row = [i]
        for j, right in enumerate(two, start=1):
            cost = min(last[j] + 1, row[j - 1] + 1, last[j - 1] + (left != right))
            if i > 1 and j > 1 and left == two[j - 2] and one[i - 2] == right:
                cost = min(cost, before[j - 2] + 1)
            row.append(cost)
        before, last = last, row
    return min(last[-1], 3)


@cache
def _table() -> dict[str, tuple[ForeignRow, ...]]:
    found: dict[str, tuple[ForeignRow, ...]] = {}
    for row in msgspec.json.decode(FOREIGN_FILE.read_bytes(), type=list[ForeignRow]):
        for name in row.names:
            found[fold(name)] = (*found.get(fold(name), ()), row)
    return found
