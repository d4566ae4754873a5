"""`codewhale sandbox`: what holds commands on this machine, shown by trying to get out, and a command run in it."""

import asyncio
import os
import shutil
import socket
import tempfile
from collections.abc import Mapping, Sequence

from msgspec import Struct

from codewhale.app.settings import SandboxSettings, open_config
from codewhale.config import home_dir
from codewhale.lib.text import one_line
from codewhale.process.command import child_env
from codewhale.process.confinement import BUBBLEWRAP, NONE, PROFILES, Mechanism, Sandbox, parse_profile, sandbox
from codewhale.process.denial import denial
from codewhale.process.itself import interpreter
from codewhale.process.launch import Completed, Launch, run
from codewhale.process.sandbox.homes import shown
from codewhale.protocol.errors import CodeWhaleError, ToolError

_SECONDS = 20.0


class SandboxError(CodeWhaleError):
    """The command was not run; the text says why."""


class Attempt(Struct, frozen=True):
    """Something tried under a profile, and whether it went as it must; `detail` is what came of it where not."""

    profile: str
    name: str
    ok: bool
    detail: str = ""


class SandboxReport(Struct, frozen=True):
    """What `codewhale sandbox check --json` prints. `mechanism` is "" where nothing holds commands, and `available`
    False; `ok` is False when it does not hold what it should. `limits` are everyday things that do not work in commands
    here, or that are not held. `fix` says how to get the best mechanism, `home` what commands that run unasked see of
    the home."""

    schema_version: int
    available: bool
    ok: bool
    mechanism: str
    profiles: tuple[str, ...]
    network: bool
    tried: tuple[Mechanism, ...]
    attempts: tuple[Attempt, ...]
    fix: str
    limits: tuple[str, ...] = ()
    home: tuple[str, ...] = ()


class _Try(Struct, frozen=True):
    """A shell line that must succeed, or must not. `{out}` is a folder outside the workspace."""

    name: str
    line: str
    works: bool
    profiles: tuple[str, ...] = PROFILES[1:]


_TRIES = (
    _Try("reads the workspace", "cat file", True),
    _Try("writes to its own /tmp", 'echo x > "$TMPDIR/x" && cat "$TMPDIR/x"', True),
    _Try("writes in the workspace", "echo x > folder/x", True, PROFILES[2:]),
    _Try("writes in the workspace", "echo x > folder/x", False, PROFILES[1:2]),
    _Try("writes outside the workspace", "echo x > {out}/x", False),
    _Try("changes git's settings", "echo x >> .git/config", False),
    _Try("adds a git hook", "echo x > .git/hooks/pre-commit", False),
    _Try("adds editor tasks", "mkdir -p .vscode && echo x > .vscode/tasks.json", False),
    _Try("stops CodeWhale", "kill -0 {pid}", False),
    _Try("changes the kernel's settings", ": >> /proc/sys/kernel/core_pattern", False),
)


# What commands do every day, tried where the workspace is open: what does not work is a limit, and no fault.
_EVERYDAY = (
    _Try("make a new file at the top of the workspace", "echo x > new", True),
    _Try("make a new folder at the top of the workspace (node_modules, target, .venv)", "mkdir node_modules", True),
    _Try("change the mode or the times of a file", "chmod 755 folder && touch -d @1 file", True),
    _Try("commit with git", "echo x > .git/index && mkdir -p .git/objects/00", True),
)


async def check_sandbox() -> SandboxReport:
    """Find the mechanism and try it with a few commands in a scratch folder; a few seconds at most."""
    found = await asyncio.to_thread(sandbox)
    attempts, limits = await _attempts() if found.mechanism else ((), ())
    return _report(found, attempts, limits)


async def run_in_sandbox(launch: Launch) -> int:
    """Run a command to its end; its exit code, 128 and the number of the signal that ended it. Raises OSError where it
    cannot be started, SandboxError where nothing can hold it."""
    try:
        done = await run(launch)
    except ToolError as error:
        raise SandboxError(error.message) from error
    code = 1 if done.exit_code is None else done.exit_code
    return 128 - code if code < 0 else code


def configured(workspace: str, environ: Mapping[str, str]) -> SandboxSettings:
    """What is configured of the sandbox for a workspace. Raises ConfigError."""
    return open_config(home_dir(environ), workspace, environ, {}).section("sandbox", SandboxSettings)


def own_allowances(settings: SandboxSettings, profile: str) -> tuple[str, ...]:
    """The allowances and narrowings that a command under a profile has by configuration."""
    if profile != PROFILES[2]:
        return settings.less if profile != NONE else ()
    network = {"on": ("network",), "off": ("offline",)}.get(settings.network, ())
    return (*network, *settings.more, *settings.less)


