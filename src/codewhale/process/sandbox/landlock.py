"""Landlock and seccomp in the place of bubblewrap, where no namespaces are to be had; the seccomp filter of both.

Landlock can open a hierarchy but not close a part of it again. So not the workspace is opened, but what stands in it
when the command begins and is not protected; its git directory likewise. What is new there, the launcher's broker
makes; where the kernel asks none, nothing new can be made at the top level, and git cannot commit.
"""

import os
import platform
import struct
import sys
from collections.abc import Iterator, Sequence
from functools import cache

from msgspec import Struct

from codewhale.process.sandbox.profiles import Confinement, SandboxPlan, Site, beneath, cache_folders, private_caches
from codewhale.protocol.protected import GIT_FILES, GIT_FOLDERS, PROTECTED_FILES, PROTECTED_FOLDERS, RULE_FILES

_Code = list[tuple[int, int, int, int]]
EPERM, ENOSYS, ENOTSUP, EAFNOSUPPORT = 1, 38, 95, 97
AF_UNIX, AF_INET, AF_INET6, AF_NETLINK = 1, 2, 10, 16
_NOTIFY = 0x7FC00000
_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_ALLOW, _ERRNO = 0x7FFF0000, 0x00050000
_NUMBER, _ARCH, _ARGUMENTS = 0, 4, 16
_X32 = 0x40000000
_NAMESPACES = 0x7E020080  # CLONE_NEW*, of unshare; clone's lowest byte is a signal instead of CLONE_NEWTIME
_SET_ID = 0o6000
_TIOCSTI, _TIOCLINUX = 0x5412, 0x541C

