"""Verification: a project's tests and gates, run by the harness so that "it passes" is evidence bound to a tree."""

import asyncio
import json
import os
import shlex
from typing import Annotated, Any, Literal

import msgspec

from codewhale.lib.beneath import PathRefused, Root
from codewhale.lib.text import one_line
from codewhale.process.denial import denial
from codewhale.process.launch import Completed, SandboxProfile
from codewhale.process.streams import shown
from codewhale.protocol.blocks import Block, TableBlock, TerminalBlock
from codewhale.protocol.errors import ToolError
from codewhale.protocol.tools import CallContext, CommandSubject, Effect, SandboxRefusal, StepProgress, ToolResult
from codewhale.services.testruns.gates import GateResult, ProjectGate, find_gates, run_gates
from codewhale.services.testruns.runners import Runner, find_runner, foresee, run_tests
from codewhale.services.testruns.summary import cargo_failure, summarise
from codewhale.services.testruns.tree import tree_hash
from codewhale.tools.base import Args, Doc, outlined, tool

SECONDS = 600.0


class RunTests(Args, frozen=True):
    """Arguments of run_tests."""

    args: (
        Annotated[str, Doc("Further words for the test runner, quoted as in a shell: a filter, a path, flags.")] | None
    ) = None
    all_features: Annotated[bool, Doc("Cargo only: test with all features.")] | None = None


class VerifierCommand(Args, frozen=True):
    """One check of the caller's own."""

    name: Annotated[str, Doc("What to call it.", min_length=1)]
    program: Annotated[str, Doc("Program to run, without a shell.", min_length=1)]
    args: Annotated[list[str], Doc("Its arguments.")] | None = None
    cwd: Annotated[str, Doc("Directory beneath the workspace.")] | None = None


class RunVerifiers(Args, frozen=True):
    """Arguments of run_verifiers."""

    profile: Annotated[Literal["auto", "rust", "node", "python", "go"], Doc("Which gates; auto looks.")] | None = None
    level: Annotated[Literal["quick", "full"], Doc("Full adds tests and slow checks; quick when absent.")] | None = None
    max_python_files: Annotated[int, Doc("Most files to parse; 200 when absent.", ge=1, le=1000)] | None = None
    commands: Annotated[list[VerifierCommand], Doc("Checks of your own, run as well.", max_length=12)] | None = None


def _commands(args: RunVerifiers) -> tuple[CommandSubject, ...]:
    return tuple(
        CommandSubject(shlex.join((command.program, *(command.args or ()))), command.cwd or ".")
        for command in args.commands or ()
    )


def _foreseen(args: RunTests, workspace: str) -> tuple[Block, ...]:
    """The command that will run the tests, and the project's own script where it runs that."""
    runner = foresee(workspace, args.args or "", bool(args.all_features))
    said = runner.script or ("unittest, where it has no pytest" if runner.name == "pytest" else "")
    return (TerminalBlock(shlex.join(runner.argv), said),)


