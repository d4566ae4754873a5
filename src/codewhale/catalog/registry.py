"""The catalog at run time: rows read from the generated file, names resolved, the array that is sent.

No tool family is imported here; the file beside this module holds everything a request needs.
"""

from functools import cached_property
from pathlib import Path

import msgspec
from msgspec import Struct

from codewhale.catalog.lifecycle import ALIASES, state_of
from codewhale.protocol.tools import ToolSpec

_LONGEST = 100
SPECS_FILE = Path(__file__).with_name("specs.json")


class Resolution(Struct, frozen=True):
    """What a name means: its row, and the alias it was reached by ("" when canonical)."""

    spec: ToolSpec
    alias: str = ""


class Catalog:
    """Registered tools by canonical name."""

    def __init__(self, rows: list[ToolSpec]) -> None:
        self.rows = {row.name: row for row in sorted(rows, key=lambda row: row.name)}

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

    @cached_property
    def head(self) -> tuple[ToolSpec, ...]:
        """The rows of the array every request carries, sorted by name; the same in every mode and for every provider,
        so those that some lack are not among them."""
        named = ("active", "deferred")
        return tuple(row for name, row in self.rows.items() if state_of(name) in named and not row.gate)

    def resolve(self, name: str) -> Resolution | None:
        """What an exact name means; None when it means nothing."""
        if name in self.rows:
            return Resolution(self.rows[name])
        alias = ALIASES.get(name)
        if alias is not None and alias.state != "removed" and alias.canonical in self.rows:
            return Resolution(self.rows[alias.canonical], alias=name)
        return None

    def closest(self, name: str, count: int = 3) -> tuple[str, ...]:
        """Up to `count` canonical names most like `name`, best first."""
        import difflib

        folded = name[:_LONGEST].lower().replace("-", "_").replace(" ", "_")
        scored = []
        for candidate in self.rows:
            same_words = len(set(folded.split("_")) & set(candidate.split("_")))
            ratio = difflib.SequenceMatcher(None, folded, candidate).ratio()
            if same_words or ratio >= 0.5:
                scored.append((-ratio - 0.3 * same_words, candidate))
        return tuple(candidate for _, candidate in sorted(scored)[:count])
