"""Errors about workspace paths, written for the model: what is wrong, and a next call that works."""

import errno
import os
import re
import stat
from collections.abc import Callable
from contextlib import suppress

from codewhale.lib.beneath import PathRefused, Root
from codewhale.lib.text import one_line
from codewhale.permissions.folders import HOW_TO_ADD
from codewhale.permissions.path_spelling import meant, undressed
from codewhale.protocol.errors import Corrected, Look, NextCall, ToolError

Redact = Callable[[str], str]
_MARK = re.compile(r"\[redacted [^\[\]\n]{1,100}\]")
_KINDS = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISFIFO, "a named pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a character device"),
    (stat.S_ISBLK, "a block device"),
)
_REASONS = {
    errno.ELOOP: "a link in the path keeps changing or leads in a circle",
    errno.ENOTDIR: "a part of the path is not a folder",
    errno.ENOSPC: "the disk is full; nothing was changed",
    errno.EBUSY: "it changed while it was being written; nothing was changed",
    errno.ENAMETOOLONG: "the name is too long",
}


class PathErrors:
    def __init__(self, root: Root) -> None:
        self._root = root

    def missing(self, path: str, wanted: Callable[[int], bool] = stat.S_ISREG) -> ToolError:
        """The error for a path that does not exist, with the likeliest name beside it, and the same call with that name
        where it is what is `wanted`."""
        try:
            name = self._root.relative(path)
        except PathRefused as refused:
            return self.escape(path, refused)
        text, close = f"no such file: {name}", []
        fix: Corrected | None = None
        with suppress(PathRefused, OSError):
            likely = meant(self._root, path)
            close = [self._root.relative(likely)] if likely else self._like(self.nearest_folder(name), name)
            if close and wanted(self._root.stat(close[0]).st_mode):
                fix = Corrected({"path": close[0]})
        if close:
            text += f". Did you mean {' or '.join(close)}?"
        return ToolError("execution_failed", text, field="path", expected="an existing file", received=path, fix=fix)

    def dressed(self, path: str, folders: bool) -> ToolError | None:
        """The error for a new file whose name was not meant as it came (with `folders`, also for the folders of a diff
        or of another machine); None for any other."""
        try:
            self._root.relative(path)
        except PathRefused:
            return None
        likely = undressed(self._root, path, folders=folders)
        if not likely:
            return None
        return ToolError(
            "invalid_input",
            f"{path!r} is not how a new file of this workspace is called. Nothing was written. Did you mean "
            f"{likely!r}? A path is given bare and relative to the workspace; a new folder of that name is made first",
            field="path",
            expected=f"{likely!r}, or another path relative to the workspace",
            received=path,
            fix=Corrected({"path": likely}),
        )

    def nearest_folder(self, name: str) -> str:
        """The deepest existing folder above a path, "." at least."""
        while name not in ("", "."):
            name = os.path.dirname(name)
            try:
                if name and stat.S_ISDIR(self._root.stat(name).st_mode):
                    return name
            except (PathRefused, OSError):
                continue
        return "."

    def _like(self, folder: str, name: str) -> list[str]:
        """Up to three existing paths in `folder` whose names resemble the one wanted there."""
        import difflib

        wanted, *rest = (name.removeprefix(folder + "/") if folder != "." else name).split("/")
        names = {entry: entry.casefold() for entry, _, is_link in self._root.scandir(folder, 5000) if not is_link}
        close = difflib.get_close_matches(wanted.casefold(), sorted(set(names.values())), 3, 0.65)
        ranked = sorted((close.index(low), entry) for entry, low in names.items() if low in close)
        similar = [entry if folder == "." else f"{folder}/{entry}" for _, entry in ranked[:3]]
        deeper = ["/".join((entry, *rest)) for entry in similar] if rest else []
        return [path for path in deeper if self._is_there(path)] or similar

    def _is_there(self, path: str) -> bool:
        try:
            self._root.stat(path)
        except (PathRefused, OSError):
            return False
        return True

    def escape(self, path: str, refused: PathRefused, write: bool = False) -> ToolError:
        """A path that leads out; of one to be written, what it was meant to be need not be there."""
        likely = meant(self._root, path) or (undressed(self._root, path) if write else "")
        hint = f". Did you mean {likely!r}?" if likely else ""
        if "link" in refused.reason:
            real = os.path.realpath(os.path.join(self._root.path, path))
            hint = f". It leads to {one_line(real)}: give that path itself, so that the user can be asked about it"
        return ToolError(
            "path_escape",
            f"{path!r} is refused: {refused.reason}. Give a path relative to the workspace {self._root.path}{hint}"
            f"{'' if likely else f'. Where it must be that one, {HOW_TO_ADD}'}",
            field="path",
            expected="a path inside the workspace",
            received=path,
            fix=Corrected({"path": likely}) if likely else None,
        )

    def explain(
        self, path: str, error: Exception, write: bool = False, wanted: Callable[[int], bool] = stat.S_ISREG
    ) -> ToolError:
        """What the file system or the path check said, for the model."""
        if isinstance(error, PathRefused):
            return self.escape(path, error, write)
        assert isinstance(error, OSError)
        name = self._root.relative(path)
        if isinstance(error, FileNotFoundError) and not write:
            return self.missing(path, wanted)
        verb = "write" if write else "read"
        kind = "permission_denied" if isinstance(error, PermissionError) else "execution_failed"
        reason = _REASONS.get(error.errno or 0) or error.strerror or str(error)
        return ToolError(
            kind,  # type: ignore[arg-type]
            f"cannot {verb} {name}: {reason}",
            field="path",
            expected=f"a path that can be {'written' if write else 'read'}",
            received=path,
        )


