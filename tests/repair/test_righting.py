"""The same call made right: within its bounds, without what is not known, and nothing made up."""

from typing import Any

import pytest

from codewhale.catalog.registry import Catalog
from codewhale.repair.judge import righted

ROWS = Catalog.load().rows


@pytest.mark.parametrize(
    ("tool", "given", "wanted"),
    [
        ("git_diff", {"unified": 51}, {"unified": 50}),
        ("git_log", {"max_count": 0}, {"max_count": 1}),
        ("exec_shell", {"command": "ls", "timeout_ms": 5}, {"command": "ls", "timeout_ms": 1000}),
        ("exec_shell", {"command": "ls", "timeout_ms": "soon"}, {"command": "ls"}),
        ("exec_shell_wait", {"task_id": "j", "timeout_ms": 10**9}, {"task_id": "j"}),
        ("read_file", {"path": "a", "start_line": "five"}, {"path": "a"}),
        ("read_file", {"path": "a", "zoom": 3}, {"path": "a"}),
        ("checklist_add", {"content": "a", "status": "complet"}, {"content": "a", "status": "completed"}),
        ("code_symbols", {"symbol": "f", "relation": "caller"}, {"symbol": "f", "relation": "callers"}),
        ("write_file", {"path": "a", "content": "b", "mode": "w"}, {"path": "a", "content": "b"}),
        ("checklist_write", {"todos": [{"content": "a", "owner": "me"}]}, {"todos": [{"content": "a"}]}),
    ],
)
def test_what_can_be_told_is_put_right(tool: str, given: dict[str, Any], wanted: dict[str, Any]) -> None:
    call = righted(given, ROWS[tool])
    assert call is not None and (call.name, call.arguments) == (tool, wanted)


@pytest.mark.parametrize(
    ("tool", "given"),
    [
        ("read_file", {}),
        ("read_file", {"path": 5.5}),
        ("write_file", {"path": "a"}),
        ("write_file", {"path": "a", "content": {"x": 1}}),
        ("exec_shell", {"command": 7}),
        ("exec_shell", {"command": "ls", "cwd": ["a", "b"]}),
        ("revert_turn", {"turn_offset": 51}),
        ("revert_turn", {"turn_offset": "two"}),
        ("checklist_update", {"id": 1.5, "status": "completed"}),
        ("checklist_update", {"id": 1, "status": "someday"}),
        ("git_status", {"frobnicate": 1}),
    ],
)
def test_nothing_is_made_up(tool: str, given: dict[str, Any]) -> None:
    assert righted(given, ROWS[tool]) is None
