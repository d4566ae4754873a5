"""The one table of names: every name stands in exactly one state."""

import pytest

from codewhale.catalog.lifecycle import ACTIVE, ALIASES, DEFERRED, NOT_YET, state_of
from codewhale.catalog.registry import Catalog

HEAD = """agent_close agent_eval agent_open apply_patch checklist_write edit_file exec_shell exec_shell_interact
exec_shell_wait fetch_url file_search git_diff git_log git_show git_status grep_files list_dir read_file run_tests
update_plan web_search write_file""".split()


def test_the_active_names_are_the_agreed_ones_and_the_two_searches() -> None:
    assert sorted(ACTIVE) == sorted([*HEAD, "tool_search_tool_bm25", "tool_search_tool_regex"])


def test_no_name_stands_in_two_places() -> None:
    assert frozenset() == ACTIVE & DEFERRED
    assert set(ALIASES) & (ACTIVE | DEFERRED) == set()


def test_an_alias_names_a_canonical_tool_and_its_dates() -> None:
    for name, alias in ALIASES.items():
        assert alias.canonical in ACTIVE | DEFERRED, name
        assert alias.state in ("hidden", "deprecated", "removed"), name
        assert alias.since and alias.removal, name


def test_what_is_promised_is_listed() -> None:
    assert NOT_YET <= ACTIVE | DEFERRED


@pytest.mark.parametrize(
    ("name", "state"),
    [("read_file", "active"), ("note", "deferred"), ("exec_wait", "hidden"), ("todo_add", "deprecated"), ("x", None)],
)
def test_state_of_a_name(name: str, state: str | None) -> None:
    assert state_of(name) == state


def test_what_is_registered_is_what_is_listed_and_built() -> None:
    names = set(Catalog.load().names())
    assert names == (ACTIVE | DEFERRED) - NOT_YET
