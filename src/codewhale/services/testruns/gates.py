"""Gates: the checks a workspace's kind of project has, and running them side by side."""

import asyncio
import os
import shlex
from collections.abc import Callable, Sequence

from msgspec import Struct

from codewhale.process.launch import Completed, Launch, SandboxProfile, run
from codewhale.process.programs import not_installed
from codewhale.process.repository import find_repository
from codewhale.process.streams import shown
from codewhale.protocol.errors import ToolError
from codewhale.protocol.tools import StepProgress
from codewhale.services.testruns.runners import find_python, has, interpreter, node_manager, scripts, which
from codewhale.services.testruns.summary import NO_TESTS, summarise
from codewhale.workspace.git import git
from codewhale.workspace.walk import Walker

OUTPUT_LIMIT = 16_000
AT_ONCE = 4
ECOSYSTEMS = ("rust", "node", "python", "go")
_RUST = (
    ("fmt", ("fmt", "--all", "--check")),
    ("metadata", ("metadata", "--format-version", "1", "--no-deps")),
    ("check", ("check", "--workspace", "--all-targets")),
)
_RUST_FULL = (
    ("clippy", ("clippy", "--workspace", "--all-targets", "--", "-D", "warnings")),
    ("test", ("test", "--workspace")),
)
_NODE = ("format:check", "check", "typecheck", "lint")
_PARSE = """
import ast, sys
bad = 0
for path in sys.stdin.buffer.read().decode('utf-8', 'surrogateescape').split('\\0'):
    try:
        with open(path, 'rb') as file:
            ast.parse(file.read(), path)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        bad += 1
        print(f"{path}:{getattr(error, 'lineno', None) or 1}: {type(error).__name__}: {error}")
    except OSError:
        pass
sys.exit(1 if bad else 0)
"""


class ProjectGate(Struct, frozen=True):
    """One check: `argv` launched in `cwd` (absolute; `shown_cwd` beneath the workspace), or why it is skipped.
    `shown` is what is read instead of the command line."""

    name: str
    ecosystem: str
    argv: tuple[str, ...]
    cwd: str
    shown_cwd: str = "."
    stdin: bytes = b""
    skipped: str = ""
    shown: str = ""


class GateResult(Struct, frozen=True):
    """How a gate went; `status` is passed, failed, timeout or skipped."""

    name: str
    ecosystem: str
    status: str
    command: str
    cwd: str
    exit_code: int | None
    duration_ms: int
    stdout: str
    stderr: str
    stdout_truncated: bool
    stderr_truncated: bool
    skipped_reason: str | None


async def find_gates(root: str, profile: str, full: bool, most_python: int) -> list[ProjectGate]:
    """The gates of a profile (auto, rust, node, python, go): for auto those of every kind of project found."""
    wanted = ECOSYSTEMS if profile == "auto" else (profile,)
    gates: list[ProjectGate] = []
    if profile == "auto" and find_repository(root) is not None:
        gates.append(ProjectGate("git-diff-check", "git", ("git", "diff", "--check"), root))
    if "rust" in wanted and (has(root, "Cargo.toml") or profile == "rust"):
        gates += _rust(root, full)
    if "node" in wanted and (has(root, "package.json") or profile == "node"):
        gates += _node(root, full)
    if "python" in wanted:
        gates += await _python(root, full, most_python, profile == "python")
    if "go" in wanted and (has(root, "go.mod") or profile == "go"):
        gates += _go(root, full)
    return gates


async def run_gates(
    gates: Sequence[ProjectGate],
    seconds: float,
    root: str,
    held: SandboxProfile,
    progress: Callable[[StepProgress], None] = lambda step: None,
) -> list[GateResult]:
    """Run them, four at a time, each within `seconds` and what `held` leaves it of the workspace `root` and the
    machine; results sorted by name. `progress` hears how many are done."""
    room, done = asyncio.Semaphore(AT_ONCE), 0

    async def one(gate: ProjectGate) -> GateResult:
        nonlocal done
        async with room:
            result = await _run(gate, seconds, root, held)
        done += 1
        progress(StepProgress(done, len(gates), f"gates, the last: {gate.name}"))
        return result

    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(one(gate)) for gate in gates]
    finally:
        if done < len(gates):
            progress(StepProgress(len(gates), len(gates), "gates, not all to their end"))
    return sorted((task.result() for task in tasks), key=lambda result: result.name)


