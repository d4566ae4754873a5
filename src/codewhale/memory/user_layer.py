"""The layer of the person's own facts."""

import os
from collections.abc import Callable, Sequence

from codewhale.lib.clock import rfc3339
from codewhale.memory.model import MemoryFault
from codewhale.memory.rivals import superseded
from codewhale.memory.sent import valid
from codewhale.memory.service import Memory
from codewhale.memory.uses import Use
from codewhale.protocol.memory import LayerRow, MemoryItem

_ACTIONS = (
    ("add", "/memory add TEXT"),
    ("edit", "/memory edit"),
    ("clear", "/memory clear all"),
    ("doctor", "/memory doctor"),
)


class UserMemoryLayer:
    """Implements MemoryLayer. `waiting(workspace)` counts proposals."""

    name = "user-memory"

    def __init__(
        self, memory: Memory, waiting: Callable[[str], int], health: Callable[[str], Sequence[MemoryFault]]
    ) -> None:
        self._memory = memory
        self._waiting = waiting
        self._health = health

    def row(self, workspace: str, session: str) -> LayerRow:
        facts = self._memory.facts(workspace)
        sent, wait = len(self._memory.sent(workspace)), self._waiting(workspace)
        notes = [f"{sent} of {len(facts)} facts are sent"] if sent < len(facts) else []
        notes += [f"{wait} wait for you: /memory waiting"] if wait else []
        stats = [os.stat(path) for path in self._memory.paths(workspace).values() if os.path.exists(path)]
        return LayerRow(
            self.name,
            "User memory",
            "global, workspace",
            "user",
            "head",
            items=len(facts),
            bytes=sum(one.st_size for one in stats),
            changed=rfc3339(max(one.st_mtime for one in stats)) if stats else "",
            actions=_ACTIONS,
            note="; ".join(notes),
            faults=len(self.health(workspace)),
        )

    def items(self, workspace: str, session: str) -> Sequence[MemoryItem]:
        return fact_items(self._memory, workspace)

    def text(self, workspace: str, budget: int) -> str:
        text = self._memory.text(workspace)
        return text if len(text) <= budget else ""

    def clear(self, workspace: str, session: str) -> str:
        cleared = self._memory.clear(workspace, self._memory.facts(workspace))
        return f"{len(cleared)} facts went to the trash; within 30 days /memory restore ID takes one back."

    def provenance(self, workspace: str, session: str, item: str) -> str:
        fact = next((one for one in self._memory.facts(workspace) if one.id == item), None)
        if fact is None:
            return ""
        path = self._memory.paths(workspace)[fact.scope]
        return f"{path}:{fact.line}, {fact.source or 'written by you'}"

    def health(self, workspace: str) -> Sequence[MemoryFault]:
        return self._health(workspace)


def fact_items(memory: Memory, workspace: str) -> tuple[MemoryItem, ...]:
    """The facts as interfaces show them."""
    facts, uses, none = memory.facts(workspace), memory.uses.read(), Use(0, "")
    sent, newer = {fact.id for fact in memory.sent(workspace)}, superseded(valid(facts))
    return tuple(
        MemoryItem(
            fact.id,
            fact.text,
            fact.scope,
            fact.source,
            "user",
            created=fact.created,
            last_used=uses.get(fact.id, none).last,
            uses=uses.get(fact.id, none).count,
            bytes=len(fact.text.encode("utf-8", "replace")),
            expires=fact.expires,
            tainted=fact.tainted,
            unsent=fact.id not in sent,
            newer=newer.get(fact.id, ""),
        )
        for fact in facts
    )
