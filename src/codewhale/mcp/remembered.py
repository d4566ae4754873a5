"""What servers offered last time, kept so that their tools are found before they are started: a file for each server
below `mcp/offers` of the state directory."""

import contextlib
import hashlib
import os
from collections.abc import Mapping

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from codewhale.lib.clock import Clock, rfc3339
from codewhale.lib.files import atomic_write, private_dir
from codewhale.mcp.rows import digest
from codewhale.mcp.terms import OfferedTool, ServerOffer

MAX_BYTES = 8 << 20
MOST_GONE = 200


class RememberedOffer(Struct, frozen=True):
    """What a server offered. `digest` is what was written of the server then, `approved` its tools as the person
    last knew them: one that says something else of itself now is put to them before its next call."""

    digest: str
    at: str
    offer: ServerOffer
    approved: Mapping[str, OfferedTool] = field(default_factory=dict)

    def changed(self, tool: str) -> tuple[OfferedTool, OfferedTool] | None:
        """A tool as it was and as it is, where that is not the same."""
        now = next((one for one in self.offer.tools if one.name == tool), None)
        before = self.approved.get(tool)
        return None if now is None or before is None or digest(before) == digest(now) else (before, now)

    @property
    def shown(self) -> ServerOffer:
        """What may be shown of it: each tool as it was approved."""
        return replace(self.offer, tools=tuple(self.approved.get(tool.name, tool) for tool in self.offer.tools))


class RememberedOffers:
    """The offers of a home. Nothing is read before it is asked; what cannot be read is not there."""

    def __init__(self, home: str, clock: Clock) -> None:
        self._home = home
        self._folder = os.path.join(home, "mcp", "offers")
        self._clock = clock

    def get(self, key: str, written: str) -> RememberedOffer | None:
        """What the server under this key offered, as long as it is the same one."""
        try:
            with open(self._path(key), "rb") as file:
                data = file.read(MAX_BYTES + 1)
            found = msgspec.json.decode(data, type=RememberedOffer)
        except (OSError, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return None
        return found if found.digest == written and len(data) <= MAX_BYTES else None

    def put(self, key: str, written: str, offer: ServerOffer) -> RememberedOffer:
        """Keep what a server offers now. Tools that were not there before count as known."""
        before = self.get(key, written)
        known = before.approved if before is not None else {}
        now = {tool.name: known.get(tool.name, tool) for tool in offer.tools}
        # One that goes and comes back as another is not new.
        gone = {name: tool for name, tool in known.items() if name not in now}
        approved = {**dict(list(gone.items())[:MOST_GONE]), **now}
        return self._write(key, RememberedOffer(written, rfc3339(self._clock.now()), offer, approved))

    def approve(self, key: str, written: str, tool: str) -> RememberedOffer | None:
        """The person has seen what a tool says of itself now."""
        known = self.get(key, written)
        now = None if known is None else next((one for one in known.offer.tools if one.name == tool), None)
        if known is None or now is None:
            return known
        return self._write(key, replace(known, approved={**known.approved, tool: now}))

    def forget(self, key: str) -> None:
        with contextlib.suppress(OSError):
            os.unlink(self._path(key))

    def _write(self, key: str, row: RememberedOffer) -> RememberedOffer:
        with contextlib.suppress(OSError):  # it is found again once the server is started
            for folder in (self._home, os.path.dirname(self._folder), self._folder):
                private_dir(folder)
            atomic_write(self._path(key), msgspec.json.encode(row), 0o600)
        return row

    def _path(self, key: str) -> str:
        return os.path.join(
            self._folder, f"{hashlib.sha256(key.encode('utf-8', 'surrogatepass')).hexdigest()[:32]}.json"
        )