# audit architecture, then system call numbers, from the kernel's tables (arch/x86/entry/syscalls/syscall_64.tbl and
# include/uapi/asm-generic/unistd.h). From 424 on all architectures have the same.
_SAME = {
    "io_uring_setup": 425, "io_uring_enter": 426, "io_uring_register": 427, "open_tree": 428, "move_mount": 429,
    "fsopen": 430, "fsconfig": 431, "fsmount": 432, "fspick": 433, "clone3": 435, "openat2": 437, "pidfd_getfd": 438,
    "process_madvise": 440, "mount_setattr": 442, "quotactl_fd": 443, "fchmodat2": 452, "setxattrat": 463,
    "removexattrat": 466, "open_tree_attr": 467, "file_setattr": 469,
}  # fmt: skip
_X86_64 = {
    "open": 2, "ioctl": 16, "shmget": 29, "shmat": 30, "shmctl": 31, "socket": 41, "clone": 56, "semget": 64,
    "semop": 65, "semctl": 66, "msgget": 68, "msgsnd": 69, "msgrcv": 70, "msgctl": 71, "creat": 85, "chmod": 90,
    "fchmod": 91, "chown": 92, "fchown": 93, "lchown": 94, "syslog": 103, "utime": 132, "mknod": 133,
    "setpriority": 141, "sched_setparam": 142, "sched_setscheduler": 144, "vhangup": 153, "pivot_root": 155,
    "adjtimex": 159, "chroot": 161, "acct": 163, "settimeofday": 164, "mount": 165, "umount2": 166, "swapon": 167,
    "swapoff": 168, "reboot": 169, "sethostname": 170, "setdomainname": 171, "iopl": 172, "ioperm": 173,
    "init_module": 175, "delete_module": 176, "quotactl": 179, "setxattr": 188, "lsetxattr": 189, "fsetxattr": 190,
    "removexattr": 197, "lremovexattr": 198, "fremovexattr": 199, "sched_setaffinity": 203, "semtimedop": 220,
    "clock_settime": 227, "utimes": 235, "mq_open": 240, "mq_unlink": 241, "kexec_load": 246, "add_key": 248,
    "request_key": 249, "keyctl": 250, "ioprio_set": 251, "migrate_pages": 256, "openat": 257, "mknodat": 259,
    "fchownat": 260, "futimesat": 261, "fchmodat": 268, "unshare": 272, "move_pages": 279, "utimensat": 280,
    "perf_event_open": 298, "fanotify_init": 300, "prlimit64": 302, "open_by_handle_at": 304, "clock_adjtime": 305,
    "setns": 308, "finit_module": 313, "sched_setattr": 314, "kexec_file_load": 320, "bpf": 321, "userfaultfd": 323,
    "socketpair": 53, "fork": 57, "vfork": 58, "execve": 59, "ptrace": 101, "process_vm_readv": 310,
    "process_vm_writev": 311, "memfd_create": 319, "execveat": 322,
    "truncate": 76, "rename": 82, "mkdir": 83, "rmdir": 84, "link": 86, "unlink": 87, "symlink": 88, "umask": 95,
    "mkdirat": 258, "unlinkat": 263, "renameat": 264, "linkat": 265, "symlinkat": 266, "renameat2": 316,
    "seccomp": 317,
}  # fmt: skip
_AARCH64 = {
    "setxattr": 5, "lsetxattr": 6, "fsetxattr": 7, "removexattr": 14, "lremovexattr": 15, "fremovexattr": 16,
    "ioctl": 29, "ioprio_set": 30, "mknodat": 33, "umount2": 39, "mount": 40, "pivot_root": 41, "chroot": 51,
    "fchmod": 52, "fchmodat": 53, "fchownat": 54, "fchown": 55, "openat": 56, "vhangup": 58, "quotactl": 60,
    "utimensat": 88, "acct": 89, "unshare": 97, "kexec_load": 104, "init_module": 105, "delete_module": 106,
    "clock_settime": 112, "syslog": 116, "sched_setparam": 118, "sched_setscheduler": 119, "sched_setaffinity": 122,
    "setpriority": 140, "reboot": 142, "sethostname": 161, "setdomainname": 162, "settimeofday": 170, "adjtimex": 171,
    "mq_open": 180, "mq_unlink": 181, "msgget": 186, "msgctl": 187, "msgrcv": 188, "msgsnd": 189, "semget": 190,
    "semctl": 191, "semtimedop": 192, "semop": 193, "shmget": 194, "shmctl": 195, "shmat": 196, "socket": 198,
    "add_key": 217, "request_key": 218, "keyctl": 219, "clone": 220, "swapon": 224, "swapoff": 225,
    "migrate_pages": 238, "move_pages": 239, "perf_event_open": 241, "prlimit64": 261, "fanotify_init": 262,
    "open_by_handle_at": 265, "clock_adjtime": 266, "setns": 268, "finit_module": 273, "sched_setattr": 274,
    "bpf": 280, "userfaultfd": 282, "kexec_file_load": 294,
    "ptrace": 117, "socketpair": 199, "execve": 221, "process_vm_readv": 270, "process_vm_writev": 271,
    "memfd_create": 279, "execveat": 281,
    "mkdirat": 34, "unlinkat": 35, "symlinkat": 36, "linkat": 37, "renameat": 38, "truncate": 45, "umask": 166,
    "renameat2": 276, "seccomp": 277,
}  # fmt: skip
_MACHINES = {"x86_64": (0xC000003E, _X86_64), "aarch64": (0xC00000B7, _AARCH64)}

# Namespaces, mounts, the kernel's keyrings (which no namespace parts), its parts for administrators, its largest faces.
_NEVER = """
    setns mount umount2 pivot_root chroot move_mount open_tree open_tree_attr fsopen fsconfig fsmount fspick
    mount_setattr add_key request_key keyctl bpf perf_event_open userfaultfd io_uring_setup io_uring_enter
    io_uring_register kexec_load kexec_file_load init_module finit_module delete_module open_by_handle_at quotactl
    quotactl_fd acct swapon swapoff reboot settimeofday clock_settime clock_adjtime adjtimex sethostname setdomainname
    iopl ioperm syslog vhangup fanotify_init
    """.split()
# Their arguments lie in memory, where a filter cannot look: absent, so that callers fall back on what it can judge.
_UNREADABLE = ("clone3", "openat2")
# What Landlock does not hold: owners, modes, times and attributes of files, and objects that processes share by number.
_METADATA = """
    chmod fchmod fchmodat fchmodat2 chown fchown lchown fchownat utime utimes futimesat utimensat setxattr lsetxattr
    fsetxattr setxattrat removexattr lremovexattr fremovexattr removexattrat file_setattr
    """.split()
