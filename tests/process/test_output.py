"""Bounded output: what is kept, what is counted, what is told."""

from hypothesis import given
from hypothesis import strategies as st

from codewhale.process.streams import EarlyOutput, HeadTail, OutputDigest, notable_lines, shown, whole_characters


@given(st.lists(st.binary(max_size=40), max_size=30), st.integers(0, 50), st.integers(0, 50))
def test_head_and_tail_are_kept_whatever_the_blocks(blocks: list[bytes], head: int, tail: int) -> None:
    kept_part = HeadTail(head, tail)
    left_out = b"".join(kept_part.feed(block) for block in blocks) + kept_part.pending()
    whole = b"".join(blocks)
    kept, gap = kept_part.kept()
    assert kept_part.total == len(whole)
    if len(whole) <= head + tail:
        assert (kept, gap) == (whole, -1) and left_out == b""
    else:
        assert kept == whole[:head] + whole[len(whole) - tail :] and gap == head
        assert whole[:head] + left_out + whole[len(whole) - tail :] == whole


@given(st.lists(st.binary(max_size=30), max_size=40))
def test_memory_stays_within_twice_the_tail(blocks: list[bytes]) -> None:
    part = HeadTail(10, 20)
    for block in blocks:
        part.feed(block)
        assert len(part.pending()) <= 20


@given(st.text(max_size=20), st.integers(0, 80))
def test_whole_characters_never_splits_one(text: str, at: int) -> None:
    data = text.encode("utf-8", "replace")[:at]
    end = whole_characters(data)
    data[:end].decode("utf-8")
    assert len(data) - end < 4


@given(st.binary(max_size=20))
def test_whole_characters_holds_back_little_of_anything(data: bytes) -> None:
    assert 0 <= len(data) - whole_characters(data) <= 3


def test_the_note_counts_what_is_missing() -> None:
    part = HeadTail(4, 2)
    part.feed(b"abcdefghij")
    kept, gap = part.kept()
    assert shown(kept, gap, part.total) == "abcd\n[... 4 bytes left out ...]\nij"
    assert shown(b"all", -1, 3) == "all"


def test_a_character_cut_in_two_is_not_shown_broken() -> None:
    part = HeadTail(4, 4)
    part.feed("aé€€€€é".encode())
    kept, gap = part.kept()
    assert "\ufffd" not in shown(kept, gap, part.total)


def test_telling_lines_survive_from_the_middle() -> None:
    part = OutputDigest(100, 100, 80)
    for number in range(2000):
        part.feed(b"plain line %d\n" % number)
        if number == 1000:
            part.feed(b"error[E0308]: mismatched types\n")
        if number == 1500:
            part.feed(b"test deep::inside ... FAILED\n")
    text, omitted = part.text()
    assert "error[E0308]: mismatched types" in text and "test deep::inside ... FAILED" in text
    assert text.startswith("plain line 0\n") and text.endswith("plain line 1999\n")
    assert omitted == part.total - 200 and len(text) < 600


def test_no_more_telling_lines_than_asked_for() -> None:
    part = OutputDigest(10, 10, 80)
    for number in range(5000):
        part.feed(b"error %d\n" % number)
    assert part.text()[0].count("error") <= 82
    assert len(notable_lines(b"error " * 1000, 80)[0]) == 500
    assert notable_lines(b"nothing here", 80) == []


def test_a_short_stream_is_shown_as_it_is() -> None:
    part = OutputDigest(100, 100, 80)
    part.feed(b"error: one\n")
    assert part.text() == ("error: one\n", 0)


def test_a_complaint_of_the_sandbox_is_kept_back_while_it_may_be_one() -> None:
    heard: list[tuple[str, bytes]] = []
    early = EarlyOutput(lambda stream, data: heard.append((stream, data)), watch=True)
    early.feed("stderr", b"bwr")
    early.feed("stderr", b"ap: Can't find it\n")
    assert early.complained and heard == []
    early.feed("stdout", b"x")
    assert not early.complained
    assert heard == [("stderr", b"bwrap: Can't find it\n"), ("stdout", b"x")]
    unwatched = EarlyOutput(lambda stream, data: heard.append((stream, data)), watch=False)
    unwatched.feed("stderr", b"bwrap: Can't")
    assert heard[-1] == ("stderr", b"bwrap: Can't")
