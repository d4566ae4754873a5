"""Calls where repairing is off, or goes no further than names."""

import pytest

from codewhale.catalog.registry import Catalog
from codewhale.catalog.schema import check
from codewhale.repair.repairer import CallRepairer

CATALOG = Catalog.load()
RIGHT = [
    ("read_file", '{"path": "a"}', "read_file", {"path": "a"}),
    ("read_file", '{"path": "a", "start_line": null}', "read_file", {"path": "a"}),
    ("exec_wait", '{"task_id": "s"}', "exec_shell_wait", {"task_id": "s"}),
    ("shell_run", '{"command": "ls"}', "exec_shell", {"command": "ls"}),
    ("checklist_list", "", "checklist_list", {}),
]
OTHER_NAMES = [
    ("Bash", '{"command": "ls"}', "exec_shell", {"command": "ls"}),
    ("ReadFile", '{"path": "a"}', "read_file", {"path": "a"}),
    ("functions.read_file:0", '{"path": "a"}', "read_file", {"path": "a"}),
]
DAMAGED = [
    ("read_file", '{"path": "a",}'),
    ("read_file", '{"where": "a"}'),
    ("read_file", '{"path": "a", "start_line": "1"}'),
    ("read_file", '{"arguments": {"path": "a"}}'),
    ("write_file", '{"path": "a", "content": "x'),
    ("exec_shell", '["ls"]'),
    ("exec_shell", ""),
    ("no_such_tool", "{}"),
    ("", "{}"),
]


@pytest.mark.parametrize("extent", ["off", "names", "full"])
@pytest.mark.parametrize(("name", "raw", "tool", "meant"), RIGHT)
def test_what_is_right_runs_in_any_case(extent: str, name: str, raw: str, tool: str, meant: object) -> None:
    found = CallRepairer(CATALOG, extent).judge(name, raw)
    assert (found.error, found.name, found.arguments) == (None, tool, meant)


@pytest.mark.parametrize(("name", "raw", "tool", "meant"), OTHER_NAMES)
def test_other_names_are_known_by_extent(name: str, raw: str, tool: str, meant: object) -> None:
    assert CallRepairer(CATALOG, "off").judge(name, raw).error is not None
    found = CallRepairer(CATALOG, "names").judge(name, raw)
    assert (found.error, found.name, found.arguments) == (None, tool, meant)


@pytest.mark.parametrize("extent", ["off", "names"])
@pytest.mark.parametrize(("name", "raw"), DAMAGED)
def test_damage_is_refused_with_a_call_that_fits(extent: str, name: str, raw: str) -> None:
    error = CallRepairer(CATALOG, extent).judge(name, raw).error
    assert error is not None
    if error.fix is not None:
        assert not check(error.fix.arguments, CATALOG.rows[error.fix.name].parameters)


@pytest.mark.parametrize("extent", ["off", "names", "full"])
def test_what_is_cut_never_runs(extent: str) -> None:
    assert (
        CallRepairer(CATALOG, extent).judge("write_file", '{"path": "a", "content": "x"}', cut=True).error is not None
    )


def test_text_is_searched_for_calls_only_in_full() -> None:
    text = '<tool_call>\n{"name": "list_dir", "arguments": {"path": "."}}\n</tool_call>'
    assert CallRepairer(CATALOG).find_calls(text) is not None
    assert CallRepairer(CATALOG, "names").find_calls(text) is None
