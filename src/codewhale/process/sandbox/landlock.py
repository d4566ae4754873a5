"""Landlock and seccomp in the place of bubblewrap, where no namespaces are to be had.

Landlock can open a hierarchy but not close a part of it again. So the workspace itself is not opened, only what stands
in it when the command begins and is not protected; and its git directory likewise. What is new there, the launcher's
broker makes; where the kernel asks none, nothing new can be made at the top level, and git cannot commit.
"""

import os
import sys
from collections.abc import Sequence

from codewhale.process.sandbox.caches import cache_folders, private_caches
from codewhale.process.sandbox.profiles import Confinement, Plan, Site, beneath
from codewhale.process.sandbox.seccomp import Filter, asked_calls, build_filter, machine_known
from codewhale.protocol.protected import GIT_FILES, GIT_FOLDERS, PROTECTED_FILES, PROTECTED_FOLDERS, RULE_FILES

# From this version on Linux's Landlock holds truncation (3), devices (5), signals and abstract sockets (6).
LEAST_ABI = 6
_CREATE_RULESET, _VERSION = 444, 1
_HERE = os.path.dirname(os.path.realpath(__file__))
_ENTER, _BROKER = os.path.join(_HERE, "enter.py"), os.path.join(_HERE, "broker.py")
_CALLERS = os.path.join(os.path.dirname(_HERE), "callers.py")
_RIGHTS = 0b1010  # CAP_DAC_OVERRIDE and CAP_FOWNER
_DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty")
# Of other devices nothing may be read either: terminals, keyboards, microphones and disks are among them.
_READABLE = ("/dev/ptmx", "/dev/shm", "/dev/mqueue", "/dev/hugepages")
_KEPT = sorted({name.lower() for name in (".git", *PROTECTED_FOLDERS, *PROTECTED_FILES, *RULE_FILES)})
_KEPT_OF_GIT = sorted((*GIT_FILES, *GIT_FOLDERS, "modules", "worktrees"))


def landlock_abi() -> int:
    """The version of Landlock that this kernel offers, 0 for none."""
    if sys.platform != "linux" or not machine_known():
        return 0
    import ctypes

    version = ctypes.CDLL(None).syscall(ctypes.c_long(_CREATE_RULESET), None, ctypes.c_size_t(0), _VERSION)
    return max(0, int(version))


def landlock(argv: Sequence[str], confinement: Confinement, site: Site, brokered: bool = False) -> Plan:
    """The plan for one command. Temporary files go to `site.temp` itself: nothing can lie over /tmp here."""
    words = [*(f"file={path}" for path in _DEVICES), *(f"read={path}" for path in _READABLE)]
    words += [f"folder={path}" for path in (site.temp, *confinement.folders)]
    words += [f"folder={path}" for path in cache_folders(confinement.caches, site.home, os.environ)]
    tops = _tops(confinement, site, brokered)
    for top, names in tops.items():
        words += [*(f"except={name}" for name in names), f"tops={top}"]
    words += [f"own={path}" for path in site.own]
    words.append(f"filter={build_filter(Filter(bare=True, network=confinement.network)).hex()}")
    if site.foreign:
        words.append("rights=1")
    if brokered and tops:
        asking = build_filter(Filter(bare=True, network=confinement.network, asks=True)).hex()
        words += ["listener={listener}", f"notify={asked_calls()['seccomp']}:{asking}"]
    temp = {"TMPDIR": site.temp, "TMP": site.temp, "TEMP": site.temp}
    return Plan(
        argv=(os.path.realpath(sys.executable), "-I", "-S", _ENTER, *words, "--", *argv),
        env={**temp, **private_caches(confinement.caches, os.path.join(site.temp, ".cache"))},
        broker=_broker(tops, site) if brokered and tops else (),
        held=tuple(
            path
            for top, names in tops.items()
            for name in os.listdir(top)
            if name.lower() in names and (path := os.path.join(top, name)) not in tops
        ),
    )


def _tops(confinement: Confinement, site: Site, brokered: bool) -> dict[str, list[str]]:
    """The folders whose entries are open, each with the names in it that are not."""
    if not confinement.writes or beneath(site.home or "/", site.workspace):
        return {}
    git = os.path.join(site.workspace, ".git")
    inside = brokered and any(place.path == git and not place.linked for place in site.git)
    return {site.workspace: _KEPT, **({git: _KEPT_OF_GIT} if inside else {})}


def _broker(tops: dict[str, list[str]], site: Site) -> tuple[str, ...]:
    """The broker with its words: what the harness runs from, and the way to it, stays as it is too."""
    calls = ",".join(f"{name}:{number}" for name, number in asked_calls().items() if name != "seccomp")
    words = [f"calls={calls}", f"keep={_RIGHTS if site.foreign else 0}"]
    for top, names in tops.items():
        own = [os.path.relpath(path, top).partition("/")[0].lower() for path in site.own if beneath(path, top)]
        words += [f"tops={top}", *(f"hold={name}" for name in (*names, *own))]
    return (f"broker={_CALLERS}", f"broker={_BROKER}", *(f"serve={word}" for word in words))


def scoped(argv: Sequence[str]) -> tuple[str, ...]:
    """The command so that it reaches abstract sockets of its own processes alone; as it is where the kernel cannot."""
    return (
        (os.path.realpath(sys.executable), "-I", "-S", _ENTER, "scope", *argv)
        if landlock_abi() >= LEAST_ABI
        else tuple(argv)
    )


def probe_landlock(brokered: bool = False) -> tuple[str, ...]:
    """A command that succeeds where every part of it is to be had."""
    argv = landlock(("/bin/true",), Confinement(), Site("/", "/", "/nonexistent")).argv
    if not brokered:
        return argv
    asking = build_filter(Filter(bare=True, asks=True)).hex()
    return (*argv[:4], "listener=try", f"notify={asked_calls()['seccomp']}:{asking}", *argv[4:])
