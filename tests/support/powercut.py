"""A disk that forgets: file operations are recorded while they happen, then every state a power cut may leave
behind is rebuilt from the record.

What a file held at its last fsync is safe. Of what was written since, all, none or any beginning may be there,
and a grown file may hold zeros instead. A name is safe once its directory was synced; before, the change may or
may not have happened.
"""

import os
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

from codewhale.lib.files import FileOps

Tree = dict[str, bytes]


class Step(Struct, frozen=True):
    """One recorded operation; `target` is the second name of a rename, `size` a truncation's."""

    kind: str
    path: str
    data: bytes = b""
    target: str = ""
    size: int = 0


class RecordingOps(FileOps):
    """The disk, with a record of what was done to it. Fsyncs are recorded and skipped."""

    def __init__(self) -> None:
        self.steps: list[Step] = []
        self._paths: dict[int, str] = {}

    def open(self, path: str, flags: int, mode: int = 0o600) -> int:
        new = not os.path.exists(path)
        fd = super().open(path, flags, mode)
        self._paths[fd] = path
        if new:
            self.steps.append(Step("create", path))
        return fd

    def write(self, fd: int, data: bytes | memoryview) -> int:
        taken = super().write(fd, data)
        self.steps.append(Step("write", self._paths[fd], bytes(data[:taken])))
        return taken

    def fsync(self, fd: int) -> None:
        self.steps.append(Step("fsync", self._paths[fd]))

    def truncate(self, fd: int, size: int) -> None:
        super().truncate(fd, size)
        self.steps.append(Step("truncate", self._paths[fd], size=size))

    def rename(self, source: str, target: str) -> None:
        super().rename(source, target)
        self.steps.append(Step("rename", source, target=target))

    def unlink(self, path: str) -> None:
        super().unlink(path)
        self.steps.append(Step("unlink", path))

    def sync_dir(self, path: str) -> None:
        self.steps.append(Step("sync_dir", path))

    def mark(self, name: str) -> None:
        """Something was acknowledged to the outside."""
        self.steps.append(Step("mark", name))


class File:
    """A file's bytes: those that are safe, each state since, and the last write."""

    def __init__(self) -> None:
        self.safe = b""
        self.states: list[bytes] = []
        self.before_last = b""

    @property
    def now(self) -> bytes:
        return self.states[-1] if self.states else self.safe

    def become(self, data: bytes) -> None:
        self.before_last = self.now
        self.states.append(data)

    def sync(self) -> None:
        self.safe, self.states = self.now, []

    def variants(self, *, every: bool) -> Iterator[bytes]:
        """What may be found after a cut; `every` tears the last write at each byte."""
        yield self.safe
        yield self.now
        if not every or not self.states:
            return
        yield from self.states
        base, full = self.before_last, self.now
        grown = len(full) - len(base)
        if grown <= 0 or not full.startswith(base):
            return
        yield base + bytes(grown)
        yield self.safe + bytes(len(full) - len(self.safe))
        for cut in range(1, grown):
            torn = full[: len(base) + cut]
            yield torn
            if cut % 8 == 0:
                yield torn + bytes(grown - cut)
                yield base + bytes(cut) + full[len(base) + cut :]


class Model:
    """The files and names as the recorded steps leave them, safe and unsafe."""

    def __init__(self, root: str) -> None:
        self._root = root
        self.names: dict[str, File] = {}
        self._safe_names: dict[str, File] = {}
        self._safe_folders = {root}

    def apply(self, step: Step) -> None:
        if step.kind == "create":
            self.names[step.path] = File()
        elif step.kind == "write":
            file = self.names[step.path]
            file.become(file.now + step.data)
        elif step.kind == "truncate":
            file = self.names[step.path]
            file.become(file.now[: step.size])
        elif step.kind == "fsync":
            self.names[step.path].sync()
        elif step.kind == "rename":
            self.names[step.target] = self.names.pop(step.path)
        elif step.kind == "unlink":
            self.names.pop(step.path, None)
        elif step.kind == "sync_dir":
            self._sync_dir(step.path)

    def _sync_dir(self, folder: str) -> None:
        kept = {path: file for path, file in self._safe_names.items() if os.path.dirname(path) != folder}
        here = {path: file for path, file in self.names.items() if os.path.dirname(path) == folder}
        self._safe_names = {**kept, **here}
        self._safe_folders |= {os.path.dirname(path) for path in self.names if Path(folder) in Path(path).parents}

    def safe_names(self) -> dict[str, File]:
        """Names that a cut cannot take away, in folders it cannot take away."""
        return {path: file for path, file in self._safe_names.items() if os.path.dirname(path) in self._safe_folders}

    def trees(self, touched: str) -> Iterator[Tree]:
        """The states a cut may leave now: every variant of the file last touched, with the others safe or whole."""
        for names in (self.safe_names(), self.names):
            others = {path: file for path, file in names.items() if path != touched}
            for rest in (
                {path: file.safe for path, file in others.items()},
                {path: file.now for path, file in others.items()},
            ):
                if touched not in names:
                    yield rest
                    continue
                for data in names[touched].variants(every=True):
                    yield {**rest, touched: data}


def crash_states(steps: list[Step], root: str) -> Iterator[tuple[Tree, list[str]]]:
    """Each distinct pair of a state after a cut anywhere in the record and of what had been acknowledged by then."""
    model = Model(root)
    seen: set[int] = set()
    marks: list[str] = []
    for step in steps:
        if step.kind == "mark":
            marks.append(step.path)
            seen.clear()  # the same bytes now owe more
        model.apply(step)
        for tree in model.trees(step.target or step.path):
            key = hash(tuple(sorted(tree.items())))
            if key not in seen:
                seen.add(key)
                yield tree, list(marks)


class Rebuilt:
    """A directory made to hold one state after another; what is known to be there already is not written again."""

    def __init__(self, source: str, target: str) -> None:
        self._source, self._target = source, target
        self._held: Tree = {}

    def show(self, tree: Tree, stale: str) -> None:
        """Make the directory hold exactly `tree`; files named `stale` have been changed by whoever looked."""
        for path in self._held.keys() - tree.keys():
            os.unlink(self._place(path))
        for path, data in tree.items():
            if self._held.get(path) != data or path.endswith(stale):
                self._write(self._place(path), data)
        self._held = tree

    def _write(self, place: str, data: bytes) -> None:
        os.makedirs(os.path.dirname(place), exist_ok=True)
        fd = os.open(place, os.O_WRONLY | os.O_CREAT, 0o600)
        os.write(fd, data)
        os.ftruncate(fd, len(data))
        os.close(fd)

    def _place(self, path: str) -> str:
        return self._target + path.removeprefix(self._source)
