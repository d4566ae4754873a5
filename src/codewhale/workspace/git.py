"""Git, run so that nothing the repository says can start a program, reach the network or write.

Reading commands alone are allowed, in the read-only sandbox where there is one. Configuration that names programs is
overridden in any case, filters are found and emptied, and git is told which repository it works on.
"""

import asyncio
import os
import re
from collections.abc import Sequence

from msgspec import Struct

from codewhale.lib.text import sanitise
from codewhale.process.confinement import held_where_possible
from codewhale.process.launch import Completed, Launch, run
from codewhale.process.programs import find_program, not_installed
from codewhale.process.repository import (
    Repository,
    branch_of,
    config_files,
    ended_where_it_waits,
    find_repository,
    read_head,
    refuse_specials,
)
from codewhale.process.sandbox.gitfiles import read_small
from codewhale.protocol.blocks import DiffBlock
from codewhale.protocol.errors import ToolError
from codewhale.protocol.views import WorkspaceRow

OUTPUT_LIMIT = 4 << 20
_MOST_FILTERS = 64
_CHANGE_SECONDS = 300.0
_DEFINING = re.compile(rb"\[(filter|include)", re.IGNORECASE)
_NULL = os.devnull

# What a repository could name a program, a transport or a file of its own choice by.
_CONFIG = (
    "core.fsmonitor=false",
    f"core.hooksPath={_NULL}",
    "core.pager=cat",
    "core.sshCommand=false",
    "core.quotePath=false",
    "diff.external=",
    "diff.autoRefreshIndex=false",  # it would write the index, whatever GIT_OPTIONAL_LOCKS says
    "diff.submodule=short",
    "submodule.recurse=false",
    "core.splitIndex=false",
    "status.submoduleSummary=false",
    "log.showSignature=false",
    "format.pretty=medium",
    "gpg.program=false",
    "gpg.openpgp.program=false",
    "gpg.x509.program=false",
    "gpg.ssh.program=false",
    "protocol.allow=never",
    "protocol.ext.allow=never",
    "credential.helper=",
    "safe.bareRepository=explicit",
    "blame.ignoreRevsFile=",
    "blame.coloring=none",
    "color.ui=false",
    "column.ui=never",
    "i18n.logOutputEncoding=UTF-8",
)
_ENVIRONMENT = {
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_ALLOW_PROTOCOL": "none",
    "GIT_EDITOR": "false",
    "GIT_ASKPASS": "false",
    "SSH_ASKPASS": "false",
    "LC_ALL": "C",
}
_DIFFS = ("--no-ext-diff", "--no-textconv", "--no-color")
_DIRTY = ("--ignore-submodules=dirty",)  # looking into a submodule would start git there, under its own configuration
# The commands that may run, each with what it is always given.
_COMMANDS: dict[str, tuple[str, ...]] = {
    "blame": ("--no-textconv",),
    "cat-file": (),
    "check-ignore": (),
    "diff": (*_DIFFS, *_DIRTY),
    "diff-files": (*_DIFFS, *_DIRTY),
    "diff-index": (*_DIFFS, *_DIRTY),
    "diff-tree": (*_DIFFS, *_DIRTY),
    "for-each-ref": (),
    "hash-object": (),
    "log": (*_DIFFS, "--no-show-signature"),
    "ls-files": (),
    "ls-tree": (),
    "merge-base": (),
    "rev-list": (),
    "rev-parse": (),
    "show": (*_DIFFS, "--no-show-signature"),
    "status": _DIRTY,
}
# Options that run a program, write a file or read one outside the repository; git takes unique abbreviations as well.
_FORBIDDEN = (
    "--textconv", "--ext-diff", "--output", "--filters", "--upload-pack", "--exec-path", "--config-env", "--no-index",
    "--contents", "--show-signature", "--alternate-refs", "--recurse-submodules", "--pathspec-from-file",
    "--ignore-revs-file", "--exclude-from", "--receive-pack", "--open-files-in-pager",
)  # fmt: skip
_HARMLESS = frozenset({"--text", "--exclude"})


