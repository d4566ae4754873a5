"""Processes as attackers: whatever a command starts is gone when it is ended, when its time is over, and when the
harness dies; nothing it prints, waits for or takes holds anybody up."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from codewhale.protocol.modes import Authority, Mode
from support.jail import call, marks, played
from support.jobs import Rig, Shell
from support.machine import MAKES_FILES, PS
from support.patience import HANG, Moment
from support.program import codewhale_program, environment, scripted
from support.running import eventually, pids, running

# Ways out of a tree: each writes the number of the process that got away to `away`.
WAYS = {
    "double fork": "( ( echo $BASHPID > away; sleep 600 ) & ) ; sleep 600",
    "session": "setsid sh -c 'echo $$ > away; sleep 600' & sleep 600",
    "session twice": "setsid sh -c \"setsid sh -c 'echo \\$\\$ > away; sleep 600' & sleep 600\" & sleep 600",
    "ignoring": "trap '' TERM HUP INT QUIT; echo $BASHPID > away; while :; do sleep 600; done",
    "holding the pipe": "(trap '' TERM; echo $BASHPID > away; exec sleep 600) & disown; sleep 600",
    "nohup": "nohup sh -c 'echo $$ > away; sleep 600' > /dev/null 2>&1 & sleep 600",
    "stopped": "sh -c 'echo $$ > away; kill -STOP $$; sleep 600' & sleep 600",
    "stopping its parents": "echo $BASHPID > away; kill -STOP $PPID 2> /dev/null; sleep 600",
}


def soon(condition: Callable[[], object], seconds: float = HANG) -> None:
    """Return as soon as the condition holds; fail when it does not in time."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "the condition never held"
        time.sleep(0.01)


def left(folder: Path) -> list[int]:
    """The processes of this folder that still run: told by the folder they work in, whatever their number inside a
    sandbox was."""
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            at = os.readlink(f"/proc/{name}/cwd")
        except OSError:
            continue
        if at.startswith(str(folder)) and running(int(name)) and int(name) != os.getpid():
            found.append(int(name))
    return found


def away(folder: Path) -> bool:
    """Whether the process that gets away has begun."""
    return bool(pids(folder / "away"))


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("profile", ["none", pytest.param("workspace-write", marks=MAKES_FILES)])
async def test_g1_a_job_that_is_ended_takes_everything_with_it(way: str, profile: str, workspace: Path) -> None:
    rig = Rig(workspace)
    command = WAYS[way]
    argv = ("/bin/bash", "-c", command)
    job = await rig.start(command, argv=argv, profile=profile, workspace=str(workspace))
    await eventually(lambda: away(workspace) or rig.jobs.view("one", job).status != "Running")
    assert away(workspace), rig.jobs.whole("one", job)
    began = Moment()
    view = await rig.jobs.cancel("one", job)
    assert view.status == "Killed" and not began.hung
    assert left(workspace) == []
    await rig.jobs.aclose()


@pytest.mark.parametrize("way", ["double fork", "session", "ignoring", "holding the pipe"])
async def test_g1_a_job_whose_time_is_over_takes_everything_with_it(way: str, workspace: Path) -> None:
    shell = Shell(workspace)
    began = Moment()
    result = await shell.call("exec_shell", command=WAYS[way], timeout_ms=1000)
    assert result.metadata["status"] == "TimedOut" and not began.hung
    assert away(workspace) and left(workspace) == []
    await shell.jobs.aclose()


async def test_g1_what_a_session_leaves_running_ends_with_it(home: Path, workspace: Path) -> None:
    commands = [call("exec_shell", command=WAYS["session"], background=True), call("exec_shell", command="sleep 600 &")]
    found = await played(home, workspace, *commands, mode=Mode.YOLO, authority=Authority.AUTO)
    assert [result.ok for result in found] == [True, True] and left(workspace) == []


