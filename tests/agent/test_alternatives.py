"""What shows the same as a command line that is not allowed."""

import pytest

from codewhale.agent.alternatives import alternative
from codewhale.catalog.registry import Catalog
from codewhale.catalog.schema import check
from codewhale.protocol.errors import Look

CATALOG = Catalog.load()
HERE = Look("list_dir", {"path": "."})


@pytest.mark.parametrize(
    ("command", "call"),
    [
        ("ls -la", HERE),
        ("pwd", HERE),
        ("ls src", Look("list_dir", {"path": "src"})),
        ("cat 'a b.txt'", Look("read_file", {"path": "a b.txt"})),
        ("grep -rn TODO src", Look("grep_files", {"pattern": "TODO", "path": "src"})),
        ("rg 'def x'", Look("grep_files", {"pattern": "def x"})),
        ("git status -s", Look("git_status", {})),
    ],
)
def test_a_plain_look_by_command_becomes_the_tool_that_looks(command: str, call: Look) -> None:
    assert alternative({"command": command}) == call
    assert check(call.arguments, CATALOG.rows[call.name].parameters) == []


@pytest.mark.parametrize(
    "command",
    [
        "cat a.txt | sh", "cat a.txt b.txt", "cat ~/.ssh/id", "cat /etc/passwd", "cat ../a.txt", "git push",
        "echo 'open", "", 5, None,
    ],
)  # fmt: skip
def test_nothing_shows_the_same_as_any_other_command(command: object) -> None:
    assert alternative({"command": command, "path": "a"}) is None
