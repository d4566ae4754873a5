"""Postings packed and found again."""

from array import array
from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from codewhale.codesearch.model import BODY, CALL, Chunk
from codewhale.codesearch.segment import COUNTED, Gathering, decoded, find, keys_of
from codewhale.codesearch.terms import Terms
from codewhale.codesearch.vocabulary import Vocabulary
from support.likeness import entries

TERMS = Terms()
TEXT = st.lists(
    st.sampled_from("open_gate openGate ship's Größe 認証キー x1y2 __init__ a-b HTTPServer".split()), max_size=12
)


@given(st.lists(TEXT.map(" ".join), min_size=1, max_size=6))
def test_a_segment_counts_what_the_terms_count(texts: list[str]) -> None:
    gathering = Gathering(Vocabulary(TERMS))
    for text in texts:
        gathering.open(Chunk(1, 2, "fn", ""))
        gathering.text(BODY, text.encode())
        gathering.names(CALL, ["Twice", "Twice"])
    rows, blocks = gathering.packed()
    found: dict[int, Counter[str]] = {number: Counter() for number in range(len(texts))}
    keys = []
    for first, data in blocks:
        block = decoded(data)
        assert first == keys_of(block)[0]
        for key, raw in entries(block):
            keys.append(key)
            assert find(block, key) == raw
            for posting in array("I", raw):
                found[posting >> 8][key] += posting & 255
    assert keys == sorted(keys)
    for number, text in enumerate(texts):
        wanted = {BODY + term: often for term, often in TERMS.count(text).items()}
        assert found[number] == {**wanted, CALL + "Twice": 2}
        assert array("H", rows.lengths[COUNTED.index(BODY)])[number] == sum(wanted.values())


def test_counts_stop_at_255_and_many_keys_make_many_blocks() -> None:
    gathering = Gathering(Vocabulary(TERMS))
    gathering.open(Chunk(3, 9, "class", ""))
    gathering.text(BODY, b"ship " * 1000)
    gathering.names(CALL, (f"name{number:05}" for number in range(3000)))
    rows, blocks = gathering.packed()
    assert find(decoded(blocks[0][1]), "bship") == array("I", [255]).tobytes()
    assert len(blocks) > 5 and keys_of(decoded(blocks[1][1]))[0] == CALL + "name00000"
    assert (rows.chunks, array("I", rows.starts)[0], array("I", rows.ends)[0]) == (1, 3, 9)
    assert find(decoded(blocks[0][1]), "bnothing") == b""


def test_nothing_gathered_is_an_empty_segment() -> None:
    rows, blocks = Gathering(Vocabulary(TERMS)).packed()
    assert rows.chunks == 0 and blocks == []
