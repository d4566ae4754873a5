"""The catalog at run time: rows read from the generated file, names resolved, the array that is sent.

No tool family is imported here; the file beside this module holds everything a request needs.
"""

import re
from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec
from msgspec import Struct

from codewhale.catalog.lifecycle import (
    ALIASES,
    DEFAULT_PROFILE,
    NOT_YET,
    PROFILES,
    PROMISED,
    RETIRED,
    SUCCESSORS,
    Alias,
)
from codewhale.protocol.tools import ToolSpec

_LONGEST = 100
# Names this much alike may be the same, misspelt; words that many names have say nothing of one.
_ALIKE = 0.7
_RETIRED = frozenset(name.replace("_", "") for name in RETIRED)
_COMMON = frozenset("get tool the run open close create update wait".split())
SPECS_FILE = Path(__file__).with_name("specs.json")
VERBS_FILE = Path(__file__).with_name("verbs.json")


class Resolution(Struct, frozen=True):
    """What a name means: its row, and the alias it was reached by ("" when canonical)."""

    spec: ToolSpec
    alias: str = ""


class Catalog:
    """Registered tools by canonical name. `verbs` are the rows that the profile of intents shows in their place."""

    def __init__(
        self, rows: Iterable[ToolSpec], aliases: Mapping[str, Alias] = ALIASES, verbs: Iterable[ToolSpec] = ()
    ) -> None:
        self.rows = {row.name: row for row in sorted(rows, key=lambda row: row.name)}
        self.aliases = aliases
        self._verbs = {row.name: row for row in verbs}

    @classmethod
    def load(cls, path: Path = SPECS_FILE) -> "Catalog":
        """The catalog as generated and checked in."""
        return cls(msgspec.json.decode(path.read_bytes(), type=list[ToolSpec]))

    def spec(self, name: str) -> ToolSpec | None:
        """The row of a canonical name, or None."""
        return self.rows.get(name)

    def names(self) -> tuple[str, ...]:
        """Every registered canonical name, sorted."""
        return tuple(self.rows)

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
        if not self._verbs and VERBS_FILE.exists():
            self._verbs = {row.name: row for row in msgspec.json.decode(VERBS_FILE.read_bytes(), type=list[ToolSpec])}
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
        if re.sub(r"[^a-z]", "", name.lower()) in _RETIRED:
            there = all(successor in self.rows for successor in SUCCESSORS)
            said = "." if there else ", which are not available in this version: do the work yourself."
            return f"It is retired. Sub-agents are run by {', '.join(SUCCESSORS[:-1])} and {SUCCESSORS[-1]}{said}"
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


def _brief(row: ToolSpec) -> ToolSpec:
    """A row whose optional arguments have no notes: their names, types and bounds alone."""
    required = row.parameters.get("required", ())
    properties = {
        name: schema if name in required else {key: value for key, value in schema.items() if key != "description"}
        for name, schema in row.parameters.get("properties", {}).items()
    }
    return msgspec.structs.replace(row, parameters={**row.parameters, "properties": properties})
