import io
import json
import zlib

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from codewhale.protocol.events import CallFinished, UnknownEvent
from codewhale.session import records
from support.storage import said

TEXT = st.text(st.characters(codec=None), max_size=60)


def line(seq: int, text: str = "hello") -> bytes:
    return records.frame(seq, "s", "2026-01-01T00:00:00.000Z", records.event_json(said(text))[0])


def index(data: bytes) -> records.Index:
    return records.scan(io.BytesIO(data))


def test_the_form_of_a_record() -> None:
    data = line(7)
    assert data.endswith(b"\n")
    found = json.loads(data)
    assert list(found) == ["crc", "v", "seq", "session", "at", "event"]
    assert found["event"]["type"] == "message_added"
    rest = data[data.index(b",") + 1 : -1]
    assert found["crc"] == f"{zlib.crc32(rest):08x}"


@given(TEXT)
def test_a_record_is_one_line_to_every_reader_and_comes_back(text: str) -> None:
    data, kept = records.event_json(said(text))
    written = records.frame(1, "s", "t", data)
    assert len(written.decode().splitlines()) == 1
    assert records.checked_seq(written[:-1]) == 1
    assert records.decode(written[:-1]).event == kept
    if text.isascii():
        assert kept == said(text)


def test_what_cannot_be_written_is_replaced_in_the_event_too() -> None:
    event = CallFinished("c", "t", True, "a\ud800b", metadata={"x\udfff": 1})
    data, kept = records.event_json(event)
    assert isinstance(kept, CallFinished)
    assert kept.content == "a\ufffdb"
    assert kept.metadata == {"x\ufffd": 1}
    assert b"\xef\xbf\xbd" in data


def test_an_event_of_a_later_version_is_kept_byte_for_byte() -> None:
    raw = b'{"type":"teleported","to":"moon","nested":{"a":[1,2]}}'
    envelope = records.decode(records.frame(3, "s", "t", raw)[:-1])
    assert isinstance(envelope.event, UnknownEvent)
    assert envelope.event.type == "teleported"
    assert records.event_json(envelope.event)[0] == raw


def test_a_known_type_in_a_form_not_known_is_kept_too() -> None:
    raw = b'{"type":"turn_started","turn":{"number":1}}'
    envelope = records.decode(records.frame(3, "s", "t", raw)[:-1])
    assert isinstance(envelope.event, UnknownEvent)
    assert envelope.event.type == "turn_started"


def test_a_lost_line_end_loses_no_record() -> None:
    found = index(line(1) + line(2)[:-1] + b"\x1a" + line(3) + line(4))
    assert list(found.seqs) == [1, 2, 3, 4]
    assert found.skipped == 1


def test_a_hole_of_nuls_loses_what_it_covers() -> None:
    second = line(2)
    found = index(line(1) + second[:20] + bytes(len(second) - 15) + line(3) + line(4))
    assert list(found.seqs) == [1, 3, 4]
    assert found.skipped == 1


def test_a_record_quoted_in_another_is_not_taken_for_one() -> None:
    forged = json.loads(line(9))
    event = msgspec.json.encode({"type": "zork", "metadata": forged, "list": [forged, forged]})
    carrier = bytearray(records.frame(2, "s", "t", event))
    carrier[-4] ^= 1
    found = index(line(1) + bytes(carrier) + line(3))
    assert list(found.seqs) == [1, 3]


def test_records_that_stand_twice_are_dropped_and_misplaced_ones_put_in_order() -> None:
    lines = [line(seq) for seq in range(1, 7)]
    doubled = index(b"".join(lines[:4] + lines[1:3] + lines[4:]))
    assert (list(doubled.seqs), doubled.duplicates) == ([1, 2, 3, 4, 5, 6], 2)
    early = index(b"".join([lines[0], lines[4], *lines[1:]]))
    assert (list(early.seqs), early.duplicates) == ([1, 2, 3, 4, 5, 6], 1)


def test_a_last_record_without_its_line_end_is_whole() -> None:
    found = index(line(1) + line(2)[:-1])
    assert (list(found.seqs), found.unended, found.damage) == ([1, 2], True, records.LogDamage())


def test_a_torn_end_is_counted_and_nothing_before_it_lost() -> None:
    whole, torn = line(1), line(2)[:40]
    found = index(whole + torn)
    assert (list(found.seqs), found.end, found.damage.cut_bytes) == ([1], len(whole), 40)


def test_a_newer_format_is_refused_but_damage_is_not_taken_for_one() -> None:
    body = line(1)[18:-1].replace(b'"v":1', b'"v":2')
    newer = b'{"crc":"%08x",' % zlib.crc32(body) + body + b"\n"
    with pytest.raises(records.NewerFormatError, match="log format 2"):
        index(newer)
    with pytest.raises(records.NewerFormatError):
        index(b'{"v":3,"records":"otherwise"}\n')
    flipped = line(1).replace(b'"v":1', b'"v":9')
    assert list(index(flipped + line(2)).seqs) == [2]
