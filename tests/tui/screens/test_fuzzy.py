"""Finding by a few letters."""

import pytest

from codewhale.tui.rows import Item, find, ranked
from support.patience import Moment


@pytest.mark.parametrize(
    ("sought", "text", "marked"),
    [
        ("abc", "xxabcxx", "abc"),
        ("sg", "src/git.py", "sg"),
        ("git", "digit git", "git"),
        ("py main", "main.py", "mainpy"),
        ("ÄB", "äb", "äb"),
        ("字", "a字b", "字"),
        ("i", "İi", "i"),
        ("", "x", ""),
    ],
)
def test_what_fits_is_marked(sought: str, text: str, marked: str) -> None:
    found = find(sought, text)
    assert found is not None and "".join(text[place] for place in found.places) == marked


def test_beginnings_of_words_are_preferred() -> None:
    found = find("git", "digit git")
    assert found is not None and found.places == (6, 7, 8)


@pytest.mark.parametrize(("sought", "text"), [("x", ""), ("ba", "ab"), ("a b", "a"), ("aa", "a")])
def test_what_does_not_fit(sought: str, text: str) -> None:
    assert find(sought, text) is None


def test_a_word_may_stand_beside() -> None:
    assert find("crane parrot", "fix the crane", "model parrot") is not None
    assert find("prt", "fix", "parrot") is None


def test_the_best_comes_first_in_its_group() -> None:
    items = [Item(name, name, group=group) for name, group in (("xaxb", "1"), ("b", "1"), ("ab", "2"), ("a-b", "2"))]
    assert [match.item.key for match in ranked(items, "ab")] == ["ab", "a-b", "xaxb"]
    assert [match.item.key for match in ranked(items, "")] == ["xaxb", "b", "ab", "a-b"]
    assert len(ranked(items * 500, "b", most=7)) == 7


def test_it_takes_no_longer_for_what_nearly_fits_everywhere() -> None:
    began = Moment()
    for _ in range(100):
        assert find("a" * 50 + "b", "a" * 400) is None
        assert find("abababababab", "ab" * 200) is not None
    assert not began.laboured
