"""Real processes: output, limits, cancellation, and the end of whole trees."""

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from codewhale.process.launch import Ceiling, Launch, run, start
from codewhale.process.launcher import descendants
from codewhale.protocol.errors import ToolError
from support.patience import HANG, Moment
from support.running import eventually, open_files, pids, running

NAMES = ("main", "first", "second")
STUBBORN = """
import os, signal, sys, time
def away(name):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
                signal.signal(number, signal.SIG_IGN)
            open(name + '.new', 'w').write(str(os.getpid()))
            os.rename(name + '.new', name)
            time.sleep(600)
        os._exit(0)
    os.wait()
signal.signal(signal.SIGTERM, signal.SIG_IGN)
away('first'); away('second')
open('main', 'w').write(str(os.getpid()))
print('ready', flush=True)
"""


def shell(command: str, cwd: Path, **more: object) -> Launch:
    return Launch(("/bin/sh", "-c", command), str(cwd), **{"profile": "none", **more})  # type: ignore[arg-type]


def stubborn(cwd: Path, then: str = "time.sleep(600)", **more: object) -> Launch:
    return Launch((sys.executable, "-c", STUBBORN + then), str(cwd), "none", **more)  # type: ignore[arg-type]


async def all_started(folder: Path) -> None:
    await eventually(lambda: len(pids(*(folder / name for name in NAMES))) == 3)


@pytest.fixture(params=[True, False], ids=["supervised", "direct"])
def supervised(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


async def test_output_and_exit_code(tmp_path: Path, supervised: bool) -> None:
    done = await run(shell("printf out; printf err >&2; exit 7", tmp_path, supervised=supervised))
    assert (done.exit_code, done.stdout, done.stderr) == (7, b"out", b"err")
    assert (done.stdout_total, done.stderr_total, done.stdout_gap) == (3, 3, -1)
    assert not done.timed_out and not done.killed and done.leftovers == 0


async def test_a_signal_is_a_negative_exit_code(tmp_path: Path, supervised: bool) -> None:
    done = await run(shell("kill -SEGV $$", tmp_path, supervised=supervised))
    assert done.exit_code == -signal.SIGSEGV and not done.killed


async def test_input_is_written_and_closed(tmp_path: Path, supervised: bool) -> None:
    data = os.urandom(300_000)
    done = await run(shell("cat", tmp_path, stdin=data, supervised=supervised))
    assert done.stdout == data


async def test_merge_keeps_the_order(tmp_path: Path, supervised: bool) -> None:
    done = await run(shell("echo 1; echo 2 >&2; echo 3", tmp_path, merge=True, supervised=supervised))
    assert (done.stdout, done.stderr) == (b"1\n2\n3\n", b"")


async def test_what_cannot_be_started_raises_what_the_system_says(tmp_path: Path, supervised: bool) -> None:
    before = open_files()
    with pytest.raises(FileNotFoundError):
        await run(Launch(("no-such-program-here",), str(tmp_path), "none", supervised=supervised))
    with pytest.raises(FileNotFoundError):
        await run(shell("true", tmp_path / "missing", supervised=supervised))
    (tmp_path / "plain").write_text("x")
    with pytest.raises(PermissionError):
        await run(Launch((str(tmp_path / "plain"),), str(tmp_path), "none", supervised=supervised))
    with pytest.raises(ValueError, match="null"):
        await run(shell("echo \0", tmp_path, supervised=supervised))
    await eventually(lambda: open_files() <= before + 1)


async def test_no_descriptor_is_leaked(tmp_path: Path, supervised: bool) -> None:
    await run(shell("true", tmp_path))
    before = open_files()
    for _ in range(3):
        await run(shell("cat >&2", tmp_path, stdin=b"x", supervised=supervised))
        await run(shell("true", tmp_path, tty=True))
    assert open_files() == before


async def test_a_command_that_closes_its_output_goes_on(tmp_path: Path, supervised: bool) -> None:
    done = await run(shell("exec >&- 2>&-; sleep 0.2; exit 3", tmp_path, supervised=supervised))
    assert done.exit_code == 3 and done.seconds >= 0.2


async def test_what_no_sandbox_can_hold_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ToolError) as caught:
        await run(shell(f"touch {tmp_path}/ran", Path("/"), profile="workspace-write"))
    assert caught.value.kind == "not_available"
    with pytest.raises(ValueError, match="unknown sandbox profile 'all'"):
        await run(shell(f"touch {tmp_path}/ran", tmp_path, profile="all"))
    assert not (tmp_path / "ran").exists()


async def test_timeout_says_so_and_keeps_the_output(tmp_path: Path, supervised: bool) -> None:
    done = await run(shell("echo before; sleep 600", tmp_path, seconds=0.3, supervised=supervised))
    assert done.timed_out and not done.killed
    assert done.stdout == b"before\n"


