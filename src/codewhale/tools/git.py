"""Looking at a git repository: git_status, git_diff, git_log, git_show, git_blame. system/git runs each command so that
nothing the repository says can start a program; here are arguments, shapes and limits."""

import os
import re
import shlex
import time
from collections.abc import Sequence
from typing import Annotated, Any

import msgspec
from msgspec import Struct

from codewhale.lib.text import one_line, sanitise
from codewhale.process.launch import Completed
from codewhale.process.repository import find_root
from codewhale.protocol.blocks import DiffBlock, TerminalBlock
from codewhale.protocol.errors import Look, NextCall, ToolError
from codewhale.protocol.tools import CallContext, Effect, PathSubject, Subject, ToolResult
from codewhale.tools.base import Args, Doc, tool
from codewhale.workspace.files.beside import walked
from codewhale.workspace.files.errors import locate, missing
from codewhale.workspace.git import git

MOST_CHARS = 40_000
SECONDS = 30.0
_MOST_NAMES = 30
_LINE_NEAR = 2000  # a cut goes back at most so far to end a line
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
_ONLY_LINES = re.compile(r"has only (\d+) line")
_EMPTY_DIFF = re.compile(r"^diff --git .*\n(?=diff --git |\Z)", re.MULTILINE)  # touched, not changed
_UNCOMMITTED = re.compile(r"^0{8,64} ", re.MULTILINE)
_PATH = Doc("File or folder; the whole workspace when absent.", min_length=1)
_REV = Doc("Commit, branch, tag or an expression such as HEAD~2.", min_length=1, max_length=500)
_UNIFIED = Doc("Lines of context in the diff; 3 when absent.", ge=0, le=50)
# What a diff is always asked for: the same prefixes whatever is configured, paths from the workspace.
_PREFIXES = ("--src-prefix=a/", "--dst-prefix=b/", "--relative", "--submodule=short")
_LOG_FORMAT = "commit %H%nAuthor: %an <%ae>%nDate: %ad%nSubject: %s%n"


class GitStatus(Args, frozen=True):
    """Arguments of git_status."""

    path: Annotated[str, _PATH] | None = None


class GitDiff(Args, frozen=True):
    """Arguments of git_diff."""

    path: Annotated[str, _PATH] | None = None
    cached: Annotated[bool, Doc("Show what is staged instead of what is not.")] | None = None
    unified: Annotated[int, _UNIFIED] | None = None


class GitLog(Args, frozen=True):
    """Arguments of git_log."""

    path: Annotated[str, _PATH] | None = None
    max_count: Annotated[int, Doc("Most commits to list; 20 when absent.", ge=1, le=200)] | None = None
    author: Annotated[str, Doc("Part of the author's name or address.", min_length=1, max_length=200)] | None = None
    since: Annotated[str, Doc("Only later commits: 2026-01-31, 2 weeks ago.", min_length=1, max_length=100)] | None = (
        None
    )
    until: Annotated[str, Doc("Only earlier commits.", min_length=1, max_length=100)] | None = None


class GitShow(Args, frozen=True):
    """Arguments of git_show."""

    rev: Annotated[str, _REV]
    path: Annotated[str, _PATH] | None = None
    patch: Annotated[bool, Doc("Show the diff; true when absent.")] | None = None
    stat: Annotated[bool, Doc("Show the changed files with line counts; true when absent.")] | None = None
    unified: Annotated[int, _UNIFIED] | None = None


class GitBlame(Args, frozen=True):
    """Arguments of git_blame."""

    path: Annotated[str, Doc("File to blame.", min_length=1)]
    rev: Annotated[str, _REV] | None = None
    start_line: Annotated[int, Doc("First line; 1 when absent.", ge=1)] | None = None
    max_lines: Annotated[int, Doc("Most lines; 200 when absent.", ge=1, le=2000)] | None = None
    porcelain: Annotated[bool, Doc("Machine-readable output.")] | None = None


class _Command(Struct, frozen=True):
    """A command as the result names it: `words` after "git", what it is limited to, and options not worth naming."""

    workspace: str
    words: tuple[str, ...]
    pathspec: str | None = None
    quiet: tuple[str, ...] = ()

    @property
    def limits(self) -> tuple[str, ...]:
        """The path to limit the command to, "." in a workspace that is only a part of its repository."""
        if self.pathspec is not None:
            return ("--", self.pathspec)
        if self.words[0] == "show":
            return ("--",)  # what stands before is a revision, never a file of that name
        return () if find_root(self.workspace) == os.path.realpath(self.workspace) else ("--", ".")

    @property
    def shown(self) -> str:
        """The command as a person would type it."""
        return sanitise(shlex.join(("git", *self.words, *self.limits)))


