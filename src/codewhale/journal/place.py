"""Where the journal's file may stand, and who has it open: never on a file system that others reach over a network."""

import contextlib
import fcntl
import os
import re

from codewhale.journal.model import JournalUnavailable

MOUNTS = "/proc/self/mountinfo"
# Their locks or shared memory do not hold between machines.
_SHARED = frozenset(
    "nfs nfs4 cifs smb2 smb3 smbfs ncpfs afs ceph lustre glusterfs gpfs beegfs ocfs2 gfs2 davfs fuse.sshfs fuse.davfs "
    "fuse.glusterfs fuse.cephfs fuse.s3fs fuse.rclone".split()
)
_ESCAPED = re.compile(r"\\([0-7]{3})")


def file_system(path: str, mounts: str = MOUNTS) -> str:
    """The kind of file system that a path stands on, as the kernel calls it; "" where that cannot be known."""
    best, kind = "", ""
    real = os.path.realpath(path)
    with contextlib.suppress(OSError), open(mounts, encoding="utf-8", errors="surrogateescape") as rows:
        for row in rows:
            place, _, rest = row.partition(" - ")
            words = place.split()
            if len(words) < 5 or not rest:
                continue
            point = _ESCAPED.sub(lambda code: chr(int(code[1], 8)), words[4])
            below = real == point or real.startswith(point.rstrip("/") + "/")
            if below and len(point) >= len(best):
                best, kind = point, rest.split()[0]
    return kind


def refuse_shared(path: str, mounts: str = MOUNTS) -> None:
    """Raises JournalUnavailable for a folder on a network file system."""
    kind = file_system(path, mounts)
    if kind in _SHARED:
        raise JournalUnavailable(
            f"Tasks and schedules need a home on a local disk: {path} is on a network file system ({kind}), where two "
            "machines could run one task twice. Set CODEWHALE_HOME to a local folder; everything else works as it is."
        )


class Presence:
    """Which processes have the journal open, by a lock that the kernel gives back when one dies. `first`: nobody else
    had it when this one came."""

    def __init__(self, path: str) -> None:
        self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        self.first = self._try(fcntl.LOCK_EX)
        fcntl.flock(self._fd, fcntl.LOCK_SH)

    def alone(self) -> bool:
        """Whether nobody else has it now; then nobody else comes before `release` or `share`."""
        if not (alone := self._try(fcntl.LOCK_EX)):
            self.share()  # a change of the lock that is refused has given the old one back
        return alone

    def share(self) -> None:
        fcntl.flock(self._fd, fcntl.LOCK_SH)

    def release(self) -> None:
        os.close(self._fd)

    def _try(self, kind: int) -> bool:
        try:
            fcntl.flock(self._fd, kind | fcntl.LOCK_NB)
        except OSError:
            return False
        return True
