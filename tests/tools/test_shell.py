"""The shell tools as a model meets them: contents, metadata, errors and their next calls."""

import asyncio
from pathlib import Path

import msgspec
import pytest

from codewhale.protocol.errors import ToolError
from codewhale.protocol.tools import CommandSubject, ToolResult
from codewhale.services.jobs import JobInput
from support.jobs import Shell
from support.machine import HELD, MAKES_FILES
from support.patience import Moment
from support.running import eventually, pids, running

COMMON = {
    "exit_code", "status", "duration_ms", "sandboxed", "sandbox_type", "sandbox_denied", "task_id", "stdout_len",
    "stderr_len", "stdout_truncated", "stderr_truncated", "stdout_omitted", "stderr_omitted", "summary",
    "stdout_summary", "stderr_summary", "canceled",
}  # fmt: skip
OF_EXEC = COMMON | {"safety_level", "interactive", "combined_output", "backgrounded", "execpolicy"}
OF_DELTA = COMMON | {"stdout_total_len", "stderr_total_len", "command", "stream_delta", "wait_canceled"}


@pytest.fixture
async def shell(workspace: Path):  # type: ignore[no-untyped-def]
    made = Shell(workspace)
    yield made
    await made.jobs.aclose()


async def test_exec_shell_returns_stdout(shell: Shell) -> None:
    result = await shell.call("exec_shell", command="echo hello")
    assert result.ok and result.content == "hello\n"
    assert result.metadata.keys() >= OF_EXEC
    assert result.metadata["exit_code"] == 0 and result.metadata["status"] == "Completed"
    assert result.metadata["stdout_len"] == 6 and result.metadata["summary"] == "hello"


async def test_exec_shell_shows_both_streams_and_none(shell: Shell) -> None:
    both = await shell.call("exec_shell", command="echo out; echo err >&2")
    assert both.content == "out\n\nSTDERR:\nerr\n"
    assert (await shell.call("exec_shell", command="true")).content == "(no output)"


async def test_exec_shell_failure_is_soft_and_shows_both_streams(shell: Shell) -> None:
    result = await shell.call("exec_shell", command="echo out; echo err >&2; exit 3")
    assert not result.ok and "exit code 3" in result.content
    assert "out\n" in result.content and "STDERR:\nerr" in result.content
    assert result.metadata["status"] == "Failed" and result.metadata["exit_code"] == 3


async def test_a_program_that_is_not_there_is_told_with_how_to_get_it(shell: Shell) -> None:
    result = await shell.call("exec_shell", command="PATH=/nowhere; rg x")
    assert not result.ok
    assert "rg is not installed (not on PATH). Ask the user to install it: " in result.content
    other = await shell.call("exec_shell", command="PATH=/nowhere; no-such-thing x")
    assert "Ask the user" not in other.content


async def test_exec_shell_runs_bash_without_login_files(shell: Shell) -> None:
    result = await shell.call("exec_shell", command="x=(a b); echo ${x[1]}; shopt -q login_shell || echo plain")
    assert result.content == "b\nplain\n"


async def test_cwd_is_honoured_in_the_foreground_and_the_background(shell: Shell) -> None:
    (shell.workspace / "sub").mkdir()
    assert (await shell.call("exec_shell", command="pwd", cwd="sub")).content == f"{shell.workspace}/sub\n"
    job = (await shell.call("exec_shell", command="pwd", cwd="sub", background=True)).metadata["task_id"]
    assert f"{shell.workspace}/sub\n" in (await shell.call("exec_shell_wait", task_id=job)).content


@pytest.mark.parametrize("cwd", ["..", "/", "/etc", "sub/../..", "out", "missing", "file"])
async def test_a_cwd_outside_or_missing_is_refused(shell: Shell, cwd: str) -> None:
    (shell.workspace / "out").symlink_to("/etc")
    (shell.workspace / "file").write_text("")
    error = await shell.refused("exec_shell", command="pwd", cwd=cwd)
    assert error.field == "cwd" and error.received == cwd
    assert error.kind == ("invalid_input" if cwd in ("missing", "file") else "path_escape")