def _subjects(args: Any) -> tuple[Subject, ...]:
    return (PathSubject(args.path),) if args.path else ()


class GitTools:
    """Read-only git; holds nothing between calls."""

    @tool("git_status", effects={Effect.READS}, subjects=_subjects, parallel=True)
    async def git_status(self, args: GitStatus, call: CallContext) -> ToolResult:
        """Show the branch and the changed, staged and untracked files, one per line with two status letters (git's
        porcelain format).
        """
        args, call = _elsewhere(args, call)
        path = await _path(args, "git_status", call)
        whole = find_root(call.workspace) == os.path.realpath(call.workspace)
        form = "--porcelain=v1" if whole else "--short"  # only the short form names paths from a subfolder
        command = _Command(call.workspace, ("status", form, "--branch"), path, ("--untracked-files=normal",))
        done = await _run(command)
        return _result(command, done, sanitise(_text(done)))

    @tool("git_diff", effects={Effect.READS}, subjects=_subjects, parallel=True)
    async def git_diff(self, args: GitDiff, call: CallContext) -> ToolResult:
        """Show uncommitted changes of tracked files as a diff: unstaged ones, or with cached the staged ones. Untracked
        files are named after the diff.
        """
        args, call = _elsewhere(args, call)
        path = await _path(args, "git_diff", call)
        words = ("diff", f"--unified={_or(args.unified, 3)}", *(("--cached",) if args.cached else ()))
        command = _Command(call.workspace, words, path, _PREFIXES)
        done = await _run(command)
        diff = _EMPTY_DIFF.sub("", _text(done))
        kind = "staged" if args.cached else "unstaged"
        text, note = diff or f"No {kind} changes.\n", "" if args.cached else await _untracked(command)
        display = (DiffBlock(path or ".", diff[:MOST_CHARS]),) if diff else ()
        return _result(command, done, text, note, display)

    @tool("git_log", effects={Effect.READS}, subjects=_subjects, parallel=True)
    async def git_log(self, args: GitLog, call: CallContext) -> ToolResult:
        """List commits, newest first, each with its id, author, date and subject; only those that touch path, where it
        is given.
        """
        args, call = _elsewhere(args, call)
        path = await _path(args, "git_log", call)
        words = ["log", f"--max-count={_or(args.max_count, 20)}"]
        if args.author is not None:
            words += [f"--author={args.author}", "--fixed-strings", "--regexp-ignore-case"]
        for option in ("since", "until"):
            value = getattr(args, option)
            if value is not None:
                await _check_date(args, option, value, call.workspace)
                words.append(f"--{option}={value}")
        quiet = ("--date=iso-strict", f"--format={_LOG_FORMAT}")
        command = _Command(call.workspace, tuple(words), path, quiet)
        done = await _run(command)
        if done.exit_code == 128 and b"does not have any commits yet" in done.stderr:
            return _result(command, msgspec.structs.replace(done, exit_code=0), "There are no commits yet.\n")
        return _result(command, done, sanitise(_text(done)) or "No commits match.\n")

    @tool("git_show", effects={Effect.READS}, subjects=_subjects, parallel=True)
    async def git_show(self, args: GitShow, call: CallContext) -> ToolResult:
        """Show one commit: message, changed files with line counts, and the diff. A file as it was: rev
        "HEAD~1:path/to/file".
        """
        _check_rev(args.rev, Look("git_log", {"max_count": 20}))
        args, call = _elsewhere(args, call)
        path = await _path(args, "git_show", call)
        patch = args.patch is None or args.patch
        flags = (
            *(("--stat",) if args.stat is None or args.stat else ()),
            *(("--patch", f"--unified={_or(args.unified, 3)}") if patch else ()),
        )
        words = ("show", *(flags or ("--no-patch",)), "--end-of-options", args.rev)
        command = _Command(call.workspace, words, path, ("--date=iso-strict", "--format=medium", *_PREFIXES))
        done = await _run(command)
        if b"\0" in done.stdout[:8192]:
            return _result(command, done, f"{sanitise(args.rev)} is binary, {done.stdout_total} bytes.\n")
        return _result(command, done, _text(done) or f"{sanitise(args.rev)} changes nothing in {path}.\n")

    @tool("git_blame", effects={Effect.READS}, subjects=_subjects, parallel=True)
    async def git_blame(self, args: GitBlame, call: CallContext) -> ToolResult:
        """Show which commit last changed each line of a file. Without rev the file is taken as it is on disk, and lines
        not committed yet are told as such.
        """
        if args.rev is not None:
            _check_rev(args.rev, _again("git_blame", args, rev=None))
        args, call = _elsewhere(args, call)
        path = await _path(args, "git_blame", call)
        if path is None or os.path.isdir(os.path.join(call.workspace, path)):
            raise _not_a_file(args)
        start, count = _or(args.start_line, 1), _or(args.max_lines, 200)
        command = _blame(args, call.workspace, path, start, count)
        done = await _run(command)
        note = ""
        past_end = _ONLY_LINES.search(done.stderr.decode("utf-8", "replace")) if done.exit_code else None
        if past_end is not None:
            last = int(past_end.group(1))
            if last == 0:
                return _result(command, msgspec.structs.replace(done, exit_code=0), f"{one_line(path)} is empty.\n")
            note = f"start_line {start} is past the end: the file has {last} lines, the last of which is shown."
            command = _blame(args, call.workspace, path, last, 1)
            done = await _run(command)
        text = _text(done)
        return _result(command, done, text, _blame_note(note, text, start, count))


