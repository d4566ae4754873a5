"""The private folder of a workspace, and the attachments kept there: long pasted text and images, shown as chips."""

import base64
import binascii
import contextlib
import fcntl
import os
import re
import time
from collections.abc import Iterator
from functools import cached_property
from urllib.parse import unquote

from msgspec import Struct

from codewhale.lib.bounded import read_regular
from codewhale.lib.files import FileOps, atomic_write, private_dir
from codewhale.lib.text import one_line
from codewhale.protocol.ops import Attachment

LONG_CHARACTERS = 2_000
LONG_LINES = 20
MOST_CHIPS = 20
# What a message takes of one attachment.
IMAGE_BYTES = 5 << 20
TEXT_BYTES = 1 << 20
# What chips once were is kept this long, for drafts, the stash and the history.
KEPT_SECONDS = 30 * 86_400.0
_DATA_URL = re.compile(r"data:(image/[a-z.+-]{1,30});base64,([A-Za-z0-9+/=\s]+)")
_ESCAPED = re.compile(r"\\(.)")
_KINDS = (
    (b"\x89PNG\r\n\x1a\n", "image/png", "png"),
    (b"\xff\xd8\xff", "image/jpeg", "jpg"),
    (b"GIF87a", "image/gif", "gif"),
    (b"GIF89a", "image/gif", "gif"),
)


class Unsynced(FileOps):
    """Files that survive the death of the process, not of the machine: what is written at every key must be quick."""

    def fsync(self, fd: int) -> None:
        """Leave it to the system when."""

    def sync_dir(self, path: str) -> None:
        """Leave it to the system when."""


QUICK = Unsynced()


