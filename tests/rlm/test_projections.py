"""What is read of kept values, and JSONPath as its public suite says it."""

import gc
import json
from typing import Any

import msgspec
import pytest

from codewhale.protocol.handles import VarHandle
from codewhale.rlm.handles import length_of, type_of
from codewhale.rlm.projections import MOST_SHOWN, KeptValue, ProjectionError, selected
from support.suites import suites

SUITE = suites() / "jsonpath" / "cts.json"


def kept(value: Any) -> KeptValue:
    data = value.encode() if isinstance(value, str) else msgspec.json.encode(value)
    return KeptValue(VarHandle("rlm:1", "final_0", type_of(value), length_of(value), "", "0" * 64), data)


def cases() -> list[dict[str, Any]]:
    return json.loads(SUITE.read_text())["tests"] if SUITE.is_file() else []


@pytest.mark.skipif(not SUITE.is_file(), reason=f"the JSONPath suite is not at {SUITE}")
def test_jsonpath_is_that_of_the_public_suite() -> None:
    wrong = []
    for case in cases():
        try:
            got: Any = selected(case["selector"], case.get("document"))
        except ProjectionError:
            got = ProjectionError
        wanted = [ProjectionError] if case.get("invalid_selector") else case.get("results", [case.get("result")])
        if got not in wanted:
            wrong.append((case["name"], got, wanted))
    assert len(cases()) == 703 and wrong == []


LINES = "".join(f"line {number}\n" for number in range(1, 101))


def test_slices_and_ranges_are_exact() -> None:
    value = kept(LINES)
    assert value.count() == {"chars": len(LINES), "lines": 100, "bytes": len(LINES)}
    assert value.slice(0, 6, "chars", 100)["content"] == "line 1"
    assert value.slice(98, None, "lines", 100)["content"] == "line 99\nline 100\n"
    assert value.range(2, 3, 100)["content"] == "line 2\nline 3\n"
    assert value.range(100, 900, 100)["content"] == "line 100\n"
    assert value.range(101, 900, 100)["content"] == "" and value.slice(9_999, None, "chars", 9)["content"] == ""


@pytest.mark.parametrize("unit", ["chars", "lines"])
@pytest.mark.parametrize("most", [1, 7, 50, MOST_SHOWN])
def test_what_is_left_out_is_said_and_read_on_from_there(unit: Any, most: int) -> None:
    value, start, read = kept(LINES), 0, ""
    while True:
        row = value.slice(start, None, unit, most)
        assert row["shown_chars"] == len(row["content"]) <= most and row["truncated"] == (row["omitted_chars"] > 0)
        read += row["content"]
        if "next_char" in row["meta"]:  # a line that is longer than what may be shown
            unit = "chars"
        elif "next_start" not in row["meta"]:
            break
        start = row["meta"].get("next_char", row["meta"].get("next_start"))
    assert read == LINES


def test_json_keeps_its_types_and_reads_as_indented_text() -> None:
    value = kept({"items": [{"name": "a", "ok": True}, {"name": "b", "ok": False}], "none": None})
    assert value.select("$.items[?@.ok == false].name", 100) == {
        "jsonpath": "$.items[?@.ok == false].name", "count": 1, "matches": ["b"], "truncated": False,
    }  # fmt: skip
    assert value.count()["json_type"] == "dict" and value.count()["length"] == 2
    assert json.loads(value.slice(0, None, "chars", 1_000)["content"])["none"] is None
    said = value.introspect()
    assert said["keys"] == ["items", "none"] and [one["name"] for one in said["projections"]][-1] == "jsonpath"
    many = kept(list(range(5_000))).select("$[*]", 100)
    assert many["count"] == 5_000 and many["truncated"] and many["matches"] == [] and len(many["preview"]) == 100


@pytest.mark.parametrize(
    ("path", "value", "why"),
    [
        ("$[", {}, "no JSONPath"),
        ("items", {}, "no JSONPath"),
        ("$.a" + ".b" * 600, {}, "at most 1,000"),
        ("$..*", [[0] * 100] * 200, "more than 10,000"),
        ("$..a", json.loads("[" * 500 + "]" * 500), "too deep"),
    ],
)
def test_a_path_that_cannot_be_followed_says_why(path: str, value: Any, why: str) -> None:
    with pytest.raises(ProjectionError, match=why):
        selected(path, value)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("$[?count($..*) > 9000000]", list(range(4_000))),
        ("$[?search(@, '(a+)+(b+)+(a|b|ab)*c')]", ["ab" * 40] * 50),
    ],
)
def test_a_path_without_end_is_given_up_in_time(path: str, value: Any) -> None:
    with pytest.raises(ProjectionError, match="took longer"):
        selected(path, value)


def test_the_time_of_a_path_ends_also_while_garbage_is_collected() -> None:
    def collecting(phase: str, info: dict[str, int]) -> None:
        for _ in range(20):
            str.upper("a")

    former = gc.get_threshold()
    gc.callbacks.append(collecting)
    gc.set_threshold(1)
    try:
        with pytest.raises(ProjectionError, match="took longer"):
            selected("$[?count($..*) > 9000000]", list(range(4_000)))
    finally:
        gc.set_threshold(*former)
        gc.callbacks.remove(collecting)


def test_a_text_has_no_members_and_broken_json_is_named() -> None:
    with pytest.raises(ProjectionError, match="text"):
        kept("a").select("$.a", 10)
    with pytest.raises(ProjectionError, match="no JSON"):
        KeptValue(VarHandle("rlm:1", "final_0", "dict", 1, "", ""), b"{")