def _blame(args: GitBlame, workspace: str, path: str, start: int, count: int) -> _Command:
    form = ("--porcelain",) if args.porcelain else ("--date=short",)
    rev = () if args.rev is None else (args.rev,)
    return _Command(workspace, ("blame", *form, "-L", f"{start},+{count}", *rev), path)


def _blame_note(note: str, text: str, start: int, count: int) -> str:
    uncommitted = len(_UNCOMMITTED.findall(text))
    notes = [note] if note else []
    if uncommitted:
        notes.append(f"{uncommitted} of these lines are not committed yet (id 0000…).")
    if not note and text.count("\n") == count:
        notes.append(f"The file may go on: start_line {start + count} shows more.")
    return "".join(f"[{line}]\n" for line in notes)


def _elsewhere(args: Any, call: CallContext) -> tuple[Any, CallContext]:
    """A call about what lies outside the workspace, as one of the folder that it lies in."""
    top, below = walked(call.workspace, args.path, call.allowances)
    if top == call.workspace:
        return args, call
    place = os.path.normpath(os.path.join(top, below or "."))
    folder, name = (place, None) if os.path.isdir(place) else os.path.split(place)
    return msgspec.structs.replace(args, path=name), msgspec.structs.replace(call, workspace=folder)


async def _path(args: Any, name: str, call: CallContext) -> str | None:
    """The path argument beneath the workspace, None when absent. One that is gone must be known to git."""
    if args.path is None:
        return None
    if find_root(call.workspace) is None:
        raise _not_a_repository(call.workspace)
    again = None if name == "git_blame" else _again(name, args, path=None)
    path = locate(call.workspace, args.path, again, must_exist=False)
    if not os.path.lexists(os.path.join(call.workspace, path)):
        for query in (("ls-files", "-z", "--", path), ("log", "--max-count=1", "--format=%H", "--all", "--", path)):
            if (await git(query, call.workspace, seconds=SECONDS)).stdout:
                return path
        raise missing(args.path)
    return None if path == "." else path


async def _run(command: _Command) -> Completed:
    if find_root(command.workspace) is None:
        raise _not_a_repository(command.workspace)
    name, *rest = command.words
    done = await git((name, *command.quiet, *rest, *command.limits), command.workspace, seconds=SECONDS)
    if done.timed_out:
        raise ToolError(
            "timeout",
            f"`{command.shown}` took longer than {SECONDS:.0f} seconds. Narrow it with path.",
            expected="a narrower path",
        )
    return done


async def _untracked(command: _Command) -> str:
    args = ("ls-files", "--others", "--exclude-standard", "-z", *(command.limits or ("--", ".")))
    done = await git(args, command.workspace, seconds=SECONDS)
    names = [one_line(name) for name in done.stdout.decode("utf-8", "replace").split("\0") if name]
    if not names:
        return ""
    more = f"\n  … {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    return "Untracked files, not part of the diff:\n  " + "\n  ".join(names[:_MOST_NAMES]) + more + "\n"


def _text(done: Completed) -> str:
    """Output as text in which control characters are shown as escapes."""
    kept = done.stdout if done.stdout_gap < 0 else done.stdout[: done.stdout_gap]
    return _CONTROL.sub(lambda m: f"\\x{ord(m.group()):02x}", kept.decode("utf-8", "replace"))