async def test_timeout_tells_how_to_go_on(shell: Shell) -> None:
    command = "echo begun; sleep 600"
    result = await shell.call("exec_shell", command=command, timeout_ms=1000)
    assert not result.ok and "begun" in result.content and "background" in result.content
    assert result.metadata["status"] == "TimedOut" and result.metadata["exit_code"] is None
    recovery = result.metadata["foreground_timeout_recovery"]
    assert recovery["process_killed"] and recovery["poll_with"] == ["task_shell_wait", "exec_shell_wait"]
    assert recovery["recommended_tools"] == ["task_shell_start", "exec_shell"] and "task_shell_start" in result.content
    again = await shell.call("exec_shell", **recovery["exec_shell_background"])
    assert again.ok and again.metadata["backgrounded"]


async def test_timeout_holds_in_the_background_too(shell: Shell) -> None:
    started = await shell.call("exec_shell", command="sleep 600", background=True, timeout_ms=1000)
    result = await shell.call("exec_shell_wait", task_id=started.metadata["task_id"])
    assert not result.ok and result.metadata["status"] == "TimedOut"


async def test_g1_ampersand_does_not_block_and_becomes_a_job(shell: Shell, workspace: Path) -> None:
    began = Moment()
    result = await shell.call("exec_shell", command="sleep 600 & echo $! > left; echo started")
    assert not began.hung
    job = result.metadata["task_id"]
    assert result.ok and result.metadata["backgrounded"] and result.metadata["exit_code"] == 0
    assert "started" in result.content and "exec_shell_cancel" in result.content and job in result.content
    assert all(running(pid) for pid in pids(workspace / "left"))
    assert (await shell.call("exec_shell_cancel", task_id=job)).metadata["status"] == "Killed"
    assert not any(running(pid) for pid in pids(workspace / "left"))


async def test_g1_cancelling_the_call_is_quick_and_ends_the_tree(shell: Shell, workspace: Path) -> None:
    command = "(sleep 600 & echo $! > grand); echo $$ > main; sleep 600"
    task = asyncio.create_task(shell.call("exec_shell", command=command))
    await eventually(lambda: len(pids(workspace / "grand", workspace / "main")) == 2)
    began = Moment()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not began.hung
    assert not any(running(pid) for pid in pids(workspace / "grand", workspace / "main"))


async def test_g3_a_question_gets_no_answer_and_does_not_hang(shell: Shell) -> None:
    result = await shell.call("exec_shell", command="read -p 'sure? ' answer; echo \"[$answer]\"", timeout_ms=5000)
    assert result.metadata["status"] == "Completed" and "[]" in result.content


async def test_g4_output_is_bounded(shell: Shell) -> None:
    result = await shell.call("exec_shell", command="seq 1 200000")
    assert result.metadata["stdout_truncated"] and result.metadata["stdout_omitted"] > 1_000_000
    assert len(result.content) < 31_000 and "bytes left out" in result.content
    text, _, note = result.content.rpartition("\n[")
    assert text.startswith("1\n2\n") and text.endswith("\n200000") and result.metadata["log_artifact_id"] in note
    whole = shell.artifacts.get(result.metadata["log_artifact_sha256"])
    assert whole == b"".join(b"%d\n" % number for number in range(1, 200_001))


async def test_stdin_and_combined_output(shell: Shell) -> None:
    result = await shell.call("exec_shell", command="cat; echo 2 >&2; echo 3", stdin="1\n", combined_output=True)
    assert result.content == "1\n2\n3\n" and result.metadata["combined_output"]


async def test_tty_is_a_job_with_a_terminal(shell: Shell) -> None:
    started = await shell.call("exec_shell", command="tty; exit 0", tty=True)
    assert started.metadata["backgrounded"]
    assert "/dev/" in (await shell.call("exec_shell_wait", task_id=started.metadata["task_id"])).content


async def test_interactive_is_refused_in_words(shell: Shell) -> None:
    error = await shell.refused("exec_shell", command="echo x", interactive=True)
    assert error.kind == "not_available" and error.field == "interactive" and "terminal" in error.message


