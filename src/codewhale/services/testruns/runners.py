"""Test runs: which runner a workspace's tests have, what its files say of that, and running them."""

import asyncio
import os
import re
import shlex
import shutil
import time
from collections.abc import Callable, Iterator

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from codewhale.lib.bounded import check_nesting
from codewhale.lib.text import one_line
from codewhale.process.command import child_env
from codewhale.process.confinement import held_where_possible
from codewhale.process.launch import Completed, Launch, SandboxProfile, run, settle, start
from codewhale.process.programs import not_installed
from codewhale.protocol.errors import NextCall, ToolError

READ_LIMIT = 1 << 20


def interpreter(root: str) -> str | None:
    """The project's Python: its virtual environment's, else the one on PATH."""
    for folder in (".venv", "venv"):
        path = os.path.join(root, folder, "bin", "python")
        if os.access(path, os.X_OK):
            return path
    return which("python3") or which("python")


def which(program: str) -> str | None:
    return shutil.which(program, path=child_env()["PATH"])


def has(root: str, *names: str) -> bool:
    return any(os.path.isfile(os.path.join(root, name)) for name in names)


def read_text(root: str, name: str) -> str:
    """The first MiB of a regular file, "" when there is none."""
    path = os.path.join(root, name)
    if not os.path.isfile(path):
        return ""
    try:
        with open(path, "rb") as file:
            return file.read(READ_LIMIT).decode("utf-8", "replace")
    except OSError:
        return ""


def scripts(root: str) -> dict[str, str]:
    table = package(root).get("scripts")
    rows = table.items() if isinstance(table, dict) else ()
    return {name: text for name, text in rows if isinstance(text, str) and text}


def package(root: str) -> dict[str, object]:
    """What package.json says, empty where there is none that can be read."""
    text = read_text(root, "package.json").encode("utf-8", "replace")
    try:
        check_nesting(text)
        value = msgspec.json.decode(text or b"{}")
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


OUTPUT_LIMIT = 40_000
_PROGRESS_SECONDS = 0.3
# What the Python of a project ends with where it has no pytest: no failure of its own ends with this.
_MISSING = 77
LOOKED_FOR = (
    "Cargo.toml", "pyproject.toml, pytest.ini, tox.ini, setup.cfg, setup.py, conftest.py or a tests folder",
    "package.json with a test script", "go.mod", "Makefile with a test target",
)  # fmt: skip
_MANAGERS = ("npm", "pnpm", "yarn", "bun")
_LOCKS = (
    ("pnpm-lock.yaml", "pnpm"), ("yarn.lock", "yarn"), ("bun.lockb", "bun"), ("bun.lock", "bun"),
    ("package-lock.json", "npm"),
)  # fmt: skip


class Runner(Struct, frozen=True):
    """How to run a workspace's tests: `name` as reported, `argv` to launch in the workspace, `note` what a reader
    should know of the choice, `script` what of the project's own that runs."""

    name: str
    argv: tuple[str, ...]
    env: dict[str, str] = {}
    note: str = ""
    script: str = ""


async def find_python(root: str) -> Runner | None:
    """The runner of the workspace's Python tests, None where it has no Python tests."""
    pytest = _pytest(root, ()) if _python_tests(root) else None
    return None if pytest is None else await _known(root, pytest)


async def find_runner(root: str, args: str = "", all_features: bool = False) -> Runner:
    """The runner of the workspace's tests with `args` (split like a shell does) in their place.

    Raises ToolError invalid_input for arguments that cannot be split, not_available when there is no runner.
    """
    runner = foresee(root, args, all_features)
    return await _known(root, runner) if runner.name == "pytest" else runner


def foresee(root: str, args: str = "", all_features: bool = False) -> Runner:
    """What `find_runner` will choose, with nothing started: pytest is taken to be there. Raises as `find_runner`
    does."""
    words = _split(args)
    for kind in _kinds(root):
        if kind == "cargo":
            features = ("--all-features",) if all_features else ()
            return Runner("cargo", (_program("cargo", root), "test", *features, *words))
        runner = _RUNNERS[kind](root, words)
        if runner is not None:
            note = "all_features applies only to cargo and was ignored" if all_features else ""
            return replace(runner, note="; ".join(filter(None, (runner.note, note))))
    raise _no_runner(root)