def _result(
    command: _Command, done: Completed, text: str, note: str = "", display: Sequence[DiffBlock] = ()
) -> ToolResult:
    """A result of at most 40,000 characters of output, then notes; failing ones tell what git said."""
    metadata: dict[str, Any] = {
        "command": command.shown,
        "working_dir": command.workspace,
        "pathspec": command.pathspec,
        "truncated": False,
        "omitted_chars": 0,
    }
    if done.exit_code != 0:
        said = sanitise(done.stderr.decode("utf-8", "replace").strip())[:2000]
        content = f"`{command.shown}` failed with exit code {done.exit_code}: {said}\n{_advice(command, said)}"
        failure = {"exit_code": done.exit_code, "stderr": said}
        terminal = TerminalBlock(command.shown, said, done.exit_code)
        return ToolResult(content=content, ok=False, display=(terminal,), metadata={**metadata, **failure})
    kept = text
    if len(text) > MOST_CHARS:
        cut = text.rfind("\n", MOST_CHARS - _LINE_NEAR, MOST_CHARS) + 1
        kept = text[: cut or MOST_CHARS]
    beyond = 0 if done.stdout_gap < 0 else done.stdout_total - done.stdout_gap
    omitted = len(text) - len(kept) + beyond
    if omitted:
        note += f"[Cut: {omitted} characters more. Narrow it with path{_narrower(command)} to see them.]\n"
        metadata.update(truncated=True, omitted_chars=omitted)
    blocks = tuple(display) or (TerminalBlock(command.shown, kept, done.exit_code),)
    gap = "\n" if note and kept and not kept.endswith("\n") else ""
    return ToolResult(content=kept + gap + note, display=blocks, metadata=metadata)


def _narrower(command: _Command) -> str:
    return {"log": ", since or max_count", "blame": ", start_line or max_lines"}.get(command.words[0], "")


def _advice(command: _Command, said: str) -> str:
    if command.words[0] == "blame" and ("no such path" in said or "no such ref" in said):
        return "The file is in no commit there, so no line has an author; git_status {} shows whether it is untracked."
    if command.words[0] in ("show", "blame"):
        return "git_log {} lists the commits there are."
    return "git_status {} shows the state of the repository."


def _check_rev(rev: str, fix: NextCall | Look) -> None:
    if rev.startswith("-") or not rev.isprintable() or any(char.isspace() for char in rev):
        raise ToolError(
            "invalid_input",
            "rev must name a commit: it may not begin with - and holds neither blanks nor control characters.",
            field="rev",
            expected="a commit id, branch, tag, or an expression such as HEAD~2",
            received=one_line(rev),
            fix=fix,
        )


async def _check_date(args: GitLog, option: str, value: str, workspace: str) -> None:
    """Git reads a date it does not understand as now, which would answer with no commits or with all of them."""
    if find_root(workspace) is None:
        raise _not_a_repository(workspace)
    done = await git(("rev-parse", f"--{option}={value}"), workspace, seconds=SECONDS)
    stamp = done.stdout.decode("ascii", "replace").partition("=")[2].strip()
    read_as_now = stamp.isdigit() and abs(int(stamp) - time.time()) < 3
    if any(char.isdigit() for char in value) or "now" in value.lower() or not read_as_now:
        return
    raise ToolError(
        "invalid_input",
        f"{option} is not a date that git understands.",
        field=option,
        expected="a date such as 2026-01-31, or 2 weeks ago",
        received=one_line(value),
        fix=_again("git_log", args, **{option: None}),
    )


def _not_a_file(args: GitBlame) -> ToolError:
    return ToolError(
        "invalid_input",
        f"path {one_line(args.path)!r} is a folder; blame needs one file.",
        field="path",
        expected="a file",
        received=one_line(args.path),
        fix=Look("list_dir", {"path": args.path}),
    )


def _not_a_repository(workspace: str) -> ToolError:
    return ToolError(
        "not_available",
        f"The workspace {workspace} is not inside a git repository, so there is no history to look at.",
        expected="a workspace inside a git repository",
    )


def _again(name: str, args: Args, **changes: Any) -> NextCall:
    """The same call with some arguments changed, or dropped where the change is None."""
    arguments = {**msgspec.to_builtins(args), **changes}
    return NextCall(name, {key: value for key, value in arguments.items() if value is not None})


def _or(value: int | None, default: int) -> int:
    return default if value is None else value
