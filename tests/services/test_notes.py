import hashlib
import os
from pathlib import Path

import pytest

from codewhale.services.notes import LIMIT, append_note


def read(workspace: Path) -> str:
    return (workspace / ".codewhale" / "notes.md").read_text()


def test_notes_follow_each_other_under_separators(tmp_path: Path) -> None:
    first = append_note(str(tmp_path), "one\n")
    second = append_note(str(tmp_path), "two é")
    assert read(tmp_path) == "---\n\none\n\n---\n\ntwo é\n"
    assert (first.path, first.before) == (".codewhale/notes.md", None)
    assert first.after == second.before
    assert second.after == hashlib.sha256(read(tmp_path).encode()).hexdigest()


def test_a_persons_own_notes_stay(tmp_path: Path) -> None:
    (tmp_path / ".codewhale").mkdir()
    (tmp_path / ".codewhale" / "notes.md").write_text("# Mine, no end of line")
    append_note(str(tmp_path), "one")
    assert read(tmp_path) == "# Mine, no end of line\n\n---\n\none\n"


@pytest.mark.parametrize("kind", ["folder link", "file link", "dangling link", "hard link", "pipe", "folder"])
def test_nothing_but_a_plain_file_is_written(tmp_path: Path, kind: str) -> None:
    workspace, outside = tmp_path / "w", tmp_path / "outside"
    workspace.mkdir()
    outside.mkdir()
    (outside / "notes.md").write_text("outside")
    place = workspace / ".codewhale" / "notes.md"
    if kind == "folder link":
        (workspace / ".codewhale").symlink_to(outside)
    else:
        (workspace / ".codewhale").mkdir()
    if kind == "file link":
        place.symlink_to(outside / "notes.md")
    elif kind == "dangling link":
        place.symlink_to(outside / "new.md")
    elif kind == "hard link":
        os.link(outside / "notes.md", place)
    elif kind == "pipe":
        os.mkfifo(place)
    elif kind == "folder":
        place.mkdir()
    with pytest.raises(OSError):
        append_note(str(workspace), "one")
    assert (outside / "notes.md").read_text() == "outside"
    assert os.listdir(outside) == ["notes.md"]


def test_the_file_is_bounded(tmp_path: Path) -> None:
    append_note(str(tmp_path), "x" * (LIMIT - 100))
    size = len(read(tmp_path))
    with pytest.raises(OSError):
        append_note(str(tmp_path), "y" * 200)
    assert len(read(tmp_path)) == size
