"""What is read from and written to a workspace, as data."""

from collections.abc import Sequence
from typing import BinaryIO, Protocol

from msgspec import Struct


class FileBytes(Struct, frozen=True):
    """A regular file as read: its workspace-relative path, bytes, sha256 in hex and permission bits."""

    path: str
    data: bytes
    sha256: str
    mode: int


class OpenFile(Struct):
    """A regular file open for reading, unbuffered: its workspace-relative path as named and with links resolved, its
    size and permission bits, and the bytes of its beginning that were read already."""

    name: str
    resolved: str
    stream: BinaryIO
    size: int
    mode: int
    head: bytes = b""

    def __enter__(self) -> "OpenFile":
        return self

    def __exit__(self, *_: object) -> None:
        self.stream.close()


class FileEdit(Struct, frozen=True, omit_defaults=True):
    """What a file is to become. `data` None deletes it. `move_from` names the file it was: that one goes, its
    permission bits stay. `executable` sets or clears the execute bits, None keeps them. `base` is the sha256 the
    edit was worked out from, "" for no file, None when it does not matter."""

    path: str
    data: bytes | None
    move_from: str = ""
    executable: bool | None = None
    base: str | None = None


class Edit(Protocol):
    """Anything shaped like a FileEdit."""

    @property
    def path(self) -> str:
        """Where the bytes go."""
        ...

    @property
    def data(self) -> bytes | None:
        """The bytes, None to delete."""
        ...

    @property
    def move_from(self) -> str:
        """The file it was, or ""."""
        ...

    @property
    def executable(self) -> bool | None:
        """The execute bits, None to keep them."""
        ...

    @property
    def base(self) -> str | None:
        """The sha256 it was worked out from."""
        ...


def spread(edits: Sequence[Edit]) -> list[Edit]:
    """The edits, each move followed by the deletion of what it moved, unless another edit writes there."""
    paths = {edit.path for edit in edits}
    whole: list[Edit] = []
    for edit in edits:
        whole.append(edit)
        if edit.move_from and edit.move_from not in paths:
            whole.append(FileEdit(edit.move_from, None))
    return whole
