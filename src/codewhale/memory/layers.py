"""The one interface of a layer of memory, whoever owns what stands in it."""

from collections.abc import Sequence
from typing import Protocol

from codewhale.memory.model import MemoryFault
from codewhale.protocol.memory import LayerRow, MemoryItem


class MemoryLayer(Protocol):
    """One layer. All methods may read files; none asks a model or a server."""

    name: str

    def row(self, workspace: str, session: str) -> LayerRow:
        """How it stands, without what of the next request is its."""

    def items(self, workspace: str, session: str) -> Sequence[MemoryItem]: ...

    def text(self, workspace: str, budget: int) -> str:
        """What is said of it in the head of a new session, in at most `budget` characters: the same bytes as long as
        nothing changed; "" for nothing."""

    def clear(self, workspace: str, session: str) -> str:
        """Empty it; a line for the person. Raises MemoryRefused where that is done elsewhere, and says where."""

    def provenance(self, workspace: str, session: str, item: str) -> str:
        """Where an item came from, "" where there is none of this id."""

    def health(self, workspace: str) -> Sequence[MemoryFault]: ...


class MemoryRefused(Exception):
    """Nothing was changed; the text says why and what to do."""