async def test_interactive_and_background_are_refused_in_words(shell: Shell) -> None:
    for other in ("background", "tty"):
        with pytest.raises(ToolError, match="leave background and tty out") as caught:
            await shell.call("exec_shell", "attended", command="echo x", interactive=True, **{other: True})
        assert caught.value.fix is not None
        assert (await shell.call("exec_shell", "attended", **caught.value.fix.arguments)).ok


async def test_an_interactive_command_has_a_terminal_that_a_person_types_into(shell: Shell) -> None:
    command = "tty; read -p 'Name? ' name; stty -echo; read -p 'Key? ' key; echo; echo \"$name has ${#key}\"; test -t 0"
    call = asyncio.create_task(shell.call("exec_shell", "attended", command=command, interactive=True))
    await eventually(lambda: shell.jobs.jobs("attended"))
    (job,) = shell.jobs.jobs("attended")
    for prompt, text in (("Name? ", "Ada\n"), ("Key? ", "secret\n")):
        await eventually(lambda prompt=prompt: prompt in shell.jobs.recent("attended", job.id))
        await shell.jobs.interact("attended", job.id, JobInput(text.encode(), seconds=0.1), "console")
    result = await call
    assert result.ok and "Ada has 6" in result.content and "secret" not in result.content and "/dev/" in result.content
    assert result.metadata["interactive"] and not result.metadata["backgrounded"]


async def test_what_an_interrupted_command_printed_is_its_result(shell: Shell) -> None:
    async def ended() -> ToolResult:
        try:
            return await shell.call("exec_shell", command="echo begun; echo bad >&2; sleep 300")
        except asyncio.CancelledError as stopped:
            return stopped.args[0]

    task = asyncio.create_task(ended())
    await eventually(lambda: any("bad" in shell.jobs.recent("one", key) for key in shell.jobs._jobs))
    task.cancel()
    result = await task
    assert not result.ok and "begun" in result.content and "bad" in result.content
    assert "was cancelled" in result.content and result.metadata["canceled"]


async def test_a_command_that_cannot_be_passed_on_is_refused(shell: Shell) -> None:
    assert (await shell.refused("exec_shell", command="echo a\0b")).field == "command"
    assert (await shell.refused("exec_shell", command="echo \ud800")).field == "command"
    assert (await shell.refused("exec_shell", command="true " + "x" * 3_000_000)).field == "command"


async def test_background_job_is_read_in_deltas(shell: Shell) -> None:
    started = await shell.call("exec_shell", command="while read l; do echo got $l; done", background=True)
    job = started.metadata["task_id"]
    assert started.ok and job in started.content and started.metadata["status"] == "Running"
    one = await shell.call("exec_shell_interact", task_id=job, input="a\n", timeout_ms=5000)
    assert one.ok and one.content.startswith("got a\n") and one.metadata.keys() >= OF_DELTA
    idle = await shell.call("exec_shell_wait", task_id=job, wait=False)
    assert idle.ok and "no new output" in idle.content and idle.metadata["stdout_total_len"] == 6
    last = await shell.call("exec_shell_interact", task_id=job, input="b\n", close_stdin=True, timeout_ms=5000)
    assert last.content.startswith("got b\n")
    end = await shell.call("exec_shell_wait", task_id=job)
    assert end.ok and end.metadata["status"] == "Completed" and end.metadata["stream_delta"] is True
    assert end.metadata["command"] == "while read l; do echo got $l; done"


async def test_exec_shell_wait_reports_failure(shell: Shell) -> None:
    started = await shell.call("exec_shell", command="echo no >&2; exit 2", background=True)
    result = await shell.call("exec_shell_wait", task_id=started.metadata["task_id"])
    assert not result.ok and "no\n" in result.content and result.metadata["exit_code"] == 2


