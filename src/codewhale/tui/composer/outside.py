"""The person's own programs: the editor on the whole terminal, and whatever reads the image of the clipboard."""

import asyncio
import contextlib
import os
import shlex
import shutil
import signal
import stat
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct
from textual.app import App, SuspendNotSupported

from codewhale.display.attachments import IMAGE_BYTES, TEXT_BYTES
from codewhale.lib.bounded import read_regular
from codewhale.lib.text import one_line
from codewhale.process import launch
from codewhale.process.command import Completed, Launch
from codewhale.process.programs import current_folder, find_program

MOST_BYTES = TEXT_BYTES
EDITORS = ("vi", "nano")
# What an editor needs to find its screen and itself, beside what every child gets.
_PASSED = (
    "DISPLAY", "WAYLAND_DISPLAY", "XAUTHORITY", "DBUS_SESSION_BUS_ADDRESS", "EDITOR", "VISUAL", "VIMINIT",
    "NVIM_APPNAME", "PAGER", "LESS", "LESSCHARSET", "TMUX", "STY",
    "TERM_PROGRAM", "TERMINFO", "TERMINFO_DIRS", "VSCODE_IPC_HOOK_CLI", "COLORFGBG",
)  # fmt: skip
# How an editor is told the line: by the beginning of its name.
_AT_LINE = (
    (("code", "codium", "cursor", "windsurf"), ("--goto", "{path}:{line}")),
    (("subl", "zed", "hx", "helix"), ("{path}:{line}",)),
    (
        ("vi", "vim", "nvim", "gvim", "nano", "emacs", "emacsclient", "kak", "micro", "ed", "joe", "mg"),
        ("+{line}", "{path}"),
    ),
)
SECONDS = 5.0
_DESKTOP = ("DISPLAY", "WAYLAND_DISPLAY", "XAUTHORITY", "XDG_RUNTIME_DIR", "DBUS_SESSION_BUS_ADDRESS")


class EditorResult(Struct, frozen=True):
    """What came of it: the new `text`, or what was `wrong` in words for the person (and then the former text holds).
    `code` names the sentence of the composer's words, "" when all went well."""

    text: str = ""
    code: str = ""
    wrong: str = ""


async def edit_text(app: App[object], command: str, text: str) -> EditorResult:
    """Let the person change `text` in the editor that `command` starts."""
    argv = argv_of(command, EDITORS)
    if not argv:
        return EditorResult(code="no_editor")
    folder = tempfile.mkdtemp(prefix="codewhale-")
    path = os.path.join(folder, "message.md")
    written = text.encode("utf-8", "replace")
    _write_private(path, written)
    done = await run_in_front(app, (*argv, path), folder)
    edited = (
        done if isinstance(done, EditorResult) else _came_back(path, f"{argv[0]}: {_ended(done)}", done.exit_code == 0)
    )
    if edited.code and _size(path) not in (-1, len(written)):
        # What was written in vain can still be had.
        return EditorResult(code=edited.code, wrong=f"{edited.wrong} {path}".strip())
    shutil.rmtree(folder, ignore_errors=True)
    return edited


async def edit_file(app: App[object], command: str, path: str, line: int = 0) -> EditorResult:
    """Let the person change a file, at a line (from 1; 0 is none)."""
    argv = argv_of(command, EDITORS)
    if not argv:
        return EditorResult(code="no_editor")
    done = await run_in_front(app, at_line(argv, path, line), os.path.dirname(path) or "/")
    if isinstance(done, EditorResult):
        return done
    return (
        EditorResult()
        if done.exit_code == 0
        else EditorResult(code="editor_failed", wrong=f"{argv[0]}: {_ended(done)}")
    )


