"""What can hold a command on this machine, found out by trying, once for a process and never at start-up; and the way
from a command that is ordered to run under a profile to one that is held to it."""

import asyncio
import atexit
import contextlib
import hashlib
import importlib.machinery
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Sequence
from functools import cache, lru_cache

from msgspec import Struct, structs

from codewhale.lib.alone import has_others, make_alone
from codewhale.lib.files import atomic_write, private_dir
from codewhale.process.command import Launch, child_env, launch_env
from codewhale.process.itself import own_path, own_places, package, runtime_places, start_folders
from codewhale.process.programs import find_program, how_to_install, own_env, split_loader
from codewhale.process.repository import find_repository
from codewhale.process.sandbox import homes
from codewhale.process.sandbox.bubblewrap import PLACES, TEMPORARY, bubblewrap, probe_command
from codewhale.process.sandbox.gitfiles import read_small, without_places
from codewhale.process.sandbox.landlock import LEAST_ABI, landlock, landlock_abi, probe_landlock
from codewhale.process.sandbox.profiles import (
    NONE,
    PROFILES,
    Confinement,
    GitPlace,
    SandboxPlan,
    Site,
    beneath,
    cache_folders,
    folders_above,
    parse_profile,
)
from codewhale.process.sandbox.seatbelt import PROGRAM, seatbelt, seatbelt_profile
from codewhale.process.sandbox.watch import CommandWatch, watched
from codewhale.protocol.errors import ToolError
from codewhale.protocol.protected import AT_START

BUBBLEWRAP, LANDLOCK, SEATBELT = "bubblewrap", "landlock", "seatbelt"
# The person's choice of one of the mechanisms; without it the first that holds.
CHOICE = "CODEWHALE_SANDBOX"
_SECONDS = 5.0
_RESTRICTED = "/proc/sys/kernel/apparmor_restrict_unprivileged_userns"


class Mechanism(Struct, frozen=True):
    """One that was tried: whether it holds, and what it is or why it does not."""

    name: str
    holds: bool
    detail: str


class Sandbox(Struct, frozen=True):
    """`mechanism` is the one that is used, "" for none; `program` is bubblewrap's path. `fix` says how to get the best
    one, "" where it is there. `brokered`: what Landlock holds can make new names at the top of a workspace."""

    mechanism: str
    tried: tuple[Mechanism, ...]
    program: str = ""
    fix: str = ""
    brokered: bool = False


@cache
def sandbox() -> Sandbox:
    """This machine's, about 10 ms the first time; it starts processes and waits for them."""
    chosen = os.environ.get(CHOICE, "")
    if sys.platform == "darwin":
        tried = [_seatbelt()]
    else:
        program = next((path for path in PLACES if os.access(path, os.X_OK)), "")
        tried = [_bubblewrap(program) if chosen != LANDLOCK else _passed_over(BUBBLEWRAP)]
        wanted = chosen == LANDLOCK or not (tried[0].holds or chosen == BUBBLEWRAP)
        tried.append(_landlock() if wanted else _passed_over(LANDLOCK))
    mechanism = next((one.name for one in tried if one.holds), "")
    fix = _fix() if mechanism not in (BUBBLEWRAP, SEATBELT) and not chosen else ""
    brokered = mechanism == LANDLOCK and not _try(probe_landlock(brokered=True))
    return Sandbox(mechanism, tuple(tried), program if mechanism == BUBBLEWRAP else "", fix, brokered)


def _bubblewrap(program: str) -> Mechanism:
    if not program:
        return Mechanism(BUBBLEWRAP, False, "bubblewrap is not installed (bwrap)")
    problem = _try(probe_command(program))
    return Mechanism(BUBBLEWRAP, not problem, problem or program)


def _landlock() -> Mechanism:
    abi = landlock_abi()
    if abi < LEAST_ABI:
        version = f"version {abi}" if abi else "not in this kernel"
        return Mechanism(LANDLOCK, False, f"Landlock is {version}; {LEAST_ABI} is needed (Linux 6.12)")
    problem = _try(probe_landlock())
    return Mechanism(LANDLOCK, not problem, problem or f"Landlock version {abi} with seccomp")


def _seatbelt() -> Mechanism:
    profile = seatbelt_profile(Confinement(), Site("/", "/", "/private/tmp"))
    problem = _try((PROGRAM, "-p", profile, "/usr/bin/true"))
    return Mechanism(SEATBELT, not problem, problem or PROGRAM)


