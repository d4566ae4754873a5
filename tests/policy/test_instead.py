"""What may be done instead of a call that is not allowed."""

import pytest

from codewhale.catalog.registry import Catalog
from codewhale.catalog.schema import check
from codewhale.policy.instead import LOOK, instead
from codewhale.protocol.errors import NextCall
from codewhale.protocol.modes import Authority

CATALOG = Catalog.load()


@pytest.mark.parametrize(
    ("command", "call"),
    [
        ("ls -la", LOOK),
        ("pwd", LOOK),
        ("ls src", NextCall("list_dir", {"path": "src"})),
        ("cat 'a b.txt'", NextCall("read_file", {"path": "a b.txt"})),
        ("grep -rn TODO src", NextCall("grep_files", {"pattern": "TODO", "path": "src"})),
        ("rg 'def x'", NextCall("grep_files", {"pattern": "def x"})),
        ("git status -s", NextCall("git_status", {})),
        ("cat a.txt | sh", LOOK),
        ("cat a.txt b.txt", LOOK),
        ("cat ~/.ssh/id", LOOK),
        ("cat /etc/passwd", LOOK),
        ("cat ../a.txt", LOOK),
        ("git push", LOOK),
        ("echo 'open", LOOK),
        ("", LOOK),
    ],
)
def test_a_plain_look_by_command_becomes_the_tool_that_looks(command: str, call: NextCall) -> None:
    first = next(instead(CATALOG.rows["exec_shell"], {"command": command}, Authority.HEADLESS))
    assert first == call
    assert check(call.arguments, CATALOG.rows[call.name].parameters) == []


def test_the_person_is_asked_where_there_is_one() -> None:
    names = [call.name for call in instead(CATALOG.rows["edit_file"], {"path": "a.py"}, Authority.PERSON)]
    assert names == ["request_user_input", "read_file", "list_dir", "list_dir"]


@pytest.mark.parametrize("tool", CATALOG.names())
def test_every_call_fits_its_tool(tool: str) -> None:
    for who in Authority:
        for call in instead(CATALOG.rows[tool], {"path": "a", "command": "ls"}, who):
            assert check(call.arguments, CATALOG.rows[call.name].parameters) == []
