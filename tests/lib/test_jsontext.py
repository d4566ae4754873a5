import json

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from codewhale.lib import jsontext
from codewhale.protocol.messages import Message, Text

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(st.characters(codec=None)),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(st.characters(codec=None)), inner, max_size=4),
    max_leaves=12,
)


@given(VALUES)
def test_whatever_is_json_can_be_written(value: object) -> None:
    data = jsontext.encode(value)
    assert json.loads(data.decode()) == jsontext.writable(value)
    assert json.loads(jsontext.pretty(value)) == jsontext.writable(value)


def test_lone_surrogates_and_huge_numbers() -> None:
    assert jsontext.encode({"a\ud800": 10**30}) == '{"a\ufffd":1000000000000000000000000000000}'.encode()
    assert jsontext.encode({"a": 16**5000}) == b'{"a":"0x1' + b"0" * 5000 + b'"}'
    message = Message("user", (Text("x\udfffy"),))
    assert msgspec.json.decode(jsontext.encode(message), type=Message).text == "x\ufffdy"
