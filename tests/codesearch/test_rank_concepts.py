"""Questions about this tree, asked of an index of it: a bound that later changes of the ranking must not fall below.
Where a file joins the tree that answers one as well, it belongs into the question's row."""

from pathlib import Path

import pytest

from support.concepts import answers


# Of its subsystems; and of its surface, in the words of who has never seen it.
@pytest.mark.parametrize(
    ("questions", "recall", "reciprocal"), [("concepts.jsonl", 0.80, 0.67), ("surface.jsonl", 0.80, 0.55)]
)
def test_questions_about_this_tree_find_their_files(
    questions: str, recall: float, reciprocal: float, tmp_path: Path
) -> None:
    found = answers(tmp_path, questions)
    table = "\n".join(f"{one.recall:.2f} {one.reciprocal:.2f} {one.query}" for one in found)
    assert len(found) == 15
    assert sum(one.recall for one in found) / 15 >= recall, table
    assert sum(one.reciprocal for one in found) / 15 >= reciprocal, table
