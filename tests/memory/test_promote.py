"""A fact as a patch of one line that git and patch take."""

import os
import subprocess
from pathlib import Path

import pytest

from codewhale.memory.layers import MemoryRefused
from codewhale.memory.model import Fact
from codewhale.memory.promote import LIMIT, Promotion, answer, promote
from support.patience import HANG

FACT = Fact("1a2b3c4d", "Tests run with nox -s fast.", created="2026-05-03 22:14 UTC", source="session 01, call c2")
LINE = f"- {FACT.text}"
# What a file holds, and what it holds when the patch is applied.
FILES = {
    "list": ("# Rules\n\n- one\n- two\n", "# Rules\n\n- one\n- two\n{}\n"),
    "one line": ("x\n", "x\n{}\n"),
    "no final newline": ("# Rules\n- one", "# Rules\n- one\n{}\n"),
    "one line without an end": ("x", "x\n{}\n"),
    "CRLF": ("# Rules\r\n\r\n- one\r\n", "# Rules\r\n\r\n- one\r\n{}\r\n"),
    "CRLF without a final one": ("# Rules\r\n- one", "# Rules\r\n- one\r\n{}\r\n"),
    "blank lines at the end": ("- one\n\n\n", "- one\n{}\n\n\n"),
    "blanks without an end": ("- one\n\n  ", "- one\n{}\n\n  "),
    "only blank lines": ("\n\n", "{}\n\n\n"),
    "a section": ("# A\n## Notes\n\n- one\n\n## B\nb\n", "# A\n## Notes\n\n- one\n{}\n\n## B\nb\n"),
    "an empty section": ("a\n## Project notes ##\n\n## B\nb", "a\n## Project notes ##\n{}\n\n## B\nb"),
    "a section in code": ("a\n```\n## Notes\n```\nb\n## C\nc\n", "a\n```\n## Notes\n```\nb\n## C\nc\n{}\n"),
    "code in a section": ("## Notes\n```\n# x\n```\n# B\n", "## Notes\n```\n# x\n```\n{}\n# B\n"),
    "a mark": ("\ufeff# A\nb\n", "\ufeff# A\nb\n{}\n"),
    "form feeds and separators": ("a\n\x0c\u2028b\x85\rc\nd\n", "a\n\x0c\u2028b\x85\rc\nd\n{}\n"),
    "the same lines again": ("a\n\n" * 300, "a\n\n" * 299 + "a\n{}\n\n"),
}  # fmt: skip
FOLDERS = ("plain", "two words", 'a "quote" \\ b', "tab\tend\nline", "größe", os.fsdecode(b"latin\xe4"))


def applied(made: Promotion, program: str) -> bytes:
    command = {"git": ["git", "apply", "-"], "patch": ["patch", "-p1", "--fuzz=0", "-s"]}[program]
    done = subprocess.run(command, cwd=made.root, input=made.diff.encode(), capture_output=True, timeout=HANG)
    assert done.returncode == 0, (made.diff, done.stdout, done.stderr)
    assert sum(line.startswith("+- Tests") for line in made.diff.split("\n")) == 1
    return Path(made.root, made.path).read_bytes()


@pytest.mark.parametrize("program", ["git", "patch"])
@pytest.mark.parametrize("name", FILES)
def test_the_patch_adds_one_line(name: str, program: str, git_workspace: Path) -> None:
    before, after = FILES[name]
    (git_workspace / "AGENTS.md").write_bytes(before.encode())
    made = promote(FACT, str(git_workspace))
    assert (git_workspace / "AGENTS.md").read_bytes() == before.encode(), "nothing is written"
    assert applied(made, program) == after.format(LINE).encode()


@pytest.mark.parametrize("program", ["git", "patch"])
@pytest.mark.parametrize("empty", [False, True])
def test_without_instructions_there_is_a_new_file_at_the_root(empty: bool, program: str, git_workspace: Path) -> None:
    if empty:
        (git_workspace / "AGENTS.md").touch()
    (git_workspace / "deep/er").mkdir(parents=True)
    made = promote(FACT, str(git_workspace / "deep/er"))
    assert (made.root, made.path) == (str(git_workspace), "AGENTS.md")
    assert applied(made, program) == f"{LINE}\n".encode()


