"""A spoiled journal, in a few places; `make journal-damage` does the many."""

import sys

import pytest

from support.house import ROOT
from support.machine import MAKES_FILES

sys.path.insert(0, str(ROOT / "scripts"))
from journaldamage import WAYS, damage


@pytest.mark.slow
@MAKES_FILES
def test_every_task_with_a_session_is_found_again_whatever_was_spoiled() -> None:
    outcome = damage(2 * len(WAYS))
    assert outcome["faults"] == [] and outcome["places"] == 2 * len(WAYS)