def runner_program(root: str) -> str:
    """The name or path of the program that `find_runner` would choose, "" for none; nothing is started."""
    kind = next(_kinds(root), "")
    if kind == "python":
        return interpreter(root) or "python3"
    return node_manager(root) if kind == "node" else kind


def _kinds(root: str) -> Iterator[str]:
    """The kinds of tests a workspace has, the likeliest first."""
    if has(root, "Cargo.toml"):
        yield "cargo"
    if _python_tests(root):
        yield "python"
    if _node_script(root):
        yield "node"
    if has(root, "go.mod"):
        yield "go"
    if has(root, "pyproject.toml", "setup.py", "setup.cfg"):
        yield "python"
    if _has_test_target(root):
        yield "make"


async def run_tests_held(root: str, runner: Runner, seconds: float) -> Completed:
    """Run them in the sandbox, where this machine has one."""
    held = SandboxProfile(await held_where_possible("workspace-write"))
    return await run_tests(root, runner, seconds, lambda line: None, held)


async def run_tests(
    root: str, runner: Runner, seconds: float, progress: Callable[[str], None], held: SandboxProfile
) -> Completed:
    """Run them to the end or the timeout, the last line printed told to `progress` now and then, within what `held`
    leaves them. A cancellation is raised with what they came to so far. Raises OSError when the program cannot be
    started, ToolError where they cannot be held."""
    feed = _Progress(progress)
    launch = Launch(
        argv=runner.argv,
        cwd=root,
        env={"PYTHONDONTWRITEBYTECODE": "1", **runner.env},
        seconds=seconds,
        output_limit=OUTPUT_LIMIT,
        profile=held.profile,
        allowances=held.allowances,
        workspace=root,
    )
    child = await start(launch, feed.output)
    try:
        return await child.wait()
    except asyncio.CancelledError as stopped:
        await settle(child.kill())
        stopped.args = (await child.wait(),)
        raise
    finally:
        await settle(child.kill())


class _Progress:
    def __init__(self, tell: Callable[[str], None]) -> None:
        self._tell = tell
        self._next = 0.0

    def output(self, stream: str, data: bytes) -> None:
        now = time.monotonic()
        line = data.rstrip().rpartition(b"\n")[2]
        if line and now >= self._next:
            self._next = now + _PROGRESS_SECONDS
            self._tell(line[-200:].decode("utf-8", "replace"))


def _split(args: str) -> tuple[str, ...]:
    try:
        return tuple(shlex.split(args))
    except ValueError as error:
        raise ToolError(
            "invalid_input",
            f"args cannot be split into words: {error}.",
            field="args",
            expected="words as a shell splits them, quotes closed",
            received=args[:200],
            fix=NextCall("run_tests", {"args": _closed(args)}),
        )


def _closed(args: str) -> str:
    """The same words with the open quote closed, or without the quotes where that is not enough."""
    for closed in (args.rstrip("\\"), f"{args}'", f'{args}"'):
        try:
            shlex.split(closed)
        except ValueError:
            continue
        return closed
    return re.sub(r"[\\'\"]", " ", args)


def _pytest(root: str, words: tuple[str, ...]) -> Runner | None:
    python = interpreter(root)
    return None if python is None else Runner("pytest", (python, "-m", "pytest", *words))


async def _known(root: str, pytest: Runner) -> Runner:
    """The runner of a Python: unittest where it has no pytest. Raises ToolError where it does not say."""
    python, words = pytest.argv[0], pytest.argv[3:]
    probe = f"import importlib.util, sys; sys.exit(0 if importlib.util.find_spec('pytest') else {_MISSING})"
    profile = await held_where_possible("read-only")
    try:
        done = await run(Launch((python, "-c", probe), root, profile, seconds=20.0, workspace=root))
    except OSError:  # it cannot be started, and whoever runs it will be told why
        return pytest
    if done.exit_code == 0:
        return pytest
    if done.exit_code != _MISSING or done.timed_out:
        reason = done.stderr.decode("utf-8", "replace").strip().rpartition("\n")[2]
        why = "it did not answer in time" if done.timed_out else f"exit code {done.exit_code}"
        raise ToolError(
            "execution_failed",
            f"No test was run: {python} could not say whether it has pytest "
            f"({one_line(f'{why}: {reason}'.rstrip(': '), 300)}).",
            expected="a Python that runs here",
            received=python,
        )
    note = "; ".join(filter(None, (f"pytest is not installed for {python}, so unittest ran", pytest.note)))
    return Runner("unittest", (python, "-m", "unittest", *(words or _discovery(root))), note=note)


