"""Landlock and seccomp in the place of bubblewrap, where no namespaces are to be had.

Landlock can open a hierarchy but not close a part of it again. So the workspace itself is not opened, only what stands
in it when the command begins and is not protected: nothing new can be made at its top level, and git cannot commit.
"""

import os
import sys
from collections.abc import Sequence

from codewhale.protocol.protected import PROTECTED_FILES, PROTECTED_FOLDERS, RULE_FILES
from codewhale.sandbox.caches import cache_folders, private_caches
from codewhale.sandbox.profiles import Confinement, Plan, Site, beneath
from codewhale.sandbox.seccomp import Filter, build_filter, machine_known

# From this version on Linux's Landlock holds truncation (3), devices (5), signals and abstract sockets (6).
LEAST_ABI = 6
_CREATE_RULESET, _VERSION = 444, 1
_ENTER = os.path.join(os.path.dirname(os.path.realpath(__file__)), "enter.py")
_DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty")
# Of other devices nothing may be read either: terminals, keyboards, microphones and disks are among them.
_READABLE = ("/dev/ptmx", "/dev/shm", "/dev/mqueue", "/dev/hugepages")
OPEN_BY_LANDLOCK = "what stands in the workspace already (nothing new at its top, and no change of modes or times)"
_KEPT = sorted({name.lower() for name in (".git", *PROTECTED_FOLDERS, *PROTECTED_FILES, *RULE_FILES)})


def landlock_abi() -> int:
    """The version of Landlock that this kernel offers, 0 for none."""
    if sys.platform != "linux" or not machine_known():
        return 0
    import ctypes

    version = ctypes.CDLL(None).syscall(ctypes.c_long(_CREATE_RULESET), None, ctypes.c_size_t(0), _VERSION)
    return max(0, int(version))


def landlock(argv: Sequence[str], confinement: Confinement, site: Site) -> Plan:
    """The plan for one command. Temporary files go to `site.temp` itself: nothing can lie over /tmp here."""
    words = [*(f"file={path}" for path in _DEVICES), *(f"read={path}" for path in _READABLE)]
    words += [f"folder={path}" for path in (site.temp, *confinement.folders)]
    words += [f"folder={path}" for path in cache_folders(confinement.caches, site.home, os.environ)]
    if confinement.writes and not beneath(site.home or "/", site.workspace):
        words += [f"tops={site.workspace}", *(f"except={name}" for name in _KEPT)]
    words += [f"own={path}" for path in site.own]
    words.append(f"filter={build_filter(Filter(bare=True, network=confinement.network)).hex()}")
    if site.foreign:
        words.append("rights=1")
    tops = os.listdir(site.workspace) if confinement.writes else ()
    temp = {"TMPDIR": site.temp, "TMP": site.temp, "TEMP": site.temp}
    return Plan(
        argv=(os.path.realpath(sys.executable), "-I", "-S", _ENTER, *words, "--", *argv),
        env={**temp, **private_caches(confinement.caches, os.path.join(site.temp, ".cache"))},
        held=tuple(os.path.join(site.workspace, name) for name in tops if name.lower() in _KEPT),
    )


def scoped(argv: Sequence[str]) -> tuple[str, ...]:
    """The command so that it reaches abstract sockets of its own processes alone; as it is where the kernel cannot."""
    return (
        (os.path.realpath(sys.executable), "-I", "-S", _ENTER, "scope", *argv)
        if landlock_abi() >= LEAST_ABI
        else tuple(argv)
    )


def probe_landlock() -> tuple[str, ...]:
    """A command that succeeds where every part of it is to be had."""
    return landlock(("/bin/true",), Confinement(), Site("/", "/", "/nonexistent")).argv
