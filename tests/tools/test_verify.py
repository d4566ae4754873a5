"""run_tests and run_verifiers as a model meets them."""

import json
import os
from pathlib import Path
from typing import Any

import msgspec
import pytest

from codewhale.protocol.errors import ToolError
from codewhale.protocol.tools import CommandSubject, ToolResult
from codewhale.services.testruns.tree import tree_hash
from codewhale.tools.base import bound, declared
from codewhale.tools.verify import RunTests, VerifyTools
from support.jobs import Shell
from support.running import answers, context

REPORT = {"success", "exit_code", "stdout", "stderr", "command", "runner"}
GATE = {
    "name", "ecosystem", "status", "command", "cwd", "exit_code", "duration_ms", "stdout", "stderr",
    "stdout_truncated", "stderr_truncated", "skipped_reason",
}  # fmt: skip


async def call(workspace: Path, name: str, seconds: float = 60.0, **arguments: Any) -> ToolResult:
    tool = bound(VerifyTools(seconds))[name]
    return await tool.run(msgspec.convert(arguments, tool.args), context(workspace))


async def follow(workspace: Path, error: ToolError) -> ToolResult:
    """Make the next call that an error gives."""
    assert error.fix is not None
    shell = Shell(workspace)
    tools = {**shell.tools, **bound(VerifyTools(60))}
    tool = tools[error.fix.name]
    result = await tool.run(msgspec.convert(error.fix.arguments, tool.args), context(workspace))
    await shell.jobs.aclose()
    return result


async def test_run_tests_reports_passing_tests(workspace: Path) -> None:
    (workspace / "test_a.py").write_text("def test_one(): pass\ndef test_two(): pass\n")
    result = await call(workspace, "run_tests", args="-q")
    report = json.loads(result.content)
    assert result.ok and report.keys() >= REPORT
    assert report["success"] and report["exit_code"] == 0 and report["runner"] == "pytest"
    assert report["command"].endswith("-m pytest -q") and "2 passed" in report["stdout"]
    assert result.metadata["summary"] == "2 passed, 0 failed" and not result.metadata["timed_out"]


async def test_run_tests_failing_tests_are_not_ok(workspace: Path) -> None:
    (workspace / "test_a.py").write_text("def test_one(): pass\ndef test_two(): assert 1 == 2\n")
    result = await call(workspace, "run_tests")
    assert not result.ok and not json.loads(result.content)["success"]
    assert result.metadata["summary"] == "1 passed, 1 failed; failing: test_a.py::test_two"


async def test_run_tests_no_test_at_all_is_not_success(workspace: Path) -> None:
    (workspace / "conftest.py").write_text("")
    result = await call(workspace, "run_tests")
    assert not result.ok and json.loads(result.content)["exit_code"] == 5


@pytest.mark.parametrize(
    ("test", "said"),
    [
        ("echo 'Ran 0 tests in 0.000s'; echo OK", "no tests ran"),
        ("echo 'Ran 2 tests in 0.000s'; echo 'OK (skipped=2)'", "no tests ran, 2 skipped"),
        ("echo '=== no tests ran in 0.01s ==='", "no tests ran"),
        ("echo '# pass 0'; echo '# fail 0'", "no tests ran"),
    ],
)
async def test_where_no_test_ran_an_exit_code_of_0_is_no_success(workspace: Path, test: str, said: str) -> None:
    (workspace / "Makefile").write_text(f"test:\n\t@{test}\n")
    result = await call(workspace, "run_tests")
    assert not result.ok and not json.loads(result.content)["success"]
    assert result.metadata["summary"] == said and result.metadata["tests_ran"] == 0


async def test_tests_that_are_not_counted_are_said_to_be_so(workspace: Path) -> None:
    (workspace / "Makefile").write_text("test:\n\t@echo fine\n")
    result = await call(workspace, "run_tests")
    assert result.ok and result.metadata["summary"] == "exit code 0, tests not counted"
    assert result.metadata["tests_ran"] == 0


async def test_run_tests_is_bound_to_the_tree_it_ran_on(git_workspace: Path) -> None:
    (git_workspace / "Makefile").write_text("test:\n\ttrue\n")
    sha = (await call(git_workspace, "run_tests")).metadata["workspace_tree_sha256"]
    assert sha == (await tree_hash(str(git_workspace))).sha256
    (git_workspace / "Makefile").write_text("test:\n\ttrue true\n")
    assert sha != (await tree_hash(str(git_workspace))).sha256


