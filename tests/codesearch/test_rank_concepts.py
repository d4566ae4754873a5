"""Questions about this tree, asked of an index of it: a bound that later changes of the ranking must not fall below. It
leaves room for one question and a half, since every file that joins the tree is one more to be mistaken for another."""

from pathlib import Path

from support.concepts import answers

RECALL = 0.70
RECIPROCAL = 0.50


def test_questions_about_this_tree_find_their_files(tmp_path: Path) -> None:
    found = answers(tmp_path)
    table = "\n".join(f"{one.recall:.2f} {one.reciprocal:.2f} {one.query}" for one in found)
    assert len(found) == 15
    assert sum(one.recall for one in found) / 15 >= RECALL, table
    assert sum(one.reciprocal for one in found) / 15 >= RECIPROCAL, table
