"""A test that hangs is ended and named, whatever it hangs in, and the others run."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from support.house import ROOT

HANGING = """
import asyncio
import subprocess


def test_a_busy_loop():
    while True:
        pass


def test_a_program():
    subprocess.run(["sleep", "600"])


async def test_an_event():
    await asyncio.Event().wait()


async def test_a_busy_task():
    async def spin():
        while True:
            pass

    await asyncio.create_task(spin())


def test_what_does_not_hang():
    pass
"""
SWALLOWING = """
import asyncio


async def test_a_callback():
    def spin():
        while True:
            pass

    asyncio.get_running_loop().call_soon(spin)
    await asyncio.Event().wait()


async def test_a_task_that_cannot_be_cancelled():
    while True:
        try:
            await asyncio.Event().wait()
        except BaseException:
            pass


def test_what_does_not_hang():
    pass
"""


def outcomes(folder: Path, text: str, *options: str) -> str:
    """What the suite's own settings, but for these options, make of a file of tests; it takes this suite's hooks."""
    (folder / "test_hanging.py").write_text(text)
    hooks = (ROOT / "tests" / "conftest.py").read_text().replace("TEARDOWN_SECONDS = 300.0", "TEARDOWN_SECONDS = 5.0")
    (folder / "conftest.py").write_text(hooks)
    (folder / "slow.txt").write_text("")
    command = [sys.executable, "-m", "pytest", "-c", str(ROOT / "pyproject.toml"), f"--rootdir={folder}", *options]
    command += ["-p", "no:cacheprovider", "-o", "timeout=2", "-o", "faulthandler_timeout=6", "test_hanging.py"]
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "COLUMNS": "200"}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=600)
    return done.stdout


def test_a_test_that_hangs_is_ended_and_named_and_the_next_one_runs(tmp_path: Path) -> None:
    report = outcomes(tmp_path, HANGING)
    for name in ("a_busy_loop", "a_program", "an_event", "a_busy_task"):
        assert f"FAILED test_hanging.py::test_{name} - Failed: Timeout (>2.0s) from pytest-timeout" in report, report
    assert "4 failed, 1 passed" in report


def test_a_test_that_swallows_its_end_takes_its_worker_with_it_and_is_named(tmp_path: Path) -> None:
    report = outcomes(tmp_path, SWALLOWING, "-n", "1")
    for name in ("a_callback", "a_task_that_cannot_be_cancelled"):
        assert f"crashed while running 'test_hanging.py::test_{name}'" in report, report
    assert "1 passed" in report


def test_every_test_has_a_limit_that_ends_before_its_process(pytestconfig: pytest.Config) -> None:
    assert 0 < float(pytestconfig.getini("timeout")) < float(pytestconfig.getini("faulthandler_timeout"))
