"""Reading git's configuration: the same as git itself, and what of it steers git."""

import subprocess
from pathlib import Path

import pytest

from codewhale.process.sandbox.gitfiles import entries, named_files, steering, steers
from support.patience import HANG

TEXTS = (
    "[core]\n\tbare = false\n",
    '[remote "origin"]\n  url = https://x/y.git ; where\n  fetch = +refs/heads/*:refs/remotes/origin/*\n',
    "[core] fsmonitor=touch x\n[Alias]\n a = \"!sh -c 'x; y' #\" # c\n",
    "[core]\n\tfsmonitor = a\\\n b\\\n  c\n\thooksPath\n",
    '[branch "a\\"b\\\\c"]\n merge = "x  y" z\n',
    "\ufeff[a.B.c]\nk=\n#x\n;y\n[d]e=f\n",
    "[core]\r\n\tbare = true\r\n[x]\r\n a = b\r\n",
    '[x]\n a = "b \\t\\n\\b c"d"e;"f\n',
)
BROKEN = ("[core\n", '[core]\n a = "b\n', "[core]\n a = \\x\n", "[core]\n 9=x\n", "[co re]\n a=b\n")
HARMLESS = (
    "[core]\n repositoryformatversion = 0\n filemode = true\n bare = false\n logallrefupdates = true\n",
    '[remote "o"]\n url = git@host:x/y.git\n fetch = +refs/heads/*:refs/remotes/o/*\n[branch "m"]\n merge = x',
    '[submodule "lib"]\n url = ../lib\n active = true\n[user]\n name = A\n email = a@b\n',
)
STEERING = (
    "[core]\n fsmonitor = x", "[core]\n hooksPath = h", "[include]\n path = x", '[includeIf "gitdir:**"]\n path = x',
    "[diff]\n external = x", '[filter "f"]\n clean = x', "[core]\n sshCommand = x", "[alias]\n st = !x",
    '[remote "o"]\n url = ext::sh -c x', '[remote "o"]\n url = --upload-pack=x', '[remote "o"]\n uploadpack = x',
    '[submodule "l"]\n update = !x', '[url "ext::x"]\n insteadOf = https://', "[core]\n worktree = /elsewhere",
    "[gpg]\n program = x", "[credential]\n helper = !x", "[core]\n pager = x", "[core]\n gitProxy = x", "[core\n",
    "[gc]\n recentObjectsHook = x", "[unheard]\n of = x", "[uploadpack]\n packObjectsHook = x", "[core]\n editor = x",
)  # fmt: skip


@pytest.mark.parametrize("text", TEXTS)
def test_it_is_read_as_git_reads_it(text: str, tmp_path: Path) -> None:
    file = tmp_path / "config"
    file.write_bytes(text.encode())
    told = subprocess.run(["git", "config", "-z", "-l", "-f", str(file)], capture_output=True, check=True, timeout=HANG)
    rows = [row.partition("\n")[::2] for row in told.stdout.decode().split("\0") if row]
    expected = [
        (name, value if "\n" in row else "true")
        for row, (name, value) in zip(told.stdout.decode().split("\0"), rows, strict=False)
    ]
    assert entries(text.encode()) == expected


@pytest.mark.parametrize("text", BROKEN)
def test_what_git_refuses_steers_it(text: str, tmp_path: Path) -> None:
    (tmp_path / "config").write_text(text)
    assert subprocess.run(["git", "config", "-l", "-f", str(tmp_path / "config")], timeout=HANG).returncode != 0
    assert steering(text.encode())


def test_what_every_repository_has_is_harmless_and_what_runs_things_is_not() -> None:
    assert [text for text in HARMLESS if steering(text.encode())] == []
    assert [text for text in STEERING if not steering(text.encode())] == []
    assert steers("core.anything.new", "x") and not steers("branch.a.b.merge", "x")


def test_the_files_and_folders_that_it_names() -> None:
    data = b'[include]\n path = ../shared\n[includeIf "onbranch:x"]\n path = /etc/x\n[core]\n hooksPath = .hooks\n'
    assert named_files(data, "/w/.git") == (["/w/.git/../shared", "/etc/x"], [".hooks"])
    assert named_files(b"[", "/w") == ([], [])