async def git(
    args: Sequence[str], cwd: str, *, seconds: float = 30.0, stdin: bytes = b"", output_limit: int = OUTPUT_LIMIT
) -> Completed:
    """Run a reading git command (`args[0]`) in `cwd`, paths in `args` being literal and relative to it.

    Options that could run, write or read elsewhere, and commands not known to be reading, raise ValueError. Raises
    ToolError not_available when git is not installed or `cwd` is in no repository.
    """
    always = _checked(args)
    return await _asked((args[0], *always, *args[1:]), cwd, _Ask(seconds, stdin, output_limit))


async def beside(
    args: Sequence[str], cwd: str, folder: str, *, stdin: bytes = b"", output_limit: int = OUTPUT_LIMIT
) -> Completed:
    """Run a git command of the harness's own choice as `git` does, with the index and the new objects in `folder`: what
    it would change of the repository it changes there alone. Raises ToolError as `git`."""
    repository = find_repository(cwd)
    if repository is not None:
        info = os.path.join(folder, "objects", "info")
        os.makedirs(info, exist_ok=True)
        with open(os.path.join(info, "alternates"), "w", encoding="utf-8", errors="surrogateescape") as file:
            file.write(os.path.join(os.path.realpath(repository.common), "objects") + "\n")
    always = _COMMANDS.get(args[0], ())
    return await _asked((args[0], *always, *args[1:]), cwd, _Ask(60.0, stdin, output_limit, folder))


class _Ask(Struct, frozen=True):
    """How git is asked; `folder` is where its index and new objects are, "" for those of the repository."""

    seconds: float
    stdin: bytes = b""
    output_limit: int = OUTPUT_LIMIT
    folder: str = ""


async def _asked(command: tuple[str, ...], cwd: str, ask: _Ask) -> Completed:
    program = find_program("git", cwd)
    if program is None:
        raise _unavailable(not_installed("git"))
    repository = find_repository(cwd)
    if repository is None:
        raise _unavailable(f"{cwd} is not inside a git repository, or its repository does not point back to it.")
    await refuse_specials(repository)
    overrides = _options(_CONFIG) + _options(await _filter_overrides(program, repository, cwd, ask.seconds))
    return await _launch((program, "--no-pager", *overrides, *command), repository, cwd, ask)


async def changing(args: Sequence[str], common: str) -> Completed:
    """Run a git command of the harness's own choice, which may change the repository whose git directory this is: with
    no hook, filter or program that it names."""
    program = find_program("git", common)
    if program is None:
        raise _unavailable(not_installed("git"))
    repository = Repository(os.path.dirname(common), common, common)
    overrides = _options(_CONFIG) + _options(await _filter_overrides(program, repository, common, _CHANGE_SECONDS))
    launch = Launch(
        argv=(program, "--no-pager", *overrides, *args),
        cwd=common,
        env={**_ENVIRONMENT, "GIT_DIR": common},
        seconds=_CHANGE_SECONDS,
        profile="none",  # it makes and removes checkouts below the state directory, which no profile opens
        workspace=common,
        output_limit=OUTPUT_LIMIT,
        own=True,
    )
    return await run(launch)


async def head_ref(path: str) -> str | None:
    """The branch checked out where `path` is, or the commit id when it is detached; None outside a repository."""
    repository = find_repository(path)
    head = None if repository is None else read_head(repository)
    if repository is None or head is not None:
        return head
    done = await git(("rev-parse", "--abbrev-ref", "HEAD"), path)
    return done.stdout.decode("utf-8", "replace").strip() or None if done.exit_code == 0 else None


def first_commits(path: str) -> tuple[str, ...]:
    """The commits without a parent that HEAD comes from; none where git cannot say within seconds. Blocks meanwhile."""
    from concurrent.futures import ThreadPoolExecutor

    work = git(("rev-list", "--max-parents=0", "HEAD"), path, seconds=3.0)
    try:
        with ThreadPoolExecutor(1) as thread:  # there may be a loop in this one
            done = thread.submit(asyncio.run, work).result()
    except (ToolError, OSError):
        return ()
    return tuple(done.stdout.decode().split()) if done.exit_code == 0 and done.stdout_gap < 0 else ()


