"""Tables: columns share the width, nothing is wider than it."""

from hypothesis import given
from hypothesis import strategies as st

from codewhale.display.text import cells
from codewhale.display.transcript.markdown import Cell, share, table_lines


def cell(text: str, right: bool = False) -> Cell:
    return Cell([[(text, "text")]], right)


@given(
    st.lists(st.lists(st.text(alphabet="ab 中", max_size=30), min_size=1, max_size=5), min_size=1, max_size=5),
    st.integers(10, 60),
)
def test_no_line_is_too_wide(rows: list[list[str]], width: int) -> None:
    for line in table_lines([[cell(text) for text in row] for row in rows], width):
        assert cells(line.text) <= width


def test_columns_are_as_wide_as_they_need() -> None:
    lines = table_lines([[cell("a"), cell("n")], [cell("long one"), cell("7", right=True)]], 40)
    assert [line.text for line in lines] == ["a        │ n", "─────────┼──", "long one │ 7"]


def test_wide_columns_give_way() -> None:
    assert share([3, 40, 20], 30) == [3, 13, 13]
    assert share([3, 4], 30) == [3, 4]


def test_a_table_that_cannot_stand_side_by_side_is_told_row_by_row() -> None:
    header = [cell(f"column{number}") for number in range(6)]
    row = [cell(f"value{number}") for number in range(6)]
    lines = [line.text for line in table_lines([header, row], 24)]
    assert lines[:2] == ["column0: value0", "column1: value1"]


def test_nothing_is_no_table() -> None:
    assert table_lines([], 20) == []