async def test_run_tests_keeps_the_summary_at_the_end_of_long_output(workspace: Path) -> None:
    (workspace / "Makefile").write_text("test:\n\tseq 1 100000; echo 1 failed in 0.1s; exit 1\n")
    report = json.loads((await call(workspace, "run_tests")).content)
    assert "1 failed" in report["stdout"] and "bytes left out" in report["stdout"] and len(report["stdout"]) < 40_100
    assert report["summary"] == "0 passed, 1 failed" and list(report)[-1] == "stdout"


async def test_run_tests_timeout_is_told_and_kills(workspace: Path) -> None:
    (workspace / "Makefile").write_text("test:\n\t@echo begun; sleep 600\n")
    result = await call(workspace, "run_tests", seconds=0.5)
    report = json.loads(result.content)
    assert not result.ok and result.metadata["timed_out"] and report["exit_code"] is None
    assert (
        "timed out after 0.5 s" in report["summary"] and "background" in report["note"] and "begun" in report["stdout"]
    )


@pytest.mark.skipif(not answers("node", "npm"), reason="needs node and npm")
async def test_run_tests_with_npm(workspace: Path) -> None:
    (workspace / "package.json").write_text(json.dumps({"name": "a", "scripts": {"test": "node --test"}}))
    (workspace / "a.test.js").write_text("require('node:test')('adds', () => { throw new Error('no') })\n")
    result = await call(workspace, "run_tests")
    report = json.loads(result.content)
    assert report["runner"] == "npm" and not result.ok and result.metadata["summary"].startswith("0 passed, 1 failed")


@pytest.mark.slow
@pytest.mark.skipif(not answers("cargo"), reason="needs cargo")
async def test_run_tests_with_cargo(workspace: Path) -> None:
    (workspace / "Cargo.toml").write_text('[package]\nname = "a"\nversion = "0.1.0"\nedition = "2021"\n')
    (workspace / "src").mkdir()
    (workspace / "src" / "lib.rs").write_text("#[test] fn good() {}\n#[test] fn bad() { assert_eq!(1, 2); }\n")
    result = await call(workspace, "run_tests", args="--lib --offline")
    assert result.metadata["summary"] == "1 passed, 1 failed; failing: bad"
    assert "test failed: bad" in result.metadata["cargo_failure_summary"]
    (workspace / "src" / "lib.rs").write_text("fn broken( {}\n")
    broken = await call(workspace, "run_tests", args="--lib --offline")
    assert "error" in broken.metadata["summary"] and "src/lib.rs:1" in broken.metadata["cargo_failure_summary"]


@pytest.mark.parametrize("args", ["A='one two", 'A="one two', "A=one\\"])
async def test_run_tests_arguments_that_do_not_split(workspace: Path, args: str) -> None:
    (workspace / "Makefile").write_text("test:\n\techo got $(A)\n")
    with pytest.raises(ToolError) as caught:
        await call(workspace, "run_tests", args=args)
    assert caught.value.field == "args" and caught.value.received == args
    result = await follow(workspace, caught.value)
    assert result.ok and "got one" in json.loads(result.content)["stdout"]


async def test_run_tests_without_a_runner_says_what_to_do(workspace: Path) -> None:
    with pytest.raises(ToolError) as caught:
        await call(workspace, "run_tests")
    assert caught.value.kind == "not_available" and "pyproject.toml" in caught.value.message
    assert caught.value.fix is None and "exec_shell" in caught.value.message


async def test_run_verifiers_reports_each_gate(git_workspace: Path) -> None:
    (git_workspace / "good.py").write_text("x = 1\n")
    result = await call(
        git_workspace,
        "run_verifiers",
        commands=[{"name": "own", "program": "/bin/sh", "args": ["-c", "echo $0 'a b'", "zero"]}],
    )
    report = json.loads(result.content)
    assert result.ok and report["success"] and report["profile"] == "auto" and report["level"] == "quick"
    assert [gate["name"] for gate in report["gates"]] == ["git-diff-check", "own", "python-syntax"]
    assert report["gate_count"] == report["passed"] == 3 and report["failed"] == report["skipped"] == 0
    assert all(gate.keys() == GATE for gate in report["gates"]) and report["gates"][1]["stdout"] == "zero a b\n"
    assert len(result.metadata["workspace_tree_sha256"]) == 64


