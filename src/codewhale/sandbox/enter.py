"""A program that gives up rights and becomes the command: run by path (`python -I -S`) with nothing of ours.

It gives up capabilities, lets Landlock hold writing to the places it is told, and signals and abstract sockets to its
own processes, installs a seccomp filter, and executes. Whatever fails ends it before the command begins.
"""

# Arguments: folder=PATH (all below it may be written), file=PATH (it may be written), tops=PATH (each entry of it may,
# but those named by except=NAME, lower case), filter=HEX, rights=1 (keep root's over files), `--`, the command.
import ctypes
import os
import sys

_PR_SET_NO_NEW_PRIVS, _PR_CAPBSET_DROP, _PR_SET_SECCOMP, _SECCOMP_MODE_FILTER = 38, 24, 22, 2
_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_CAPABILITY_VERSION_3 = 0x20080522
_DAC_OVERRIDE, _FOWNER = 1 << 1, 1 << 3
WRITE_FILE, TRUNCATE = 1 << 1, 1 << 14
# All that changes a hierarchy: writing, removing (2), making (7 kinds), moving between folders, truncating.
CHANGES = WRITE_FILE | TRUNCATE | sum(1 << bit for bit in range(4, 14))
_SCOPES = 0b11  # abstract sockets, signals
FAILED = 125


class Failed(Exception):
    """A right could not be given up; the text says which."""


class _Ruleset(ctypes.Structure):
    _fields_ = (("fs", ctypes.c_uint64), ("net", ctypes.c_uint64), ("scoped", ctypes.c_uint64))


class _Beneath(ctypes.Structure):
    _pack_ = 1
    _layout_ = "ms"
    _fields_ = (("access", ctypes.c_uint64), ("parent", ctypes.c_int32))


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("code", ctypes.c_char_p))


class _Kernel:
    """System calls that Python has no names for; each raises Failed."""

    def __init__(self) -> None:
        self._libc = ctypes.CDLL(None, use_errno=True)

    def call(self, what: str, number: int, *args: object) -> int:
        """syscall(2)."""
        result = int(self._libc.syscall(ctypes.c_long(number), *args))
        if result < 0:
            raise Failed(f"{what}: {os.strerror(ctypes.get_errno())}")
        return result

    def prctl(self, what: str, option: int, *args: object) -> None:
        """prctl(2) of up to four arguments."""
        filled = (*args, *(ctypes.c_ulong(0),) * (4 - len(args)))
        if self._libc.prctl(option, *filled) < 0:
            raise Failed(f"{what}: {os.strerror(ctypes.get_errno())}")

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
            raise Failed(f"capabilities: {os.strerror(ctypes.get_errno())}")


class _Rules:
    """A Landlock ruleset."""

    def __init__(self, kernel: _Kernel) -> None:
        self._kernel = kernel
        wanted = _Ruleset(CHANGES, 0, _SCOPES)
        size = ctypes.c_size_t(ctypes.sizeof(wanted))
        self._fd = kernel.call("Landlock", _CREATE_RULESET, ctypes.byref(wanted), size, ctypes.c_uint32(0))

    def allow(self, path: str, follow: bool = False) -> None:
        """Let a folder's hierarchy, or a file, be changed; a link is passed over, as is what is gone."""
        try:
            fd = os.open(path, os.O_PATH | os.O_CLOEXEC | (0 if follow else os.O_NOFOLLOW))
        except OSError:
            return
        try:
            kind = os.fstat(fd).st_mode & 0o170000
            if kind != 0o120000:
                rule = _Beneath(CHANGES if kind == 0o040000 else WRITE_FILE | TRUNCATE, fd)
                self._kernel.call(f"rule for {path}", _ADD_RULE, self._fd, 1, ctypes.byref(rule), ctypes.c_uint32(0))
        finally:
            os.close(fd)

    def hold(self) -> None:
        """From here on this process and all it starts are held."""
        self._kernel.call("Landlock", _RESTRICT_SELF, self._fd, ctypes.c_uint32(0))
        os.close(self._fd)


def enter(words: "list[str]") -> None:
    """Give up what the words say. Raises Failed."""
    given = [word.partition("=")[::2] for word in words]
    kernel = _Kernel()
    kept = {value for name, value in given if name == "except"}
    rules = _Rules(kernel)
    for name, value in given:
        if name in ("folder", "file"):
            rules.allow(value, follow=name == "file")
        elif name == "tops":
            for entry in os.listdir(value):
                if entry.lower() not in kept:
                    rules.allow(os.path.join(value, entry))
    options = dict(given)
    kernel.drop_capabilities(_DAC_OVERRIDE | _FOWNER if "rights" in options else 0)
    kernel.prctl("no_new_privs", _PR_SET_NO_NEW_PRIVS, ctypes.c_ulong(1))
    rules.hold()
    code = bytes.fromhex(options["filter"])
    program = _Program(len(code) // 8, code)
    kernel.prctl("seccomp", _PR_SET_SECCOMP, ctypes.c_ulong(_SECCOMP_MODE_FILTER), ctypes.byref(program))


def main(args: "list[str]") -> None:
    """Enter and become the command; 125 when that cannot be, 126 and 127 as of a shell."""
    split = args.index("--")
    try:
        enter(args[:split])
    except Failed as error:
        os.write(2, f"sandbox: {error}\n".encode())
        os._exit(FAILED)
    try:
        os.execvp(args[split + 1], args[split + 1 :])
    except OSError as error:
        os.write(2, f"sandbox: {args[split + 1]}: {error.strerror}\n".encode())
        os._exit(126 if isinstance(error, PermissionError) else 127)


if __name__ == "__main__":
    main(sys.argv[1:])
