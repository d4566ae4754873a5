"""Work on what strangers wrote ends within its bounds, whatever it does."""

import asyncio
import os
import sys
from pathlib import Path

import pytest

from codewhale.process.isolated import MEMORY, NO_MEMORY, IsolatedWork
from support.patience import HANG, Moment
from support.running import eventually

MODULE = "codewhale.workspace.dataformats"


def python(code: str, seconds: float = HANG) -> IsolatedWork:
    """Work that runs some Python as a program."""
    return IsolatedWork("", b"", (sys.executable, "-I", "-c", code), seconds=seconds)


async def test_a_module_of_ours_reads_its_data_and_answers() -> None:
    done = await IsolatedWork(MODULE, b'{"a": 1}', ("a.json", "auto")).do()
    assert done.exit_code == 0 and b'"valid": true' in done.stdout, done.stderr


async def test_what_never_ends_is_ended() -> None:
    began = Moment()
    done = await python("while True: pass", seconds=1.0).do()
    assert done.timed_out and not began.hung


async def test_what_takes_too_much_memory_is_ended() -> None:
    done = await python(f"data = bytearray({MEMORY}); print('all')").do()
    assert done.exit_code not in (0, None) and not done.stdout


async def test_a_module_that_runs_into_its_memory_says_so() -> None:
    done = await IsolatedWork(
        MODULE, b"[" + b"[],[],[],[]," * 4_000_000 + b"[]]", ("a.json", "auto"), seconds=HANG
    ).do()
    assert done.exit_code == NO_MEMORY


async def test_nothing_can_be_written(tmp_path: Path) -> None:
    done = await python(f"open({str(tmp_path / 'x')!r}, 'w').write('x')").do()
    assert done.exit_code != 0
    assert not (tmp_path / "x").exists() or not (tmp_path / "x").read_bytes()


async def test_no_module_of_the_folder_is_taken_for_one_of_pythons(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "json.py").write_text(f"open({str(tmp_path / 'taken')!r}, 'w')")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    done = await IsolatedWork(MODULE, b"{}", ("a.json", "auto"), folder=str(tmp_path)).do()
    assert done.exit_code == 0 and not (tmp_path / "taken").exists(), done.stderr


async def test_a_cancel_ends_the_process(tmp_path: Path) -> None:
    mark = f"mark-{os.getpid()}-{tmp_path.name}"
    task = asyncio.create_task(python(f"x = {mark!r}\nwhile True: pass", seconds=HANG).do())
    await eventually(lambda: running(mark))
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await eventually(lambda: not running(mark))


def running(mark: str) -> bool:
    """Whether a process with these words on its command line is there."""
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if mark.encode() in (folder / "cmdline").read_bytes() and int(folder.name) != os.getpid():
                return True
        except OSError:
            continue
    return False
