"""The catalog at run time: names, the head, and what a wrong name is close to."""

from pathlib import Path

import msgspec
import pytest

from codewhale.catalog.registry import Catalog
from codewhale.protocol.tools import ToolSpec
from support.patience import Moment
from support.samplecatalog import ROWS, sample_catalog


def rows(*names: str) -> Catalog:
    """A catalog of tools that only have names."""
    return Catalog([ToolSpec(name, "family", "", {}, ()) for name in names])


def test_names_are_sorted_whatever_order_they_came_in() -> None:
    assert rows("write_file", "apply_patch", "read_file").names() == ("apply_patch", "read_file", "write_file")


def test_an_exact_name_and_an_alias_resolve_and_nothing_else_does() -> None:
    catalog = sample_catalog()
    found = catalog.resolve("read_file")
    assert found is not None and (found.spec.name, found.alias) == ("read_file", "")
    alias = catalog.resolve("todo_write")
    assert alias is not None and (alias.spec.name, alias.alias) == ("checklist_write", "todo_write")
    assert catalog.resolve("Read_File") is None
    assert catalog.resolve("") is None


def test_an_alias_of_a_tool_that_is_not_there_resolves_to_nothing() -> None:
    assert rows("read_file").resolve("todo_write") is None


def test_the_head_holds_the_active_rows_in_order_of_names_and_then_what_is_always_loaded() -> None:
    catalog = rows("write_file", "made_up", "note", "git_blame", "apply_patch")
    assert [row.name for row in catalog.head] == ["apply_patch", "write_file"]
    always = [row.name for row in catalog.head_of("default", ["note", "git_blame", "write_file"])]
    assert always == ["apply_patch", "write_file", "git_blame", "note"]


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        ("read-file", "read_file"),
        ("ReadFile", "read_file"),
        ("read_fil", "read_file"),
        ("functions.read_file:0", "read_file"),
        ("status", "git_status"),
        ("file_write", "write_file"),
    ],
)
def test_the_closest_name_is_found(wrong: str, right: str) -> None:
    assert sample_catalog().closest(wrong)[0] == right


def test_at_most_three_names_are_close_and_none_to_nonsense() -> None:
    assert len(rows(*(f"read_file_{letter}" for letter in "abcdef")).closest("read_file")) == 3
    assert sample_catalog().closest("zzzz") == ()
    assert sample_catalog().closest("") == ()


def test_a_name_of_any_length_is_judged_at_once() -> None:
    began = Moment()
    sample_catalog().closest("read_file" * 100_000)
    assert not began.hung


def test_a_generated_file_is_read_back(tmp_path: Path) -> None:
    path = tmp_path / "specs.json"
    path.write_bytes(msgspec.json.encode(ROWS))
    catalog = Catalog.load(str(path))
    assert catalog.spec("read_file") == next(row for row in ROWS if row.name == "read_file")
    assert catalog.spec("absent") is None