async def _run(gate: ProjectGate, seconds: float, root: str, held: SandboxProfile) -> GateResult:
    if gate.skipped:
        return _skipped(gate, gate.skipped)
    try:
        if gate.ecosystem == "git":
            done = await git(gate.argv[1:], gate.cwd, seconds=seconds, output_limit=OUTPUT_LIMIT)
        else:
            done = await run(
                Launch(
                    argv=gate.argv,
                    cwd=gate.cwd,
                    env={"CI": "true", "PYTHONDONTWRITEBYTECODE": "1"},
                    stdin=gate.stdin,
                    seconds=seconds,
                    output_limit=OUTPUT_LIMIT,
                    profile=held.profile,
                    allowances=held.allowances,
                    workspace=root,
                )
            )
    except OSError as error:
        return _skipped(gate, f"{gate.argv[0]} could not be started: {error.strerror}")
    except ValueError as error:
        return _skipped(gate, f"it cannot be started: {error}")
    except ToolError as error:
        return _skipped(gate, error.message)
    return _result(gate, done)


def _result(gate: ProjectGate, done: Completed) -> GateResult:
    status = "timeout" if done.timed_out else "passed" if done.exit_code == 0 else "failed"
    stdout, stderr = (
        shown(done.stdout, done.stdout_gap, done.stdout_total),
        shown(done.stderr, done.stderr_gap, done.stderr_total),
    )
    tests = summarise(stdout, stderr) if gate.name.endswith("-test") else None
    if status == "passed" and tests is not None and tests.none_ran:
        return _skipped(gate, NO_TESTS)
    return GateResult(
        name=gate.name,
        ecosystem=gate.ecosystem,
        status=status,
        command=_command(gate),
        cwd=gate.shown_cwd,
        exit_code=None if done.timed_out else done.exit_code,
        duration_ms=int(done.seconds * 1000),
        stdout=stdout,
        stderr=stderr,
        stdout_truncated=done.stdout_gap >= 0,
        stderr_truncated=done.stderr_gap >= 0,
        skipped_reason=None,
    )


def _skipped(gate: ProjectGate, why: str) -> GateResult:
    return GateResult(
        gate.name, gate.ecosystem, "skipped", _command(gate), gate.shown_cwd, None, 0, "", "", False, False, why
    )


def _command(gate: ProjectGate) -> str:
    words = [os.path.basename(gate.argv[0]), *gate.argv[1:]] if gate.argv else []
    return gate.shown or shlex.join(words)


def _program(name: str, ecosystem: str, program: str, words: Sequence[str], root: str) -> ProjectGate:
    path = which(program)
    skipped = "" if path else not_installed(program)
    return ProjectGate(name, ecosystem, (path or program, *words), root, skipped=skipped)


def _rust(root: str, full: bool) -> list[ProjectGate]:
    if not has(root, "Cargo.toml"):
        return [ProjectGate("rust", "rust", (), root, skipped="there is no Cargo.toml")]
    rows = (*_RUST, *_RUST_FULL) if full else _RUST
    return [_program(f"rust-{name}", "rust", "cargo", words, root) for name, words in rows]


def _node(root: str, full: bool) -> list[ProjectGate]:
    defined = scripts(root)
    wanted = [name for name in (*_NODE, *(("test",) if full else ())) if name in defined]
    if not wanted:
        return [
            ProjectGate("node", "node", (), root, skipped=f"package.json has none of the scripts {', '.join(_NODE)}")
        ]
    manager = node_manager(root)
    return [_program(f"node-{name.replace(':', '-')}", "node", manager, ("run", name), root) for name in wanted]


async def _python(root: str, full: bool, most: int, asked: bool) -> list[ProjectGate]:
    listing = await Walker(root).files()
    files = [name for name in listing.files if name.endswith((".py", ".pyi"))]
    if not files:
        return [ProjectGate("python", "python", (), root, skipped="there is no Python file")] if asked else []
    python = interpreter(root)
    if python is None:
        return [ProjectGate("python-syntax", "python", ("python3",), root, skipped=not_installed("python3"))]
    stdin = "\0".join(files[:most]).encode("utf-8", "surrogateescape")
    summary = f"ast.parse of {min(most, len(files))} of {len(files)} Python files"
    gates = [ProjectGate("python-syntax", "python", (python, "-I", "-c", _PARSE), root, stdin=stdin, shown=summary)]
    try:
        tests = await find_python(root) if full else None
    except ToolError as error:
        return [*gates, ProjectGate("python-test", "python", (python,), root, skipped=error.message)]
    return [*gates, ProjectGate("python-test", "python", tests.argv, root)] if tests is not None else gates


def _go(root: str, full: bool) -> list[ProjectGate]:
    if not has(root, "go.mod"):
        return [ProjectGate("go", "go", (), root, skipped="there is no go.mod")]
    rows = (("test", ("test", "./...")), *((("vet", ("vet", "./...")),) if full else ()))
    return [_program(f"go-{name}", "go", "go", words, root) for name, words in rows]
