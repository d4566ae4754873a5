"""Every dialect against its fixtures: answers in, events out, the bytes of the next request; and cut anywhere."""

import pytest

from support.conformance import Case, cases, check, check_cuts

CASES = [pytest.param(case, id=case.name) for case in cases()]


@pytest.mark.parametrize("case", CASES)
async def test_bytes_in_events_out_next_request(case: Case) -> None:
    await check(case)


@pytest.mark.parametrize("case", CASES)
async def test_each_answer_cut_at_every_byte(case: Case) -> None:
    assert await check_cuts(case) == sum(len(body) for body in case.streams)
