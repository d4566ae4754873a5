"""The part of a launcher that makes new names for a command which Landlock holds: loaded by path, with nothing of ours.

Landlock cannot open the top of a workspace without opening the protected names in it. So the kernel asks here before
each call that makes or changes a name (seccomp user notification). What lies in a served folder is done in the place of
the command, on descriptors that were checked; all else the kernel goes on with, and Landlock judges it.
"""

import _signal as signal  # type: ignore[import-not-found]
import _socket
import _thread
import ctypes
import fcntl
import os
import stat
import struct
import time

_ALL, _AT_CWD, _MOST_PATH = 0xFFFFFFFF, 0xFFFFFF9C, 4096


class Caller:
    """The process: its memory, its folders, open until `forget`. Raises LookupError or ValueError for the kernel to
    judge."""

    def __init__(self) -> None:
        self.pid = 0
        self._opened: list[int] = []

    def own(self, fd: int) -> int:
        """Close a descriptor when the call is answered."""
        self._opened.append(fd)
        return fd

    def forget(self) -> None:
        """Close what was opened for this call."""
        while self._opened:
            os.close(self._opened.pop())

    def memory(self, address: int, length: int) -> bytes:
        """What is mapped of so many bytes."""
        try:
            return os.pread(self.own(os.open(f"/proc/{self.pid}/mem", os.O_RDONLY)), length, address)
        except (OSError, OverflowError):
            raise LookupError from None

    def text(self, address: int) -> bytes:
        data = self.memory(address, _MOST_PATH)
        return data[: data.index(0)]

    def umask(self) -> int:
        with open(f"/proc/{self.pid}/status", "rb", buffering=0) as status:
            return int(status.read(512).partition(b"Umask:")[2].split(None, 1)[0], 8)

    def folder(self, fd: int) -> int:
        """What a descriptor of the caller's, or its working directory, is."""
        return self.open(f"/proc/{self.pid}/{'cwd' if fd & _ALL == _AT_CWD else f'fd/{fd & _ALL}'}")

    def open(self, path: "str | bytes", base: "int | None" = None, flags: int = 0) -> int:
        """What a path leads to."""
        try:
            return self.own(os.open(path, flags | os.O_PATH, dir_fd=base))
        except (OSError, ValueError):
            raise LookupError from None

    def descriptor(self, path: bytes) -> "int | None":
        """What a path of its own descriptors means, as /proc/self/fd/3."""
        folder, _, number = path.rpartition(b"/")
        return self.folder(int(number)) if folder in (b"/proc/self/fd", b"/dev/fd") and number.isdigit() else None

    def base(self, fd: int, path: bytes) -> "int | None":
        """Where a path begins. What /proc calls self would be this process."""
        if path.startswith((b"/proc/", b"/dev/")):
            raise LookupError
        return None if path.startswith(b"/") else self.folder(fd)

    def parent(self, base: "int | None", path: bytes) -> "tuple[int, bytes, bool]":
        """The folder of a path, the name in it, and whether that must be a folder."""
        bare = path.rstrip(b"/")
        above, slash, name = bare.rpartition(b"/")
        if name in (b"", b".", b".."):
            raise LookupError
        return self.open(above + slash or b".", base, os.O_DIRECTORY), name, bare != path


class ServedPlaces:
    """The served folders, and what in them stays as it is."""

    def __init__(self, words: "list[str]") -> None:
        self.held: dict[bytes, set[str]] = {}
        names: set[str] = set()
        for word in words:
            kind, _, value = word.partition("=")
            if kind == "tops":
                names = self.held.setdefault(os.fsencode(value), set())
            elif kind == "hold":
                names.add(value.casefold())

    def top_of(self, path: bytes) -> "bytes | None":
        """The served folder that a path, free of links, is or lies in."""
        return max((top for top in self.held if (path + b"/").startswith(top + b"/")), key=len, default=None)

    def serves(self, path: bytes) -> bool:
        """Whether what stands there may be changed. Case, and what file systems pass over, make no other name."""
        top = self.top_of(path)
        if top is None or path == top:
            return top is not None
        folded = os.fsdecode(path[len(top) + 1 :].partition(b"/")[0]).casefold()
        return not {folded, folded.encode("ascii", "ignore").decode()} & self.held[top]

    def has_entry(self, folder: bytes, name: bytes) -> bool:
        """Whether a name in a folder may be made, changed and removed; a served folder itself may not."""
        return (path := folder + b"/" + name) not in self.held and self.serves(path)