async def test_g1_timeout_kills_the_whole_tree(tmp_path: Path) -> None:
    began = Moment()
    child = await start(stubborn(tmp_path, seconds=6.0))
    await all_started(tmp_path)
    done = await child.wait()
    assert done.timed_out and not began.hung
    found = pids(*(tmp_path / name for name in NAMES))
    assert len(found) == 3 and not any(running(pid) for pid in found)
    await child.kill()


async def test_g1_cancel_kills_the_whole_tree_before_it_leaves(tmp_path: Path) -> None:
    task = asyncio.create_task(run(stubborn(tmp_path)))
    await all_started(tmp_path)
    began = Moment()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not began.hung
    found = pids(*(tmp_path / name for name in NAMES))
    assert len(found) == 3 and not any(running(pid) for pid in found)


async def test_g1_cancelling_twice_changes_nothing(tmp_path: Path) -> None:
    task = asyncio.create_task(run(stubborn(tmp_path)))
    await all_started(tmp_path)
    task.cancel()
    asyncio.get_running_loop().call_later(0.05, task.cancel)
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not any(running(pid) for pid in pids(*(tmp_path / name for name in NAMES)))


async def test_g1_a_grandchild_that_holds_the_pipe_delays_nothing(tmp_path: Path) -> None:
    began = Moment()
    done = await run(shell("sleep 600 & echo $! > held; echo done", tmp_path))
    assert not began.hung
    assert done.stdout == b"done\n" and done.exit_code == 0 and done.leftovers == 1
    assert not any(running(pid) for pid in pids(tmp_path / "held"))


async def test_g1_cancel_is_quick_while_a_grandchild_holds_stdout(tmp_path: Path) -> None:
    task = asyncio.create_task(
        run(shell("(sleep 600 & echo $! > held.new; mv held.new held); wait; sleep 600", tmp_path))
    )
    await eventually(lambda: (tmp_path / "held").exists())
    began = Moment()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not began.hung
    assert not any(running(pid) for pid in pids(tmp_path / "held"))


async def test_g1_a_forking_crowd_cannot_outrun_the_kill(tmp_path: Path) -> None:
    one = "(trap '' TERM; while :; do sleep 0.05; done) &"
    child = await start(shell(f"trap '' TERM; n=0; while [ $n -lt 40 ]; do {one} n=$((n+1)); done; wait", tmp_path))
    await eventually(lambda: len(descendants(os.getpid())) > 40)
    began = Moment()
    await child.kill()
    assert not began.hung
    await asyncio.wait_for(child.ended(), HANG)


async def test_a_stopped_launcher_still_kills(tmp_path: Path) -> None:
    child = await start(shell("kill -STOP $PPID; echo $$ > main; exec sleep 600", tmp_path))
    await eventually(lambda: pids(tmp_path / "main"))
    began = Moment()
    await child.kill()
    assert not began.hung
    assert not any(running(pid) for pid in pids(tmp_path / "main"))


async def test_a_killed_launcher_takes_its_command_along(tmp_path: Path) -> None:
    command = "sleep 0.2; sleep 600 & echo $! > other; echo $$ > main; kill -KILL $PPID; sleep 600"
    done = await run(shell(command, tmp_path))
    assert done.exit_code is None
    found = pids(tmp_path / "main", tmp_path / "other")
    assert len(found) == 2
    await eventually(lambda: not any(running(pid) for pid in found))


async def test_leftovers_are_owned_until_they_end_or_the_order_comes(tmp_path: Path) -> None:
    child = await start(shell("(sleep 600 >/dev/null 2>&1 & echo $! > left) ; (sleep 0.6 &)", tmp_path))
    done = await child.wait()
    assert done.exit_code == 0 and done.leftovers == 2
    await eventually(lambda: child.leftovers == 1)
    assert all(running(pid) for pid in pids(tmp_path / "left"))
    await child.kill()
    assert child.leftovers == 0 and not any(running(pid) for pid in pids(tmp_path / "left"))


G2_HARNESS = """
import asyncio, sys
from codewhale.process.launch import Launch, start
async def main():
    child = await start(Launch((sys.executable, "-c", sys.argv[1]), sys.argv[2], "none"))
    await child.wait()
asyncio.run(main())
"""


async def test_g2_a_harness_killed_dies_with_its_children(tmp_path: Path) -> None:
    harness = subprocess.Popen(  # noqa: ASYNC220
        [sys.executable, "-c", G2_HARNESS, STUBBORN + "time.sleep(600)", str(tmp_path)]
    )
    try:
        await all_started(tmp_path)
    finally:
        harness.kill()
        harness.wait()
    found = pids(*(tmp_path / name for name in NAMES))
    assert len(found) == 3
    await eventually(lambda: not any(running(pid) for pid in found))


async def test_g3_nothing_waits_for_a_terminal_or_for_input(tmp_path: Path) -> None:
    done = await run(shell("cat; read line; tty; (: < /dev/tty) 2>&1", tmp_path, seconds=HANG))
    assert not done.timed_out
    assert b"not a tty" in done.stdout and b"/dev/tty" in done.stdout


