"""What the harness changed in a file within the last seconds. An editor that had read the file before writes the old
lines back without knowing; nobody can have seen the new ones by then, so they are put back."""

import contextlib
import hashlib
import os

import msgspec
from msgspec import Struct

from codewhale.lib.bounded import read_regular
from codewhale.memory.lines import fact_line, read_page, text_id, with_changed, with_fact, without
from codewhale.memory.model import Fact, FactScope

SECONDS = 5.0
_MOST = 1000
_LONGEST = 8 << 20


class RecentChange(Struct, frozen=True):
    """A fact as it was left at a time (None: removed), the states that it had before ("" for none), and the digest of
    the file before."""

    id: str
    at: float
    fact: Fact | None
    before: tuple[str, ...]
    file: str


class RecentChanges(Struct, frozen=True):
    """The changes in their order, and digests of the lines that there were before the first."""

    lines: tuple[str, ...] = ()
    changes: tuple[RecentChange, ...] = ()

    def put_back(self, data: bytes, scope: FactScope, saved: float, now: float) -> "tuple[bytes, RecentChanges]":
        """The file with what a save at this time took back unknowingly, and the changes that are still recent: those
        that a person took back are none."""
        young = [one for one in self.changes if one.at > saved - SECONDS]
        states = _states(data, scope)
        missing = [states.get(one.id, "") in one.before for one in young]
        known = next((at for at in range(len(young), 0, -1) if not missing[at - 1]), 0)
        held, lost = [one for one, gone in zip(young[:known], missing, strict=False) if not gone], young[known:]
        if lost and lost[0].file != _digest(data) and self._is_like(data, len(held)):
            for one in lost:
                data = _with(data, scope, one, one.id in states)
            held += lost
        held = [one for one in held if one.at > now - SECONDS]
        return data, RecentChanges(self.lines if held else (), tuple(held))

    def and_then(self, old: bytes, new: bytes, scope: FactScope, now: float) -> "RecentChanges":
        """With what the harness changes now."""
        before, after, digest = _states(old, scope), _states(new, scope), _digest(old)
        facts = {item.fact.id: item.fact for item in read_page(new, scope).items}
        ids = [id for id in before | after if before.get(id) != after.get(id)]
        earlier = {one.id: one.before for one in self.changes}
        were = {id: (*earlier.get(id, ()), before.get(id, "")) for id in ids}
        was = {id: tuple(state for state in states if state != after.get(id, "")) for id, states in were.items()}
        fresh = [RecentChange(id, now, facts.get(id), was[id], digest) for id in ids]
        kept = [one for one in self.changes if one.id not in ids and one.at > now - SECONDS]
        return RecentChanges(self.lines if kept else _lines(old), (*kept, *fresh)[-_MOST:])

    def _is_like(self, data: bytes, held: int) -> bool:
        """Whether most of what was there still is: else a person wrote the file anew."""
        lines = set(_lines(data))
        same = sum(line in lines for line in self.lines) + held
        return same > 0 and 3 * same >= 2 * (len(self.lines) + held)


def load(path: str) -> RecentChanges:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
        return msgspec.json.decode(read_regular(fd, _LONGEST) or b"", type=RecentChanges)
    except (OSError, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return RecentChanges()


def store(path: str, recent: RecentChanges) -> None:
    """For as long as this machine runs: a file that is saved after a power cut knows all that was written."""
    with contextlib.suppress(OSError):
        if not recent.changes:
            os.unlink(path)
            return
        with open(os.open(f"{path}.tmp", os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600), "wb") as file:
            file.write(msgspec.json.encode(recent))
        os.replace(f"{path}.tmp", path)


def _with(data: bytes, scope: FactScope, change: RecentChange, there: bool) -> bytes:
    if change.fact is None:
        return without(data, scope, (change.id,))
    return with_changed(data, change.fact) if there else with_fact(data, change.fact)


def _states(data: bytes, scope: FactScope) -> dict[str, str]:
    return {item.fact.id: text_id(fact_line(item.fact)) for item in read_page(data, scope).items}


def _digest(data: bytes) -> str:
    return hashlib.sha256(data.rstrip()).hexdigest()


def _lines(data: bytes) -> tuple[str, ...]:
    return tuple(hashlib.sha256(line.strip()).hexdigest()[:8] for line in data.splitlines() if line.strip())