# Words: tops=PATH (a served folder) with hold=NAME after it (names in it, lower case, that stay as they are with all
# below), calls=NAME:NUMBER,... and keep=MASK (the capabilities to act with).
_RECEIVE, _SEND, _VALID, _ADD_FD, _SET_FLAGS = 0xC0502100, 0xC0182101, 0x40082102, 0x40182103, 0x40082104
_SYNC_WAKE_UP, _CONTINUE, _ADD_AND_SEND, _PAUSE = 1, 1, 2, 0.01
_CWD, _SYMLINK_NOFOLLOW, _REMOVE_DIR, _EMPTY_PATH, _WHITEOUT, _MOST_LINKS = -100, 0x100, 0x200, 0x1000, 4, 40
_EPERM, _ENOENT, _ENXIO, _EXDEV, _ELOOP = 1, 2, 6, 18, 40
_KEPT_FLAGS, _SAME = os.O_APPEND | os.O_DIRECT | os.O_NOATIME, 0xFFFFFFFF
# Each call as one that does it all: which argument stands for each of that one's. C is the working directory, `-` none,
# N the link itself, R a folder that is removed, W what creat(2) opens with.
_FORMS = {
    "open": "open C012", "openat": "open 0123", "creat": "open C0W1", "truncate": "truncate 01",
    "mkdir": "mkdir C01", "mkdirat": "mkdir 012", "unlink": "unlink C0-", "rmdir": "unlink C0R",
    "unlinkat": "unlink 012", "rename": "rename C0C1-", "renameat": "rename 0123-", "renameat2": "rename 01234",
    "link": "link C0C1-", "linkat": "link 01234", "symlink": "symlink 0C1", "symlinkat": "symlink 012",
    "chmod": "chmod C0-1", "fchmod": "chmod 0--1", "fchmodat": "chmod 01-2", "fchmodat2": "chmod 0132",
    "chown": "chown C0-12", "lchown": "chown C0N12", "fchown": "chown 0--12", "fchownat": "chown 01423",
    "utimensat": "times 0132", "umask": "umask 0",
}  # fmt: skip
_WORDS = {"C": _CWD, "-": 0, "N": _SYMLINK_NOFOLLOW, "R": _REMOVE_DIR, "W": os.O_CREAT | os.O_WRONLY | os.O_TRUNC}
_METADATA = ("chmod", "chown", "times")  # what Landlock does not judge


def path_of(fd: int) -> bytes:
    """Where what a descriptor stands for is now, free of links."""
    return os.readlink(b"/proc/self/fd/%d" % fd)


