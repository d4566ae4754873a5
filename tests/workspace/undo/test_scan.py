"""Looking at files: what is told of each kind, what is read again, and that no link is followed."""

import os
import stat
from pathlib import Path

import pytest

from codewhale.lib.beneath import Root
from codewhale.workspace.undo.journal import FileState, blob_id
from codewhale.workspace.undo.scan import FILE_LIMIT, FileLook, FileScanner, KnownFile, TooLongError, change_of


def look(root: Path, *paths: str, known: dict[str, KnownFile] | None = None) -> dict[str, FileLook]:
    return {one.path: one for one in FileScanner(Root(str(root)), 60.0).all(paths, known or {})}


def age(path: Path) -> None:
    os.utime(path, (1, 1))


def test_files_links_and_what_is_neither(tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "file").write_bytes(b"\x00\r\n")
    (tmp_path / "tool").write_bytes(b"#!")
    (tmp_path / "tool").chmod(0o750)
    os.symlink("nowhere", tmp_path / "link")
    os.mkfifo(tmp_path / "pipe")
    seen = look(tmp_path, "d/file", "tool", "link", "pipe", "d", "absent", "absent/x")
    assert seen.keys() == {"d/file", "tool", "link"}
    states = {path: one.known.state for path, one in seen.items() if one.known}
    assert states["d/file"] == FileState(stat.S_IFREG | 0o644, blob_id(b"\x00\r\n"), 3)
    assert stat.S_IMODE(states["tool"].mode) == 0o750 and states["link"].is_link
    assert seen["link"].data == b"nowhere"


def test_what_is_known_and_the_same_is_not_told_again_and_what_is_gone_is(tmp_path: Path) -> None:
    for name in ("same", "other", "gone", "mode"):
        (tmp_path / name).write_text("1")
    first = {path: one.known for path, one in look(tmp_path, "same", "other", "gone", "mode").items() if one.known}
    assert all(known.identity == () for known in first.values())  # touched just now: read once more
    known = {
        path: KnownFile(one.state, (s.st_ino, s.st_size, s.st_mtime_ns, s.st_ctime_ns, s.st_mode))
        for path, one in first.items()
        if (s := os.stat(tmp_path / path))
    }
    (tmp_path / "other").write_text("22")
    (tmp_path / "gone").unlink()
    (tmp_path / "mode").chmod(0o600)
    seen = look(tmp_path, *known, known=known)
    assert seen.keys() == {"other", "gone", "mode"} and seen["gone"].known is None
    change = change_of(seen["mode"], known["mode"])
    assert change is not None and change.change.before != change.change.after


def test_a_state_whose_permission_bits_are_unknown_is_no_change(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("1")
    (tmp_path / "a").chmod(0o664)
    known = KnownFile(FileState(stat.S_IFREG, blob_id(b"1"), 1), ())
    (seen,) = look(tmp_path, "a", known={"a": known}).values()
    assert change_of(seen, known) is None
    (tmp_path / "a").chmod(0o775)
    (seen,) = look(tmp_path, "a", known={"a": known}).values()
    assert change_of(seen, known) is not None


def test_nothing_is_read_through_a_link_and_nothing_too_large_is_read(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "secret").write_text("secret")
    root = tmp_path / "root"
    root.mkdir()
    os.symlink("../out", root / "d")
    with open(root / "large", "wb") as file:
        file.truncate(FILE_LIMIT + 1)
    seen = look(root, "d/secret", "../out/secret", "large")
    assert seen.keys() == {"large"} and seen["large"].data is None
    assert seen["large"].known is not None and seen["large"].known.state.blob == ""


def test_it_ends_when_it_is_told_or_takes_too_long(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("1")
    looker = FileScanner(Root(str(tmp_path)), 60.0)
    looker.stop.set()
    with pytest.raises(TooLongError):
        list(looker.all(["a"], {}))
    with pytest.raises(TooLongError):
        list(FileScanner(Root(str(tmp_path)), -1.0).all(["a"], {}))
