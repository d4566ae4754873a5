"""The journal over one SQLite file per home."""

from collections.abc import Callable

from codewhale.journal.database import Database
from codewhale.journal.ledger import SqliteLedger
from codewhale.journal.place import MOUNTS
from codewhale.journal.runs import SqliteRuns
from codewhale.journal.schedules import SqliteSchedules, SqliteWorkers


class SqliteJournal:
    """Implements RunJournal. `clock` stands for the database's own, `mounts` for what is mounted, for tests. A file
    that is damaged is set aside at the start, with the reason in `doubt`. Raises JournalUnavailable where there can be
    none, JournalDamaged where others have a damaged one open."""

    def __init__(self, home: str, clock: Callable[[], float] | None = None, mounts: str = MOUNTS) -> None:
        self._database = Database(home, clock, mounts)
        self.path = self._database.path
        self.runs = SqliteRuns(self._database)
        self.ledger = SqliteLedger(self._database)
        self.schedules = SqliteSchedules(self._database)
        self.workers = SqliteWorkers(self._database)

    @property
    def doubt(self) -> str:
        """Why it may hold less than was done; "" where nothing speaks for that."""
        return self._database.doubt

    @property
    def gone(self) -> bool:
        """Whether what was opened is not there any more: somebody moved or deleted it."""
        return self._database.gone

    def now(self) -> float:
        """Seconds since 1970, by the database's clock."""
        with self._database.read() as base:
            return self._database.now(base)

    def check(self) -> None:
        """Raises JournalDamaged where the file is not what was written."""
        self._database.check()

    def renew(self) -> str:
        """Set a damaged file aside and begin a new one; where it is now. Raises JournalDamaged while other processes
        have it open."""
        return self._database.renew()

    def trusted(self) -> None:
        """What was in doubt has been made good."""
        self._database.trusted()

    def close(self) -> None:
        self._database.close()
