"""Which runner a workspace has, and real runs of the ones at hand."""

import asyncio
import json
import os
import shutil
import sys
from pathlib import Path

import pytest

from codewhale.process.command import SandboxProfile
from codewhale.protocol.errors import ToolError
from codewhale.services.testruns.gates import find_gates
from codewhale.services.testruns.runners import (
    LOOKED_FOR,
    find_python,
    find_runner,
    foresee,
    node_manager,
    run_tests,
    runner_program,
)
from support.running import eventually, pids, program, running

FREE = SandboxProfile("none")


def quiet(line: str) -> None:
    """Progress nobody looks at."""


def package(folder: Path, **more: object) -> None:
    (folder / "package.json").write_text(json.dumps({"scripts": {"test": "node --test"}, **more}))


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Programs that are only looked for, on a machine with few."""
    programs = tmp_path / "programs"
    programs.mkdir()
    for name in ("cargo", "npm"):
        (programs / name).write_text("#!/bin/sh\nexit 1\n")
        (programs / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}{os.pathsep}{os.environ['PATH']}")


async def found(folder: Path, args: str = "", all_features: bool = False) -> tuple[str, list[str]]:
    runner = await find_runner(str(folder), args, all_features)
    return runner.name, [Path(runner.argv[0]).name, *runner.argv[1:]]


@pytest.mark.usefixtures("installed")
async def test_cargo_comes_first(workspace: Path) -> None:
    (workspace / "Cargo.toml").write_text("")
    (workspace / "pytest.ini").write_text("")
    assert await found(workspace) == ("cargo", ["cargo", "test"])
    assert await found(workspace, "--lib -- --nocapture 'a b'", True) == (
        "cargo",
        ["cargo", "test", "--all-features", "--lib", "--", "--nocapture", "a b"],
    )


@pytest.mark.parametrize("name", ["pytest.ini", "conftest.py", "tests/deep/test_a.py", "test_a.py", "a_test.py"])
async def test_python_tests_are_recognised(workspace: Path, name: str) -> None:
    (workspace / name).parent.mkdir(parents=True, exist_ok=True)
    (workspace / name).write_text("")
    runner, words = await found(workspace, "-k one")
    assert runner == "pytest" and words[1:] == ["-m", "pytest", "-k", "one"]


@pytest.mark.parametrize(
    ("name", "text"),
    [("pyproject.toml", "[tool.pytest.ini_options]\n"), ("tox.ini", "[pytest]\n"), ("setup.cfg", "[tool:pytest]\n")],
)
async def test_python_configuration_is_recognised(workspace: Path, name: str, text: str) -> None:
    (workspace / name).write_text(text)
    package(workspace)
    assert (await found(workspace))[0] == "pytest"


async def test_the_projects_own_python_is_used_and_unittest_when_it_has_no_pytest(workspace: Path) -> None:
    (workspace / "tests").mkdir()
    (workspace / "tests" / "test_a.py").write_text("")
    own = program(workspace, ".venv/bin/python", f'#!/bin/sh\nexec {sys.executable} -I -S "$@"\n')
    runner = await find_runner(str(workspace))
    assert runner.name == "unittest" and "pytest is not installed" in runner.note
    assert runner.argv == (str(own), "-m", "unittest", "discover", "-s", "tests")
    (workspace / "tests" / "__init__.py").write_text("")
    assert (await find_runner(str(workspace))).argv[-2:] == ("-t", ".")
    assert (await find_runner(str(workspace), "tests.test_a")).argv[-1] == "tests.test_a"


@pytest.mark.usefixtures("installed")
async def test_what_is_foreseen_starts_nothing(workspace: Path) -> None:
    package(workspace)
    assert foresee(str(workspace), "-t x") == await find_runner(str(workspace), "-t x")
    (workspace / "pytest.ini").write_text("")
    own = program(workspace, ".venv/bin/python", f"#!/bin/sh\ntouch {workspace}/started\nexit 77\n")
    assert foresee(str(workspace), "-k x").argv == (str(own), "-m", "pytest", "-k", "x")
    assert not (workspace / "started").exists()
    assert (await found(workspace, "-k x"))[1] == ["python", "-m", "unittest", "-k", "x"]


@pytest.mark.parametrize("ends", ["exit 1", "exit 7", "echo broken >&2; exit 1", "kill -9 $$", "exec /gone"])
async def test_a_python_that_does_not_say_whether_it_has_pytest_is_an_error(workspace: Path, ends: str) -> None:
    (workspace / "pytest.ini").write_text("")
    program(workspace, ".venv/bin/python", f"#!/bin/sh\n{ends}\n")
    with pytest.raises(ToolError) as raised:
        await find_runner(str(workspace))
    assert raised.value.kind == "execution_failed" and "No test was run" in raised.value.message
    gates = await find_gates(str(workspace), "python", True, 10)
    (workspace / "a.py").write_text("")
    gates = await find_gates(str(workspace), "python", True, 10)
    assert [gate.name for gate in gates if gate.skipped] == ["python-test"]


@pytest.mark.usefixtures("installed")
async def test_a_python_project_without_tests_comes_after_node(workspace: Path) -> None:
    (workspace / "pyproject.toml").write_text("[project]\n")
    assert await find_python(str(workspace)) is None
    assert (await found(workspace))[0] == "pytest"
    package(workspace)
    assert (await found(workspace))[0] == "npm"


@pytest.mark.usefixtures("installed")
async def test_node_runners(workspace: Path) -> None:
    package(workspace)
    assert await found(workspace, "--watch=false a") == ("npm", ["npm", "test", "--", "--watch=false", "a"])
    assert (await find_runner(str(workspace))).env == {"CI": "true"}
    assert node_manager(str(workspace)) == "npm"
    (workspace / "yarn.lock").write_text("")
    assert node_manager(str(workspace)) == "yarn"
    package(workspace, packageManager="pnpm@9.1.0")
    assert node_manager(str(workspace)) == "pnpm"
    runner = await find_runner(str(workspace))
    assert runner.name == "pnpm" if shutil.which("pnpm") else "pnpm is not installed" in runner.note


@pytest.mark.parametrize(
    "text", ["{", "[]", '{"scripts": []}', '{"scripts": {"test": "echo \\"Error: no test specified\\""}}']
)
async def test_a_package_without_a_test_script_is_none(workspace: Path, text: str) -> None:
    (workspace / "package.json").write_text(text)
    with pytest.raises(ToolError):
        await find_runner(str(workspace))


@pytest.mark.usefixtures("installed")
async def test_make_comes_last(workspace: Path) -> None:
    (workspace / "Makefile").write_text("all:\n\ntest: all\n\ttrue\n")
    assert await found(workspace, "V=1") == ("make", ["make", "test", "V=1"])
    package(workspace)
    assert (await found(workspace))[0] == "npm"


async def test_no_runner_says_what_was_looked_for(workspace: Path) -> None:
    with pytest.raises(ToolError) as caught:
        await find_runner(str(workspace))
    assert caught.value.kind == "not_available" and all(name in caught.value.message for name in LOOKED_FOR)
    assert "exec_shell" in caught.value.message


@pytest.mark.skipif(shutil.which("go") is not None, reason="needs a machine without go")
async def test_a_runner_that_is_not_installed_is_named(workspace: Path) -> None:
    (workspace / "go.mod").write_text("module a\n")
    with pytest.raises(ToolError, match="go is not installed"):
        await find_runner(str(workspace))


async def test_all_features_is_noted_where_it_means_nothing(workspace: Path) -> None:
    (workspace / "conftest.py").write_text("")
    assert "all_features" in (await find_runner(str(workspace), "", True)).note


async def test_a_run_reports_progress_and_result(workspace: Path) -> None:
    (workspace / "test_a.py").write_text("def test_good(): pass\ndef test_bad(): assert 0\n")
    told: list[str] = []
    done = await run_tests(str(workspace), await find_runner(str(workspace)), 60, told.append, FREE)
    assert done.exit_code == 1 and b"1 failed, 1 passed" in done.stdout and told
    assert not (workspace / "__pycache__" / "test_a.pyc").exists()


async def test_g1_cancelling_a_run_ends_it(workspace: Path) -> None:
    (workspace / "Makefile").write_text("test:\n\t@(sleep 600 & echo $$! > left); echo $$$$ > main; sleep 600\n")
    runner = await find_runner(str(workspace))
    task = asyncio.create_task(run_tests(str(workspace), runner, 60, quiet, FREE))
    await eventually(lambda: len(pids(workspace / "left", workspace / "main")) == 2)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not any(running(pid) for pid in pids(workspace / "left", workspace / "main"))


@pytest.mark.parametrize(
    ("files", "program"),
    [
        ({"Cargo.toml": ""}, "cargo"),
        ({"go.mod": "module a\n", "tests/test_a.py": ""}, "python"),
        ({"package.json": '{"scripts": {"test": "x"}}'}, "npm"),
        ({"package.json": '{"scripts": {"test": "echo no test specified"}}'}, ""),
        ({"go.mod": "module a\n"}, "go"),
        ({"setup.py": ""}, "python"),
        ({"makefile": "test: all\n"}, "make"),
        ({}, ""),
    ],
)
async def test_the_program_is_known_without_starting_any(workspace: Path, files: dict[str, str], program: str) -> None:
    for name, text in files.items():
        (workspace / name).parent.mkdir(exist_ok=True)
        (workspace / name).write_text(text)
    told = runner_program(str(workspace))
    assert program in told and bool(program) == bool(told)
    if program and shutil.which(program):
        assert Path((await find_runner(str(workspace))).argv[0]).name == Path(told).name
