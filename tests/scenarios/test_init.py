"""/init through the front door: facts alone, tests run once the person agrees, nothing overwritten unasked."""

import os
from pathlib import Path
from typing import Any

import pytest

from codewhale.protocol.modes import Authority, Mode
from codewhale.protocol.ops import CommandOutput, RunCommand
from codewhale.testing import Harness, harness
from support.program import codewhale_program, scripted

TESTS = "def test_one():\n    open('ran', 'w').close()\n    assert {}\n"


def project(folder: Path, holds: str = "True") -> Path:
    (folder / "src").mkdir(parents=True, exist_ok=True)
    (folder / "src" / "shop.py").write_text("x = 1\n")
    (folder / "src" / "page.ts").write_text("let x = 1\n")
    (folder / "tests").mkdir(exist_ok=True)
    (folder / "tests" / "test_shop.py").write_text(TESTS.format(holds))
    (folder / "pyproject.toml").write_text('[project]\nname = "shop"\n[project.scripts]\nshop = "shop:main"\n')
    (folder / "Makefile").write_text("VAR := 1\nlint:\n\truff\nbuild: lint\n\tcc `touch pwned`\n")
    return folder


async def init(here: Harness, session: str, args: str = "") -> CommandOutput:
    output: CommandOutput = await here.client.submit(RunCommand(session, f"/init {args}".strip()))
    return output


def program(tmp_path: Path, line: str) -> Any:
    scripted(tmp_path)
    return codewhale_program(tmp_path, "exec", line, cwd=tmp_path / "shop")


def test_without_a_person_nothing_is_run_and_all_of_it_is_unverified(tmp_path: Path) -> None:
    folder = project(tmp_path / "shop")
    done = program(tmp_path, "/init")
    assert done.returncode == 0 and "None of its commands was run. /init run runs the tests." in done.stdout
    text = (folder / "AGENTS.md").read_text()
    assert "Commands seen to work" not in text and not (folder / "ran").exists()
    unverified = text.partition("## Not verified")[2].partition("##")[0]
    assert all(row in unverified for row in ("- Tests: `python", "- `make lint`", "- `make build`"))
    assert "`make VAR`" not in text
    assert "## Build files\nMakefile, pyproject.toml" in text
    assert "Python (2 files), TypeScript (1 file)" in text
    assert "- `src/`: TypeScript (1 file), Python (1 file)\n- `tests/`: Python (1 file)" in text
    assert len(text.splitlines()) <= 60


@pytest.mark.parametrize(
    ("holds", "part", "said"), [("True", "Commands seen to work", "1 passed"), ("False", "Not verified", "1 failed")]
)
def test_the_tests_are_run_where_the_line_says_so(tmp_path: Path, holds: str, part: str, said: str) -> None:
    folder = project(tmp_path / "shop", holds)
    done = program(tmp_path, "/init run")
    assert done.returncode == 0, done.stderr
    text = (folder / "AGENTS.md").read_text()
    assert said in text.partition(f"## {part}")[2].partition("##")[0]
    assert (folder / "ran").exists() and "Only the tests were run" in done.stdout


def test_what_is_there_is_shown_with_its_difference_and_stays(tmp_path: Path) -> None:
    folder = project(tmp_path / "shop")
    (folder / "AGENTS.md").write_text("# Mine\nKeep this.\n")
    done = program(tmp_path, "/init")
    assert (done.returncode, done.stdout) == (1, "")
    assert (
        "-Keep this." in done.stderr and "+## Layout" in done.stderr and "To replace it: /init replace" in done.stderr
    )
    assert (folder / "AGENTS.md").read_text() == "# Mine\nKeep this.\n"
    assert program(tmp_path, "/init replace").returncode == 0
    assert "Keep this." not in (folder / "AGENTS.md").read_text()
    assert "says this already" in program(tmp_path, "/init").stdout


@pytest.mark.parametrize("kind", ["link", "dangling", "folder", "claude", "words", "read-only"])
def test_it_never_writes_where_it_should_not(tmp_path: Path, kind: str) -> None:
    folder = project(tmp_path / "shop")
    other = tmp_path / "other.md"
    if kind == "link":
        other.write_text("theirs")
    if kind in ("link", "dangling"):
        (folder / "AGENTS.md").symlink_to(other)
    elif kind == "folder":
        (folder / "AGENTS.md").mkdir()
    elif kind == "claude":
        (folder / "CLAUDE.md").write_text("rules")
    elif kind == "read-only":
        if os.geteuid() == 0:
            pytest.skip("root writes everywhere")
        folder.chmod(0o500)
    done = program(tmp_path, "/init everything" if kind == "words" else "/init")
    assert done.returncode == (2 if kind == "words" else 1) and done.stderr
    assert other.read_text() == "theirs" if kind == "link" else not other.exists()
    assert kind not in ("claude", "words", "read-only") or not (folder / "AGENTS.md").exists()


async def test_an_empty_folder_and_hostile_names(home: Path, workspace: Path) -> None:
    async with harness(home, workspace, []) as here:
        session = await here.open(mode=Mode.AGENT, authority=Authority.PERSON)
        assert "No tests were found" in (await init(here, session)).text
        (workspace / "pyproject.toml").write_text("[project\nbroken")
        (workspace / "package.json").write_text('{"scripts": {"a`b\\nc": "x", "d": 3}}')
        for number in range(100):
            (workspace / f"folder{number}").mkdir()
            (workspace / f"folder{number}" / "x.py").write_text("")
        (workspace / "Makefile").write_text("".join(f"t{number}:\n" for number in range(100)))
        assert (await init(here, session, "replace")).ok
        text = (workspace / "AGENTS.md").read_text()
        assert len(text.splitlines()) <= 60 and "`b" not in text and "more" in text
        assert here.provider.requests == []
