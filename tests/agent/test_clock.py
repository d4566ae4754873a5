"""The time of a call."""

from collections.abc import Iterator

import pytest

from codewhale.agent.pending_call import CallTimer


def test_the_clock_runs_but_while_a_person_is_waited_for() -> None:
    times: Iterator[float] = iter((100.0, 100.5, 107.5, 107.75, 110.0, 111.0, 113.0))
    clock = CallTimer(lambda: next(times))
    with clock.waiting():
        pass
    assert clock.ms == 750
    with pytest.raises(ValueError, match="gone"), clock.waiting():
        raise ValueError("gone")
    assert clock.ms == 5_000
