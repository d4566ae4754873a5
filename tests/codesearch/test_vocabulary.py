"""Words and terms as numbers."""

import numpy
from hypothesis import given
from hypothesis import strategies as st

from codewhale.codesearch import vocabulary
from codewhale.codesearch.terms import Terms
from codewhale.codesearch.vocabulary import Vocabulary
from codewhale.codesearch.wordfinder import MARGIN

TERMS = Terms()
WORDS = st.lists(
    st.one_of(
        st.sampled_from(
            "open_gate openGate Größe 認証キー x1y2 __init__ HTTPServer ___ 12345678 deadbeefdeadbeef0".split()
        ),
        st.text(st.sampled_from("abXY_19é"), min_size=1, max_size=12),
    ),
    max_size=30,
)


@given(st.lists(WORDS, min_size=1, max_size=4))
def test_a_word_comes_to_the_terms_it_is_split_into(texts: list[list[str]]) -> None:
    known = Vocabulary(TERMS)
    for words in texts:
        _, numbers = known.words(MARGIN + " ".join(words).encode() + MARGIN)
        origin, terms = known.expanded(numbers)
        found = [[known.spelled[term] for term in terms[origin == at]] for at in range(len(words))]
        assert found == [list(TERMS.expand(word)) for word in words]


def test_a_word_keeps_its_number_through_many_others() -> None:
    known = Vocabulary(TERMS)
    texts = [" ".join(f"word{turn}x{number}" for number in range(4000)) + " ship" for turn in range(5)]
    numbers = [known.words(MARGIN + text.encode() + MARGIN)[1] for text in (*texts, *texts)]
    assert len({int(found[-1]) for found in numbers}) == 1
    assert all(numpy.array_equal(one, other) for one, other in zip(numbers[:5], numbers[5:], strict=True))
    assert len({int(number) for found in numbers for number in found}) == 20_001


def test_it_forgets_when_it_holds_too_much() -> None:
    known = Vocabulary(TERMS)
    known.trim()
    ship = known.name("ship")
    assert known.spelled[ship] == "ship"
    known.words(MARGIN + " ".join(f"w{number}" for number in range(vocabulary.MOST_WORDS + 1)).encode() + MARGIN)
    known.trim()
    assert known.spelled == []
