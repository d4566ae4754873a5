"""Wire JSON: what strict codecs refuse is made sound, what is no JSON is told apart."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codewhale.models.dialects.jsontext import decode, encode

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**62), 2**62) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@given(VALUES)
def test_what_is_written_is_read_again(value: Any) -> None:
    data = encode(value)
    assert decode(data.decode()) == value == json.loads(data)


def test_writing_is_compact_keeps_the_order_and_heals_half_characters() -> None:
    assert encode({"b": [1, "é"], "a": None}) == '{"b":[1,"é"],"a":null}'.encode()
    assert encode({"k\ud83d": ["a\udc00b"]}) == '{"k\ufffd":["a\ufffdb"]}'.encode()


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('"a\\ud83d"', "a\ufffd"),
        ('"\\ud83d\\udc33"', "🐳"),
        ('{"a\\udc00":[" \t"]}', {"a\ufffd": [" \t"]}),
        ('"line\nline"', "line\nline"),
        ('"\ud83d"', "\ufffd"),
        ("[Infinity]", [float("inf")]),
    ],
)
def test_what_endpoints_do_send_is_read(text: str, value: Any) -> None:
    assert decode(text) == value


@pytest.mark.parametrize("text", ["", "{", "nonsense", "{'a': 1}", "[" * 100_000])
def test_what_is_no_json_is_a_value_error(text: str) -> None:
    with pytest.raises(ValueError):
        decode(text)
