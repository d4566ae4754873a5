"""What argument strings say: valid JSON as it is, damage repaired by its kind, and what cannot be told refused."""

import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from codewhale.repair.payload import Unreadable, read
from support.suites import suites

# What came, what it says, the codes of what was repaired.
LOSSLESS: list[tuple[str, Any, str]] = [
    ('{"a": 1, }', {"a": 1}, "P1"),
    ('{"a": [1, 2,],}', {"a": [1, 2]}, "P1"),
    ('{, "a": 1,, "b": 2}', {"a": 1, "b": 2}, "P1"),
    ('{"a": "x"', {"a": "x"}, "P2"),
    ('{"a": ["x"]', {"a": ["x"]}, "P2"),
    ('{"a": 1}}]', {"a": 1}, "P2"),
    ('{{"a": 1}}', {"a": 1}, "P2"),
    ('"a": 1, "b": "x"}', {"a": 1, "b": "x"}, "P2"),
    ('{"a": [1, 2}', {"a": [1, 2]}, "P2"),
    ('{"a": [{"b": 1], "c": 2}', {"a": [{"b": 1}], "c": 2}, "P2"),
    ("{'a': True, 'b': None, 'c': \"don't\"}", {"a": True, "b": None, "c": "don't"}, "P3"),
    ("{'a': 'say \"it\\'s\"'}", {"a": 'say "it\'s"'}, "P3"),
    ("{'a': 'it\\'s'}", {"a": "it's"}, "P3"),
    ('{"a": TRUE, "b": 0x10, "c": +5, "d": .5}', {"a": True, "b": 16, "c": 5, "d": 0.5}, "P3"),
    ('{a: 1, b_c: "x"}', {"a": 1, "b_c": "x"}, "P4"),
    ("{“a”: “x”, ”b”: 1}", {"a": "x", "b": 1}, "P4"),
    ('{"a"="x", "b"=>1, "c"：2}', {"a": "x", "b": 1, "c": 2}, "P4"),
    ('```json\n{"a": 1}\n```', {"a": 1}, "P5"),
    ('```\n```json\n{"a": "```"}\n```\n```', {"a": "```"}, "P5"),
    ('Let me "do" it:\n```json\n{"a": 1}\n```\nThat {is} "all".', {"a": 1}, "P5"),
    ('The form is {key: value}, so: {"a": 1}', {"a": 1}, "P5"),
    ('{"a": 1}\n\nThis "reads" it.', {"a": 1}, "P5"),
    ('args = {"a": 1};', {"a": 1}, "P5"),
    ('<arguments>{"a": 1}</arguments>', {"a": 1}, "P5"),
    ('{"a": "x\n\ty"}', {"a": "x\n\ty"}, "P6"),
    (json.dumps('{"a": "x\\n"}'), {"a": "x\n"}, "P7"),
    (json.dumps(json.dumps('{"a": "x"}')), {"a": "x"}, "P7"),
    ('{\\"a\\": \\"x\\\\n\\"}', {"a": "x\n"}, "P7"),
    ('"{"a": "x"}"', {"a": "x"}, "P7"),
    ("'{\"a\": \"C:\\\\\\\\x\"}'", {"a": "C:\\x"}, "P3 P7"),
    ('{"a": "\\d+\\(\\w"}', {"a": "\\d+\\(\\w"}, "P9"),
    ('{"a": "\\bword\\b\\s"}', {"a": "\\bword\\b\\s"}, "P9"),
    ('{"a": "import re\\nx = r\'\\d+\'\\n\\ty\\n"}', {"a": "import re\nx = r'\\d+'\n\ty\n"}, "P9"),
    ('{"a": 1}{"a": 1}', {"a": 1}, "P10"),
    ('{"a": 1},\n{"a": 1}', {"a": 1}, "P10"),
    ('{"a": 1, "a": 1}', {"a": 1}, "P10"),
    ('{"a": 1, // one\n /* two */ "b": 2} # three', {"a": 1, "b": 2}, "P11"),
    ('{}{"a": 1}', {"a": 1}, "P15"),
    ('""{"a": 1}', {"a": 1}, "P15"),
    ('{"a": 1}{}', {"a": 1}, "P15"),
]  # fmt: skip
# The same where a reading was chosen.
LOSSY: list[tuple[str, Any, str]] = [
    ('{"a": 12', {"a": 12}, "P2"),
    ('{"a": [{"b": "x"', {"a": [{"b": "x"}]}, "P2"),
    ('{"a": 0010}', {"a": 10}, "P3"),
    ('{"a": 1}b.py', {"a": 1}, "P5"),
    ('{"a": 1}, "b": 2}', {"a": 1, "b": 2}, "P2"),
    ('{"a": ["x", "b": 1}', {"a": ["x"], "b": 1}, "P2"),
    ('{"a": some words, "b": 1}', {"a": "some words", "b": 1}, "P4"),
    ('{"a": """x"y"""}', {"a": 'x"y'}, "P3"),
    ('{"a": "say "it" now", "b": 1}', {"a": 'say "it" now', "b": 1}, "P8"),
    ("{'a': 'the dog's tail'}", {"a": "the dog's tail"}, "P3 P8"),
    ('{"a": "C:\\new\\data"}', {"a": "C:\new\\data"}, "P9"),
    ('{"a": "it\\\'s"}', {"a": "it's"}, "P9"),
    ('{"a": "\\u{1F600}"}', {"a": "😀"}, "P9"),
    ('{"a": 1, "a": 2}', {"a": 2}, "P10"),
    ('{"a": 1 "b": 2}', {"a": 1, "b": 2}, "P12"),
    ('{"a": ["x" "y"]}', {"a": ["x", "y"]}, "P12"),
]  # fmt: skip
CUT = (
    '{', '{"a', '{"a"', '{"a":', '{"a": "x', '{"a": "x\\', '{"a": tru', '{"a": 1,', '{"a": ["x",', "{'a': 'x",
    '{"a": "say "it',
    '```json\n{"a": "x', '{"a": "x", "b', "{a", '{"a": nul',
)  # fmt: skip
NONE = (
    "", "   ", "no object here", '{"a" "x"}', '{"a: "x", "b": 1}', '{"a": "x, "b": 1}', '{"a": x", "b": 1}',
    '{"a": 1} {"a": 2}', '{"a": "x" + "y"}', '{"a": "\\ud83d"}', "[" * 5000, "{'a': 'say \\'x\\' now'}",
    '{"a": 1e999}', '{"a": ""#x", "b": 1}\n', '{"a": "x""}', '{"a": "x", }"b": true', '{}b{: "x"',
    '{"a": 1}// "b": 2', '{"a": 1} or rather {"a": 2}', '{"a": """x""""}', '{"a": ["x, "y"]}',
)  # fmt: skip


