"""Brokers and servers under a few kills; `make mcp-crash` does the many."""

import sys

import pytest

from support.house import ROOT

sys.path.insert(0, str(ROOT / "scripts"))
from mcp_crash import crash


@pytest.mark.slow
@pytest.mark.timeout(600)
async def test_each_call_has_one_end_and_none_is_sent_twice() -> None:
    assert await crash(4, 5) == 0
