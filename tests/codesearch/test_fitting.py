"""Rows are left out until an answer fits, one is always told."""

import pytest

from codewhale.codesearch.render import MOST_BYTES, fit_rows


@pytest.mark.parametrize(("rows", "size"), [(0, 10), (1, 10), (1, 20_000), (3, 10), (40, 500), (40, 7_000)])
def test_as_many_rows_as_fit(rows: int, size: int) -> None:
    text, kept = fit_rows(rows, lambda count: {"results": ["x" * size] * count})
    assert kept == rows or len(text) <= MOST_BYTES or kept == 1
    assert (kept >= 1) == (rows >= 1) and text.count("x" * size) == kept
    if kept < rows:
        assert len(text) + size > MOST_BYTES or kept == 1
