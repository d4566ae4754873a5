"""Files read for the index."""

import os
import time
from pathlib import Path

from codewhale.codesearch.indexing import ReadTask, read_file, read_files
from codewhale.codesearch.source import LARGEST, SourceReader


def settled(path: Path) -> Path:
    then = time.time_ns() - 3600 * 10**9
    os.utime(path, ns=(then, then))
    return path


def test_a_batch_of_files_and_what_is_gone(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("def f(): pass\n")
    (tmp_path / "folder").mkdir()
    (tmp_path / "link.py").symlink_to("a.py")
    batch = read_files(
        SourceReader(str(tmp_path / "g")), ReadTask(str(tmp_path), ["a.py", "gone.py", "folder", "link.py"])
    )
    assert [row.path for row in batch.files] == ["a.py"] and "gone.py" in batch.gone
    source = batch.files[0].source
    assert (source.lang, len(source.chunks)) == ("python", 1)


def test_a_stamp_taken_just_after_a_change_is_not_trusted(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_text("x")
    assert (read_file(str(path)) or (b"", 0, 0, 1))[3] == 0


def test_no_more_is_read_than_is_indexed(tmp_path: Path) -> None:
    big, binary = tmp_path / "big", tmp_path / "binary"
    big.write_bytes(b"x" * (LARGEST + 100))
    binary.write_bytes(b"\0" * 100_000)
    told = read_file(str(big))
    assert told is not None and told[0] is not None and (len(told[0]), told[1]) == (LARGEST + 1, LARGEST + 100)
    told = read_file(str(binary))
    assert told is not None and told[0] is not None and len(told[0]) < 10_000


def test_what_is_no_file_is_not_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert read_file(str(tmp_path / "pipe")) is None and read_file(str(tmp_path / "none")) is None