class Broker:
    """Answers the calls of one command, one after the other."""

    def __init__(self, listener: int, words: "list[str]", umask: int) -> None:
        self._listener = listener
        self._places = ServedPlaces(words)
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._caller = Caller()
        self._umask: int | None = umask
        self._id = 0
        rows = (row.split(":") for word in words if word.startswith("calls=") for row in word[6:].split(","))
        self._forms = {int(number): _FORMS[name] for name, number in rows}

    def serve(self) -> None:
        """Answer until nothing can ask any more, which raises OSError."""
        self._tell(_SET_FLAGS, _SYNC_WAKE_UP)
        while True:
            asked = bytearray(80)
            try:
                fcntl.ioctl(self._listener, _RECEIVE, asked)
            except (FileNotFoundError, InterruptedError):  # who asked was killed, or nobody is left
                time.sleep(_PAUSE)
                continue
            self._id, self._caller.pid, _, number, _, _, *args = struct.unpack("<QIIiIQ6Q", asked)
            self._answer(self._forms[number], args)

    def _tell(self, request: int, data: "bytes | int") -> bool:
        try:
            fcntl.ioctl(self._listener, request, data)
        except OSError:
            return False  # it was killed
        return True

    def _answer(self, does: str, args: "list[int]") -> None:
        error, flags = 0, 0
        call, _, form = does.partition(" ")
        try:
            if getattr(self, "_do_" + call)(*(args[int(one)] if one.isdigit() else _WORDS[one] for one in form)):
                return
        except (LookupError, ValueError):
            # Not ours to do. The kernel reads the paths anew, and another thread of the caller may have changed them
            # since: Landlock judges what it does then, so that only what Landlock does not judge is refused here.
            error, flags = (-_EPERM, 0) if call in _METADATA else (0, _CONTINUE)
        except Exception as failed:
            error = -(getattr(failed, "errno", None) or _EPERM)
        finally:
            self._caller.forget()
        self._tell(_SEND, struct.pack("<QqiI", self._id, 0, error, flags))

    def _check(self) -> None:
        """What was read was the caller's: it still waits, so its number is no other process's by now."""
        if not self._tell(_VALID, struct.pack("<Q", self._id)):
            raise LookupError

    def _mode(self, mode: int) -> int:
        """A mode as the caller's umask leaves it."""
        return mode & 0o1777 & ~(self._caller.umask() if self._umask is None else self._umask)

    def _entry(self, fd: int, address: int) -> "tuple[int, bytes, bool]":
        """The folder and the name that a path means, when both are served."""
        path = self._caller.text(address)
        folder, name, slash = self._caller.parent(self._caller.base(fd, path), path)
        if not self._places.has_entry(path_of(folder), name):
            raise LookupError
        self._check()
        return folder, name, slash

    def _object(self, fd: int, address: int, flags: int) -> int:
        """What a path, or a descriptor alone, means, when it is served."""
        path = self._caller.text(address) if address else b""
        if path:
            known = self._caller.descriptor(path)
            nofollow = os.O_NOFOLLOW if flags & _SYMLINK_NOFOLLOW else 0
            meant = self._caller.open(path, self._caller.base(fd, path), nofollow) if known is None else known
        elif flags & _EMPTY_PATH or not address:
            meant = self._caller.folder(fd)
        else:
            raise OSError(_ENOENT, "no path")
        if not self._places.serves(path_of(meant)):
            raise LookupError
        self._check()
        return int(meant)

    def _hand_over(self, opened: int, flags: int) -> bool:
        """Give the caller a file, and with it the answer."""
        self._caller.own(opened)
        if not stat.S_ISREG(os.fstat(opened).st_mode):
            raise LookupError
        if not flags & os.O_NONBLOCK:
            fcntl.fcntl(opened, fcntl.F_SETFL, flags & _KEPT_FLAGS)
        added = (self._id, _ADD_AND_SEND, opened, 0, flags & os.O_CLOEXEC)
        fcntl.ioctl(self._listener, _ADD_FD, struct.pack("<QIIII", *added))
        return True

    def _do_umask(self, mask: int) -> None:
        if mask & 0o777 != self._umask:
            self._umask = None
        raise LookupError

    def _do_open(self, fd: int, address: int, flags: int, mode: int) -> bool:
        flags &= 0xFFFFFFFF
        if flags & os.O_TMPFILE == os.O_TMPFILE:
            folder = self._object(fd, address, 0)
            return self._hand_over(os.open(".", flags, self._mode(mode), dir_fd=folder), flags)
        path = self._caller.text(address)
        known = self._caller.descriptor(path)
        path = path if known is None else path_of(known)
        return self._hand_over(self._open(self._caller.base(fd, path), path, flags, mode), flags)

    def _open(self, base: "int | None", path: bytes, flags: int, mode: int) -> int:
        """A file, by as many links as the kernel would follow; each step is checked."""
        mode = self._mode(mode) if flags & os.O_CREAT else 0
        for _ in range(_MOST_LINKS):
            folder, name, slash = self._caller.parent(base, path)
            if slash or flags & os.O_PATH or not self._places.has_entry(path_of(folder), name):
                raise LookupError
            self._check()
            try:
                return os.open(name, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY, mode, dir_fd=folder)
            except OSError as error:
                if error.errno == _ENXIO:
                    raise LookupError from None
                if error.errno != _ELOOP or flags & os.O_NOFOLLOW:
                    raise
            path = os.readlink(name, dir_fd=folder)
            base = None if path.startswith(b"/") else folder
        raise OSError(_ELOOP, "too many links")

    def _do_truncate(self, address: int, length: int) -> None:
        path = self._caller.text(address)
        opened = self._caller.own(self._open(self._caller.base(_CWD, path), path, os.O_WRONLY, 0))
        os.ftruncate(opened, length - (1 << 64) if length >> 63 else length)

    def _do_mkdir(self, fd: int, address: int, mode: int) -> None:
        folder, name, _ = self._entry(fd, address)
        os.mkdir(name, self._mode(mode), dir_fd=folder)

    def _do_unlink(self, fd: int, address: int, flags: int) -> None:
        folder, name, slash = self._entry(fd, address)
        if slash and not flags & _REMOVE_DIR:
            raise LookupError
        (os.rmdir if flags & _REMOVE_DIR else os.unlink)(name, dir_fd=folder)

    def _both(self, old_fd: int, old: int, new_fd: int, new: int) -> "tuple[int, bytes, int, bytes, bytes]":
        """Two entries, and a slash where one must be a folder; from or to elsewhere all is copied instead."""
        texts = (self._caller.text(old), self._caller.text(new))
        (source, name, slash), (target, other, slash_too) = (
            self._caller.parent(self._caller.base(fd, path), path)
            for fd, path in zip((old_fd, new_fd), texts, strict=True)
        )
        ends = ((path_of(source), name), (path_of(target), other))
        served = [self._places.has_entry(*end) for end in ends]
        outside = [self._places.top_of(folder) is None for folder, _ in ends]
        if not any(served) or not all(one or other for one, other in zip(served, outside, strict=True)):
            raise LookupError
        self._check()
        if not all(served):
            os.lstat(name, dir_fd=source)
            raise OSError(_EXDEV, "not the same place")
        return source, name, target, other, b"/" if slash or slash_too else b""

    def _do_rename(self, old_fd: int, old: int, new_fd: int, new: int, flags: int) -> None:
        source, name, target, other, slash = self._both(old_fd, old, new_fd, new)
        if flags & _WHITEOUT:
            raise LookupError
        if self._libc.renameat2(source, name + slash, target, other + slash, ctypes.c_uint(flags & 0xFFFFFFFF)) < 0:
            raise OSError(ctypes.get_errno(), "rename")

    def _do_link(self, old_fd: int, old: int, new_fd: int, new: int, flags: int) -> None:
        source, name, target, other, slash = self._both(old_fd, old, new_fd, new)
        if slash or flags:
            raise LookupError
        os.link(name, other, src_dir_fd=source, dst_dir_fd=target, follow_symlinks=False)

    def _do_symlink(self, text: int, fd: int, address: int) -> None:
        target = self._caller.text(text)
        folder, name, slash = self._entry(fd, address)
        if slash:
            raise LookupError
        os.symlink(target, name, dir_fd=folder)

    def _do_chmod(self, fd: int, address: int, flags: int, mode: int) -> None:
        os.chmod(b"/proc/self/fd/%d" % self._object(fd, address, flags), mode & 0o1777)

    def _do_times(self, fd: int, address: int, flags: int, times: int) -> None:
        data = self._caller.memory(times, 32) if times else None
        meant = self._object(fd, address, flags)
        if data is not None and len(data) < 32:
            raise LookupError
        if self._libc.utimensat(_CWD, b"/proc/self/fd/%d" % meant, data, 0) < 0:
            raise OSError(ctypes.get_errno(), "times")

    def _do_chown(self, fd: int, address: int, flags: int, user: int, group: int) -> None:
        """No owner changes; to name the same one again is no change."""
        now = os.fstat(self._object(fd, address, flags))
        if user & _SAME not in (now.st_uid, _SAME) or group & _SAME not in (now.st_gid, _SAME):
            raise OSError(_EPERM, "owner")


