"""What a person sees on stderr while a headless turn runs: one safe line per thing worth knowing."""

from collections.abc import Callable

from codewhale.lib.text import one_line
from codewhale.protocol.events import (
    CallFinished,
    CallStarted,
    ChildOpened,
    Event,
    JobEnded,
    JobStarted,
    Notice,
    RetryCountdown,
)

LINE_LIMIT = 160


class Progress:
    """Turns events into lines for `write`; says nothing of the ones a person need not see."""

    def __init__(self, write: Callable[[str], None]) -> None:
        self._write = write

    def show(self, event: Event) -> None:
        """Write the line of this event, if it has one."""
        text = _text(event)
        if text:
            self._write(one_line(text, LINE_LIMIT) + "\n")

    def say(self, text: str) -> None:
        """Write one line."""
        self._write(one_line(text, 2000) + "\n")


def _text(event: Event) -> str:
    match event:
        case CallStarted():
            return f"> {event.name} {event.arguments}"
        case CallFinished(ok=False):
            first = event.content.strip().partition("\n")[0]
            return f"! {event.name} failed: {first or event.error}"
        case Notice():
            return event.text if event.level == "info" else f"{event.level}: {event.text}"
        case RetryCountdown():
            what = "stream broke" if event.broke else "request failed"
            return f"{what}, retry {event.attempt} of {event.attempts} in {event.delay:.1f} s: {event.reason}"
        case JobStarted():
            return f"> job {event.job_id}: {event.command}"
        case JobEnded():
            return f"job {event.job_id} {event.status.lower()} after {event.seconds:.1f} s"
        case ChildOpened():
            return f"> agent {event.name}: {event.objective}"
        case _:
            return ""
