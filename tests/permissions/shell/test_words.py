"""Words, paths and the second reader of command lines."""

import pytest

from codewhale.permissions.shell.judge import ShellContext, analyse
from codewhale.permissions.shell.parse import parse
from codewhale.permissions.shell.paths import AskedError, ShellPaths, secret
from codewhale.permissions.shell.words import UNKNOWN, bare, braces, odd_character

KNOWN = {"PWD": "/w", "HOME": "/home/me"}
PLACES = ShellPaths("/w", "/home/me")


def words(line: str) -> list[list[str]]:
    """The words of each command."""
    return [[word.text for word in command.words] for command in parse(line, KNOWN).commands]


def test_words_are_what_the_shell_makes_of_them() -> None:
    assert words("r''m \\-rf \"a b\" $'\\x41\\n' ~/x $HOME/y ${PWD} a\\ b") == [
        ["rm", "-rf", "a b", "A\n", "/home/me/x", "/home/me/y", "/w", "a b"]
    ]
    assert words('x=1; echo $x $y "q $x"') == [["echo", "1", UNKNOWN, "q 1"]]
    assert set(braces("a{b,c{d,e}}f")) == {"abf", "acdf", "acef"}
    assert bare("[a]").glob and bare("*").glob and not bare("\\*").glob


def test_commands_are_found_where_they_hide() -> None:
    line = parse("a | b $(c <(d)) && { e; } <<X\n$(f)\nX\n", KNOWN)
    assert {command.words[0].text for command in line.commands} == {"a", "b", "c", "d", "e", "f"}
    fed = next(command for command in line.commands if command.words[0].text == "b")
    assert {command.words[0].text for command in fed.feeds} >= {"a", "c"}
    assert line.shapes


def test_folders_are_followed() -> None:
    where = {
        command.words[0].text: command.where for command in parse("cd /; a; (cd x; b); c; cd -; d", KNOWN).commands
    }
    assert (where["a"], where["b"], where["c"], where["d"]) == ("/", "/x", "/", UNKNOWN)


@pytest.mark.parametrize(
    "char", ["\r", "\x00", "\x1b", "\xa0", "\u2003", "\u200b", "\u202e", "\uff4c", "\uff1b", "\ud800"]
)
def test_odd_characters_are_named(char: str) -> None:
    assert odd_character(f"ls {char}") == f"U+{ord(char):04X}"
    assert odd_character("grep 'é ü 漢 —' x") == ""


def test_paths_are_told_apart() -> None:
    for path in ("src/a.py", "../w/x", "/usr/bin"):
        PLACES.reading(path, "/w")
    for path in (".env", "x/.ssh/id", ".git/config", "/etc/passwd", "/proc/self/environ", "~/.netrc", "key.pem"):
        assert secret(path), path
        assert _asked(path, "/w") == "shell.secret-read"
    for path in (".env.example", "src/secrets.py", "tokens.py", "README.md", "/w-evil"):
        assert not secret(path), path
    for path in ("../x", "/w-evil/x"):
        assert _asked(path, "/w") == "shell.outside"
    assert _asked("x", "/w", "/") == _asked("x", "/", "/w") == "shell.outside"


def _asked(path: str, *folders: str) -> str:
    with pytest.raises(AskedError) as asked:
        PLACES.reading(path, *folders)
    return asked.value.rule


def test_what_is_whole_is_known() -> None:
    lost = {
        "/": "the system",
        "/*": "the system",
        "/etc/x": "the system",
        "/home/me": "the home folder",
        "..": "the system",
        "/home/you": "a home folder or a disk",
        "*": "the whole workspace",
        "./*": "the whole workspace",
    }
    assert {path: PLACES.root(path, "/w") for path in lost} == lost
    for path in ("build", "build/*", "/tmp/x", "/home/me/x", "node_modules/.*", "/w/x"):
        assert PLACES.root(path, "/w") == "", path
    assert PLACES.root("*", "/w/build") == ""


def test_what_starts_by_itself_is_guarded() -> None:
    for path in (
        ".git/hooks/x",
        ".GIT/config",
        ".codewhale/x",
        "sub/.mcp.json",
        "/home/me/.bashrc",
        "/home/me/.ssh/config",
    ):
        assert PLACES.guarded(path, "/w"), path
    for path in (".bashrc", ".gitignore", ".git/index.lock", "/home/me/x", "AGENTS.md", ".github/x"):
        assert not PLACES.guarded(path, "/w"), path


_ENDLESS = ["sed -n '" + " " * 4000 + "X' a", "! " * 8000 + "ls", "ls|" * 5000 + "ls", "env " * 4000, "xargs " * 2700]


@pytest.mark.parametrize("line", _ENDLESS)
def test_what_repeats_without_end_is_judged_soon(line: str) -> None:
    judged = analyse(line, ShellContext("/w", "", "/root"))
    assert judged.verdict == "ask"
    assert len(judged.commands) < 100
