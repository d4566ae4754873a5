"""The scores of file search are the documented ones."""

import pytest

from codewhale.workspace.file_search import score


def test_scores_are_the_documented_ones() -> None:
    assert score("a.py", "x/a.py") == 1.0
    assert score("x/a.py", "x/a.py") == 0.98
    assert score("abc", "x/abcdef") == pytest.approx(0.9 + 0.08 * 3 / 6)
    assert score("x/a", "x/abc") == pytest.approx(0.85 + 0.08 * 3 / 5)
    assert score("bc", "x/abcd") == pytest.approx(0.75 + 0.08 * 2 / 4)
    assert score("x/b", "ax/bc") == pytest.approx(0.7 + 0.08 * 3 / 5)
    assert score("ad", "x/abcd") == pytest.approx(0.6 + 0.4 * (0.7 * 2 / 4 + 0.3 * 2 / 4))
    assert score("xd", "x/abcd") == pytest.approx(0.55 + 0.4 * (0.7 * 2 / 6 + 0.3 * 2 / 6))
    assert score("zz", "x/abcd") is None