def _passed_over(name: str) -> Mechanism:
    return Mechanism(name, False, "not tried: another sandbox is used")


def _try(argv: tuple[str, ...]) -> str:
    """Run a command that should succeed; "" or why it did not."""
    import subprocess

    try:
        done = subprocess.run(
            argv, stdin=subprocess.DEVNULL, capture_output=True, cwd="/", timeout=_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"{argv[0]}: {error}"
    complaint = done.stderr.decode("utf-8", "replace").strip().partition("\n")[0]
    return "" if done.returncode == 0 else f"{argv[0]} failed: {complaint or f'exit code {done.returncode}'}"


def _fix() -> str:
    try:
        with open(_RESTRICTED, "rb") as setting:
            restricted = setting.read(1) == b"1"
    except OSError:
        restricted = False
    install = how_to_install("bubblewrap")
    return f"{install}; AppArmor must allow it to make user namespaces ({_RESTRICTED})" if restricted else install


__all__ = ("NONE", "PROFILES", "Confined", "confine", "parse_profile")

_PREFIX = "codewhale-tmp-"
_MOST_FOLDERS = 16
_SUFFIXES = ("", *importlib.machinery.all_suffixes())
_FRESH = 60.0  # seconds in which a folder may not be locked yet


class Confined(Struct, frozen=True):
    """A command ready to start, in `env`: `words` are what must be held around it (see launcher.Hold). `mechanism` is
    "" where nothing holds it. `watch` must be left once it is gone."""

    launch: Launch
    env: dict[str, str]
    words: tuple[str, ...] = ()
    mechanism: str = ""
    watch: CommandWatch | None = None


async def confine(launch: Launch, watch: CommandWatch | None = None) -> Confined:
    """The command as the sandbox starts it; as it is, for the profile none. `watch` is that of an earlier attempt.

    Raises OSError where the program is not there, ValueError for a profile or an allowance that is not known, and
    ToolError not_available where nothing on this machine can hold a command.
    """
    if launch.profile == NONE:
        return Confined(launch, launch_env(launch))
    wanted = parse_profile(launch.profile, launch.allowances)
    seen = runtime_places() if wanted.isolated else _program_folders(launch)
    wanted = structs.replace(wanted, seen=(*wanted.seen, *seen))
    mechanism = await _found()
    if not mechanism.mechanism:
        reasons = "; ".join(one.detail for one in mechanism.tried)
        raise _unavailable(launch, f"This machine has no working sandbox ({reasons}); nothing was run.")
    if wanted.writes and (launch.workspace or launch.cwd) == "/":
        raise _unavailable(launch, "The workspace is the whole machine, which no sandbox can confine; nothing was run.")
    _find(launch)
    site = _site(launch, wanted)
    if wanted.home is not None:
        if not homes.can_narrow(site.workspace):
            raise _unavailable(launch, "Your home folder is in the workspace and cannot be hidden; nothing was run.")
        wanted = structs.replace(wanted, home=homes.shown(launch_env(launch), site.home) if site.home else None)
        if site.home:
            settings = await asyncio.to_thread(_git_settings, site)
            wanted = structs.replace(wanted, seen=(*wanted.seen, os.path.dirname(settings)))
            launch = structs.replace(launch, env={**launch.env, "GIT_CONFIG_GLOBAL": settings})
    if wanted.writes or wanted.folders:
        await asyncio.to_thread(_make_alone, os.stat(site.workspace).st_dev)
    if wanted.writes and watch is None:
        watch = await asyncio.to_thread(watched, site, wanted)
    try:
        site = structs.replace(site, arms=watch.arms if watch is not None else ())
        plan = _plan(mechanism, launch, wanted, site)
    except BaseException:
        if watch is not None:
            watch.leave()
        raise
    if watch is not None:
        watch.held = plan.held
    words = [f"inits={plan.inits}", *plan.broker]
    words += [f"filter={plan.filter.hex()}"] if plan.filter else []
    words += [f"mask={path}" for path in plan.masks]
    words += [f"folder={path}" for path in plan.folders] + [f"pointer={path}" for path in plan.pointers]
    words += [f"lock={site.workspace}"] if plan.folders or plan.pointers else []
    supervised = launch.supervised or wanted.writes
    asked = structs.replace(launch, env={**launch.env, **plan.env}, supervised=supervised)
    env, inner = split_loader(launch_env(asked), site.workspace)
    held = structs.replace(asked, argv=_with_env(mechanism.mechanism, plan.argv, inner))
    return Confined(held, env, tuple(words), mechanism.mechanism, watch)


def _with_env(mechanism: str, argv: tuple[str, ...], inner: dict[str, str]) -> tuple[str, ...]:
    """The command line that sets variables for what is held alone; where that cannot be, they are left out."""
    words: tuple[str, ...] = ()
    if mechanism == BUBBLEWRAP:
        words = tuple(word for name, value in inner.items() for word in ("--setenv", name, value))
    elif mechanism == LANDLOCK:
        words = tuple(f"env={name}={value}" for name, value in inner.items())
    begin = argv.index("--") if words else 0
    return (*argv[:begin], *words, *argv[begin:])


async def held_where_possible(profile: str) -> str:
    """The profile, or none where nothing on this machine can hold a command: for programs of the harness's choice,
    which are hardened besides."""
    return profile if (await _found()).mechanism else NONE


async def _found() -> Sandbox:
    """This machine's sandbox; only the first question takes a thread."""
    return sandbox() if sandbox.cache_info().currsize else await asyncio.to_thread(sandbox)


def _plan(mechanism: Sandbox, launch: Launch, wanted: Confinement, site: Site) -> SandboxPlan:
    if mechanism.mechanism == BUBBLEWRAP:
        return bubblewrap(mechanism.program, launch.argv, wanted, site)
    if mechanism.mechanism == LANDLOCK:
        return landlock(launch.argv, wanted, site, mechanism.brokered)
    return seatbelt(launch.argv, wanted, site)


def _unavailable(launch: Launch, message: str) -> ToolError:
    return ToolError("not_available", message, expected="none", received=launch.profile)


def _find(launch: Launch) -> None:
    """Raise what starting it without a sandbox would."""
    program = launch.argv[0]
    path = os.path.join(launch.cwd, program)
    if "/" not in program:
        path = shutil.which(program, path=launch_env(launch)["PATH"]) or ""
    if not os.path.exists(path):
        raise FileNotFoundError(2, os.strerror(2), program)
    if not os.access(path, os.X_OK) or os.path.isdir(path):
        raise PermissionError(13, os.strerror(13), program)


def _program_folders(launch: Launch) -> list[str]:
    """Where the command's program and those on its PATH stand below a folder for temporary files, which a private one
    will cover: the whole environment that a bin folder belongs to."""
    program = os.path.dirname(launch.argv[0]) if os.path.isabs(launch.argv[0]) else ""
    folders: dict[str, None] = {}
    own = (package(), *own_path()) if launch.own else ()
    for entry in (program, *own, *launch_env(launch)["PATH"].split(os.pathsep)):
        folder = os.path.dirname(entry) if os.path.basename(entry) in ("bin", "sbin") else entry
        real = _covered(folder) if os.path.isabs(folder) else ""
        if real:
            folders[real] = None
    return list(folders)[:_MOST_FOLDERS]


def _covered(folder: str) -> str:
    """What a folder really is, if it stands below one for temporary files; "" else."""
    try:
        state = os.stat(folder)
    except OSError:
        return ""
    real = _real(folder, state.st_dev, state.st_ino)
    below = any(real.startswith(place + "/") for place in TEMPORARY)
    return real if below and os.path.isdir(real) else ""


@lru_cache(maxsize=256)
def _real(folder: str, device: int, inode: int) -> str:
    return os.path.realpath(folder)


@cache
def _make_alone(device: int) -> None:
    """No file that the harness runs from has another name, by which a command could change it: some installers link
    files instead of copying them, and then all of a package."""
    make_alone(package(), device)
    for folder in (path for path in own_path() if path.endswith("-packages")):
        records = (os.path.join(folder, name, "METADATA") for name in os.listdir(folder) if name.endswith(".dist-info"))
        if any(os.path.exists(path) and has_others(path, device) for path in records):
            make_alone(folder, device)


def _own(workspace: str, home: str, wanted: Confinement) -> tuple[str, ...]:
    """What the harness runs from in all that could be written, and where its programs come from beside the
    workspace."""
    beside = (*wanted.folders, *cache_folders(wanted.caches, home, os.environ))
    programs = map(os.path.realpath, filter(os.path.isabs, os.environ.get("PATH", "").split(os.pathsep)))
    places = [place for root in (workspace, *beside) for place in own_places(root) if os.path.exists(place)]
    starts = (os.path.join(folder, name) for folder in start_folders(workspace) for name in AT_START)
    places += [f"{path}{suffix}" for path in starts for suffix in _SUFFIXES]
    return tuple(dict.fromkeys((*places, *(path for path in programs if any(beneath(path, one) for one in beside)))))


def _site(launch: Launch, wanted: Confinement) -> Site:
    if wanted.isolated:
        return Site("/", "/", "", foreign=os.geteuid() == 0 and _of_others(wanted.seen), lasting=launch.supervised)
    workspace = os.path.realpath(launch.workspace or launch.cwd)
    home = os.path.realpath(os.environ.get("HOME") or "/nonexistent")
    state = os.path.realpath(os.environ.get("CODEWHALE_HOME") or os.path.join(home, ".codewhale"))
    return Site(
        workspace=workspace,
        cwd=os.path.realpath(launch.cwd),
        temp=_temporary(workspace),
        home=home if os.path.isdir(home) and home != "/" else "",
        state=state,
        git=_git(workspace),
        foreign=os.geteuid() == 0 and os.stat(workspace).st_uid != 0,
        lasting=launch.supervised,
        own=_own(workspace, home, wanted),
    )


def _of_others(paths: Sequence[str]) -> bool:
    """Whether another user has a say in who reaches one of these places."""
    ways = {way for path in paths for way in (path, *folders_above(path))}
    return any(os.stat(way).st_uid for way in ways if os.path.exists(way))


def _git(workspace: str) -> tuple[GitPlace, ...]:
    repository = find_repository(workspace)
    if repository is None or os.path.realpath(repository.gitdir) != repository.gitdir:
        return ()
    if os.path.realpath(repository.common) == repository.gitdir:
        return (GitPlace(repository.gitdir),)
    return (GitPlace(os.path.realpath(repository.common)), GitPlace(repository.gitdir, linked=True))


def _git_settings(site: Site) -> str:
    """The file of the settings of git that a command may see which sees nothing else of the home."""
    import subprocess

    program, settings = find_program("git", site.workspace), b""
    words = ("config", "--list", "--show-scope", "--includes", "-z")
    if program:
        env = child_env({}, own_env(os.environ, site.workspace))
        with contextlib.suppress(OSError, subprocess.TimeoutExpired):
            settings = subprocess.run(
                (program, *words), stdin=subprocess.DEVNULL, capture_output=True, cwd=site.workspace, env=env,
                timeout=_SECONDS, check=False,
            ).stdout  # fmt: skip
    path, wanted = os.path.join(private_dir(f"{site.temp}.git"), "config"), without_places(settings)
    if read_small(path) != wanted:
        atomic_write(path, wanted)
    return path


def _temporary(workspace: str) -> str:
    """The private folder for temporary files of commands in a workspace."""
    path = os.path.join(temporary_root(), hashlib.sha256(os.fsencode(workspace)).hexdigest()[:12])
    os.makedirs(path, mode=0o700, exist_ok=True)
    return path


@cache
def temporary_root() -> str:
    """One for a run of the program, locked while that lasts and removed at its end."""
    path = os.path.realpath(tempfile.mkdtemp(prefix=_PREFIX))
    lock = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    _lock(lock)
    atexit.register(_remove, path, lock, os.getpid())
    return path


def _lock(folder: int) -> bool:
    import fcntl

    try:
        fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _remove(path: str, lock: int, owner: int) -> None:
    """Remove our own, and what runs that were killed have left: nobody locks it."""
    if os.getpid() != owner:
        return
    os.close(lock)
    shutil.rmtree(path, ignore_errors=True)
    for entry in os.scandir(os.path.dirname(path)):
        if entry.name.startswith(_PREFIX) and entry.is_dir(follow_symlinks=False) and _left_over(entry.path):
            shutil.rmtree(entry.path, ignore_errors=True)


def _left_over(path: str) -> bool:
    try:
        if time.time() - os.stat(path).st_mtime < _FRESH or os.stat(path).st_uid != os.geteuid():
            return False
        folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError:
        return False
    free = _lock(folder)
    os.close(folder)
    return free