def _discovery(root: str) -> tuple[str, ...]:
    for folder in ("tests", "test"):
        if os.path.isdir(os.path.join(root, folder)):
            top = ("-t", ".") if has(root, f"{folder}/__init__.py") else ()
            return ("discover", "-s", folder, *top)
    return ("discover",)


def _python_tests(root: str) -> bool:
    """Whether anything says that there are Python tests: a pytest configuration, or files of theirs."""
    if has(root, "pytest.ini", ".pytest.ini", "conftest.py", "tests/conftest.py"):
        return True
    configured = (("pyproject.toml", "[tool.pytest"), ("tox.ini", "[pytest]"), ("setup.cfg", "[tool:pytest]"))
    if any(mark in read_text(root, name) for name, mark in configured):
        return True
    return any(_holds_tests(os.path.join(root, folder), depth=3) for folder in ("tests", "test")) or _holds_tests(
        root, 0
    )


def _holds_tests(folder: str, depth: int) -> bool:
    try:
        with os.scandir(folder) as entries:
            listed = list(entries)
    except OSError:
        return False
    if any(
        entry.name.endswith(".py") and (entry.name.startswith("test") or entry.name.endswith("_test.py"))
        for entry in listed
    ):
        return True
    below = (
        entry.path for entry in listed if depth and entry.is_dir(follow_symlinks=False) and entry.name[0] not in "._"
    )
    return any(_holds_tests(path, depth - 1) for path in below)


def _node_script(root: str) -> str:
    script = scripts(root).get("test", "")
    return "" if "no test specified" in script else script


def _node(root: str, args: tuple[str, ...]) -> Runner:
    wanted = node_manager(root)
    manager = wanted if which(wanted) else "npm"
    note = "" if manager == wanted else f"{wanted} is not installed, so npm ran"
    words = {"npm": ("test", *(("--", *args) if args else ())), "bun": ("run", "test", *args)}
    argv = (_program(manager, root), *words.get(manager, ("test", *args)))
    return Runner(manager, argv, {"CI": "true"}, note, _node_script(root))


def node_manager(root: str) -> str:
    """The package manager a Node project names, or whose lock file it has; npm else."""
    declared = package(root).get("packageManager")
    named = declared.split("@")[0] if isinstance(declared, str) else ""
    if named in _MANAGERS:
        return named
    return next((manager for lock, manager in _LOCKS if has(root, lock)), "npm")


def _go(root: str, words: tuple[str, ...]) -> Runner:
    everywhere = () if any(not word.startswith("-") for word in words) else ("./...",)
    return Runner("go", (_program("go", root), "test", *words, *everywhere))


def _make(root: str, words: tuple[str, ...]) -> Runner:
    return Runner("make", (_program("make", root), "test", *words))


def _has_test_target(root: str) -> bool:
    return any(
        line.startswith(("test:", "test :"))
        for name in ("GNUmakefile", "makefile", "Makefile")
        for line in read_text(root, name).splitlines()
    )


def _program(name: str, root: str) -> str:
    path = which(name)
    if path is None:
        raise ToolError(
            "not_available",
            f"The tests of {root} are run by {name}. {not_installed(name)}",
            expected=f"{name} on PATH",
            received="nothing",
        )
    return path


def _no_runner(root: str) -> ToolError:
    return ToolError(
        "not_available",
        f"No test runner was recognised in {root}. Looked for: {'; '.join(LOOKED_FOR)}. "
        'Run the tests by their own command with exec_shell {"command": "..."}.',
        expected="one of these files at the top of the workspace",
        received="none of them",
    )


_RUNNERS: dict[str, Callable[[str, tuple[str, ...]], Runner | None]] = {
    "python": _pytest, "node": _node, "go": _go, "make": _make,
}  # fmt: skip
