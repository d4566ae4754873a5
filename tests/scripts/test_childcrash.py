"""A process whose session has sub-agents at work, under a few kills; `make children-crash` does the many."""

import sys

import pytest

from support.house import ROOT
from support.machine import MAKES_FILES

sys.path.insert(0, str(ROOT / "scripts"))
from childcrash import kill_many


@pytest.mark.slow
@MAKES_FILES
def test_each_end_is_told_once_and_no_call_is_repeated_in_ten_kills() -> None:
    outcome = kill_many(10, 5)
    assert outcome["faults"] == [] and outcome["kills"] == 10
    assert outcome["between"] and outcome["children"] >= 3
