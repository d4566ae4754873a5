"""Going back, forking, exporting, renaming and queueing under a few kills; `make rewinds` does the many."""

import sys

import pytest

from support.house import ROOT
from support.machine import MAKES_FILES

sys.path.insert(0, str(ROOT / "scripts"))
from rewindcrash import kill_many


@pytest.mark.slow
@MAKES_FILES
def test_no_message_and_no_file_is_lost_in_twenty_kills() -> None:
    outcome = kill_many(20, 77)
    assert outcome["faults"] == [] and outcome["kills"] == 20
    assert outcome["steps"]["both"] and outcome["steps"]["fork"] and outcome["steps"]["turn"]
