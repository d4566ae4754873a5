"""Opens the console of a command that the person types into, once nothing else is being written."""

from collections.abc import Callable

from codewhale.protocol.events import Envelope, JobEnded, JobStarted, SessionResumed, TurnFinished

IDLE_SECONDS = 0.7


class Consoles:
    """`quiet` tells for how many seconds no key was pressed, None while something stands in the composer; `free`
    whether nothing else is open or asked. No key may have been pressed for `idle` seconds."""

    def __init__(self, quiet: Callable[[], float | None], free: Callable[[], bool], idle: float) -> None:
        self._quiet = quiet
        self._free = free
        self._idle = idle
        self.job = ""

    def take(self, envelope: Envelope) -> bool:
        """Count an event in; whether a command waits for a console now that did not."""
        match envelope.event:
            case JobStarted(job_id=job, interactive=True):
                self.job = job
                return True
            case JobEnded(job_id=job) if job == self.job:
                self.job = ""
            case TurnFinished() | SessionResumed():
                self.job = ""
        return False

    def due(self) -> str:
        """The job whose console is to be opened now, "" for none; it is opened once."""
        quiet = self._quiet()
        if not self.job or quiet is None or quiet < self._idle or not self._free():
            return ""
        job, self.job = self.job, ""
        return job
