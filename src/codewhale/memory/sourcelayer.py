"""Attached sources as a layer of a context: what is attached, where it came from, and what is wrong with it."""

from collections.abc import Iterator, Sequence

from codewhale.lib.text import counted, one_line
from codewhale.memory.external import GLOBAL, NO_SERVER, AttachedSource, Sources, changed_since, described
from codewhale.memory.layers import MemoryRefused
from codewhale.memory.model import MemoryFault
from codewhale.protocol.errors import ConfigError
from codewhale.protocol.memory import LayerRow, MemoryItem

LOOK_SECONDS = 5.0  # for what is known of each source without being asked for


class SourceLayer:
    """Implements memory.layers.MemoryLayer over the sources of a home."""

    name = "aleph-external"

    def __init__(self, sources: Sources) -> None:
        self._sources = sources

    def row(self, workspace: str, session: str) -> LayerRow:
        sources, fault = self._of(workspace)
        missing = sum(bool(one.missing) for one in sources if one.kind != "address")
        addresses = sum(one.kind == "address" for one in sources)
        notes = [fault] if fault else []
        notes += [f"{counted(addresses, 'address')} {NO_SERVER}"] if addresses else []
        notes += [f"{counted(missing, 'source')} cannot be read"] if missing else []
        notes += ["read where they are; rlm_open opens one by its name"]
        return LayerRow(
            name=self.name,
            title="Attached sources",
            scope="workspace and global",
            trust="user",
            place="not sent",
            items=len(sources),
            bytes=sum(one.version.bytes for one in sources if one.version is not None),
            changed=max((one.attached for one in sources), default=""),
            actions=(
                ("attach", "/context attach PATH"),
                ("detach", "/context detach NAME"),
                ("sources", "/context sources"),
                ("export", "/context export NAME FOLDER"),
            ),
            note="; ".join(notes),
            faults=missing + bool(fault),
        )

    def items(self, workspace: str, session: str) -> Sequence[MemoryItem]:
        return [_item(one) for one in self._of(workspace)[0]]

    def text(self, workspace: str, budget: int) -> str:
        return ""

    def clear(self, workspace: str, session: str) -> str:
        """Detach all; what they are stays as it is. Raises MemoryRefused."""
        try:
            gone = [self._sources.detach(workspace, one.name) for one in self._sources.of(workspace)]
        except ConfigError as error:
            raise MemoryRefused(str(error)) from None
        return f"Detached {counted(len(gone), 'source')}; what they are is as it was."

    def provenance(self, workspace: str, session: str, item: str) -> str:
        source = next((one for one in self._of(workspace)[0] if one.name == item), None)
        if source is None:
            return ""
        return f"the user attached {one_line(source.path, 300)} on {source.attached}: {described(source.version)}"

    def health(self, workspace: str) -> Sequence[MemoryFault]:
        return list(self._faults(workspace))

    def _faults(self, workspace: str) -> Iterator[MemoryFault]:
        sources, fault = self._of(workspace)
        if fault:
            yield MemoryFault("source_file", "error", fault, "Remove the file and attach the sources again.")
        for one in sources:
            if one.kind == "address" or one.version is None:
                continue
            fix = f"/context attach {one.path} as {one.name} takes it as it is now; /context detach {one.name} drops it"
            if why := one.missing:
                yield MemoryFault(
                    "source_missing", "error", f"The source {one.name} is not there: {why}", fix, one.path
                )
            elif why := changed_since(one.path, one.version.id, one.version, LOOK_SECONDS):
                yield MemoryFault("source_changed", "warning", f"The source {one.name}: {why}", fix, one.path)

    def _of(self, workspace: str) -> tuple[tuple[AttachedSource, ...], str]:
        try:
            return self._sources.of(workspace), ""
        except ConfigError as error:
            return (), str(error)


def _item(source: AttachedSource) -> MemoryItem:
    version = source.version
    text = f"{source.name}: {source.kind}, {described(version)}"
    if source.missing and source.kind != "address":
        text += f"; {source.missing}"
    return MemoryItem(
        id=source.name,
        text=text,
        scope="global" if source.scope == GLOBAL else "workspace",
        source=source.path,
        created=source.attached,
        bytes=0 if version is None else version.bytes,
        sha256="" if version is None else version.id,
    )