_SHARED = """
    shmget shmat shmctl semget semop semctl semtimedop msgget msgsnd msgrcv msgctl mq_open mq_unlink pidfd_getfd
    process_madvise
    """.split()
# What an isolated program needs of none, and once it runs: memory files are counted as nobody's.
_OTHER_PROCESSES = ("fork", "vfork", "ptrace", "process_vm_readv", "process_vm_writev", "socketpair")
_ONCE = ("execve", "execveat", "memfd_create")
_CLONE_THREAD = 0x10000
# System call -> the argument that names another process; 0 is the caller itself.
_OTHERS = {
    "prlimit64": 0, "sched_setparam": 0, "sched_setscheduler": 0, "sched_setaffinity": 0, "sched_setattr": 0,
    "migrate_pages": 0, "move_pages": 0, "setpriority": 1, "ioprio_set": 1,
}  # fmt: skip
# System call -> the argument that holds a mode.
_MODES = {
    "chmod": 1, "fchmod": 1, "fchmodat": 2, "fchmodat2": 2, "open": 2, "openat": 3, "creat": 1, "mknod": 1,
    "mknodat": 2,
}  # fmt: skip

# What a broker is asked about: see sandbox.broker. Opening, only for writing.
_ASKED = """
    creat mkdir mkdirat rename renameat renameat2 unlink unlinkat rmdir link linkat symlink symlinkat truncate umask
    chmod fchmod fchmodat fchmodat2 chown fchown lchown fchownat utimensat
    """.split()
_OPENING = {"open": 1, "openat": 2}
_WRITING = 0o1103  # O_WRONLY, O_RDWR, O_CREAT, O_TRUNC


class SeccompFilter(Struct, frozen=True):
    """Which filter: `bare` where no namespaces hold the command, `network` whether it may have one; `asks` where a
    broker answers for the calls that make and change names. `isolated`: there are threads, but no further process and
    no socket; `sealed`: the process becomes no other program either."""

    bare: bool = False
    network: bool = False
    asks: bool = False
    isolated: bool = False
    sealed: bool = False


ISOLATION = SeccompFilter(bare=True, isolated=True)


def machine_known(machine: str | None = None) -> bool:
    """Whether there is a filter for this kind of machine (`uname -m`)."""
    return (machine or platform.machine()) in _MACHINES


@cache
def build_filter(wanted: SeccompFilter, machine: str | None = None) -> bytes:
    """The program for a machine (`uname -m`, this one's by default), 8 bytes an instruction, at most 4,096 of them.
    Raises KeyError for a kind of machine that is not known."""
    arch, table = _MACHINES[machine or platform.machine()]
    numbers = {**table, **_SAME}
    asked = [name for name in _ASKED if name in numbers] if wanted.asks else []
    bare = [name for name in (*_METADATA, *_SHARED) if name not in asked] if wanted.bare else []
    alone = (*(_OTHER_PROCESSES if wanted.isolated else ()), *(_ONCE if wanted.sealed else ()))
    names = [name for name in (*_NEVER, *bare, *alone) if name in numbers]
    code = [(_LOAD, 0, 0, _ARCH), (_EQUAL, 1, 0, arch), _refuse(EPERM), (_LOAD, 0, 0, _NUMBER)]
    if arch == _MACHINES["x86_64"][0]:
        code += [(_AT_LEAST, 0, 1, _X32), _refuse(EPERM)]
    for name in names:
        absent = wanted.asks and "xattr" in name  # what copies files goes on without them then
        code += [(_EQUAL, 0, 1, numbers[name]), _refuse(ENOTSUP if absent else EPERM)]
    for name in _UNREADABLE:
        code += [(_EQUAL, 0, 1, numbers[name]), _refuse(ENOSYS)]
    code += _on(numbers["clone"], _unless_bits(0, _NAMESPACES & ~0xFF))
    if wanted.isolated:
        code += _on(numbers["clone"], [_argument(0), (_ANY_BIT, 1, 0, _CLONE_THREAD), _refuse(EPERM)])
    code += _on(numbers["unshare"], _unless_bits(0, _NAMESPACES))
    code += _on(numbers["ioctl"], _unless_one(1, (_TIOCSTI, _TIOCLINUX)))
    code += _on(numbers["socket"], _only(0, _families(wanted), EPERM if wanted.bare else EAFNOSUPPORT))
    for name, argument in _MODES.items():
        if name in numbers and name not in names:
            code += _on(numbers[name], _unless_bits(argument, _SET_ID))
    for name, argument in _OTHERS.items() if wanted.bare else ():
        code += _on(numbers[name], _only(argument, (0,), EPERM))
    for name in asked:
        code += [(_EQUAL, 0, 1, numbers[name]), (_RETURN, 0, 0, _NOTIFY)]
    for name, argument in _OPENING.items() if wanted.asks else ():
        if name in numbers:
            code += _on(numbers[name], [_argument(argument), (_ANY_BIT, 0, 1, _WRITING), (_RETURN, 0, 0, _NOTIFY)])
    code.append((_RETURN, 0, 0, _ALLOW))
    return b"".join(struct.pack("<HBBI", *instruction) for instruction in code)


