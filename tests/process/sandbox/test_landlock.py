"""Landlock with seccomp: real commands where no namespace is used. What gets out of it is tried in tests/attacks."""

import os
import sys
from pathlib import Path

import pytest

from codewhale.process.launch import Completed, Launch, run
from codewhale.process.sandbox.landlock import LEAST_ABI, landlock, landlock_abi
from codewhale.process.sandbox.profiles import Confinement, Site

pytestmark = pytest.mark.skipif(landlock_abi() < LEAST_ABI, reason="the kernel has no Landlock of the needed version")


def site_of(workspace: Path) -> Site:
    return Site(str(workspace), str(workspace), str(workspace.parent), "/nonexistent")


async def held(line: str, workspace: Path, wanted: Confinement) -> Completed:
    temp = workspace.parent / "temp"
    temp.mkdir(exist_ok=True)
    site = Site(str(workspace), str(workspace), str(temp), "/nonexistent")
    plan = landlock(("/bin/sh", "-c", line), wanted, site)
    return await run(Launch(plan.argv, str(workspace), "none", env=plan.env))


async def test_what_stands_in_the_workspace_is_open_and_its_top_is_not(workspace: Path) -> None:
    (workspace / "src").mkdir()
    (workspace / ".vscode").mkdir()
    (workspace / "a.txt").write_text("one\n")
    line = "echo two >> a.txt; echo x > src/new; echo x > new; echo x > .vscode/new; echo x > $TMPDIR/new; mv src/new ."
    await held(line, workspace, Confinement(writes=True))
    assert (workspace / "a.txt").read_text() == "one\ntwo\n"
    assert {str(path.relative_to(workspace)) for path in workspace.rglob("*")} == {
        "src", ".vscode", "a.txt", "src/new"
    }  # fmt: skip
    assert (workspace.parent / "temp" / "new").exists()


async def test_read_only_means_reading(workspace: Path) -> None:
    (workspace / "a.txt").write_text("one\n")
    done = await held("cat a.txt && echo two > a.txt", workspace, Confinement())
    assert done.stdout == b"one\n" and done.exit_code != 0
    assert (workspace / "a.txt").read_text() == "one\n"


async def test_exit_codes_and_output_are_the_commands_own(workspace: Path) -> None:
    done = await held("echo out; echo err >&2; exit 7", workspace, Confinement())
    assert (done.exit_code, done.stdout, done.stderr) == (7, b"out\n", b"err\n")


async def test_a_program_that_is_not_there_is_told(workspace: Path) -> None:
    site = Site(str(workspace), str(workspace), str(workspace), "/nonexistent")
    done = await run(Launch(landlock(("/no/such",), Confinement(), site).argv, str(workspace), "none"))
    assert done.exit_code == 127 and b"sandbox: /no/such: No such file" in done.stderr


async def test_a_right_that_cannot_be_given_up_ends_it_before_the_command(workspace: Path) -> None:
    site = Site(str(workspace), str(workspace), str(workspace), "/nonexistent")
    argv = landlock(("/bin/touch", f"{workspace}/ran"), Confinement(), site).argv
    broken = [f"filter={'ff' * 8}" if word.startswith("filter=") else word for word in argv]
    done = await run(Launch(tuple(broken), str(workspace), "none"))
    assert done.exit_code == 125 and done.stderr.startswith(b"sandbox: seccomp: ")
    assert os.listdir(workspace) == []


def test_it_runs_by_path_with_nothing_of_ours() -> None:
    argv = landlock(("true",), Confinement(), Site("/w", "/w", "/t", "/nonexistent")).argv
    assert argv[:3] == (os.path.realpath(sys.executable), "-I", "-S") and argv[3].endswith("/sandbox/enter.py")
    assert "codewhale" not in Path(argv[3]).read_text()


async def test_a_persons_terminal_is_out_of_reach_and_ones_own_is_not(workspace: Path) -> None:
    keyboard, screen = os.openpty()
    os.write(keyboard, b"typed\n")
    try:
        done = await held(f"cat {os.ttyname(screen)}; echo x > {os.ttyname(screen)}", workspace, Confinement())
        assert done.stdout == b"" and done.stderr.count(b"ermission denied") == 2
    finally:
        os.close(keyboard)
        os.close(screen)
    plan = landlock(("/bin/sh", "-c", "echo own > /dev/tty; stty -a < /dev/stdin"), Confinement(), site_of(workspace))
    done = await run(Launch(plan.argv, str(workspace), "none", env=plan.env, tty=True))
    assert done.stdout.startswith(b"own") and b"rows" in done.stdout