class Folder:
    """`<home>/composer/<digest of the workspace's path>`, made at its first use."""

    def __init__(self, home: str, workspace: str) -> None:
        self._home = home
        self._workspace = os.path.realpath(workspace)

    @cached_property
    def root(self) -> str:
        """Its path; worked out at its first use, which comes behind the first frame."""
        import hashlib

        digest = hashlib.sha256(os.fsencode(self._workspace)).hexdigest()[:16]
        return os.path.join(self._home, "composer", digest)

    def make(self, *below: str) -> str:
        """The path of a folder below, which is there now and only its owner can enter. Raises OSError."""
        private_dir(os.path.dirname(self.root))
        path = private_dir(self.root)
        for name in below:
            path = private_dir(os.path.join(path, name))
        return path

    def path(self, *names: str) -> str:
        return os.path.join(self.root, *names)

    def read(self, limit: int, *names: str) -> bytes:
        """A file's bytes, b"" when there is none or it is larger than `limit` or no plain file."""
        try:
            fd = os.open(self.path(*names), os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
        except OSError:
            return b""
        return read_regular(fd, limit) or b""

    @contextlib.contextmanager
    def alone(self) -> Iterator[None]:
        """Hold off the other processes of this workspace: for reading, changing and writing back. Raises OSError."""
        self.make()
        fd = os.open(self.path("lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX)
            yield
        finally:
            os.close(fd)


class Chip(Struct, frozen=True, omit_defaults=True):
    """One attachment: the file at the absolute `path`. `lines` counts those of text, 0 for an image."""

    name: str
    media_type: str
    path: str
    size: int
    lines: int = 0

    @property
    def there(self) -> bool:
        """Whether its file can still be sent."""
        return os.path.isfile(self.path)

    def attachment(self) -> Attachment:
        return Attachment(self.name, self.media_type, path=self.path)


class AttachmentTooLargeError(ValueError):
    """More bytes than an attachment may have; `limit` of them."""

    def __init__(self, limit: int) -> None:
        super().__init__(f"more than {limit:,} bytes")
        self.limit = limit


def chip_of_paste(text: str, folder: Folder) -> Chip | None:
    """The attachment that a paste is: an image (its path, a file: or a data: URL), or long text. None for text that
    belongs in the message. Raises TooLargeError, and OSError when it cannot be kept."""
    image = _image(text, folder)
    if image is not None or not is_long(text):
        return image
    return text_chip(text, folder)


def is_long(text: str) -> bool:
    """Whether pasted text is shown as a chip."""
    return len(text) > LONG_CHARACTERS or text.count("\n") + 1 > LONG_LINES


def text_chip(text: str, folder: Folder) -> Chip:
    """Text as an attachment. Raises TooLargeError and OSError."""
    data = text.encode("utf-8", "replace")
    if len(data) > TEXT_BYTES:
        raise AttachmentTooLargeError(TEXT_BYTES)
    path = _keep(data, "txt", folder)
    return Chip("pasted text", "text/plain", path, len(data), text.rstrip("\n").count("\n") + 1)


def image_chip(data: bytes, name: str, folder: Folder) -> Chip | None:
    """An image's bytes as an attachment; None when they are no PNG, JPEG, GIF or WebP. Raises TooLargeError."""
    kind = image_kind(data)
    if kind is None:
        return None
    if len(data) > IMAGE_BYTES:
        raise AttachmentTooLargeError(IMAGE_BYTES)
    return Chip(one_line(name, 60), kind[0], _keep(data, kind[1], folder), len(data))


def image_kind(data: bytes) -> tuple[str, str] | None:
    """Media type and suffix by the first bytes."""
    for start, media_type, suffix in _KINDS:
        if data.startswith(start):
            return media_type, suffix
    return ("image/webp", "webp") if data[:4] == b"RIFF" and data[8:12] == b"WEBP" else None


def prune(folder: Folder, keep: set[str], now: float | None = None) -> int:
    """Remove the files of chips that are older than KEPT_SECONDS and not in `keep`; returns how many."""
    oldest = (time.time() if now is None else now) - KEPT_SECONDS
    gone = 0
    with contextlib.suppress(OSError), os.scandir(folder.path("attached")) as entries:
        for entry in entries:
            if entry.path not in keep and entry.stat(follow_symlinks=False).st_mtime < oldest:
                os.unlink(entry.path)
                gone += 1
    return gone


def _image(text: str, folder: Folder) -> Chip | None:
    stripped = text.strip()
    if match := _DATA_URL.fullmatch(stripped):
        try:
            return image_chip(base64.b64decode(match[2], validate=False), "pasted image", folder)
        except binascii.Error:
            return None
    if "\n" in stripped or len(stripped) > 4096:
        return None
    for path in _paths(stripped):
        if os.path.isabs(path) and (data := _bytes(path)) is not None:
            return image_chip(data, os.path.basename(path), folder)
    return None


def _paths(text: str) -> list[str]:
    """What a terminal may mean by a dropped file: bare, quoted, with escaped spaces, or a URL."""
    if text[:1] == text[-1:] and text[:1] in ("'", '"') and len(text) > 2:
        text = text[1:-1]
    if text.startswith("file://"):
        return [unquote(text.removeprefix("file://").removeprefix("localhost"))]
    home = os.path.expanduser(text) if text.startswith("~/") else text
    return list(dict.fromkeys((home, _ESCAPED.sub(r"\1", home))))


def _bytes(path: str) -> bytes | None:
    """The bytes of an image file; None for what is none. Raises TooLargeError."""
    if "\0" in path:
        return None
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError:
        return None
    try:
        start = os.pread(fd, 16, 0)
        size = os.fstat(fd).st_size
    except OSError:
        start, size = b"", 0
    if image_kind(start) is None:
        os.close(fd)
        return None
    if size > IMAGE_BYTES:
        os.close(fd)
        raise AttachmentTooLargeError(IMAGE_BYTES)
    return read_regular(fd, IMAGE_BYTES)


def _keep(data: bytes, suffix: str, folder: Folder) -> str:
    import hashlib

    path = os.path.join(folder.make("attached"), f"{hashlib.sha256(data).hexdigest()[:32]}.{suffix}")
    if os.path.isfile(path):
        os.utime(path)
    else:
        atomic_write(path, data)
    return path
