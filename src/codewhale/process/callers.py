"""A process that waits for the answer to a system call (seccomp user notification): what it means by its arguments, and
where it may change names. Loaded by path beside process/sandbox/broker.py, with nothing of ours."""

import os

_ALL, _CWD, _MOST_PATH = 0xFFFFFFFF, 0xFFFFFF9C, 4096


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
        """A string, as of a path."""
        data = self.memory(address, _MOST_PATH)
        return data[: data.index(0)]

    def umask(self) -> int:
        """Its umask as it is now."""
        with open(f"/proc/{self.pid}/status", "rb", buffering=0) as status:
            return int(status.read(512).partition(b"Umask:")[2].split(None, 1)[0], 8)

    def folder(self, fd: int) -> int:
        """What a descriptor of the caller's, or its working directory, is."""
        return self.open(f"/proc/{self.pid}/{'cwd' if fd & _ALL == _CWD else f'fd/{fd & _ALL}'}")

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


class Places:
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
