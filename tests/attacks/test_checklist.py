"""The checklist itself: every row is there, is held by a test, or waits for a part that truly is not there yet."""

import re
import sys

import pytest

from support.house import ROOT

sys.path.insert(0, str(ROOT / "scripts"))
from attacks import held_by, registered, rows, subsystems

ROWS = rows()
COUNTS = {"A": 18, "B": 11, "C": 12, "D": 8, "E": 4, "F": 4, "G": 6, "H": 6}


def test_every_row_is_there_and_says_one_thing() -> None:
    assert list(ROWS) == [f"{letter}{number}" for letter, count in COUNTS.items() for number in range(1, count + 1)]
    for id, row in ROWS.items():
        assert set(row) in ({"says"}, {"says", "pending"}, {"says", "grows"}), id
        assert row["says"] and "\n" not in row["says"], id


@pytest.mark.parametrize("id", ROWS)
def test_a_row_is_held_or_waits_for_what_is_not_there(id: str) -> None:
    row = ROWS[id]
    part = row.get("pending") or row.get("grows")
    if part is not None:
        assert part in subsystems()
        assert not registered(part), f"{part} is there: give {id} tests that cover it and take the word out of its row"
    if "pending" not in row:
        assert held_by(id), f"no test_{id.lower()}_... anywhere: {row['says']}"


def test_every_part_is_waited_for_and_no_test_names_a_row_that_is_not() -> None:
    waited = {row.get("pending") or row.get("grows") for row in ROWS.values()} - {None}
    assert set(subsystems()) == waited
    named = {
        id.upper()
        for path in (ROOT / "tests").rglob("test_*.py")
        for ids in re.findall(r"def test_((?:[a-h]\d+_)+)", path.read_text())
        for id in ids.strip("_").split("_")
    }
    assert named <= set(ROWS)


def test_a_part_is_found_by_its_tool_or_its_file() -> None:
    assert registered("fetch", {"fetch": ["tool:fetch_url", "tool:read_file"]})
    assert registered("patching", {"patching": ["file:**/patching*"]})
    assert not registered("moon", {"moon": ["tool:moon", "file:**/moon*"]})
