"""What models propose to remember, until a person decides: HOME/memory/waiting.jsonl, a proposal in each line."""

import contextlib
import os
import time
from collections.abc import Callable, Iterable, Iterator

import msgspec
from msgspec import convert
from msgspec.structs import asdict, replace

from codewhale.lib.files import DISK, atomic_write, write_all
from codewhale.lib.text import one_line
from codewhale.memory.files import locked
from codewhale.memory.layers import MemoryRefused
from codewhale.memory.lines import LONGEST_FACT
from codewhale.memory.model import Fact, Proposal
from codewhale.memory.rivals import contradicts
from codewhale.memory.service import Memory
from codewhale.protocol.errors import SessionError
from codewhale.protocol.events import FactDecided
from codewhale.protocol.memory import DecideFact, WaitingFact

MOST_WAITING = 200
_MOST_BYTES = 8 << 20


class WaitingList:
    """The proposals of a home. `place(workspace)` names a workspace, the same for each of its clones once `placing` has
    heard of one; `facts` stores what is taken."""

    def __init__(
        self, home: str, place: Callable[[str], str], facts: Memory, placing: Callable[[str], object] = str
    ) -> None:
        self._folder = os.path.join(home, "memory")
        self._path = os.path.join(self._folder, "waiting.jsonl")
        self._place = place
        self._facts = facts
        self._placing = placing

    def add(self, workspace: str, proposal: Proposal) -> tuple[Proposal, bool]:
        """Let a proposal wait under an id of its own, and whether it is new: one that says the same waits already, and
        is foreign from now on where either is. Raises MemoryRefused."""
        if proposal.scope == "workspace":
            self._placing(workspace)
        named = replace(proposal, workspace=self._place(workspace), created=_now())
        with self._changing() as rows:
            for number, row in enumerate(rows):
                if _same(row) == _same(named):
                    tainted = row.tainted or named.tainted
                    rows[number] = replace(row, tainted=tainted, origin=row.origin or named.origin)
                    return rows[number], False
            if len(rows) >= MOST_WAITING:
                raise MemoryRefused(
                    f"Nothing was proposed: {MOST_WAITING} proposals wait for the user already (/memory waiting)."
                )
            taken = {row.id[:4] for row in rows}
            fresh = next(name for name in iter(lambda: os.urandom(4).hex(), "") if name[:4] not in taken)
            rows.append(replace(named, id=fresh))
            return rows[-1], True

    def waiting(self, workspace: str) -> tuple[Proposal, ...]:
        """Those of a workspace and those for everything, oldest first. Raises MemoryRefused."""
        rows, _ = self._read()
        return self._undecided(workspace, rows) if rows else ()

    def take(self, workspace: str, name: str, text: str = "") -> tuple[Proposal, Fact]:
        """Store the proposal whose id begins with `name`, in other words where `text` gives them. It is stored once,
        whoever else takes it and wherever a process dies. Raises MemoryRefused."""
        with self._changing() as rows:
            chosen = self._chosen(workspace, rows, name)
            origin = f", from {chosen.origin}" if chosen.origin else ""
            source = f"{_mark(chosen)}, call {chosen.call_id}{origin}"
            fact = self._facts.add(
                workspace, text or chosen.text, chosen.scope, key=chosen.key, source=source, tainted=chosen.tainted
            )
            rows.remove(chosen)
        return chosen, fact

    def drop(self, workspace: str, name: str) -> Proposal:
        """Forget the proposal whose id begins with `name`. Raises MemoryRefused."""
        with self._changing() as rows:
            chosen = self._chosen(workspace, rows, name)
            rows.remove(chosen)
        return chosen

    # ------------------------------------------------------------------ as interfaces ask

    def shown(self, workspace: str) -> tuple[WaitingFact, ...]:
        """What waits, with the stored facts that it is opposed to. Raises SessionError."""
        with _refusing():
            rows = self.waiting(workspace)
        stored = self._facts.facts(workspace) if rows else ()
        return tuple(
            convert({**_told(row), "contradicts": [fact.text for fact in opposed(stored, row)]}, WaitingFact)
            for row in rows
        )

    def decide(self, op: DecideFact) -> FactDecided:
        """Take or drop a proposal; what that came to. Raises SessionError."""
        with _refusing():
            if op.decision == "drop":
                return FactDecided(self.drop(op.workspace, op.id).id, "dropped")
            proposal, fact = self.take(op.workspace, op.id, op.text)
        same = fact.text == proposal.text
        return FactDecided(proposal.id, "taken" if same else "changed", "" if same else fact.text)

    # ------------------------------------------------------------------ which ones

    def _chosen(self, workspace: str, rows: list[Proposal], name: str) -> Proposal:
        waiting = self._undecided(workspace, rows)
        rows[:] = [row for row in rows if row in waiting or not self._is_at(workspace, row)]
        chosen = [row for row in waiting if name and row.id.startswith(name.lower())]
        if len(chosen) == 1:
            return chosen[0]
        ids = ", ".join(row.id for row in chosen[:10])
        if ids:
            raise MemoryRefused(f"More than one proposal has an id that begins with {name}: {ids}. Give more of it.")
        raise MemoryRefused(f"Nothing waits as {one_line(name, 40)!r}. /memory waiting lists what does, with the ids.")

    def _undecided(self, workspace: str, rows: list[Proposal]) -> tuple[Proposal, ...]:
        """Those at hand, without what a process stored that died before it could remove it here."""
        stored = {fact.source.partition(",")[0] for fact in self._facts.facts(workspace)}
        return tuple(row for row in rows if self._is_at(workspace, row) and _mark(row) not in stored)

    def _is_at(self, workspace: str, row: Proposal) -> bool:
        return row.scope == "global" or row.workspace == self._place(workspace)

    # ------------------------------------------------------------------ the file

    @contextlib.contextmanager
    def _changing(self) -> Iterator[list[Proposal]]:
        """The proposals, written back where they were changed. One process at a time. Raises MemoryRefused."""
        try:
            with locked(self._folder):
                rows, damaged = self._read()
                before = list(rows)
                yield rows
                if rows != before:
                    self._set_aside(damaged)
                    atomic_write(self._path, b"".join(msgspec.json.encode(row) + b"\n" for row in rows), 0o600)
        except OSError as error:
            raise MemoryRefused(f"Nothing was changed: {self._path}: {error.strerror or error}.") from error

    def _read(self) -> tuple[list[Proposal], list[bytes]]:
        """The proposals, and the lines that are none. Raises MemoryRefused."""
        try:
            with open(self._path, "rb") as file:
                data = file.read(_MOST_BYTES + 1)
        except FileNotFoundError:
            return [], []
        except OSError as error:
            raise MemoryRefused(f"{self._path} cannot be read: {error.strerror or error}.") from error
        if len(data) > _MOST_BYTES:
            raise MemoryRefused(f"{self._path} is larger than {_MOST_BYTES >> 20} MiB. Move it away.")
        rows: list[Proposal] = []
        damaged: list[bytes] = []
        decode = msgspec.json.Decoder(Proposal).decode
        for line in data.splitlines():
            try:
                rows.append(decode(line))
            except (msgspec.DecodeError, UnicodeError, RecursionError):
                damaged += [line] if line.strip() else []
        return rows, damaged

    def _set_aside(self, lines: list[bytes]) -> None:
        if lines:
            flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
            fd = os.open(os.path.join(self._folder, "waiting.damaged"), flags, 0o600)
            try:
                write_all(DISK, fd, b"\n".join(lines) + b"\n")
                os.fsync(fd)
            finally:
                os.close(fd)


@contextlib.contextmanager
def _refusing() -> Iterator[None]:
    try:
        yield
    except MemoryRefused as refused:
        raise SessionError(str(refused)) from refused


def opposed(facts: Iterable[Fact], proposal: Proposal) -> list[Fact]:
    """Those that have the key of a proposal, or cannot hold beside it."""
    named, key = Fact("", proposal.text, key=proposal.key), proposal.key.casefold()
    return [fact for fact in facts if (key and fact.key.casefold() == key) or contradicts(fact, named)]


def _told(row: Proposal) -> dict[str, str]:
    """The fields of a line that somebody else may have written."""
    return {name: one_line(text, LONGEST_FACT) for name, text in asdict(row).items() if isinstance(text, str)}


def _mark(proposal: Proposal) -> str:
    """How the source of a stored fact begins; no other proposal's does."""
    return f"proposal {proposal.id} of session {proposal.session}"


def _same(proposal: Proposal) -> tuple[str, str, str]:
    return (
        " ".join(proposal.text.casefold().split()),
        proposal.scope,
        proposal.workspace * (proposal.scope == "workspace"),
    )


def _now() -> str:
    return time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime())
