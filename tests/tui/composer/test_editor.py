"""The person's editor: what comes back, and that nothing is lost when it does not."""

import os
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest
from textual.app import App

from codewhale.tui.composer.outside import MOST_BYTES, at_line, edit_file, edit_text, show_text, words_of
from support.composing import desk
from support.tuirecord import screen_text


class Terminal(App[None]):
    """An app whose driver can give the terminal away."""

    def __init__(self) -> None:
        super().__init__()
        self.given = 0

    def suspend(self) -> Any:
        """Count, as there is no terminal to give."""
        import contextlib

        self.given += 1
        return contextlib.nullcontext()


def editor(tmp_path: Path, body: str) -> str:
    """A command that runs `body` on the file at `path`."""
    script = tmp_path / "an editor.py"
    script.write_text(f"import sys\npath = sys.argv[-1]\n{body}\n")
    return f"{sys.executable} '{script}'"


async def test_what_was_written_comes_back(tmp_path: Path) -> None:
    command = editor(tmp_path, "text = open(path).read(); open(path, 'w').write(text.upper() + 'more\\n')")
    app = Terminal()
    edited = await edit_text(app, command, "some\n你好 ")
    assert (edited.text, edited.code) == ("SOME\n你好 more", "")
    assert app.given == 1


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ("sys.exit(3)", "editor_failed"),
        ("import os; os.unlink(path)", "editor_failed"),
        ("open(path, 'wb').write(b'\\xff\\xfe')", "editor_not_text"),
        (f"open(path, 'w').write('x' * ({MOST_BYTES} + 1))", "editor_too_long"),
        ("import os; os.unlink(path); os.mkfifo(path)", "editor_too_long"),
    ],
)
async def test_a_failure_is_said(tmp_path: Path, body: str, code: str) -> None:
    edited = await edit_text(Terminal(), editor(tmp_path, body), "text")
    assert edited.code == code
    left = edited.wrong.rpartition(" ")[2]
    assert os.path.isfile(left) == ("open(path" in body)
    if os.path.isfile(left):
        shutil.rmtree(os.path.dirname(left))


async def test_no_editor_and_one_that_is_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    for command, code in (("", "no_editor"), ("vim '", "no_editor"), ("/nowhere/editor", "editor_failed")):
        assert (await edit_text(Terminal(), command, "text")).code == code
        assert (await edit_file(Terminal(), command, "/etc/hosts", 3)).code == code


async def test_without_an_editor_of_ones_own_it_is_vi_and_a_text_is_shown_by_less(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("vi", "less"):
        program = tmp_path / "bin" / name
        program.parent.mkdir(exist_ok=True)
        program.write_text(
            f'#!/bin/sh\n/bin/cat "$1" > {tmp_path}/{name}.seen\n'
            f'echo "$1" > {tmp_path}/{name}.path\nprintf {name} >> "$1"\n'
        )
        program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    assert (await edit_text(Terminal(), "", "draft ")).text == "draft vi"
    text = "\n".join(f"row {number}" for number in range(10_000))
    assert (await show_text(Terminal(), "", ("less", "more"), text)).code == ""
    assert (tmp_path / "less.seen").read_text() == text
    assert (await show_text(Terminal(), "", ("most",), text)).code == "no_pager"
    assert not os.path.exists(os.path.dirname((tmp_path / "less.path").read_text().strip()))


async def test_a_file_is_opened_at_its_line(tmp_path: Path) -> None:
    file = tmp_path / "a.txt"
    file.write_text("x")
    command = editor(tmp_path, "open(path, 'a').write(' '.join(sys.argv[1:-1]))")
    assert (await edit_file(Terminal(), command, str(file), 7)).code == ""
    assert file.read_text() == "x"
    assert at_line(("nvim", "-u"), "a", 7) == ("nvim", "-u", "+7", "a")
    assert at_line(("/usr/bin/code", "-w"), "a", 7) == ("/usr/bin/code", "-w", "--goto", "a:7")
    assert at_line(("hx",), "a", 7) == ("hx", "a:7") and at_line(("vi",), "a", 0) == ("vi", "a")
    assert words_of("code  -w 'x y'") == ("code", "-w", "x y")


async def test_the_draft_stays_where_no_terminal_can_be_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with desk(tmp_path) as here:
        await here.type("draft")
        here.composer._editor = "true"
        await here.pilot.press("ctrl+g")
        await here.until(lambda: "no terminal" in screen_text(here.host))
        assert here.text == "draft"
        monkeypatch.setenv("PATH", str(tmp_path))
        here.composer._editor = ""
        await here.pilot.press("ctrl+g")
        await here.until(lambda: "no editor configured" in screen_text(here.host))
        assert here.text == "draft"


async def test_an_editor_is_told_nothing_secret(tmp_path: Path) -> None:
    os.environ["SOME_API_KEY"] = "secret"
    try:
        command = editor(tmp_path, "import os; open(path, 'w').write(repr(dict(os.environ)))")
        assert "secret" not in (await edit_text(Terminal(), command, "")).text
    finally:
        del os.environ["SOME_API_KEY"]
