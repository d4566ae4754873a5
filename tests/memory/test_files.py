"""One MEMORY.md that a person and the harness both change."""

import os
import subprocess
import sys
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from codewhale.memory.files import LIMIT, FactFile
from codewhale.memory.layers import MemoryRefused
from codewhale.memory.lines import with_changed, with_fact, without
from codewhale.memory.model import Fact
from support.patience import HANG

EDITED = (
    "\ufeff# What I want\r\n\r\nSome words.\r\n\r\n<!-- kept -->\r\n* (2026-05-03) tabs\r\n  and not\r\n\tspaces "
    "<!-- id:a1 -->\r\n\r\n```\r\n- in a block\r\n```\r\n<!--\n- switched off\n-->\r\n1. one\r\n- port 5433"
)


def fact_file(tmp_path: Path, text: str | bytes | None = None) -> FactFile:
    file = FactFile(str(tmp_path / "memory"), "global")
    if text is not None:
        Path(file.folder).mkdir(parents=True, exist_ok=True)
        Path(file.path).write_bytes(text if isinstance(text, bytes) else text.encode())
    return file


def names(file: FactFile) -> list[str]:
    """What stands beside it, but for the record of the last seconds."""
    return [name for name in os.listdir(file.folder) if name != ".MEMORY.md.recent"]


def texts(file: FactFile) -> list[str]:
    return [fact.text for fact in file.read().facts]


def test_what_a_person_wrote_stays_to_the_byte_but_for_the_lines_concerned(tmp_path: Path) -> None:
    file = fact_file(tmp_path, EDITED)
    tabs, port = file.read().facts
    assert (tabs.text, tabs.id, tabs.line, tabs.created) == ("tabs and not spaces", "a1", 6, "2026-05-03")
    assert (port.text, port.line) == ("port 5433", 17)
    file.edit(partial(with_fact, fact=Fact("b2", "nox", "global")))
    assert Path(file.path).read_bytes().decode() == EDITED + "\r\n- nox <!-- id:b2 -->\r\n"
    file.edit(partial(with_changed, fact=Fact("a1", "spaces", "global", "2026-06-01")))
    before, _, rest = EDITED.partition("* (2026-05-03)")
    after = rest.partition("id:a1 -->")[2]
    changed = f"{before}* (2026-06-01) spaces <!-- id:a1 -->{after}\r\n- nox <!-- id:b2 -->\r\n"
    assert Path(file.path).read_bytes().decode() == changed
    file.edit(partial(without, scope="global", ids={"a1", "b2"}))
    assert Path(file.path).read_bytes().decode() == before + after.removeprefix("\r\n") + "\r\n"


def test_what_is_written_is_private(tmp_path: Path) -> None:
    file = fact_file(tmp_path, "- a\n")
    os.chmod(file.path, 0o644)
    os.chmod(file.folder, 0o755)
    file.edit(lambda data: data + b"- b\n")
    assert [os.stat(path).st_mode & 0o777 for path in (file.path, file.folder)] == [0o600, 0o700]
    assert names(file) == ["MEMORY.md"]


@pytest.mark.parametrize(
    ("data", "facts", "problem"),
    [
        (b"- good\n- b\xff\xfed\n- more\n", ["good", "more"], "line 2: is not UTF-8"),
        ("- a\n".encode("utf-16"), [], "is not UTF-8"),
        (b"- a\n" + b"x" * LIMIT, ["a"], "larger than 1 MiB"),
        (b"- a\n```\n- b\n", ["a"], "line 2: what begins there does not end"),
        (b"- a\n<!-- off\n- b\n", ["a"], "line 2: what begins there does not end"),
        (b"- one <!-- id:x1 -->\n- two <!-- id:x1 -->\n", ["one", "two"], "line 2: its id x1"),
        (b"- " + b"y" * 3000 + b"\n", ["y" * 1999 + "…"], "longer than 2,000"),
        (b"- a\n" * 20_001, ["a"] * 20_000, "first 20,000"),
    ],
)
def test_what_is_wrong_is_said_and_the_rest_is_read(
    tmp_path: Path, data: bytes, facts: list[str], problem: str
) -> None:
    read = fact_file(tmp_path, data).read()
    assert [fact.text for fact in read.facts] == facts and problem in "\n".join(read.problems)
    assert len({fact.id for fact in read.facts}) == len(set(facts))


