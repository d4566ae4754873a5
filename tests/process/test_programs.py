"""Finding programs, and saying how to get those that are missing."""

import os
from pathlib import Path

import pytest

from codewhale.process.programs import PROGRAMS, find_program, how_to_install, not_installed


def path_with(folder: Path, *names: str) -> str:
    """A PATH on which these programs are."""
    folder.mkdir(exist_ok=True)
    for name in names:
        (folder / name).write_text("#!/bin/sh\n")
        (folder / name).chmod(0o755)
    return str(folder)


@pytest.mark.parametrize(
    ("manager", "program", "command"),
    [
        ("apt-get", "rg", "apt-get install ripgrep"),
        ("brew", "pdftotext", "brew install poppler"),
        ("dnf", "pdftotext", "dnf install poppler-utils"),
        ("pacman", "gh", "pacman -S github-cli"),
        ("apk", "git", "apk add git"),
        ("apt-get", "go", "apt-get install golang-go"),
        ("brew", "pnpm", "brew install pnpm"),
        ("apt-get", "pnpm", "install pnpm (pnpm.io)"),
        ("brew", "bun", "install bun (bun.sh)"),
        ("apt-get", "something", "apt-get install something"),
    ],
)
def test_the_command_is_that_of_this_machines_manager(tmp_path: Path, manager: str, program: str, command: str) -> None:
    told = how_to_install(program, path_with(tmp_path / "bin", manager))
    assert told.removeprefix("sudo ") == command
    assert told.startswith("sudo ") == (os.geteuid() != 0 and manager != "brew" and not command.startswith("install"))


def test_without_a_manager_the_source_is_named(tmp_path: Path) -> None:
    assert how_to_install("rg", str(tmp_path)) == "install rg (github.com/BurntSushi/ripgrep)"
    assert how_to_install("something", str(tmp_path)) == "install something"
    for row in PROGRAMS:
        assert row.without
        assert row.site in how_to_install(row.name, str(tmp_path))


def test_a_missing_program_is_told_with_what_to_do() -> None:
    assert not_installed("rg").startswith("rg is not installed (not on PATH). Ask the user to install it: ")


def test_programs_of_relative_folders_are_passed_over() -> None:
    assert find_program("sh")
    assert find_program("no-such-program-anywhere") is None
