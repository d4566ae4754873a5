"""Processes that work at tasks, under a few kills; `make work-crash` does the many."""

import sys

import pytest

from support.house import ROOT
from support.machine import MAKES_FILES

sys.path.insert(0, str(ROOT / "scripts"))
from workcrash import kill_many


@pytest.mark.slow
@MAKES_FILES
def test_no_task_is_lost_or_done_twice_in_six_kills() -> None:
    outcome = kill_many(6, 8, 4, lease=6.0)
    assert outcome["faults"] == [] and outcome["kills"] >= 6 and outcome["aimed"] >= 1
