"""When the console of a command that is typed into opens: never under the hands of somebody who writes."""

from codewhale.protocol.events import Event, JobEnded, JobStarted, TurnFinished
from codewhale.tui.input import Consoles
from support.tuirecord import envelopes

STARTED = JobStarted("j1", "read x", ".", interactive=True)


class Around:
    """What the app would say."""

    quiet: float | None = 1.0
    free = True


def consoles(around: Around, *events: Event) -> Consoles:
    """Those to which this has happened."""
    made = Consoles(lambda: around.quiet, lambda: around.free, 0.7)
    for envelope in envelopes(events):
        made.take(envelope)
    return made


def test_it_is_due_once_when_nobody_writes() -> None:
    around = Around()
    made = consoles(around, STARTED)
    around.quiet = 0.1
    assert made.due() == ""
    around.quiet = None
    assert made.due() == ""
    around.quiet, around.free = 1.0, False
    assert made.due() == ""
    around.free = True
    assert made.due() == "j1" and made.due() == ""


def test_other_jobs_and_those_that_ended_have_none() -> None:
    for events in (
        [JobStarted("j1", "sleep 9", ".")],
        [STARTED, JobEnded("j1", "Completed", 0, 1.0)],
        [STARTED, TurnFinished(1, "interrupted")],
    ):
        assert consoles(Around(), *events).due() == ""
