"""The journal as an interface: what a backend must do, in words that any database with transactions can keep."""

from collections.abc import Sequence
from typing import Literal, Protocol

from msgspec import Struct

from codewhale.protocol.errors import CodeWhaleError

RunState = Literal["queued", "running", "waiting", "interrupted", "completed", "failed", "cancelled"]
ENDED: tuple[RunState, ...] = ("completed", "failed", "cancelled")
Data = dict[str, object]


class JournalError(CodeWhaleError):
    """The journal cannot be used now; the text says why and what to do."""


class JournalUnavailable(JournalError):
    """There can be no journal where its file would stand."""


class JournalDamaged(JournalError):
    """The file holds what no journal wrote."""


class LeaseLost(JournalError):
    """The writer's lease is another's, or over: nothing was written."""


class NewRun(Struct, frozen=True, omit_defaults=True):
    """A run to be added; it is not begun before `due` (seconds since 1970)."""

    id: str
    kind: str
    data: Data = {}
    due: float = 0.0


class Run(Struct, frozen=True, omit_defaults=True):
    """A run as it stands. `fence` grows with each lease of it, `attempt` counts its attempts; `expires` is when the
    lease of `owner` ends. `stop` says that somebody wants its end."""

    id: str
    kind: str
    state: RunState
    data: Data
    created: float
    began: float | None = None
    ended: float | None = None
    result: Data = {}
    owner: str = ""
    expires: float = 0.0
    fence: int = 0
    attempt: int = 0
    stop: bool = False


LONGEST_LEASE = 3600.0  # seconds; one that lasts longer is of a clock that was set back since


class Lease(Struct, frozen=True):
    """The right to write for a run: `fence` is its number, and a write with a smaller one than the run's is refused."""

    run: str
    owner: str
    fence: int
    attempt: int
    expires: float


class NodeAttempt(Struct, frozen=True, omit_defaults=True):
    """One attempt of a node of a run; the run as a whole is the node "". An open one has no `ended`."""

    run: str
    node: str
    number: int
    fence: int
    state: str
    began: float
    ended: float | None = None
    data: Data = {}
    result: Data = {}


class Intent(Struct, frozen=True, omit_defaults=True):
    """A side effect that was about to begin, written before it; one that is not `settled` may be half done."""

    run: str
    key: str
    attempt: int
    made: float
    settled: float | None = None
    data: Data = {}
    result: Data = {}


class Wait(Struct, frozen=True, omit_defaults=True):
    """What a run waits for: an event of this name, until a moment; `arrived` is when it came."""

    run: str
    event: str
    until: float
    arrived: float | None = None
    data: Data = {}


class RunEntry(Struct, frozen=True, omit_defaults=True):
    """A line of a run's own history. `key` is unique within its run."""

    run: str
    key: str
    kind: str
    at: float
    data: Data = {}


class Schedule(Struct, frozen=True, omit_defaults=True):
    """What begins runs by the clock. `next_at` is the next moment, None for none; `version` grows with each change, so
    that of several that act upon one moment one alone does."""

    id: str
    kind: str
    data: Data
    next_at: float | None = None
    version: int = 0
    created: float = 0.0


class Worker(Struct, frozen=True, omit_defaults=True):
    """A process that takes runs, as of its last sign of life."""

    owner: str
    since: float
    expires: float
    data: Data = {}


class Runs(Protocol):
    """Runs and the leases of them. Whatever takes a lease writes nothing once it is lost, and raises LeaseLost."""

    def add(self, run: NewRun) -> Run:
        """Queue a run; one of the same id that there is already is given back as it stands."""

    def get(self, run: str) -> Run | None: ...
    def named(self, kind: str, prefix: str, most: int = 10) -> tuple[str, ...]:
        """The ids of a kind that begin so, at most `most`."""

    def rows(self, kind: str, states: Sequence[RunState] = (), most: int = 100) -> tuple[Run, ...]:
        """The newest of a kind, newest first."""

    def counts(self, kind: str) -> dict[str, int]:
        """How many there are of a kind, by state."""

    def claim(self, kind: str, owner: str, seconds: float) -> tuple[Run, Lease] | None:
        """Take the oldest that is due for so long: queued, or waiting for what came or came not in time."""

    def beat(self, lease: Lease, seconds: float) -> tuple[Run, Lease]:
        """Extend a lease; the run as it stands."""

    def end(self, lease: Lease, state: RunState, result: Data) -> Run:
        """Record what came of it, and give the lease back. "queued": it was not begun, and this attempt never was."""

    def change(self, lease: Lease, data: Data) -> Run:
        """Replace the data of a run."""

    def lapsed(self, kind: str) -> tuple[Run, ...]:
        """The running ones whose lease is over."""

    def lapse(self, run: Run, state: RunState, result: Data) -> Run | None:
        """Put a lapsed run into another state, whose former owner writes nothing any more. None where it stands
        otherwise by now, and where it would be "queued" while an intent of it is not settled."""

    def requeue(self, run: str, states: Sequence[RunState], data: Data | None = None) -> Run | None:
        """Queue one of these states for its next attempt; None where it stands otherwise by now."""

    def settle(
        self, run: str, states: Sequence[RunState], state: RunState, result: Data, data: Data | None = None
    ) -> Run | None:
        """Put one that nobody works at into another state; None where it stands otherwise by now."""

    def stop(self, run: str) -> Run | None:
        """Want the end of a run: one that nobody works at is cancelled, of a running one its owner is told."""


