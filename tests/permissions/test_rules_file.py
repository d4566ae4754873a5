"""permissions.toml: what is read from it, what is refused, and what stays as it was when a row comes or goes."""

import os
import stat
from pathlib import Path

import pytest

from codewhale.permissions.rules import add_rule, read_rules, remove_rule
from codewhale.protocol.decisions import Rule
from codewhale.protocol.errors import ConfigError


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Where the permissions are."""
    return tmp_path / "home" / "permissions.toml"


def written(file: Path, text: str) -> str:
    """The path of a file with this text."""
    file.parent.mkdir(exist_ok=True)
    file.write_text(text)
    return str(file)


def test_without_a_file_there_are_no_rules(file: Path) -> None:
    assert read_rules(str(file)) == ()


def test_rows_are_read_in_order(file: Path) -> None:
    text = """
# what I think
deny = ["git push --force"]
floor_exception = ["rm -rf /srv/scratch"]
[[rules]]
action = "ask"
tool = "write_file"
path = "migrations/**"
reason = "they run on deploy"
[[rules]]
action = "allow"
host = ".example.com"
[[allow]]
tool = "exec_shell"
command = "make test"
workspace = "/srv/app"
"""
    assert read_rules(written(file, text)) == (
        Rule("ask", "write_file", path="migrations/**", reason="they run on deploy", row=1),
        Rule("allow", host=".example.com", row=2),
        Rule("deny", command="git push --force", row=3),
        Rule("allow", "exec_shell", command="make test", workspace="/srv/app", row=4),
        Rule("floor_exception", command_exact="rm -rf /srv/scratch", row=5),
    )


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[[rules]]\naction = 'permit'\n", "rules[1]: action must be one of deny, ask, allow"),
        ("[[rules]]\ncommand = 'ls'\n", "rules[1]: action must be one of"),
        ("[[rules]]\naction = 'deny'\ncomand = 'ls'\n", "rules[1]: comand is unknown"),
        ("[[rules]]\naction = 'deny'\ncommand = ''\n", "command must be text that is not empty"),
        ("[[rules]]\naction = 'deny'\ncommand = ['ls']\n", "command must be text"),
        ("[[rules]]\naction = 'deny'\ncommand = 'ls'\npath = 'x'\n", "command and path cannot be combined in one row"),
        ("[[rules]]\naction = 'allow'\n", "a row that allows every call is refused"),
        ("[[rules]]\naction = 'floor_exception'\n", "a floor_exception needs command"),
        ("[[rules]]\naction = 'floor_exception'\ncommand = 'x'\ntool = 'exec_shell'\n", "takes no tool"),
        ("[[rules]]\naction = 'deny'\nworkspace = 'here'\n", "workspace must be an absolute path"),
        ("denied = ['ls']\n", "denied is unknown"),
        ("deny = 'ls'\n", "deny must be a list"),
        ("deny = [3]\n", "deny[1]: must be a table"),
        ("[rules]\naction = 'deny'\n", "rules must be a list"),
        ("[[rules]\n", "is not valid TOML"),
    ],
)
def test_a_fault_is_told_with_its_place(file: Path, text: str, said: str) -> None:
    with pytest.raises(ConfigError) as refused:
        read_rules(written(file, text))
    assert said in str(refused.value) and str(file) in str(refused.value)


def test_what_is_no_file_of_ones_own_is_refused(file: Path, tmp_path: Path) -> None:
    path = written(file, "deny = ['ls']\n")
    os.chmod(path, 0o666)
    with pytest.raises(ConfigError, match="other users can write it"):
        read_rules(path)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ConfigError, match="not a regular file"):
        read_rules(str(tmp_path / "pipe"))
    with pytest.raises(ConfigError, match="larger than"):
        read_rules(written(file, "#" * (1 << 20) + "\n") and str(_private(file)))


def _private(file: Path) -> Path:
    file.chmod(0o600)
    return file


def test_a_row_is_added_once_and_all_else_stays(file: Path) -> None:
    before = '# mine\ndeny = ["git push"] # never\n\n[[rules]]\naction = "ask" # hm\ntool = "write_file"\n'
    path = str(_private(Path(written(file, before))))
    for _ in range(2):
        add_rule(path, Rule("allow", "exec_shell", command="make test", workspace="/w"))
    text = file.read_text()
    assert text.startswith(before) and text.count("make test") == 1
    assert read_rules(path)[1] == Rule("allow", "exec_shell", command="make test", workspace="/w", row=2)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_the_first_row_makes_the_file(file: Path) -> None:
    add_rule(str(file), Rule("deny", path="secrets/**"))
    assert read_rules(str(file)) == (Rule("deny", path="secrets/**", row=1),)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600 and stat.S_IMODE(file.parent.stat().st_mode) == 0o700


def test_a_row_is_removed_by_its_number(file: Path) -> None:
    text = 'deny = ["a", "b"]\n[[rules]]\naction = "ask"\ncommand = "c"\n'
    path = str(_private(Path(written(file, text))))
    assert remove_rule(path, 3) == Rule("deny", command="b", row=3)
    assert [rule.command for rule in read_rules(path)] == ["c", "a"]
    assert remove_rule(path, 1).command == "c"
    assert [rule.command for rule in read_rules(path)] == ["a"]
    for row in (0, 2, -1):
        with pytest.raises(ConfigError, match="there is no row"):
            remove_rule(path, row)


def test_rules_in_a_form_that_cannot_be_kept_are_not_touched(file: Path) -> None:
    text = 'rules = [{action = "deny", command = "x"}]\n'
    path = str(_private(Path(written(file, text))))
    with pytest.raises(ConfigError):
        add_rule(path, Rule("deny", command="y"))
    assert file.read_text() == text