async def test_run_verifiers_failing_skipped_or_no_gates_are_no_success(workspace: Path) -> None:
    nothing = await call(workspace, "run_verifiers")
    assert not nothing.ok and json.loads(nothing.content)["gate_count"] == 0
    commands = [
        {"name": "bad", "program": "false"},
        {"name": "gone", "program": "no-such-program"},
        {"name": "slow", "program": "sleep", "args": ["600"]},
    ]
    result = await call(workspace, "run_verifiers", seconds=0.5, commands=commands)
    report = json.loads(result.content)
    assert not result.ok and (report["failed"], report["skipped"], report["passed"]) == (2, 1, 0)
    assert {gate["name"]: gate["status"] for gate in report["gates"]} == {
        "bad": "failed",
        "gone": "skipped",
        "slow": "timeout",
    }
    assert result.metadata["timed_out"] and "slow timeout" in result.metadata["summary"]


async def test_run_verifiers_full_runs_the_tests(workspace: Path) -> None:
    (workspace / "test_a.py").write_text("def test_one(): assert 0\n")
    report = json.loads((await call(workspace, "run_verifiers", profile="python", level="full")).content)
    assert {gate["name"]: gate["status"] for gate in report["gates"]} == {
        "python-syntax": "passed",
        "python-test": "failed",
    }


@pytest.mark.parametrize("cwd", ["..", "/etc", "out", "missing"])
async def test_run_verifiers_cwd_stays_beneath_the_workspace(workspace: Path, cwd: str) -> None:
    (workspace / "out").symlink_to("/etc")
    commands = [{"name": "a", "program": "true"}, {"name": "b", "program": "true", "cwd": cwd}]
    with pytest.raises(ToolError) as caught:
        await call(workspace, "run_verifiers", commands=commands)
    assert caught.value.field == "commands.cwd" and caught.value.received == cwd
    assert caught.value.fix is None


async def test_run_verifiers_runs_a_project_program_in_its_folder(workspace: Path) -> None:
    (workspace / "sub").mkdir()
    script = workspace / "sub" / "check"
    script.write_text("#!/bin/sh\npwd\n")
    script.chmod(0o755)
    report = json.loads(
        (await call(workspace, "run_verifiers", commands=[{"name": "a", "program": "./check", "cwd": "sub"}])).content
    )
    assert report["gates"][0]["stdout"] == f"{workspace}/sub\n" and report["gates"][0]["cwd"] == "sub"


async def test_what_a_person_approves(workspace: Path) -> None:
    tools = bound(VerifyTools())
    tool = tools["run_verifiers"]
    args = msgspec.convert({"commands": [{"name": "a", "program": "x", "args": ["b c"], "cwd": "sub"}]}, tool.args)
    assert tool.decl.subjects(args) == (CommandSubject("x 'b c'", "sub"),)
    assert {tool.decl.effects for tool in tools.values()} == {("executes",)}
    for bad in ({"commands": [{"name": "a"}]}, {"commands": [{"name": "a", "program": "b", "shell": True}]}, {"x": 1}):
        with pytest.raises(msgspec.ValidationError):
            msgspec.convert(bad, tool.args)


def test_a_person_is_shown_the_command_and_the_script_behind_it(
    workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    npm = tmp_path / "bin" / "npm"
    npm.parent.mkdir()
    npm.write_text("#!/bin/sh\n")
    npm.chmod(0o755)
    monkeypatch.setenv("PATH", f"{npm.parent}{os.pathsep}{os.environ['PATH']}")
    outline = declared(VerifyTools)["run_tests"][0].outline
    (workspace / "pytest.ini").write_text("")
    (block,) = outline(RunTests(args="-k 'a b'"), str(workspace))
    assert block.command.endswith(" -m pytest -k 'a b'") and block.output == "unittest, where it has no pytest"
    (workspace / "pytest.ini").unlink()
    (workspace / "package.json").write_text(json.dumps({"scripts": {"test": "vitest run && rm -rf build"}}))
    (block,) = outline(RunTests(), str(workspace))
    assert (block.command, block.output) == (f"{npm} test", "vitest run && rm -rf build")
    (workspace / "package.json").unlink()
    with pytest.raises(ToolError, match="No test runner was recognised"):
        outline(RunTests(), str(workspace))