class Ledger(Protocol):
    """What belongs to a run: attempts of its nodes, intents, waits, and its history."""

    def begin(self, lease: Lease, node: str, data: Data) -> NodeAttempt:
        """Begin the next attempt of a node."""

    def finish(self, lease: Lease, attempt: NodeAttempt, state: str, result: Data) -> None: ...
    def attempts(self, run: str) -> tuple[NodeAttempt, ...]: ...
    def intend(self, lease: Lease, key: str, data: Data) -> Intent:
        """Write down what is about to begin; on disk when this returns. One of this key that there is already is given
        back as it stands."""

    def settled(self, lease: Lease, key: str, result: Data) -> None:
        """What was intended has ended."""

    def intents(self, run: str, *, open_only: bool = False) -> tuple[Intent, ...]: ...
    def wait(self, lease: Lease, event: str, until: float) -> Run:
        """Let a run wait for an event, and give the lease back."""

    def signal(self, event: str, data: Data) -> int:
        """An event has come: how many runs waited for it."""

    def waits(self, run: str) -> tuple[Wait, ...]: ...
    def note(self, run: str, kind: str, data: Data, key: str = "", lease: Lease | None = None) -> RunEntry:
        """Add to the history of a run, once for each key."""

    def entries(self, run: str, most: int = 1000) -> tuple[RunEntry, ...]:
        """The last of its history, oldest first."""


class Schedules(Protocol):
    """What begins runs by the clock."""

    def put(self, schedule: Schedule) -> Schedule | None:
        """Add one (`version` 0) or change the version that is given; None where it was changed or taken since."""

    def get(self, schedule: str) -> Schedule | None: ...
    def named(self, kind: str, prefix: str, most: int = 10) -> tuple[str, ...]: ...
    def rows(self, kind: str, most: int = 100) -> tuple[Schedule, ...]:
        """Newest first."""

    def due(self, kind: str) -> tuple[Schedule, ...]:
        """Those whose next moment has come, the earliest first."""

    def fire(self, schedule: Schedule, run: NewRun | None) -> tuple[Schedule, Run | None] | None:
        """Change the version that is given and queue the run, both or neither; None where somebody else did."""

    def drop(self, schedule: str) -> bool: ...


class Workers(Protocol):
    """Who takes runs."""

    def here(self, owner: str, seconds: float, data: Data) -> None:
        """A sign of life that holds for so long."""

    def gone(self, owner: str) -> None: ...
    def rows(self) -> tuple[Worker, ...]:
        """Those whose sign of life holds."""


class RunJournal(Protocol):
    """All of it over one store. `doubt` says why it may hold less than was done ("": nothing speaks for that), until
    `trusted`. `gone`: the store that was opened is not there any more, and what is written to it is lost."""

    @property
    def doubt(self) -> str: ...
    @property
    def gone(self) -> bool: ...
    @property
    def runs(self) -> Runs: ...
    @property
    def ledger(self) -> Ledger: ...
    @property
    def schedules(self) -> Schedules: ...
    @property
    def workers(self) -> Workers: ...
    def now(self) -> float:
        """The clock of the store."""

    def check(self) -> None:
        """Raises JournalDamaged where the store is not what it should be."""

    def renew(self) -> str:
        """Set a damaged store aside and begin a new one; where it is now. Raises JournalDamaged where that cannot be
        while others use it."""

    def trusted(self) -> None:
        """What was in doubt has been made good."""

    def close(self) -> None: ...
