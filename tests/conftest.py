"""Folders that every test starts from."""

import ast
import faulthandler
import gc
import os
import signal
import subprocess
import sys
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from _pytest.faulthandler import fault_handler_stderr_fd_key
from hypothesis import HealthCheck, settings

# How long an example takes to draw or to run says something of the machine, nothing of the code.
settings.register_profile(
    "steady", deadline=None, max_examples=50, suppress_health_check=[HealthCheck.too_slow], print_blob=True
)
settings.load_profile("steady")

# The programs that tests start are those of the environment they run in: a bare machine's Python has no pytest.
os.environ["PATH"] = os.pathsep.join((str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)))

# Whoever starts a run in the background of a script, or under nohup, makes it ignore signals; the programs that the
# tests start and interrupt would inherit that.
for _number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
    if signal.getsignal(_number) is signal.SIG_IGN:
        signal.signal(_number, signal.default_int_handler if _number is signal.SIGINT else signal.SIG_DFL)


def _parsed(*args: Any, parse: Callable[..., Any] = ast.parse, **options: Any) -> Any:
    """`ast.parse`, twice where once is not enough: in CPython 3.11.0 to 3.11.4 it fails when a signal or a collection
    comes in between whose handler parses too, as one that shows a traceback does; that would end the whole run."""
    try:
        return parse(*args, **options)
    except SystemError:
        return parse(*args, **options)


ast.parse = _parsed

TESTS = Path(__file__).parent
TEARDOWN_SECONDS = 300.0
HOUSE = "tests/house/"
SLOW = {line for line in (TESTS / "slow.txt").read_text().splitlines() if not line.startswith("#")}
LONGEST = {
    "test_typing.py",
    "test_hostile_trees.py",
    "test_hostile_ends.py",
    "test_own_code.py",
    "test_contact_sheets.py",
    "test_kernel_escapes.py",
    "test_web_doors.py",
    "test_bad_input.py",
    "test_streamed_words.py",
    "test_screen.py",
    "test_first_run.py",
}


def pytest_configure(config: pytest.Config) -> None:
    """Before several workers each rewrite the assertions of every file, let two processes do half of them each."""
    gc.disable()  # until all is collected, of which nothing is garbage
    if not getattr(config.option, "numprocesses", None) or sys.dont_write_bytecode:
        return
    files = sorted(TESTS.rglob("test_*.py"))
    new = [str(path) for path in files if not list(path.parent.glob(f"__pycache__/{path.stem}.*-pytest-*.pyc"))]
    if len(new) > len(files) // 4:
        command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:xdist", "-p", "no:cacheprovider"]
        halves = [
            subprocess.Popen([*command, *half], cwd=config.rootpath, stdout=subprocess.DEVNULL)
            for half in (new[::2], new[1::2])
        ]
        for half in halves:
            half.wait(timeout=1800)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark the tests of slow files. Among several workers mix the files: most of one folder wait, of another compute.
    The longest come first, so that no worker is left with one at the end."""
    for item in items:
        if item.nodeid.partition("::")[0] in SLOW:
            item.add_marker("slow")
    if hasattr(config, "workerinput"):
        items.sort(key=lambda item: (not _is_long(item), zlib.crc32(item.path.name.encode()), item.path))


def _is_long(item: pytest.Item) -> bool:
    return item.path.name in LONGEST or item.nodeid.startswith(HOUSE)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """One worker does all tests of the house: what they read, all of the source, is parsed once."""
    from xdist.scheduler import LoadFileScheduling

    class Rooms(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return HOUSE if nodeid.startswith(HOUSE) else super()._split_scope(nodeid)

    return Rooms(config, log) if config.getoption("dist") == "loadfile" else None


def pytest_collection_finish() -> None:
    """The thousands of collected tests are no garbage: no collection needs to go through them again."""
    gc.collect()
    gc.freeze()
    gc.enable()


def pytest_exception_interact(node: pytest.Item | pytest.Collector) -> None:
    """A failure stops every clock, for the sake of debuggers; so a test that failed, by its time limit for one, could
    hang in its teardown for ever."""
    if isinstance(node, pytest.Item) and not node.config.option.usepdb:
        stderr = node.config.stash[fault_handler_stderr_fd_key]
        faulthandler.dump_traceback_later(TEARDOWN_SECONDS, exit=True, file=stderr)


GIT = ["git", "-c", "user.name=Test", "-c", "user.email=test@localhost", "-c", "init.defaultBranch=main"]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A private CODEWHALE_HOME."""
    folder = tmp_path / "home"
    folder.mkdir(mode=0o700)
    return folder


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """An empty workspace in no repository."""
    folder = tmp_path / "workspace"
    folder.mkdir()
    return folder


@pytest.fixture
def git_workspace(workspace: Path) -> Path:
    """A repository with one commit on branch main."""
    (workspace / "README.md").write_text("# Sample\n")
    for args in (["init", "-q", "--template="], ["add", "-A"], ["commit", "-q", "-m", "Begin"]):
        subprocess.run([*GIT, *args], cwd=workspace, check=True, capture_output=True)
    return workspace


@pytest.fixture
def world(tmp_path: Path) -> Iterator[Any]:
    """A `World`, whose terminals are closed at the end."""
    from support.ttyworld import World

    made = World(tmp_path)
    yield made
    for term in made.opened:
        term.__exit__()