class BrokerLink:
    """Between a launcher and its command, made before the fork."""

    def __init__(self, words: "list[str]") -> None:
        self._words = words
        self._ours, self._theirs = _socket.socketpair()

    def fill(self, argv: "list[str]") -> "list[str]":
        """In the process that becomes the command: its line, with the number of its end in place of `{listener}`."""
        os.set_inheritable(self._theirs.fileno(), True)
        end = argv.index("--")
        return [word.replace("{listener}", str(self._theirs.fileno())) for word in argv[:end]] + argv[end:]

    def start(self) -> None:
        """In the launcher, in a thread: take the descriptor that the kernel asks on, and answer as long as it lives."""
        self._theirs.close()
        # Modes are worked out from the caller's umask; the launcher's own must take nothing from them.
        _thread.start_new_thread(self._serve, (os.umask(0),))

    def _serve(self, umask: int) -> None:
        signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        try:
            self._ours.send(b"1")
            passed = self._ours.recvmsg(1, _socket.CMSG_SPACE(4))[1]
        except OSError:
            passed = []
        self._ours.close()
        if not passed:
            return
        listener = struct.unpack("<i", passed[0][2])[0]
        try:
            keep = next(int(word[5:]) for word in self._words if word.startswith("keep="))
            __import__("enter").Kernel().drop_capabilities(keep)
            Broker(listener, self._words, umask).serve()
        finally:
            os.close(listener)