def _checked(args: Sequence[str]) -> tuple[str, ...]:
    if not args or args[0] not in _COMMANDS:
        raise ValueError(f"not a reading git command: {args[:1]}")
    for arg in args[1:]:
        if arg in ("--", "--end-of-options"):
            break
        name = arg.partition("=")[0]
        if name.startswith("--") and name not in _HARMLESS and any(bad.startswith(name) for bad in _FORBIDDEN):
            raise ValueError(f"git option {name} is not allowed")
    if any("\0" in arg for arg in args):
        raise ValueError("NUL in a git argument")
    return _COMMANDS[args[0]]


def _options(settings: Sequence[str]) -> tuple[str, ...]:
    return tuple(word for setting in settings for word in ("-c", setting))


async def _filter_overrides(program: str, repository: Repository, cwd: str, seconds: float) -> list[str]:
    """Settings that empty every filter. Git is asked for their names only where a file could define one."""
    texts = [read_small(file) for file in config_files(repository) if os.path.lexists(file)]
    if not any(text is None or _DEFINING.search(text) for text in texts):
        return []
    argv = (program, "--no-pager", "config", "-z", "--name-only", "--get-regexp", r"^filter\.")
    done = await _launch(argv, repository, cwd, _Ask(seconds))
    if done.exit_code not in (0, 1) or done.stdout_gap >= 0:
        raise _unavailable(f"The git configuration of {repository.root} cannot be read: {_first_line(done.stderr)}")
    keys = {key for key in os.fsdecode(done.stdout).split("\0") if key}
    names = sorted({key[len("filter.") : key.rindex(".")] for key in keys if key.count(".") >= 2})
    if len(names) > _MOST_FILTERS or any("=" in name for name in names):
        raise _unavailable(f"The git configuration of {repository.root} defines filters that cannot be switched off.")
    off = ("clean=", "smudge=", "process=", "required=false")
    return [f"filter.{name}.{setting}" for name in names for setting in off]


async def _launch(argv: tuple[str, ...], repository: Repository, cwd: str, ask: _Ask) -> Completed:
    seen = tuple(f"read:{path}" for path in dict.fromkeys((repository.root, repository.gitdir, repository.common)))
    literal = "0" if "check-ignore" in argv else "1"  # that command refuses the setting and has no need of it
    place = {"GIT_LITERAL_PATHSPECS": literal, "GIT_DIR": repository.gitdir, "GIT_WORK_TREE": repository.root}
    if ask.folder:
        place["GIT_INDEX_FILE"] = os.path.join(ask.folder, "index")
        place["GIT_OBJECT_DIRECTORY"] = os.path.join(ask.folder, "objects")
        seen = (*seen, f"write:{ask.folder}")
    launch = Launch(
        argv=argv,
        cwd=cwd,
        env={**_ENVIRONMENT, **place},
        stdin=ask.stdin,
        seconds=ask.seconds,
        profile=await held_where_possible("read-only"),
        allowances=seen,
        workspace=repository.root,
        output_limit=ask.output_limit,
        supervised=bool(ask.folder),
        own=True,
    )
    return await ended_where_it_waits(run(launch), repository)


def _first_line(data: bytes) -> str:
    return data.decode("utf-8", "replace").strip().partition("\n")[0]


def _unavailable(message: str) -> ToolError:
    return ToolError("not_available", message, expected="git, and a repository it can read")


MOST_CHANGED = 1000
MOST_FILES = 200
MOST_NEW = 50
NEW_BYTES = 64 << 10
SECONDS = 20.0
_FILES = re.compile(r"^(?=diff --git )", re.MULTILINE)
_NAME = re.compile(r"^(?:\+\+\+ b/|--- a/|rename to |Binary files (?:a/.* and )?b?/?)(.+?)(?: differ)?$", re.MULTILINE)
_HEAD = re.compile(r"^diff --git a/(.*) b/\1$", re.MULTILINE)
_FORM = ("--src-prefix=a/", "--dst-prefix=b/", "--relative", "--submodule=short")


