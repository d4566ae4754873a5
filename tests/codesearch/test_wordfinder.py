"""Words and their digests."""

import re

from hypothesis import given
from hypothesis import strategies as st

from codewhale.codesearch.wordfinder import MARGIN, WordFinder

FINDER = WordFinder()
WORD = re.compile(rb"[0-9A-Za-z_\x80-\xff]+")


@given(st.one_of(st.binary(max_size=300), st.text(st.sampled_from("ab_ .é"), max_size=200).map(str.encode)))
def test_words_are_what_punctuation_leaves_and_equal_ones_have_one_digest(text: bytes) -> None:
    data = MARGIN + text + MARGIN
    starts, ends, digests = FINDER.find(data)
    words = [data[start:end] for start, end in zip(starts, ends, strict=True)]
    assert words == WORD.findall(data)
    told = dict(zip(words, digests.tolist(), strict=True))
    assert [told[word] for word in words] == digests.tolist() and len(set(told.values())) == len(told)


def test_long_words_are_told_apart_wherever_they_differ() -> None:
    long = [
        b"a" * at + b"b" + b"a" * (size - at) for size in (7, 8, 9, 16, 250, 300, 3000) for at in (0, size // 2, size)
    ]
    _, _, digests = FINDER.find(MARGIN + b" ".join(long + long) + MARGIN)
    assert len(set(digests.tolist())) == len(long)
    assert digests[: len(long)].tolist() == digests[len(long) :].tolist()