async def test_an_unknown_job_names_the_known_ones(shell: Shell) -> None:
    nothing = await shell.refused("exec_shell_wait", task_id="shell_00000000")
    assert nothing.kind == "execution_failed" and nothing.field == "task_id"
    job = (await shell.call("exec_shell", command="sleep 600", background=True)).metadata["task_id"]
    for name in ("exec_shell_wait", "exec_shell_interact", "exec_shell_cancel"):
        assert job in (await shell.refused(name, task_id="shell_00000000")).message


async def test_another_sessions_job_is_unknown(shell: Shell) -> None:
    job = (await shell.call("exec_shell", command="sleep 600", background=True)).metadata["task_id"]
    with pytest.raises(ToolError, match="no job"):
        await shell.call("exec_shell_wait", session="two", task_id=job, wait=False)
    result = await shell.call("exec_shell_cancel", session="two", all=True)
    assert result.metadata == {"status": "Noop", "canceled": 0, "task_ids": []}


async def test_writing_to_an_ended_job_says_so(shell: Shell) -> None:
    job = (await shell.call("exec_shell", command="true", background=True)).metadata["task_id"]
    await shell.call("exec_shell_wait", task_id=job)
    error = await shell.refused("exec_shell_interact", task_id=job, input="x\n")
    assert error.kind == "execution_failed" and "Completed" in error.message


async def test_exec_shell_cancel_one_and_all(shell: Shell) -> None:
    jobs = [(await shell.call("exec_shell", command="sleep 600", background=True)).metadata["task_id"] for _ in "abc"]
    one = await shell.call("exec_shell_cancel", task_id=jobs[0])
    assert (
        one.metadata.keys() == {"status", "task_id", "exit_code", "duration_ms"} and one.metadata["status"] == "Killed"
    )
    again = await shell.call("exec_shell_cancel", task_id=jobs[0])
    assert again.ok and "already" in again.content
    rest = await shell.call("exec_shell_cancel", all=True)
    assert rest.metadata == {"status": "Killed", "canceled": 2, "task_ids": jobs[1:]}
    assert (await shell.refused("exec_shell_cancel")).kind == "missing_field"


async def test_what_a_person_approves(shell: Shell) -> None:
    tool = shell.tools["exec_shell"]
    args = msgspec.convert({"command": "make", "cwd": "sub", "background": True}, tool.args)
    assert tool.decl.subjects(args) == (CommandSubject("make", "sub", True),)
    assert {name: tool.decl.effects for name, tool in shell.tools.items()} == {
        "task_shell_start": ("executes",),
        "task_shell_wait": ("reads",),
        "task_gate_run": ("executes",),
        "exec_shell": ("executes",),
        "exec_shell_wait": ("reads",),
        "exec_shell_interact": ("executes",),
        "exec_shell_cancel": ("executes",),
    }
    assert shell.tools["exec_shell_wait"].decl.polls


@HELD
@MAKES_FILES
async def test_the_sandbox_of_a_command_is_told_and_what_it_refused(shell: Shell) -> None:
    free = await shell.call("exec_shell", command="echo $SESSION_NAME")
    assert free.content == "one\n" and free.metadata["sandboxed"] is False and free.metadata["sandbox_type"] is None
    shell.profile = "workspace-write"
    held = await shell.call("exec_shell", command="echo x > made && cat made")
    assert held.ok and held.metadata["sandboxed"] and held.metadata["sandbox_type"] in ("bubblewrap", "landlock")
    outside = await shell.call("exec_shell", command="touch /etc/whale-made")
    assert not outside.ok and outside.metadata["sandbox_denied"]
    assert (
        outside.metadata["sandbox_denial"]["allowance"] == "write" and "[sandbox (workspace-write):" in outside.content
    )
    away = await shell.call("exec_shell", command="getent hosts example.com || echo 'Could not resolve host' && false")
    assert away.metadata["sandbox_network_restricted"] and not Path("/etc/whale-made").exists()
    job = (await shell.call("exec_shell", command="pwd; touch /etc/whale-made", background=True)).metadata["task_id"]
    told = await shell.call("exec_shell_wait", task_id=job)
    assert str(shell.workspace) in told.content and told.metadata["sandbox_denied"]
