"""Commands started through a warm fork server behave as those started without."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from codewhale.system.launch import Child, Completed, Launch, start
from codewhale.system.warm import Warm
from support.running import eventually, open_files, running


@pytest.fixture
async def warm(tmp_path: Path) -> AsyncIterator[Warm]:
    made = Warm()
    for _ in range(2):
        await (await start(Launch(("true",), str(tmp_path)), None, made)).ended()
    await eventually(lambda: made.ready)
    yield made
    await made.aclose()


async def ended(child: Child) -> Completed:
    done = await child.wait()
    await child.ended()
    return done


async def test_one_command_alone_starts_no_server(tmp_path: Path) -> None:
    warm = Warm()
    await ended(await start(Launch(("true",), str(tmp_path)), None, warm))
    assert not warm.ready and warm._process is None
    await warm.aclose()


async def test_a_command_is_the_same_with_it_and_without(warm: Warm, tmp_path: Path) -> None:
    command = "pwd; cat; echo $WHALE; ulimit -n; umask; echo no >&2; trap; ps -o sid= -p $$ | tr -d ' 0-9'; exit 7"
    launch = Launch(("/bin/sh", "-c", command), str(tmp_path), {"WHALE": "blue"}, b"in\n")
    cold, hot = await ended(await start(launch)), await ended(await start(launch, None, warm))
    assert (hot.stdout, hot.stderr, hot.exit_code) == (cold.stdout, cold.stderr, cold.exit_code)
    assert hot.exit_code == 7 and hot.stdout.startswith(f"{tmp_path}\nin\nblue\n".encode())


@pytest.mark.parametrize(
    ("launch", "error"),
    [
        (Launch(("/no/such/program",), "/"), FileNotFoundError),
        (Launch(("true",), "/no/such/folder"), FileNotFoundError),
        (Launch(("true", "x" * 3_000_000), "/"), OSError),
        (Launch(("true", "a\0b"), "/"), ValueError),
        (Launch(("true", "\ud800"), "/"), ValueError),
    ],
)
async def test_what_cannot_start_is_the_same_error(warm: Warm, launch: Launch, error: type[Exception]) -> None:
    for given in (None, warm):
        with pytest.raises(error):
            await start(launch, None, given)


async def test_g1_the_tree_of_a_forked_launcher_ends(warm: Warm, tmp_path: Path) -> None:
    command = "trap '' TERM; (setsid sh -c 'echo $$ > away; sleep 600' &); echo $$ > main; sleep 600; sleep 600"
    child = await start(Launch(("/bin/sh", "-c", command), str(tmp_path)), None, warm)
    await eventually(lambda: (tmp_path / "away").exists() and (tmp_path / "away").read_text().strip())
    await child.kill()
    assert not any(running(int((tmp_path / name).read_text())) for name in ("main", "away"))


async def test_g1_a_command_that_stops_or_kills_its_launcher_ends_all_the_same(warm: Warm, tmp_path: Path) -> None:
    for number in ("STOP", "KILL"):
        command = f"echo $$ > main; kill -{number} $PPID; sleep 600"
        child = await start(Launch(("/bin/sh", "-c", command), str(tmp_path)), None, warm)
        await eventually(lambda: (tmp_path / "main").exists() and (tmp_path / "main").read_text().strip())
        await child.kill()
        await asyncio.wait_for(child.ended(), 3)
        assert not running(int((tmp_path / "main").read_text()))
        (tmp_path / "main").unlink()


async def test_a_server_that_is_gone_leaves_the_running_be_and_is_done_without(warm: Warm, tmp_path: Path) -> None:
    child = await start(Launch(("/bin/sh", "-c", "read line; exit 5"), str(tmp_path), keep_stdin=True), None, warm)
    assert warm._process is not None
    os.kill(warm._process.pid, signal.SIGKILL)
    await eventually(lambda: not warm.ready)
    other = await ended(await start(Launch(("true",), str(tmp_path)), None, warm))
    await child.write(b"go\n")
    assert other.exit_code == 0 and (await ended(child)).exit_code == 5


async def test_nothing_is_left_open(tmp_path: Path) -> None:
    before = open_files()
    warm = Warm()
    for _ in range(6):
        await ended(await start(Launch(("true",), str(tmp_path)), None, warm))
    await eventually(lambda: warm.ready)
    children = [await start(Launch(("sleep", "600"), str(tmp_path)), None, warm) for _ in range(10)]
    await asyncio.gather(*(child.kill() for child in children))
    await warm.aclose()
    assert open_files() == before