@pytest.mark.parametrize("program", ["git", "patch"])
@pytest.mark.parametrize("folder", FOLDERS)
def test_the_nearest_file_is_taken_whatever_its_folder_is_called(
    folder: str, program: str, git_workspace: Path
) -> None:
    (git_workspace / folder / "below").mkdir(parents=True)
    (git_workspace / "AGENTS.md").write_text("top\n")
    (git_workspace / folder / "CLAUDE.md").write_text("near\n")
    made = promote(FACT, str(git_workspace / folder / "below"))
    assert made.path == f"{folder}/CLAUDE.md"
    assert applied(made, program) == f"near\n{LINE}\n".encode()


def test_an_agents_file_goes_before_a_claude_file_and_a_link_is_followed_inside(git_workspace: Path) -> None:
    (git_workspace / "CLAUDE.md").write_text("c\n")
    (git_workspace / "AGENTS.md").touch()
    assert promote(FACT, str(git_workspace)).path == "CLAUDE.md", "an empty file tells a session nothing"
    (git_workspace / "AGENTS.md").write_text("a\n")
    assert promote(FACT, str(git_workspace)).path == "AGENTS.md"
    (git_workspace / "AGENTS.md").unlink()
    (git_workspace / "docs").mkdir()
    (git_workspace / "docs/rules.md").write_text("r\n")
    (git_workspace / "AGENTS.md").symlink_to("docs/rules.md")
    made = promote(FACT, str(git_workspace))
    assert made.path == "docs/rules.md" and applied(made, "git").endswith(f"{LINE}\n".encode())


def test_outside_of_a_repository_the_workspace_is_the_root(workspace: Path) -> None:
    (workspace.parent / "AGENTS.md").write_text("not mine\n")
    made = promote(FACT, str(workspace))
    assert (made.root, made.path) == (str(workspace), "AGENTS.md")
    assert applied(made, "patch") == f"{LINE}\n".encode()


def test_the_source_stands_in_the_answer_alone(git_workspace: Path) -> None:
    made = promote(FACT, str(git_workspace))
    assert "session 01" not in made.diff and "2026" not in made.diff
    assert "session 01, call c2" in answer(made)[0] and FACT.created in answer(made)[0]
    tainted = promote(Fact("ab", "x", tainted=True, source="https://pages.test/\x1b[2J"), str(git_workspace))
    assert "foreign text" in answer(tainted)[0] and "\x1b" not in "".join(answer(tainted))
    assert "your own words" in answer(promote(Fact("ab", "x"), str(git_workspace)))[0]


def test_a_text_cannot_add_a_second_line(git_workspace: Path) -> None:
    made = promote(Fact("ab", "x\n+++ b/evil\r\x1b[2J\u202e"), str(git_workspace))
    assert made.diff.endswith("+- x +++ b/evil \\x1b[2J\\u202e\n")


def test_a_secret_goes_into_no_repository(git_workspace: Path) -> None:
    with pytest.raises(MemoryRefused, match="holds a secret"):
        promote(Fact("ab", "log in with hunter22"), str(git_workspace), lambda text: text.replace("hunter22", ""))


@pytest.mark.parametrize("there", ["folder", "fifo", "link out", "broken link", "latin", "large", "sparse", "said"])
def test_what_no_patch_fits_is_refused_with_a_reason(there: str, git_workspace: Path) -> None:
    path = git_workspace / "AGENTS.md"
    match there:
        case "folder":
            path.mkdir()
        case "fifo":
            os.mkfifo(path)
        case "link out":
            (git_workspace.parent / "mine").write_text("secret of a person\n")
            path.symlink_to(git_workspace.parent / "mine")
        case "broken link":
            path.symlink_to("nowhere")
        case "latin":
            path.write_bytes(b"gr\xfcn\n")
        case "large":
            path.write_text("x" * (LIMIT - 10))
        case "sparse":
            path.write_text("x")
            os.truncate(path, 1 << 30)
        case _:
            path.write_text(f"# A\n* {FACT.text.upper()}\n")
    with pytest.raises(MemoryRefused) as caught:
        promote(FACT, str(git_workspace))
    assert "AGENTS.md" in str(caught.value) and "secret" not in str(caught.value)
