"""Which gates a workspace has, and how they go."""

import json
from pathlib import Path

from codewhale.process.command import SandboxProfile
from codewhale.services.testruns.gates import ProjectGate, find_gates, run_gates
from support.patience import HANG

FREE = SandboxProfile("none")


def shell(folder: Path, name: str, command: str) -> ProjectGate:
    return ProjectGate(name, "custom", ("/bin/sh", "-c", command), str(folder))


async def names(folder: Path, profile: str = "auto", full: bool = False) -> list[str]:
    return [gate.name for gate in await find_gates(str(folder), profile, full, 200)]


async def test_an_empty_workspace_has_no_gate(workspace: Path) -> None:
    assert await names(workspace) == []


async def test_each_kind_of_project_brings_its_gates(git_workspace: Path) -> None:
    (git_workspace / "Cargo.toml").write_text("")
    (git_workspace / "go.mod").write_text("")
    (git_workspace / "test_a.py").write_text("")
    (git_workspace / "package.json").write_text(
        json.dumps({"scripts": {"lint": "x", "test": "y", "format:check": "z"}})
    )
    assert await names(git_workspace) == [
        "git-diff-check", "rust-fmt", "rust-metadata", "rust-check", "node-format-check", "node-lint", "python-syntax",
        "go-test",
    ]  # fmt: skip
    full = await names(git_workspace, full=True)
    assert {"rust-clippy", "rust-test", "node-test", "python-test", "go-vet"} <= set(full)
    assert await names(git_workspace, "node") == ["node-format-check", "node-lint"]


async def test_an_asked_for_profile_that_does_not_apply_is_skipped_with_a_reason(workspace: Path) -> None:
    for profile in ("rust", "node", "python", "go"):
        (result,) = await run_gates(await find_gates(str(workspace), profile, False, 200), HANG, str(workspace), FREE)
        assert result.status == "skipped" and result.skipped_reason


async def test_python_syntax_names_file_and_line(workspace: Path) -> None:
    (workspace / "good.py").write_text("x = 1\n")
    (workspace / "bad.py").write_text("x = 1\ny = (\n")
    (result,) = await run_gates(await find_gates(str(workspace), "python", False, 200), HANG, str(workspace), FREE)
    assert result.status == "failed" and "bad.py:2:" in result.stdout and "good.py" not in result.stdout
    assert result.command == "ast.parse of 2 of 2 Python files"


async def test_git_diff_check_sees_bad_whitespace(git_workspace: Path) -> None:
    (git_workspace / "README.md").write_text("trailing  \n")
    (result,) = await run_gates(
        await find_gates(str(git_workspace), "auto", False, 200), HANG, str(git_workspace), FREE
    )
    assert (result.name, result.status) == ("git-diff-check", "failed") and "README.md:1" in result.stdout


async def test_gates_run_side_by_side_and_come_back_sorted(workspace: Path) -> None:
    others = "until [ -e a -a -e b -a -e c -a -e d ]; do sleep 0.01; done"
    gates = [shell(workspace, name, f"touch {name}; {others}; echo {name}") for name in "dbca"]
    results = await run_gates(gates, HANG, str(workspace), FREE)
    assert [result.name for result in results] == list("abcd")
    assert [result.stdout for result in results] == ["a\n", "b\n", "c\n", "d\n"]


async def test_status_words_and_bounds(workspace: Path) -> None:
    gates = [
        shell(workspace, "1", "true"),
        shell(workspace, "2", "exit 4"),
        shell(workspace, "3", "sleep 600"),
        ProjectGate("4", "custom", ("no-such-program",), str(workspace)),
        ProjectGate("5", "custom", ("/bin/sh", "a\0b"), str(workspace)),
        shell(workspace, "6", "head -c 50000 /dev/zero | tr '\\0' x"),
    ]
    results = await run_gates(gates, 1, str(workspace), FREE)
    assert [result.status for result in results] == ["passed", "failed", "timeout", "skipped", "skipped", "passed"]
    assert [result.exit_code for result in results] == [0, 4, None, None, None, 0]
    assert results[5].stdout_truncated and len(results[5].stdout) < 16_100