@pytest.mark.parametrize(("raw", "value", "codes"), LOSSLESS)
def test_one_reading(raw: str, value: object, codes: str) -> None:
    reading = read(raw)
    assert (reading.value, " ".join(sorted(reading.repairs)), reading.lossy) == (value, codes, False)


@pytest.mark.parametrize(("raw", "value", "codes"), LOSSY)
def test_a_chosen_reading(raw: str, value: object, codes: str) -> None:
    reading = read(raw)
    assert (reading.value, " ".join(sorted(reading.repairs)), reading.lossy) == (value, codes, True)


@pytest.mark.parametrize("raw", CUT)
def test_what_is_cut_off(raw: str) -> None:
    with pytest.raises(Unreadable) as refused:
        read(raw)
    assert refused.value.truncated


@pytest.mark.parametrize("raw", NONE)
def test_no_reading(raw: str) -> None:
    with pytest.raises(Unreadable) as refused:
        read(raw)
    assert not refused.value.truncated
    assert refused.value.message and 0 <= refused.value.position <= len(raw)


def test_more_than_a_mebibyte_is_not_read() -> None:
    with pytest.raises(Unreadable, match="1048577 characters"):
        read(" " * (1 << 20) + "x")


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=9), inner, max_size=4),
    max_leaves=12,
)  # fmt: skip


@given(
    st.dictionaries(st.text(st.characters(exclude_categories=["Cs"]), max_size=9), VALUES, max_size=5), st.booleans()
)
def test_valid_objects_are_read_as_they_are(value: dict[str, Any], ascii_only: bool) -> None:
    text = json.dumps(value, ensure_ascii=ascii_only)
    if "\\ud" not in text:
        reading = read(text)
        assert (reading.value, reading.repairs, reading.lossy) == (value, (), False)


BITS = st.sampled_from(
    ["{", "}", "[", "]", '"', "'", "\\", ",", ":", "//", "/*", "*/", "#", "```", "“", "”", "a", "1", "-", "\n", " ",
     "\\u",
     "true", "None", '"a":', '"x"', "\ud800", "\0", "：", '"""']
)  # fmt: skip


@given(st.lists(BITS, max_size=40).map("".join) | st.text(max_size=60))
@example('{"a": "\\')
@example("'{")
@example('{"a":{"a":{"a":"')
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        reading = read(text)
    except Unreadable as error:
        assert error.message
    else:
        json.dumps(reading.value)


def test_valid_inputs_of_the_repair_suites_do_not_change() -> None:
    folder = suites() / "json_repair"
    if not folder.is_dir():
        pytest.skip(f"no outside cases at {folder}; set CODEWHALE_SUITES")
    inputs = [json.loads(line)["input"] for file in folder.glob("*.jsonl") for line in file.read_text().splitlines()]
    valid = 0
    for text in inputs:
        try:
            value = json.loads(text)
        except ValueError:
            continue
        if isinstance(value, dict | list) and len(text) < 10_000:
            valid += 1
            reading = read(text)
            assert (reading.value, reading.repairs) == (value, ()), text
    assert valid >= 20
