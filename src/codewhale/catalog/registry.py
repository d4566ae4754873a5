"""The catalog at run time: rows read from the generated file and those of other sources, names resolved, the array
that is sent.

No tool family is imported here; the file beside this module holds everything a request needs.
"""

import os
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec
from msgspec import Struct

from codewhale.catalog.lifecycle import (
    ACTIVE,
    ALIASES,
    DEFAULT_PROFILE,
    DEFERRED,
    NOT_YET,
    PROFILES,
    PROMISED,
    RETIRED,
    SUCCESSORS,
    Alias,
    is_retired,
)
from codewhale.catalog.schema import check
from codewhale.catalog.shapes import refused
from codewhale.lib.patterns import lazy
from codewhale.protocol.errors import ToolError
from codewhale.protocol.tools import BoundCall, CallContext, Origin, Preview, ToolResult, ToolSpec

_LONGEST, _LONGEST_DESCRIPTION = 100, 16_384
MOST_TOOLS = 1_000
_NAME = lazy(r"[A-Za-z0-9_-]{1,64}")
_OUTSIDE = frozenset((Origin.WEB, Origin.MCP, Origin.ISSUE))
# Names this much alike may be the same, misspelt; words that many names have say nothing of one.
_ALIKE = 0.7
_COMMON = frozenset("get tool the run open close create update wait".split())
SPECS_FILE = os.path.join(os.path.dirname(__file__), "specs.json")
VERBS_FILE = os.path.join(os.path.dirname(__file__), "verbs.json")


class ToolSource(Struct, frozen=True):
    """What brings tools beside our own, such as a server: its rows (the catalog sets their `source`, `version`,
    `family` and `gate`), the version they are of, and what makes a call of one of them. `bind` raises ToolError."""

    name: str
    rows: tuple[ToolSpec, ...]
    bind: Callable[[ToolSpec, dict[str, Any]], BoundCall]
    version: str = ""


class Resolution(Struct, frozen=True):
    """What a name means: its row, and the alias it was reached by ("" when canonical)."""

    spec: ToolSpec
    alias: str = ""


