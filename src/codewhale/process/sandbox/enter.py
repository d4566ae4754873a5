"""A program that gives up rights and becomes the command: run by path (`python -I -S`) with nothing of ours.

It gives up capabilities, lets Landlock hold writing to the places it is told, and signals and abstract sockets to its
own processes, installs a seccomp filter, and executes. Whatever fails ends it before the command begins.
"""

# Arguments: folder=PATH (all below it may be written), file=PATH (it may be written), read=PATH (of /dev, it may be
# read), tops=PATH (each entry of it may, but those named by except=NAME before it, lower case), filter=HEX, home=PATH
# (nothing below it is read but what show=PATH names), only=1 (what show=PATH
# names is all that is read, listed or executed), rights=1 (keep root's over files), listener=FD and
# notify=NUMBER:HEX (who answers what the filter HEX asks, and the number of seccomp(2)), env=NAME=VALUE (for the
# command alone), `--`, the command. Or `scope` and a command, which then reaches
# abstract sockets of its own alone.
import _socket
import ctypes
import os
import struct
import sys

_PR_SET_NO_NEW_PRIVS, _PR_CAPBSET_DROP, _PR_SET_SECCOMP, _SECCOMP_MODE_FILTER = 38, 24, 22, 2
_SET_MODE_FILTER, _NEW_LISTENER, _WAIT_KILLABLE = 1, 1 << 3, 1 << 5
_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_CAPABILITY_VERSION_3 = 0x20080522
_DAC_OVERRIDE, _FOWNER = 1 << 1, 1 << 3
EXECUTE, WRITE_FILE, READ_FILE, READ_DIR, TRUNCATE, IOCTL_DEV = 1 << 0, 1 << 1, 1 << 2, 1 << 3, 1 << 14, 1 << 15
# All that changes a hierarchy: writing, removing (2), making (7 kinds), moving between folders, truncating.
CHANGES = WRITE_FILE | TRUNCATE | sum(1 << bit for bit in range(4, 14))
_ABSTRACT, _SIGNALS = 0b01, 0b10
_DEVICES = (b"devpts", b"devtmpfs")  # file systems of devices: whoever is logged in sits at one of them
_MOST_MOUNTS = 1 << 22
FAILED = 125


class EnterError(Exception):
    """A right could not be given up; the text says which."""


class _Ruleset(ctypes.Structure):
    _fields_ = (("fs", ctypes.c_uint64), ("net", ctypes.c_uint64), ("scoped", ctypes.c_uint64))


class _Beneath(ctypes.Structure):
    _pack_ = 1
    _layout_ = "ms"
    _fields_ = (("access", ctypes.c_uint64), ("parent", ctypes.c_int32))


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("code", ctypes.c_char_p))


class Kernel:
    """System calls that Python has no names for; each raises Failed."""

    def __init__(self) -> None:
        self._libc = ctypes.CDLL(None, use_errno=True)

    def call(self, what: str, number: int, *args: object) -> int:
        result = int(self._libc.syscall(ctypes.c_long(number), *args))
        if result < 0:
            raise EnterError(f"{what}: {os.strerror(ctypes.get_errno())}")
        return result

    def prctl(self, what: str, option: int, *args: object) -> None:
        """prctl(2) of up to four arguments."""
        filled = (*args, *(ctypes.c_ulong(0),) * (4 - len(args)))
        if self._libc.prctl(option, *filled) < 0:
            raise EnterError(f"{what}: {os.strerror(ctypes.get_errno())}")

    def drop_capabilities(self, keep: int) -> None:
        """All but those of the mask `keep`, also for programs executed as root."""
        for number in range(64):
            if not keep >> number & 1 and self._libc.prctl(_PR_CAPBSET_DROP, number, 0, 0, 0) < 0:
                break  # the first number that there is no capability for, or a user who has none
        header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION_3, 0)
        own = (ctypes.c_uint32 * 6)()
        self._libc.capget(header, own)
        rights = (ctypes.c_uint32 * 6)(own[0] & keep, own[1] & keep, 0, 0, 0, 0)
        if self._libc.capset(header, rights) < 0:
            raise EnterError(f"capabilities: {os.strerror(ctypes.get_errno())}")


class _Rules:
    def __init__(self, kernel: Kernel, files: int = 0, scopes: int = _ABSTRACT) -> None:
        self._kernel = kernel
        wanted = _Ruleset(files, 0, scopes)
        size = ctypes.c_size_t(ctypes.sizeof(wanted))
        self._fd = kernel.call("Landlock", _CREATE_RULESET, ctypes.byref(wanted), size, ctypes.c_uint32(0))

    def allow(self, path: str, access: int = CHANGES, follow: bool = False) -> None:
        """Allow this of a folder's hierarchy, or of a file; a link is passed over, as is what is gone."""
        try:
            fd = os.open(path, os.O_PATH | os.O_CLOEXEC | (0 if follow else os.O_NOFOLLOW))
        except OSError:
            return
        try:
            kind = os.fstat(fd).st_mode & 0o170000
            if kind != 0o120000:
                of_a_file = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEV
                rule = _Beneath(access if kind == 0o040000 else access & of_a_file, fd)
                self._kernel.call(f"rule for {path}", _ADD_RULE, self._fd, 1, ctypes.byref(rule), ctypes.c_uint32(0))
        finally:
            os.close(fd)

    def allow_but(self, path: str, kept: "set[str]", access: int = CHANGES) -> None:
        """Allow this of a folder's hierarchy, or a file, but for these places with all that is in them. A folder on the
        way to one can then neither be renamed nor be given new entries."""
        inside = any(path == place or path.startswith(place + "/") for place in kept)
        if not inside and not any(place.startswith(path.rstrip("/") + "/") for place in kept):
            self.allow(path, access)
        elif not inside and not os.path.islink(path):
            for entry in os.listdir(path):
                self.allow_but(os.path.join(path, entry), kept, access)

    def hold(self) -> None:
        """From here on this process and all it starts are held."""
        self._kernel.call("Landlock", _RESTRICT_SELF, self._fd, ctypes.c_uint32(0))
        os.close(self._fd)