@pytest.mark.parametrize("kind", ["link", "folder link", "dangling", "folder", "pipe"])
def test_what_is_no_file_of_its_own_is_neither_read_nor_changed(tmp_path: Path, kind: str) -> None:
    file = fact_file(tmp_path, "- a\n")
    path, other = Path(file.path), tmp_path / "other"
    other.mkdir()
    (other / "MEMORY.md").write_text("- foreign\n")
    path.unlink()
    if kind == "folder link":
        path.parent.rmdir()
        path.parent.symlink_to(other)
    elif kind in ("link", "dangling"):
        path.symlink_to(other / ("MEMORY.md" if kind == "link" else "none"))
    elif kind == "folder":
        path.mkdir()
    else:
        os.mkfifo(path)
    read = file.read()
    assert read.facts == () and str(path) in read.problems[0] and read.sha256 == ""
    with pytest.raises(MemoryRefused, match="Nothing was changed"):
        file.edit(lambda data: data + b"- b\n")
    assert (other / "MEMORY.md").read_text() == "- foreign\n" and not (other / "none").exists()


def test_a_file_that_would_grow_too_large_stays_as_it_is(tmp_path: Path) -> None:
    file = fact_file(tmp_path, b"x" * (LIMIT - 3))
    with pytest.raises(MemoryRefused, match="larger than 1 MiB"):
        file.edit(lambda data: data + b"\n- fact\n")
    assert os.path.getsize(file.path) == LIMIT - 3


def rename_editor(path: Path, line: str) -> None:
    data = path.read_bytes()
    draft = path.with_name("draft")
    draft.write_bytes(line.encode() + data)
    draft.replace(path)


def in_place_editor(path: Path, line: str) -> None:
    """One that empties the file and takes its time to write it."""
    data = path.read_bytes()
    with path.open("wb", buffering=0) as file:
        file.write(line.encode())
        half = len(data) // 2
        file.write(data[:half])
        threading.Event().wait(0.02)
        file.write(data[half:])


@pytest.mark.parametrize("save", [rename_editor, in_place_editor])
def test_what_an_editor_saves_while_the_harness_writes_is_kept(
    tmp_path: Path, save: Callable[[Path, str], None]
) -> None:
    """The editor saves when the new bytes were already made of the old ones."""
    file = fact_file(tmp_path, "# Mine\n- a\n")
    edits = iter(range(3))

    def change(data: bytes) -> bytes:
        if (number := next(edits, None)) is not None:
            save(Path(file.path), f"- edit {number}\n")
        return data + b"- b\n"

    file.edit(change)
    assert sorted(texts(file)) == ["a", "b", "edit 0", "edit 1", "edit 2"]
    assert Path(file.path).read_text().count("# Mine\n") == 1 and names(file) == ["MEMORY.md"]


def test_a_file_half_written_in_place_is_waited_for(tmp_path: Path) -> None:
    file = fact_file(tmp_path, "- a\n- b\n")
    begun = threading.Event()

    def save() -> None:
        with open(file.path, "wb", buffering=0) as out:
            out.write(b"- a\n")
            begun.set()
            threading.Event().wait(0.02)
            out.write(b"- b\n- c\n")

    editor = threading.Thread(target=save)
    editor.start()
    begun.wait(HANG)
    file.edit(lambda data: data + b"- d\n")
    editor.join()
    assert texts(file) == ["a", "b", "c", "d"]


def test_drafts_of_a_killed_writer_are_removed(tmp_path: Path) -> None:
    file = fact_file(tmp_path, "- a\n")
    (Path(file.folder) / ".MEMORY.md.0123.tmp").write_text("- half")
    file.edit(lambda data: data + b"- b\n")
    assert names(file) == ["MEMORY.md"]


def test_a_full_disk_changes_nothing(tmp_path: Path) -> None:
    file = fact_file(tmp_path, "- a\n")
    program = (
        "import sys; from codewhale.memory.files import FactFile\n"
        "try: FactFile(sys.argv[1], 'global').edit(lambda data: data + b'- b\\n')\n"
        "except Exception as error: print(type(error).__name__, error)"
    )
    environ = {**os.environ, "CODEWHALE_FAILPOINTS": "disk.write=enospc@1"}
    words = [sys.executable, "-c", program, str(tmp_path / "memory")]
    done = subprocess.run(words, env=environ, capture_output=True, text=True, timeout=HANG, check=True)
    assert done.stdout.startswith("MemoryRefused Nothing was changed") and "No space left" in done.stdout
    assert texts(file) == ["a"] and names(file) == ["MEMORY.md"]