class Catalog:
    """Registered tools by canonical name: our own, which every head is made of, and those of sources that come and go
    while the process runs. Each change is a new generation, with a `rows` of its own. `verbs` are the rows that the
    profile of intents shows in the place of tools."""

    def __init__(
        self, rows: Iterable[ToolSpec], aliases: Mapping[str, Alias] = ALIASES, verbs: Iterable[ToolSpec] = ()
    ) -> None:
        self._own = {row.name: row for row in rows}
        self._sources: dict[str, ToolSource] = {}
        self._left: dict[str, str] = {}  # names of tools that went -> their source
        self.generation = 0
        self.rows: Mapping[str, ToolSpec] = dict(sorted(self._own.items()))
        self.aliases = aliases
        self._verbs = {row.name: row for row in verbs}

    @classmethod
    def load(cls, path: str = SPECS_FILE) -> "Catalog":
        """The catalog as generated and checked in."""
        with open(path, "rb") as file:
            return cls(msgspec.json.decode(file.read(), type=list[ToolSpec]))

    def spec(self, name: str) -> ToolSpec | None:
        """The row of a canonical name, or None."""
        return self.rows.get(name)

    def names(self) -> tuple[str, ...]:
        """Every registered canonical name, sorted."""
        return tuple(self.rows)

    # ------------------------------------------------------------------ other sources

    def register(self, source: ToolSource) -> dict[str, str]:
        """Take the tools of a source, in the place of those it had. Answers which are not taken, and why."""
        others = {name for one in self._sources.values() if one.name != source.name for name in _names(one)}
        left_out: dict[str, str] = {}
        rows: dict[str, ToolSpec] = {}
        for row in source.rows:
            why = self._refused(row, others)
            if not why and row.name in rows:
                why = "the source has two tools of this name"
            if not why and len(rows) == MOST_TOOLS:
                why = f"a source brings at most {MOST_TOOLS:,} tools"
            if why:
                left_out.setdefault(row.name, why)
            else:
                rows[row.name] = msgspec.structs.replace(
                    row, source=source.name, version=source.version, family="", gate=""
                )
        self._change(source.name, msgspec.structs.replace(source, rows=tuple(rows.values())))
        return left_out

    def remove(self, source: str) -> None:
        """Let the tools of a source go."""
        if source in self._sources:
            self._change(source, None)

    def bind(self, spec: ToolSpec, arguments: dict[str, Any]) -> BoundCall:
        """The call of a tool that is not ours; what it gives comes from outside. Raises ToolError."""
        source = self._sources.get(spec.source)
        if source is None or self.rows.get(spec.name) is not spec:
            raise ToolError("not_available", f"{spec.name} is not as it was: {self.gone(spec.name) or 'it changed.'}")
        if problems := check(arguments, spec.parameters):
            first = problems[0]
            text = f"Invalid arguments: `{first.field}` must be {first.expected}; got {first.received}."
            raise ToolError("invalid_input", text, field=first.field)
        bound = source.bind(spec, arguments)

        async def run(call: CallContext) -> ToolResult | Preview:
            done = await bound.run(call)
            if isinstance(done, ToolResult) and done.origin not in _OUTSIDE:
                return msgspec.structs.replace(done, origin=Origin.MCP)
            return done

        return msgspec.structs.replace(bound, run=run)

    def _change(self, name: str, source: ToolSource | None) -> None:
        before = _names(self._sources.pop(name)) if name in self._sources else ()
        if source is not None:
            self._sources[name] = source
        rows = {**self._own, **{row.name: row for one in self._sources.values() for row in one.rows}}
        self._left = {
            gone: by for gone, by in {**self._left, **dict.fromkeys(before, name)}.items() if gone not in rows
        }
        self._left = dict(list(self._left.items())[-MOST_TOOLS:])
        self.rows = dict(sorted(rows.items()))
        self.generation += 1

    def _refused(self, row: ToolSpec, others: set[str]) -> str:
        """Why a row of another source is not taken; "" where it is."""
        if not _NAME().fullmatch(row.name):
            return "its name must be 1 to 64 letters, digits, _ or -"
        if _letters(row.name) in _RESERVED or row.name in self._own:
            return "its name is one of our own tools'"
        if row.name in others:
            return "another source has a tool of this name"
        if len(row.description) > _LONGEST_DESCRIPTION:
            return f"its description has more than {_LONGEST_DESCRIPTION:,} characters"
        if not row.effects:
            return "it does not say what it may do"
        return refused(row.parameters)

    # ------------------------------------------------------------------ names and heads

    @property
    def head(self) -> tuple[ToolSpec, ...]:
        """The rows of the array that a request of the default profile carries."""
        return self.head_of(DEFAULT_PROFILE)

    def head_of(self, profile: str, always: Iterable[str] = ()) -> tuple[ToolSpec, ...]:
        """The rows that every request of a profile carries, the same in every mode and for every provider, so those
        that some lack are not among them: its own sorted by name, then those of `always`. A small window is told of
        optional arguments nothing but name, type and bounds."""
        rows = self._intents() if profile == "intent" else self.rows
        named = [rows[name] for name in sorted(PROFILES[profile]) if name in rows and not rows[name].gate]
        own = [_brief(row) for row in named] if profile == "compact" else named
        more = sorted(set(always) - PROFILES[profile])
        return (*own, *(self.rows[name] for name in more if name in self.rows))

    def _intents(self) -> Mapping[str, ToolSpec]:
        if not self._verbs and os.path.exists(VERBS_FILE):
            with open(VERBS_FILE, "rb") as file:
                self._verbs = {row.name: row for row in msgspec.json.decode(file.read(), type=list[ToolSpec])}
        return {**self.rows, **self._verbs}

    def resolve(self, name: str) -> Resolution | None:
        """What an exact name means; None when it means nothing."""
        if name in self.rows:
            return Resolution(self.rows[name])
        alias = self.aliases.get(name)
        if alias is not None and alias.state != "removed" and alias.canonical in self.rows:
            return Resolution(self.rows[alias.canonical], alias=name)
        return None

    def gone(self, name: str) -> str:
        """Why a name that once was a tool, or is to be one, means none here, in words; "" for any other."""
        alias = self.aliases.get(name)
        if alias is not None and alias.state == "removed":
            return f"It was removed in {alias.removal}; use {alias.canonical}."
        if is_retired(name):
            return f"It is retired. Sub-agents are run by {', '.join(SUCCESSORS[:-1])} and {SUCCESSORS[-1]}."
        if name in self._left:
            source = self._left[name]
            why = "does not have it any more" if source in self._sources else "is not connected any more"
            return f"It came from {source}, which {why}."
        canonical = alias.canonical if alias is not None else name
        if canonical in NOT_YET | PROMISED and canonical not in self.rows:
            return "It is not available in this version."
        return ""

    def closest(self, name: str, count: int = 3) -> tuple[str, ...]:
        """Up to `count` canonical names most like `name`, best first."""
        import difflib

        folded = re.sub(r"[^a-z0-9]+", "_", name[:_LONGEST].lower())
        scored = []
        for candidate in self.rows:
            same_words = len(set(folded.split("_")) & set(candidate.split("_")) - _COMMON)
            ratio = difflib.SequenceMatcher(None, folded, candidate).ratio()
            if same_words or ratio >= _ALIKE:
                scored.append((-ratio - 0.3 * same_words, candidate))
        return tuple(candidate for _, candidate in sorted(scored)[:count])


def _names(source: ToolSource) -> tuple[str, ...]:
    return tuple(row.name for row in source.rows)


def _letters(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())


_RESERVED = frozenset(
    _letters(name) for name in (*ACTIVE, *DEFERRED, *ALIASES, *RETIRED, *PROMISED, *PROFILES["intent"])
)


def _brief(row: ToolSpec) -> ToolSpec:
    """A row whose optional arguments have no notes: their names, types and bounds alone."""
    required = row.parameters.get("required", ())
    properties = {
        name: schema if name in required else {key: value for key, value in schema.items() if key != "description"}
        for name, schema in row.parameters.get("properties", {}).items()
    }
    return msgspec.structs.replace(row, parameters={**row.parameters, "properties": properties})
