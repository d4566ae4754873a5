"""Settings are read as TOML, and what no settings hold is refused before a parser sees it."""

import tomllib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codewhale.lib.bounded import check_nesting
from codewhale.lib.toml import parse_toml
from support.patience import Moment

ORDINARY = b"""\xef\xbb\xbf
[providers.local]
base_url = "http://127.0.0.1:8080/v1"   # 1.2.3.4.5.6.7.8
facts = { fim = true, text_calls = false }
prompt = '''
Contents ............................................................ 3
One. Two. Three. Four. Five, then six.
'''
[[hooks]]
command = ["sh", "-c", "echo [ { ("]
"""
HOSTILE = {
    "a key of many parts": b".".join([b"a"] * 40_000) + b" = 1",
    "quoted parts": b".".join([b'"a"'] * 20_000) + b" = 1",
    "blanks around the dots": b" . ".join([b"a"] * 20_000) + b" = 1",
    "a table of many parts": b"[" + b".".join([b"a"] * 40_000) + b"]",
    "in an inline table": b"x = {" + b".".join([b"a"] * 40_000) + b" = 1}",
    "arrays in arrays": b"x = " + b"[" * 100_000,
    "tables in tables": b"x = " + b"{a=" * 50_000,
}


def test_ordinary_settings_are_read() -> None:
    assert parse_toml(ORDINARY)["providers"]["local"]["facts"] == {"fim": True, "text_calls": False}


@pytest.mark.parametrize("data", HOSTILE.values(), ids=HOSTILE)
def test_what_would_take_long_is_refused_at_once(data: bytes) -> None:
    began = Moment()
    with pytest.raises(ValueError, match=r"is nested too deeply: .* at line 3"):
        parse_toml(b"one = 1\n\n" + data)
    assert not began.laboured


@pytest.mark.parametrize(("data", "told"), [(b"a = ", "is not valid TOML: "), (b"a = '\xff'", "byte 5")])
def test_a_fault_is_told_with_its_place(data: bytes, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        parse_toml(data)


@settings(max_examples=200, deadline=None)
@given(st.recursive(st.text(max_size=9) | st.integers(), lambda inner: st.lists(inner, max_size=3), max_leaves=20))
def test_what_is_not_deep_is_never_refused_for_it(value: object) -> None:
    data = f"x = {value!r}".encode("utf-8", "replace")
    try:
        wanted: object = tomllib.loads(data.decode())
    except ValueError:
        wanted = None
    try:
        found: object = parse_toml(data)
    except ValueError as error:
        found = None
        assert "too deeply" not in str(error)
    assert found == wanted


def test_brackets_are_counted_as_they_open() -> None:
    check_nesting(b"[]" * 10_000 + b"]" * 100 + b"[" * 64)
    with pytest.raises(ValueError, match="more than 64 brackets are open at line 2"):
        check_nesting(b"\n" + b"[{" * 33)