def refuse_kind(name: str, mode: int) -> None:
    """Raise ToolError for anything but a regular file."""
    for test, kind in _KINDS:
        if test(mode):
            raise ToolError(
                "execution_failed",
                f"{name} is {kind}, not a file",
                field="path",
                expected="a regular file",
                received=name,
                fix=Look("list_dir", {"path": name}) if test is stat.S_ISDIR else None,
            )


def refuse_marks(name: str, before: bytes, after: bytes, redact: Redact) -> None:
    """Raise ToolError where a file would be given the mark of a secret that stands in it now: the model was shown the
    mark, and the secret would be lost."""
    if b"[redacted " not in after:
        return
    text = before.decode("utf-8", "replace")
    new = set(_MARK.findall(after.decode("utf-8", "replace"))) - set(_MARK.findall(text))
    lost = sorted(new & set(_MARK.findall(redact(text)))) if new else []
    if lost:
        raise ToolError(
            "invalid_input",
            f"{name} contains a secret that you are shown as {lost[0]}; written like that, the secret would be lost. "
            "Nothing was changed. Edit the lines around it with edit_file or apply_patch and leave its line as it is",
            field="content",
            expected=f"text without {lost[0]}",
            received=lost[0],
            fix=Look("read_file", {"path": name}),
        )


def too_large(name: str, size: int, limit: int) -> ToolError:
    return ToolError(
        "execution_failed",
        f"{name} has {size:,} bytes, more than the {limit:,} that can be handled whole. Text can be read in windows "
        "(read_file with start_line)",
        field="path",
        expected=f"at most {limit:,} bytes",
        received=f"{size:,} bytes",
    )


def locate(root: str, path: str | None, again: NextCall | None, *, must_exist: bool = True) -> str:
    """`path` (None is the workspace itself) as a relative POSIX path with every link resolved, "." for the root.

    `again` is the same call without the path: what to do instead of leaving the workspace. Raises ToolError path_escape
    for a way out, invalid_input for what is not there (unless `must_exist` is False) or is neither file nor folder.
    """
    if path is None:
        return "."
    beneath = Root(root)
    try:
        resolved = beneath.resolve(path)
        mode = os.lstat(os.path.join(beneath.path, resolved)).st_mode
    except PathRefused as refused:
        likely = meant(beneath, path)
        problem = f"is refused: {refused.reason}. The workspace is {beneath.path}; give a path relative to it"
        problem += "" if likely else f". Where it must be that one, {HOW_TO_ADD}"
        error = _bad_path(path, problem, Corrected({"path": likely}) if likely else again)
        error.kind, error.expected = "path_escape", "a path inside the workspace"
        raise error
    except (FileNotFoundError, NotADirectoryError):
        if not must_exist:
            return beneath.relative(path)
        raise missing(path, meant(beneath, path))
    except OSError as error:
        raise _bad_path(path, f"cannot be looked at: {error.strerror}", again)
    if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
        raise _bad_path(path, "is neither a file nor a folder", again)
    return resolved


def missing(path: str, likely: str = "") -> ToolError:
    name = path.rstrip("/").rpartition("/")[2]
    hint = f" Did you mean {likely!r}?" if likely else ""
    return ToolError(
        "invalid_input",
        f"path {one_line(path)!r} does not exist in the workspace.{hint}",
        field="path",
        expected="a file or folder that exists, relative to the workspace",
        received=one_line(path),
        fix=Corrected({"path": likely}) if likely else Look("file_search", {"query": name[:500]}) if name else None,
    )


def _bad_path(path: str, problem: str, fix: NextCall | Corrected | None) -> ToolError:
    return ToolError(
        "invalid_input",
        f"path {one_line(path)!r} {problem}.",
        field="path",
        expected="a regular file or a folder",
        received=one_line(path),
        fix=fix,
    )