def asked_calls(machine: str | None = None) -> dict[str, int]:
    """The calls that a broker is asked about on a machine, with their numbers; and that of seccomp(2) itself."""
    numbers = {**_MACHINES[machine or platform.machine()][1], **_SAME}
    return {name: numbers[name] for name in (*_ASKED, *_OPENING, "seccomp") if name in numbers}


def _families(wanted: SeccompFilter) -> tuple[int, ...]:
    """The address families of sockets. Where nothing hides the sockets of the machine's services, not even theirs."""
    if not wanted.bare:
        return (AF_UNIX, AF_INET, AF_INET6, AF_NETLINK)
    return (AF_INET, AF_INET6, AF_NETLINK) if wanted.network else ()


def _refuse(error: int) -> tuple[int, int, int, int]:
    return (_RETURN, 0, 0, _ERRNO | error)


def _argument(index: int) -> tuple[int, int, int, int]:
    """Load the lower half of an argument; both kinds of machine are little-endian."""
    return (_LOAD, 0, 0, _ARGUMENTS + 8 * index)


def _on(number: int, body: _Code) -> _Code:
    """Only for one system call; afterwards its number is loaded again."""
    block = [*body, (_LOAD, 0, 0, _NUMBER)]
    return [(_EQUAL, 0, len(block), number), *block]


def _unless_bits(argument: int, bits: int) -> _Code:
    return [_argument(argument), (_ANY_BIT, 0, 1, bits), _refuse(EPERM)]


def _unless_one(argument: int, values: tuple[int, ...]) -> _Code:
    tests = [(_EQUAL, len(values) - index - 1, 0, value) for index, value in enumerate(values[:-1])]
    return [_argument(argument), *tests, (_EQUAL, 0, 1, values[-1]), _refuse(EPERM)]


def _only(argument: int, values: tuple[int, ...], error: int) -> _Code:
    tests = [(_EQUAL, len(values) - index, 0, value) for index, value in enumerate(values)]
    return [_argument(argument), *tests, _refuse(error)]


# From this version on Linux's Landlock holds truncation (3), devices (5), signals and abstract sockets (6).
LEAST_ABI = 6
_CREATE_RULESET, _VERSION = 444, 1
_HERE = os.path.dirname(os.path.realpath(__file__))
_ENTER, _BROKER = os.path.join(_HERE, "enter.py"), os.path.join(_HERE, "broker.py")
_RIGHTS = 0b1010  # CAP_DAC_OVERRIDE and CAP_FOWNER
NULL_DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")
_DEVICES = (*NULL_DEVICES, "/dev/tty")
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