async def workspace_status(workspace: str) -> WorkspaceRow:
    return WorkspaceRow(workspace, branch_of(workspace), await _changed(workspace))


async def _changed(workspace: str) -> int:
    try:
        done = await git(("status", "--porcelain", "-z", "--untracked-files=normal", "--no-renames"), workspace)
    except ToolError:
        return 0
    return min(MOST_CHANGED, done.stdout.count(b"\0"))


async def differences(workspace: str, path: str = "", revisions: Sequence[str] = ()) -> tuple[DiffBlock, ...] | None:
    """A block for each file that differs from the last commit, staged or not, then new files, at most 200 in all; with
    `revisions` (or --cached) what those differ in alone. None outside a git repository. Raises ToolError for git that
    cannot be asked."""
    if find_repository(workspace) is None:
        return None
    place = ("--", path or ".")
    since = revisions or (await _last_commit(workspace),)
    done = await git(("diff", *_FORM, *since, *place), workspace, seconds=SECONDS)
    if done.exit_code:
        raise ToolError(
            "not_available", f"git cannot say what differs: {sanitise(done.stderr.decode(errors='replace'))[:500]}"
        )
    kept = done.stdout if done.stdout_gap < 0 else done.stdout[: done.stdout_gap]
    pieces = [piece for piece in _FILES.split(kept.decode("utf-8", "replace")) if piece.startswith("diff --git ")]
    blocks = [DiffBlock(_path(piece), piece) for piece in pieces[:MOST_FILES] if "\n@@" in piece or "\nBinary" in piece]
    return tuple(blocks) if revisions else (*blocks, *(await _new_files(workspace, place, MOST_FILES - len(blocks))))


async def _last_commit(workspace: str) -> str:
    done = await git(("rev-parse", "--verify", "-q", "HEAD"), workspace)
    if done.exit_code == 0:
        return "HEAD"
    empty = await git(("hash-object", "-t", "tree", "--stdin"), workspace)
    return empty.stdout.decode().strip()


async def _new_files(workspace: str, place: tuple[str, ...], room: int) -> list[DiffBlock]:
    done = await git(("ls-files", "--others", "--exclude-standard", "-z", *place), workspace, seconds=SECONDS)
    names = [name for name in done.stdout.split(b"\0") if name]
    blocks = [_new_file(workspace, os.fsdecode(name)) for name in names[: max(0, min(MOST_NEW, room))]]
    if (more := len(names) - len(blocks)) > 0 and blocks:
        blocks.append(DiffBlock("", f"({more} more new files are not shown)"))
    return blocks


def _new_file(workspace: str, path: str) -> DiffBlock:
    shown = path.encode("utf-8", "replace").decode().replace("\n", "\\n")
    head = f"diff --git a/{shown} b/{shown}\nnew file\n"
    text = _beginning(os.path.join(workspace, path))
    if text is None:
        return DiffBlock(shown, f"{head}Binary files /dev/null and b/{shown} differ\n")
    head += f"--- /dev/null\n+++ b/{shown}\n"
    lines = text.splitlines()
    body = "".join(f"+{line}\n" for line in lines)
    return DiffBlock(shown, f"{head}@@ -0,0 +1,{len(lines)} @@\n{body}" if lines else head)


def _beginning(path: str) -> str | None:
    try:
        with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC), "rb") as file:
            data = file.read(NEW_BYTES)
    except OSError:
        return None
    return None if b"\0" in data else data.decode("utf-8", "replace")


def _path(piece: str) -> str:
    if same := _HEAD.match(piece):
        return same[1]
    return named[1] if (named := _NAME.search(piece)) else piece.partition("\n")[0].removeprefix("diff --git ")
