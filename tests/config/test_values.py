"""Raw values against types: what is told of any tree, and that keys survive being written."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Struct

from codewhale.config import values
from codewhale.config.edit import parse_key


class Inner(Struct, frozen=True):
    number: int = 1
    api_key: str = ""


class Outer(Struct, frozen=True):
    name: str = ""
    inner: Inner | None = None
    table: dict[str, Inner] = {}
    many: tuple[int, ...] = ()


keys = st.text(st.characters(exclude_characters="\"'\\\n\r\t\0", exclude_categories=["Cs", "Cc"]), min_size=1).map(
    lambda text: text.strip() or "k"
)
scalars = st.none() | st.booleans() | st.integers() | st.text(max_size=5)
trees = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(keys | st.sampled_from(["name", "inner", "table", "many", "number"]), inner, max_size=4)
    ),
    max_leaves=12,
)


@given(trees)
def test_any_tree_fits_or_its_fault_is_inside_it(tree: Any) -> None:
    fault = values.find_fault(tree, Outer, ("top",))
    if fault is None:
        return
    place: Any = tree
    for key in fault.path[1:]:
        place = place[int(key)] if isinstance(place, list | tuple) else place[key]
    assert place == fault.received
    assert fault.wanted.startswith(("must be", "Object"))


@given(trees)
def test_unknown_keys_are_looked_for_in_anything(tree: Any) -> None:
    for path, known in values.unknown_keys(tree, Outer, ("top",)):
        assert path[-1] not in known


@given(st.lists(keys, min_size=1, max_size=4))
def test_a_written_key_reads_back(path: list[str]) -> None:
    assert parse_key(values.dotted(tuple(path))) == tuple(path)


@given(trees, trees)
def test_merging_keeps_the_higher_layer(low: Any, high: Any) -> None:
    assert values.merge(low, high) == high or isinstance(high, dict)
    assert values.merge(low, low) == low
    if isinstance(low, dict) and isinstance(high, dict):
        joined = values.merge(low, high)
        assert set(joined) == {*low, *high}
        assert all(joined[key] == low[key] for key in low if key not in high)


@pytest.mark.parametrize(
    ("tree", "path", "wanted"),
    [
        ({"inner": {"number": "x"}}, ("inner", "number"), "must be a whole number, not text"),
        ({"table": {"a": {"number": None}}}, ("table", "a", "number"), "must be a whole number, not null"),
        ({"many": [1, "b"]}, ("many", "1"), "must be a whole number, not text"),
        ({"table": []}, ("table",), "must be a table, not a list"),
    ],
)
def test_the_innermost_fault_is_told(tree: Any, path: tuple[str, ...], wanted: str) -> None:
    fault = values.find_fault(tree, Outer, ())
    assert fault is not None
    assert (fault.path, fault.wanted) == (path, wanted)


@pytest.mark.parametrize(
    ("key", "value", "secret"),
    [
        ("api_key", "x", True),
        ("X-Auth-Token", "x", True),
        ("client_secret", "x", True),
        ("Authorization", "x", True),
        ("api_key_env", "NAME", False),
        ("max_tokens", 5, False),
        ("api_key", "", False),
        ("base_url", "x", False),
    ],
)
def test_secrets_are_told_by_their_names(key: str, value: Any, secret: bool) -> None:
    assert values.is_secret(("top", key), value) is secret
    assert ("********" in values.shown(("top", key), value)) is secret


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("CODEWHALE_TOP_NAME", [(("top", "name"), str)]),
        ("CODEWHALE_TOP_INNER_NUMBER", [(("top", "inner", "number"), int)]),
        ("CODEWHALE_TOP_TABLE_A_B_NUMBER", [(("top", "table", "a_b", "number"), int)]),
        ("CODEWHALE_TOP_TABLE_HERE_IS_API_KEY", [(("top", "table", "here-is", "api_key"), str)]),
        ("CODEWHALE_TOP", []),
        ("CODEWHALE_TOP_INNER", []),
        ("CODEWHALE_TOP_NOTHING", []),
        ("CODEWHALE_TOPPLE_NAME", []),
        ("TOP_NAME", []),
    ],
)
def test_variables_are_matched_to_keys(name: str, found: list[Any]) -> None:
    present = {"table": {"here-is": {}}}
    matched = [(path, kind) for _, path, kind in values.from_environ({name: "1"}, ("top",), Outer, present)]
    assert matched == found
    if found:
        assert values.variable(matched[0][0]) == name