class VerifyTools:
    """Runs tests and gates; `seconds` bounds one run and one gate."""

    def __init__(self, seconds: float = SECONDS) -> None:
        self._seconds = seconds

    @outlined(_foreseen)
    @tool("run_tests", effects={Effect.EXECUTES})
    async def run_tests(self, args: RunTests, call: CallContext) -> ToolResult:
        """Run the project's tests and return {success, exit_code, command, runner, summary, stderr, stdout}. The runner
        is found by the project's files: cargo, pytest or unittest, npm, pnpm or yarn, go, make. args go to the runner
        as they are. Ten minutes at most."""
        runner = await find_runner(call.workspace, args.args or "", bool(args.all_features))
        try:
            held = SandboxProfile(call.profile, call.allowances)
            done = await run_tests(call.workspace, runner, self._seconds, call.progress, held)
        except OSError as error:
            raise ToolError(
                "execution_failed",
                f"{runner.argv[0]} could not be started: {error.strerror}.",
            )
        except asyncio.CancelledError as stopped:
            stopped.args = tuple(self._tested(runner, done, "") for done in stopped.args if isinstance(done, Completed))
            raise
        tree = await tree_hash(call.workspace)
        tested = self._tested(runner, done, tree.sha256)
        return _with_refusal(tested, held, [(done.exit_code, tested.content)])

    def _tested(self, runner: Runner, done: Completed, tree: str) -> ToolResult:
        stdout = shown(done.stdout, done.stdout_gap, done.stdout_total)
        stderr = shown(done.stderr, done.stderr_gap, done.stderr_total)
        command = shlex.join(runner.argv)
        tests = summarise(stdout, stderr)
        passed = done.exit_code == 0 and not done.timed_out and not tests.none_ran
        summary = tests.line() or _plain_summary(passed, done)
        if done.timed_out:
            summary = f"timed out after {self._seconds:g} s; {summary}"
        elif done.killed:
            passed, summary = False, f"interrupted; {tests.line()}".rstrip("; ")
        report: dict[str, Any] = {
            "success": passed,
            "exit_code": None if done.timed_out else done.exit_code,
            "command": command,
            "runner": runner.name,
            "summary": summary,
        }
        if runner.note:
            report["note"] = runner.note
        if done.timed_out:
            report["note"] = _TIMED_OUT
        metadata = {
            "summary": summary,
            "runner": runner.name,
            "exit_code": report["exit_code"],
            "timed_out": done.timed_out,
            "duration_ms": int(done.seconds * 1000),
            "workspace_tree_sha256": tree,
            "tests_ran": tests.ran,
        }
        failure = "" if passed else cargo_failure(f"{runner.name} test", stdout, stderr)
        if failure:
            metadata["cargo_failure_summary"] = failure
        display = (TerminalBlock(command, f"{stdout}{stderr}", report["exit_code"]),)
        return ToolResult(_json({**report, "stderr": stderr, "stdout": stdout}), passed, display, metadata)

    @tool("run_verifiers", effects={Effect.EXECUTES}, subjects=_commands)
    async def run_verifiers(self, args: RunVerifiers, call: CallContext) -> ToolResult:
        """Run the project's gates side by side (formatting, type checks, lint, syntax; with level full also tests) and
        return one status for each. Success means that every gate passed and none was skipped."""
        profile, level = args.profile or "auto", args.level or "quick"
        own = [_own(command, call.workspace) for command in args.commands or ()]
        gates = await find_gates(call.workspace, profile, level == "full", args.max_python_files or 200)
        call.progress(StepProgress(0, len(gates) + len(own), "gates"))
        held = SandboxProfile(call.profile, call.allowances)
        results = await run_gates([*gates, *own], self._seconds, call.workspace, held, call.progress)
        tree = await tree_hash(call.workspace)
        counts = {status: sum(1 for result in results if result.status == status) for status in _STATUSES}
        failed = counts["failed"] + counts["timeout"]
        success = bool(results) and not failed and not counts["skipped"]
        summary = _gate_summary(results, counts["passed"], failed, counts["skipped"])
        report = {
            "success": success,
            "profile": profile,
            "level": level,
            "workspace": call.workspace,
            "gate_count": len(results),
            "passed": counts["passed"],
            "failed": failed,
            "skipped": counts["skipped"],
            "summary": summary,
            "gates": [msgspec.structs.asdict(result) for result in results],
        }
        metadata = {key: report[key] for key in ("success", "summary", "gate_count", "passed", "failed", "skipped")}
        metadata |= {"timed_out": counts["timeout"] > 0, "workspace_tree_sha256": tree.sha256}
        tests = [result for result in results if result.name.endswith("-test")]
        metadata["tests_ran"] = sum(summarise(result.stdout, result.stderr).ran for result in tests)
        rows = tuple((result.name, result.status, f"{result.duration_ms} ms") for result in results)
        display = (TableBlock(("gate", "status", "time"), rows),)
        ends = [(result.exit_code, f"{result.stdout}\n{result.stderr}") for result in results]
        return _with_refusal(ToolResult(_json(report), success, display, metadata), held, ends)


_STATUSES = ("passed", "failed", "timeout", "skipped")
_TIMED_OUT = "The run was killed. Narrow it with args, or run the command with exec_shell and background: true."


def _plain_summary(passed: bool, done: Completed) -> str:
    return "exit code 0, tests not counted" if passed else f"failed with exit code {done.exit_code}"


def _gate_summary(results: list[GateResult], passed: int, failed: int, skipped: int) -> str:
    if not results:
        return "no gate applies here: give commands, or another profile"
    bad = [f"{result.name} {result.status}" for result in results if result.status != "passed"]
    return f"{passed} passed, {failed} failed, {skipped} skipped" + (f"; {', '.join(bad)}" if bad else "")


def _own(command: VerifierCommand, workspace: str) -> ProjectGate:
    root = Root(workspace)
    try:
        shown_cwd = root.relative(command.cwd or ".")
        cwd = os.path.join(root.path, root.resolve(command.cwd or "."))
    except PathRefused as refused:
        raise _bad_directory(command, f"must lie inside the workspace: {refused.reason}")
    except OSError as error:
        raise _bad_directory(command, f"cannot be used: {error.strerror}")
    if not os.path.isdir(cwd):
        raise _bad_directory(command, "is not an existing directory")
    program = command.program
    if "/" in program and not os.path.isabs(program):
        program = os.path.join(cwd, program)
    return ProjectGate(command.name, "custom", (program, *(command.args or ())), cwd, shown_cwd)


def _bad_directory(command: VerifierCommand, problem: str) -> ToolError:
    return ToolError(
        "path_escape" if "inside" in problem else "invalid_input",
        f"cwd of command {command.name!r} {problem}.",
        field="commands.cwd",
        expected="an existing directory beneath the workspace",
        received=one_line(command.cwd or ""),
    )


def _with_refusal(result: ToolResult, held: SandboxProfile, ends: list[tuple[int | None, str]]) -> ToolResult:
    """The result with what the sandbox refused the first of these (exit code, output) that it refused anything."""
    for code, output in ends:
        refused = denial(held.profile, held.allowances, code, output)
        if refused is not None:
            data = {"allowance": refused.allowance, "evidence": refused.evidence, "said": refused.message}
            update = SandboxRefusal(refused.allowance, refused.evidence, refused.message)
            metadata = {**result.metadata, "sandbox_denial": data}
            return msgspec.structs.replace(result, metadata=metadata, updates=(*result.updates, update))
    return result


def _json(report: dict[str, Any]) -> str:
    return json.dumps(report, indent=2, ensure_ascii=False)