def told(settings: SandboxSettings) -> list[str]:
    """The settings in lines for people."""
    network = {"off": "never", "ask": "after approval; offered when a command needed it", "on": "always"}
    lines = [f"network: {settings.network} ({network[settings.network]})"]
    for name in ("writable", "caches", "hidden"):
        if found := getattr(settings, name):
            lines.append(f"{name}: {', '.join(found)}")
    if settings.hidden and sandbox().mechanism not in ("", BUBBLEWRAP):
        lines.append(f"hidden places are visible: {sandbox().mechanism} cannot hide them")
    return lines


def wrong_order(profile: str, allowances: Sequence[str]) -> str:
    """What is wrong with a profile and its allowances, "" for nothing."""
    if profile == NONE and not allowances:
        return ""
    try:
        parse_profile(profile, allowances)
    except ValueError as error:
        return str(error)
    return ""


def _report(found: Sandbox, attempts: tuple[Attempt, ...], limits: tuple[str, ...]) -> SandboxReport:
    return SandboxReport(
        schema_version=1,
        available=bool(found.mechanism),
        ok=bool(found.mechanism) and all(attempt.ok for attempt in attempts),
        mechanism=found.mechanism,
        profiles=PROFILES if found.mechanism else PROFILES[:1],
        network=False,
        tried=found.tried,
        attempts=attempts,
        fix=found.fix,
        limits=limits,
        home=shown(child_env({}), os.path.realpath(os.path.expanduser("~"))) if found.mechanism else (),
    )


async def _attempts() -> tuple[tuple[Attempt, ...], tuple[str, ...]]:
    scratch = os.path.realpath(tempfile.mkdtemp(prefix="codewhale-check-"))
    try:
        workspace, out = os.path.join(scratch, "workspace"), os.path.join(scratch, "out")
        for folder in ("folder", ".git/hooks", ".git/objects", ".git/refs"):
            os.makedirs(os.path.join(workspace, folder))
        os.mkdir(out)
        for name, text in (("file", "x\n"), (".git/config", ""), (".git/HEAD", "ref: refs/heads/main\n")):
            with open(os.path.join(workspace, name), "w", encoding="utf-8") as file:
                file.write(text)
        work = [_attempt(row, profile, workspace, out) for row in _TRIES for profile in row.profiles]
        tries = tuple(await asyncio.gather(*work, *(_network(profile, workspace) for profile in PROFILES[1:])))
        everyday = [await _attempt(row, PROFILES[2], workspace, out) for row in _EVERYDAY]
        limits = [f"commands cannot {row.name} ({row.detail})" for row in everyday if not row.ok]
        return tries, (*limits, *await _abstract(workspace))
    finally:
        await asyncio.to_thread(shutil.rmtree, scratch, ignore_errors=True)


async def _attempt(row: _Try, profile: str, workspace: str, out: str) -> Attempt:
    done = await _run(("/bin/sh", "-c", row.line.format(out=out, pid=os.getpid())), profile, workspace)
    worked = done.exit_code == 0
    name = row.name if row.works else f"never {row.name}"
    said = one_line((done.stderr or done.stdout).decode("utf-8", "replace"), 160)
    return Attempt(profile, name, worked is row.works, "" if worked is row.works else said or f"exit {done.exit_code}")


async def _abstract(workspace: str) -> tuple[str, ...]:
    """A socket of this process's by an abstract name, called by a command that has the network."""
    name = f"codewhale-check-{os.getpid()}"
    with socket.socket(socket.AF_UNIX) as listening:
        try:
            listening.bind(f"\0{name}")
        except OSError:
            return ()
        listening.listen()
        line = f"import socket; socket.socket(socket.AF_UNIX).connect(chr(0) + {name!r})"
        reached = (
            await _run((interpreter(), "-I", "-S", "-c", line), PROFILES[2], workspace, ("network",))
        ).exit_code == 0
    return ("commands with network access can reach abstract sockets of this machine",) if reached else ()


async def _network(profile: str, workspace: str) -> Attempt:
    """An address of documentation (RFC 5737) is unreachable at once where there is no network; nothing is sent."""
    line = "exec 3<>/dev/udp/192.0.2.1/9"
    done = await _run(("/bin/bash", "-c", line), profile, workspace)
    said = (done.stderr + done.stdout).decode("utf-8", "replace")
    refused = done.exit_code != 0 and denial(profile, (), done.exit_code, said) is not None
    return Attempt(profile, "never reaches the network", refused, "" if refused else one_line(said, 160) or "it does")


async def _run(words: tuple[str, ...], profile: str, workspace: str, allowances: tuple[str, ...] = ()) -> Completed:
    launch = Launch(words, workspace, profile, allowances=allowances, workspace=workspace, seconds=_SECONDS)
    return await run(launch)