async def test_g3_pagers_and_prompts_are_off(tmp_path: Path) -> None:
    done = await run(
        shell('echo "$PAGER $GIT_PAGER $GIT_TERMINAL_PROMPT"; git help -a | wc -l', tmp_path, seconds=HANG)
    )
    assert done.stdout.startswith(b"cat cat 0\n") and not done.timed_out


async def test_g3_a_command_can_only_signal_its_own_group(tmp_path: Path) -> None:
    done = await run(shell("kill -TERM 0; sleep 5", tmp_path))
    assert done.exit_code == -signal.SIGTERM


async def test_a_terminal_when_asked_for(tmp_path: Path) -> None:
    child = await start(shell("tty; stty -echo; stty size; read line; echo got $line; cat", tmp_path, tty=True))
    await child.write(b"word\n")
    await child.close_stdin()
    done = await asyncio.wait_for(child.wait(), HANG)
    await child.kill()
    assert b"/dev/" in done.stdout and b"40 120" in done.stdout and b"got word" in done.stdout
    assert done.exit_code == 0


async def test_input_kept_open_can_be_written_and_ended(tmp_path: Path) -> None:
    heard: list[tuple[str, bytes]] = []
    child = await start(shell("cat", tmp_path, keep_stdin=True), lambda stream, data: heard.append((stream, data)))
    await child.write(b"one")
    await eventually(lambda: heard)
    await child.write(b"two")
    await child.close_stdin()
    assert (await child.wait()).stdout == b"onetwo"
    assert {stream for stream, _ in heard} == {"stdout"}
    with pytest.raises(BrokenPipeError):
        await child.write(b"three")


async def test_g4_a_flood_keeps_memory_and_the_loop_free(tmp_path: Path) -> None:
    import resource

    ticks = 0

    async def tick() -> None:
        nonlocal ticks
        while True:
            ticks += 1
            await asyncio.sleep(0.01)

    ticking = asyncio.create_task(tick())
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    done = await run(shell("echo first; head -c 1000000000 /dev/zero; echo last", tmp_path, output_limit=30_000))
    ticking.cancel()
    assert done.stdout_total == 1_000_000_011
    assert len(done.stdout) == 30_000 and done.stdout_gap == 20_000
    assert done.stdout.startswith(b"first\n") and done.stdout.endswith(b"last\n")
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 20_000
    assert ticks > done.seconds * 10


async def test_g4_binary_and_split_characters_arrive_as_they_are(tmp_path: Path) -> None:
    script = "import os,time\nfor b in 'aé€😀'.encode()+bytes([255,0]):\n os.write(1,bytes([b])); time.sleep(0.002)"
    done = await run(Launch((sys.executable, "-c", script), str(tmp_path), "none"))
    assert done.stdout == "aé€😀".encode() + b"\xff\0"


async def test_g5_too_many_processes_end_the_tree(tmp_path: Path) -> None:
    crowd = "n=0; while [ $n -lt 40 ]; do sleep 600 & n=$((n+1)); done; wait"
    done = await asyncio.wait_for(run(shell(crowd, tmp_path, ceiling=Ceiling(processes=20))), HANG)
    assert done.over == "processes" and done.exit_code != 0 and done.leftovers == 0


async def test_g5_too_much_memory_ends_the_tree(tmp_path: Path) -> None:
    script = "x = bytearray(200_000_000); import time; time.sleep(600)"
    launch = Launch((sys.executable, "-c", script), str(tmp_path), "none", ceiling=Ceiling(memory=100_000_000))
    done = await asyncio.wait_for(run(launch), HANG)
    assert done.over == "memory"


async def test_g5_no_file_may_grow_past_its_limit(tmp_path: Path) -> None:
    launch = shell("head -c 100000 /dev/zero > big; echo went on", tmp_path, ceiling=Ceiling(file_size=4096))
    done = await run(launch)
    assert (tmp_path / "big").stat().st_size == 4096 and b"went on" in done.stdout


async def test_fifty_commands_side_by_side(tmp_path: Path) -> None:
    results = await asyncio.gather(*(run(shell(f"echo {number}; sleep 0.1", tmp_path)) for number in range(50)))
    assert [int(done.stdout) for done in results] == list(range(50))


async def test_what_is_to_have_the_terminal_stays_in_this_session_with_a_group_of_its_own(tmp_path: Path) -> None:
    script = "import os; print(os.getsid(0), os.getpgrp() == os.getpid())"
    for foreground in (True, False):
        argv = (sys.executable, "-c", script)
        done = await run(Launch(argv, str(tmp_path), "none", supervised=False, foreground=foreground))
        session, leads = done.stdout.split()
        assert (int(session) == os.getsid(0)) is foreground and leads == b"True"