def devices() -> "set[str]":
    """Where this machine shows its devices, terminals among them."""
    with open("/proc/self/mountinfo", "rb") as table:
        rows = [line.split(b" ") for line in table.read(_MOST_MOUNTS).splitlines()]
    shown = [row[4].decode("unicode_escape").encode("latin-1") for row in rows if row[row.index(b"-") + 1] in _DEVICES]
    return {"/dev", *(os.fsdecode(place) for place in shown if place != b"/")}


def enter(words: "list[str]") -> None:
    """Give up what the words say. Raises Failed."""
    pairs = [word.partition("=")[::2] for word in words]
    kernel = Kernel()
    kept: set[str] = set()
    own = {value for name, value in pairs if name == "own"}
    only = "only=1" in words
    reading = EXECUTE | READ_FILE | READ_DIR if only else READ_FILE
    rules = _Rules(kernel, CHANGES | reading | IOCTL_DEV, _ABSTRACT | _SIGNALS)
    if not only:
        rules.allow_but("/", devices() | {value for name, value in pairs if name == "home"}, READ_FILE)
    for fd in filter(os.isatty, (0, 1, 2)):
        rules.allow(f"/proc/self/fd/{fd}", WRITE_FILE | READ_FILE | IOCTL_DEV, follow=True)
    for name, value in pairs:
        if name == "env":
            variable, _, text = value.partition("=")
            os.environ[variable] = text
        elif name == "folder":
            rules.allow_but(value, own)
        elif name == "show":
            rules.allow(value, reading)
        elif name in ("file", "read"):
            rules.allow(value, READ_FILE | IOCTL_DEV | (CHANGES if name == "file" else 0), follow=True)
        elif name == "except":
            kept.add(value)
        elif name == "tops":
            for entry in os.listdir(value):
                if entry.lower() not in kept:
                    rules.allow_but(os.path.join(value, entry), own)
            kept = set()
    options = dict(pairs)
    kernel.drop_capabilities(_DAC_OVERRIDE | _FOWNER if "rights" in options else 0)
    kernel.prctl("no_new_privs", _PR_SET_NO_NEW_PRIVS, ctypes.c_ulong(1))
    rules.hold()
    number, _, asking = options.get("notify", "").partition(":")
    if asking and _ask(kernel, options["listener"], int(number), bytes.fromhex(asking)):
        return
    code = bytes.fromhex(options["filter"])
    program = _Program(len(code) // 8, code)
    kernel.prctl("seccomp", _PR_SET_SECCOMP, ctypes.c_ulong(_SECCOMP_MODE_FILTER), ctypes.byref(program))


def _ask(kernel: Kernel, listener: str, number: int, code: bytes) -> bool:
    """Install a filter that asks, if there is who answers (`try`: see whether it can be installed). Raises Failed."""
    connection = None
    if listener != "try":
        if not listener.isdigit():
            return False
        connection = _socket.socket(fileno=int(listener))
        if not connection.recv(1):
            return False
    flags = ctypes.c_ulong(_NEW_LISTENER | _WAIT_KILLABLE)
    program = _Program(len(code) // 8, code)
    fd = kernel.call("seccomp", number, ctypes.c_ulong(_SET_MODE_FILTER), flags, ctypes.byref(program))
    if connection is not None:
        try:
            connection.sendmsg([b"1"], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, struct.pack("<i", fd))])
        except OSError as error:
            raise EnterError(f"broker: {error.strerror}") from None
    os.close(fd)
    return True


def scope() -> None:
    """Hold abstract sockets to this process and what it starts. Raises Failed."""
    kernel = Kernel()
    kernel.prctl("no_new_privs", _PR_SET_NO_NEW_PRIVS, ctypes.c_ulong(1))
    _Rules(kernel).hold()


def main(args: "list[str]") -> None:
    """Enter and become the command; 125 when that cannot be, 126 and 127 as of a shell."""
    split = 0 if args[0] == "scope" else args.index("--")
    try:
        enter(args[:split]) if split else scope()
    except EnterError as error:
        os.write(2, f"sandbox: {error}\n".encode())
        os._exit(FAILED)
    try:
        os.execvp(args[split + 1], args[split + 1 :])
    except OSError as error:
        os.write(2, f"sandbox: {args[split + 1]}: {error.strerror}\n".encode())
        os._exit(126 if isinstance(error, PermissionError) else 127)


if __name__ == "__main__":
    main(sys.argv[1:])