@MAKES_FILES
def test_g2_a_harness_that_is_killed_leaves_no_process_and_tells_what_ran(home: Path, workspace: Path) -> None:
    job = call("exec_shell", command=WAYS["double fork"], background=True)
    last = call("exec_shell", command="touch here; sleep 600")
    scripted(home, *(json.dumps({"calls": [one]}) for one in (job, last)))
    argv = [sys.executable, "-m", "codewhale", "exec", "--yolo", "-w", str(workspace), "Go."]
    process = subprocess.Popen(argv, env=environment(home), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    soon(lambda: (workspace / "here").exists() and pids(workspace / "away"))
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    soon(lambda: left(workspace) == [])
    listed = codewhale_program(home, "exec", "-w", str(workspace), "--continue", "/jobs")
    assert "stale" in listed.stdout and "Running" not in listed.stdout, listed


@pytest.mark.parametrize(
    "command",
    ["cat", "read answer", "sudo -k true", "git commit", "less /etc/passwd", "python3 -c 'input()'"],
)
async def test_g3_what_asks_a_question_gets_no_answer_and_ends(command: str, workspace: Path) -> None:
    shell = Shell(workspace)
    result = await shell.call("exec_shell", command=command, timeout_ms=10_000)
    assert result.metadata["status"] in ("Completed", "Failed")
    await shell.jobs.aclose()


@PS
async def test_g3_the_terminal_of_the_harness_is_out_of_reach(workspace: Path) -> None:
    shell = Shell(workspace)
    result = await shell.call("exec_shell", command="ps -o tty= -p $$; echo stolen > /dev/tty")
    assert not result.ok and "?\n" in result.content and "No such device" in result.content
    await shell.jobs.aclose()


@pytest.mark.parametrize(
    "command",
    [
        "head -c 200000000 /dev/zero",
        "head -c 3000000 /dev/urandom; head -c 3000000 /dev/urandom >&2",
        "printf '\\342'; sleep 0.1; printf '\\202'; sleep 0.1; printf '\\254\\n'",
        "for n in $(seq 2000); do printf x; printf y >&2; done",
        "printf '\\033]0;owned\\007\\033[2J\\200\\377'",
    ],
)
async def test_g4_no_output_takes_more_than_its_share(command: str, workspace: Path) -> None:
    rig = Rig(workspace)
    job = await rig.start(command)
    reading = await rig.jobs.wait("one", job, 30)
    assert reading.job.status == "Completed" and len(reading.stdout) < 35_000 and len(reading.stderr) < 35_000
    assert reading.job.stdout_total == rig.jobs.log("one", job).total - reading.job.stderr_total
    assert rig.jobs.log("one", job).kept <= 64 << 20
    assert "€" in reading.stdout or "342" not in command
    await rig.jobs.aclose()


async def test_g4_a_flood_ends_at_once_and_starves_nobody(workspace: Path) -> None:
    rig = Rig(workspace)
    flood = await rig.start("cat /dev/zero")
    await eventually(lambda: rig.jobs.view("one", flood).stdout_total > 50_000_000)
    answered = await rig.jobs.wait("one", await rig.start("echo here"), 10)
    assert answered.stdout == "here\n"
    began = Moment()
    await rig.jobs.cancel("one", flood)
    assert not began.hung and left(workspace) == []
    await rig.jobs.aclose()


async def test_g6_ending_a_job_that_is_over_signals_nobody(workspace: Path) -> None:
    rig = Rig(workspace)
    job = await rig.start("exit 0")
    await rig.jobs.wait("one", job, 5)
    bystander = await asyncio.create_subprocess_exec("sleep", "600", cwd=str(workspace))
    assert (await rig.jobs.cancel("one", job)).status == "Completed"
    assert await rig.jobs.cancel_all("one") == [] and bystander.returncode is None and running(bystander.pid)
    bystander.kill()
    await bystander.wait()
    await rig.jobs.aclose()
    assert marks(workspace) == []
