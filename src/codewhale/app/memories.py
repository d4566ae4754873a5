"""The parts that memory consists of, each imported and built when it is first asked for."""

import contextlib
import os
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from functools import cached_property
from typing import TYPE_CHECKING

from codewhale.lib.clock import Clock
from codewhale.process.repository import config_entries, find_repository
from codewhale.protocol.errors import SessionError
from codewhale.session.footprint import LAYERS

if TYPE_CHECKING:
    from codewhale.app.layers import LayerSources
    from codewhale.app.sourcing import SourceReads
    from codewhale.memory.doctor import MemoryDoctor
    from codewhale.memory.external import Sources
    from codewhale.memory.layers import MemoryLayer
    from codewhale.memory.model import MemoryFault
    from codewhale.memory.places import Places
    from codewhale.memory.service import Memory
    from codewhale.memory.waiting import WaitingList
    from codewhale.protocol.memory import LayerRow, MemoryItem
    from codewhale.session.session import Session


class MemoryParts:
    """What commands, tools and sessions use of memory. `home` is CODEWHALE_HOME; `redacted` is a text without the
    secrets in it; without `sources` there are no layers."""

    def __init__(
        self,
        home: str,
        clock: Clock,
        redacted: Callable[[str], str],
        sources: "Callable[[], LayerSources] | None" = None,
    ) -> None:
        self._home = home
        self._clock = clock
        self.hide = redacted
        self._sources = sources
        self.serves: Callable[[str], str] = lambda address: ""
        self._reads: SourceReads | None = None

    def any_there(self) -> bool:
        """Whether anything was ever remembered."""
        return os.path.isdir(os.path.join(self._home, "memory"))

    def notes(self, workspace: str) -> str:
        """What a new session is given of the person's facts; "" where there is none."""
        return self.facts.text(workspace) if self.any_there() else ""

    def cleared(self, workspace: str) -> dict[str, str]:
        """The texts of facts there that are in the trash, and when they were cleared."""
        return self.facts.cleared(workspace) if os.path.isdir(os.path.join(self._home, "memory", "trash")) else {}

    @cached_property
    def places(self) -> "Places":
        from codewhale.memory.places import GitAccess, Places
        from codewhale.workspace.git import first_commits

        return Places(os.path.join(self._home, "memory"), GitAccess(find_repository, config_entries, first_commits))

    @cached_property
    def facts(self) -> "Memory":
        from codewhale.memory.service import Memory

        places = self.places
        return Memory(self._home, places.folder, placing=places.remember, redacted=self.hide, now=self._clock.now)

    @cached_property
    def sources(self) -> "Sources":
        from codewhale.app.sourcing import open_sources

        sources = open_sources(self._home, self.places, self._clock)
        sources.serves = self.serves
        return sources

    def any_sources(self) -> bool:
        return os.path.exists(os.path.join(self._home, "memory", "sources.json"))

    def source_reads(self, session: "Callable[[str], Session]", closers: AsyncExitStack) -> "SourceReads":
        """What records the versions that sessions read; the same each time."""
        if self._reads is None:
            from codewhale.app.sourcing import SourceReads

            self._reads = SourceReads(self.sources, session)
            closers.push_async_callback(self._reads.aclose)
        return self._reads

    def attached(self, workspace: str) -> str:
        """What the model is told of attached sources; "" where there are none."""
        return self.sources.text(workspace) if self.any_sources() else ""

    def source_paths(self, workspace: str) -> tuple[str, ...]:
        """The paths that tools may read as attached sources."""
        return tuple(one.path for one in self.sources.readable(workspace)) if self.any_sources() else ()

    def doctor(self, workspace: str) -> "MemoryDoctor":
        from codewhale.app.health import memory_doctor
        from codewhale.memory.sourcelayer import SourceLayer

        def sources(workspace: str) -> "Sequence[MemoryFault]":
            return SourceLayer(self.sources).health(workspace) if self.any_sources() else ()

        return memory_doctor(self._home, workspace, self.places, sources, self.hide)

    @cached_property
    def waiting(self) -> "WaitingList":
        from codewhale.memory.waiting import WaitingList

        return WaitingList(self._home, self.places.folder, self.facts, self.places.remember)

    @cached_property
    def layers(self) -> "tuple[MemoryLayer, ...]":
        """All of them, in the order of the dashboard."""
        from codewhale.app.layers import (
            AnswersLayer,
            CodeMapLayer,
            ConstitutionLayer,
            RulesLayer,
            TracesLayer,
            absent_layers,
        )
        from codewhale.memory.sourcelayer import SourceLayer
        from codewhale.memory.user_layer import UserMemoryLayer

        if self._sources is None:
            return ()
        given = self._sources()
        return (
            UserMemoryLayer(self.facts, self._waits, lambda workspace: self.doctor(workspace).examine(beside=False)),
            ConstitutionLayer(given),
            RulesLayer(given),
            CodeMapLayer(given),
            TracesLayer(given),
            AnswersLayer(given),
            *absent_layers(given),
            SourceLayer(self.sources),
        )

    def _waits(self, workspace: str) -> int:
        with contextlib.suppress(SessionError):  # the doctor says what is wrong
            return len(self.waiting.shown(workspace))
        return 0

    def items(self, workspace: str, session: str, name: str) -> "Sequence[MemoryItem]":
        """What the layer of a name holds."""
        return next((layer.items(workspace, session) for layer in self.layers if layer.name == name), ())

    def clear(self, workspace: str, session: str, name: str) -> str:
        """Empty the layer of a name; a line for the person."""
        from codewhale.memory.layers import MemoryRefused

        try:
            return next(layer for layer in self.layers if layer.name == name).clear(workspace, session)
        except MemoryRefused as refused:
            return str(refused)

    def rows(self, workspace: str, session: str) -> "Sequence[LayerRow]":
        """Every layer without what of the next request is its."""
        known = {layer.name: layer.row(workspace, session) for layer in self.layers}
        return [known.get(row.name, row) for row in LAYERS]