def landlock(argv: Sequence[str], confinement: Confinement, site: Site, brokered: bool = False) -> SandboxPlan:
    """The plan for one command. Temporary files go to `site.temp` itself: nothing can lie over /tmp here."""
    if confinement.isolated:
        return _isolated(argv, confinement, site)
    words = [*(f"file={path}" for path in _DEVICES), *(f"read={path}" for path in _READABLE)]
    tops = _tops(confinement, site, brokered)
    words += [f"folder={path}" for path in (site.temp, *(path for path in confinement.folders if path not in tops))]
    words += [f"folder={path}" for path in cache_folders(confinement.caches, site.home, os.environ)]
    for top, names in tops.items():
        words += [*(f"except={name}" for name in names), f"tops={top}"]
    words += [f"own={path}" for path in (*site.own, *_fixed_beside(confinement, brokered))]
    words += _home(confinement, site)
    words.append(f"filter={build_filter(SeccompFilter(bare=True, network=confinement.network)).hex()}")
    if site.foreign:
        words.append("rights=1")
    if brokered and tops:
        asking = build_filter(SeccompFilter(bare=True, network=confinement.network, asks=True)).hex()
        words += ["listener={listener}", f"notify={asked_calls()['seccomp']}:{asking}"]
    temp = {"TMPDIR": site.temp, "TMP": site.temp, "TEMP": site.temp}
    return SandboxPlan(
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


def _isolated(argv: Sequence[str], confinement: Confinement, site: Site) -> SandboxPlan:
    words = [*(f"file={path}" for path in NULL_DEVICES), "only=1"]
    words += [f"show={os.path.realpath(path)}" for path in confinement.seen]
    words += [f"filter={build_filter(ISOLATION).hex()}", *(("rights=1",) if site.foreign else ())]
    return SandboxPlan((os.path.realpath(sys.executable), "-I", "-S", _ENTER, *words, "--", *argv), {})


def _home(confinement: Confinement, site: Site) -> list[str]:
    """The home, which is not read, and what is for all that, in it or beside it."""
    if confinement.home is None:
        return []
    seen = (*confinement.home, *confinement.seen, *confinement.folders, site.workspace, site.temp)
    caches = cache_folders(confinement.caches, site.home, os.environ)
    shown = (*seen, *(place.path for place in site.git), *caches)
    return [f"home={site.home}", *(f"show={os.path.realpath(path)}" for path in shown)]


def _tops(confinement: Confinement, site: Site, brokered: bool) -> dict[str, list[str]]:
    """The folders whose entries are open, each with the names in it that are not."""
    tops = dict[str, list[str]]()
    if confinement.writes and not beneath(site.home or "/", site.workspace):
        git = os.path.join(site.workspace, ".git")
        inside = brokered and any(place.path == git and not place.linked for place in site.git)
        tops = {site.workspace: _KEPT, **({git: _KEPT_OF_GIT} if inside else {})}
    for folder in filter(os.path.isdir, confinement.folders if brokered else ()):
        git = os.path.join(folder, ".git")
        tops |= {folder: _KEPT, **({git: _KEPT_OF_GIT} if os.path.isdir(git) else {})}
    return tops


def _fixed_beside(confinement: Confinement, brokered: bool) -> Iterator[str]:
    """Of folders beside the workspace, what stays as it is where no broker makes names in them."""
    for folder in confinement.folders if not brokered else ():
        for name in os.listdir(folder) if os.path.isdir(folder) else ():
            if name.lower() in _KEPT:
                yield os.path.realpath(os.path.join(folder, name))


def _broker(tops: dict[str, list[str]], site: Site) -> tuple[str, ...]:
    """The broker with its words: what the harness runs from, and the way to it, stays as it is too."""
    calls = ",".join(f"{name}:{number}" for name, number in asked_calls().items() if name != "seccomp")
    words = [f"calls={calls}", f"keep={_RIGHTS if site.foreign else 0}"]
    for top, names in tops.items():
        own = [os.path.relpath(path, top).partition("/")[0].lower() for path in site.own if beneath(path, top)]
        words += [f"tops={top}", *(f"hold={name}" for name in (*names, *own))]
    return (f"broker={_BROKER}", *(f"serve={word}" for word in words))


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
    asking = build_filter(SeccompFilter(bare=True, asks=True)).hex()
    return (*argv[:4], "listener=try", f"notify={asked_calls()['seccomp']}:{asking}", *argv[4:])