async def show_text(app: App[object], command: str, others: Sequence[str], text: str) -> EditorResult:
    """Let the person look at a text in the program that `command` starts, else in the first of `others` that is here;
    what is changed there is lost."""
    argv = argv_of(command, others)
    if not argv:
        return EditorResult(code="no_pager")
    folder = tempfile.mkdtemp(prefix="codewhale-")
    path = os.path.join(folder, "output.txt")
    try:
        await asyncio.to_thread(_write_private, path, text.encode("utf-8", "replace"))
        done = await run_in_front(app, (*argv, path), folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return done if isinstance(done, EditorResult) else EditorResult()


def _write_private(path: str, data: bytes) -> None:
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(data)


def argv_of(command: str, others: Sequence[str]) -> tuple[str, ...]:
    """A command line as words; for an empty one the first of `others` that is on this machine, () for none."""
    return words_of(command) if command.strip() else next(((name,) for name in others if _is_here(name)), ())


def _is_here(name: str) -> bool:
    return find_program(name, current_folder()) is not None


def words_of(command: str) -> tuple[str, ...]:
    """A command line as words; () for an empty or a broken one."""
    try:
        return tuple(shlex.split(command))
    except ValueError:
        return ()


def at_line(argv: Sequence[str], path: str, line: int) -> tuple[str, ...]:
    """The command that opens `path` at `line`, as the editor of that name is told."""
    name = os.path.basename(argv[0])
    if line > 0:
        for names, shape in _AT_LINE:
            if name in names:
                return (*argv, *(part.format(path=path, line=line) for part in shape))
    return (*argv, path)


async def run_in_front(app: App[object], argv: Sequence[str], cwd: str) -> Completed | EditorResult:
    """Run a program on the terminal while the app is suspended; turns go on meanwhile, nothing is drawn."""
    program = argv[0] if "/" in argv[0] else find_program(argv[0], current_folder())
    if program is None:
        return EditorResult(code="editor_failed", wrong=f"{argv[0]}: not found outside of the workspace")
    order = Launch(
        argv=(program, *argv[1:]),
        cwd=cwd,
        profile="none",
        env=_environment(),
        attached=True,
        foreground=True,
        supervised=False,
        output_limit=0,
    )
    result: Completed | EditorResult = EditorResult(code="editor_failed", wrong=argv[0])
    cancelled: BaseException | None = None
    try:
        with app.batch_update(), app.suspend():
            # An exception inside would leave the screen suspended.
            try:
                result = await _in_front(order)
            except asyncio.CancelledError as error:
                cancelled = error
            except OSError as error:
                result = EditorResult(code="editor_failed", wrong=one_line(f"{argv[0]}: {error.strerror or error}"))
    except SuspendNotSupported:
        return EditorResult(code="no_suspend")
    if cancelled is not None:
        raise cancelled
    return result


async def _in_front(order: Launch) -> Completed:
    child = await launch.start(order)
    try:
        with _terminal_of(child.pid):
            return await child.wait()
    finally:
        await launch.settle(child.kill())


@contextlib.contextmanager
def _terminal_of(pid: int) -> Iterator[None]:
    """Give the terminal to the process group `pid`, and take it back. Nothing where there is no terminal of ours."""
    try:
        own = os.tcgetpgrp(0)
        os.tcsetpgrp(0, pid)
    except OSError:
        yield
        return
    with contextlib.suppress(ProcessLookupError, PermissionError):
        # It may have been stopped for touching the terminal too early.
        os.killpg(pid, signal.SIGCONT)
    # Taking the terminal back is done from the background, which stops whoever does not ignore this.
    before = signal.signal(signal.SIGTTOU, signal.SIG_IGN)
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            os.tcsetpgrp(0, own)
        signal.signal(signal.SIGTTOU, before)


def _environment() -> dict[str, str]:
    return {name: os.environ[name] for name in _PASSED if name in os.environ}


def _came_back(path: str, ended: str, well: bool) -> EditorResult:
    if not well:
        return EditorResult(code="editor_failed", wrong=ended)
    try:
        data = read_regular(os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK), MOST_BYTES)
    except OSError as error:
        return EditorResult(code="editor_failed", wrong=one_line(str(error.strerror or error)))
    if data is None:
        return EditorResult(code="editor_too_long")
    try:
        return EditorResult(data.decode().removesuffix("\n"))
    except UnicodeDecodeError:
        return EditorResult(code="editor_not_text")


def _size(path: str) -> int:
    """A regular file's size, -1 for anything else."""
    try:
        found = os.lstat(path)
    except OSError:
        return -1
    return found.st_size if stat.S_ISREG(found.st_mode) else -1


def _ended(done: Completed) -> str:
    return "-" if done.exit_code is None else str(done.exit_code)


def programs(environ: Mapping[str, str], platform: str = sys.platform) -> list[tuple[str, ...]]:
    """The commands that may print a PNG, best first."""
    if platform == "darwin":
        return [("pngpaste", "-")]
    found: list[tuple[str, ...]] = []
    if environ.get("WAYLAND_DISPLAY"):
        found.append(("wl-paste", "--no-newline", "--type", "image/png"))
    if environ.get("DISPLAY"):
        found.append(("xclip", "-selection", "clipboard", "-target", "image/png", "-out"))
    return found


async def image_of_clipboard(environ: Mapping[str, str] | None = None) -> bytes | None:
    """The bytes of the image, b"" when there is none; None when no program here can tell."""
    own = os.environ if environ is None else environ
    passed = {name: own[name] for name in _DESKTOP if name in own}
    found: bytes | None = None
    for name, *rest in programs(own):
        program = find_program(name, current_folder(), own.get("PATH", os.defpath))
        if program is None:
            continue
        order = Launch(
            argv=(program, *rest),
            cwd="/",
            profile="none",  # it speaks to the desktop
            env=passed,
            seconds=SECONDS,
            supervised=False,
            own=True,
            output_limit=2 * IMAGE_BYTES,
        )
        try:
            done = await launch.run(order)
        except OSError:
            continue
        found = b""
        if done.exit_code == 0 and done.stdout and done.stdout_gap < 0:
            return done.stdout
    return found
