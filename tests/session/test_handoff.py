"""The file of a relay: whole or as it was, whoever kills its writer and whatever the disk takes; and who was told."""

import shutil
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from codewhale.session.handoff import HANDOFF, PREVIOUS, HandoffRow, Handoffs, check_place, read_handoff, write_handoff
from support.patience import HANG

WRITER = """
    import sys
    from codewhale.session.handoff import write_handoff
    number = 0
    while True:
        number += 1
        write_handoff(sys.argv[1], f"BEGIN {number}\\n" + "x" * 30_000 + f"\\nEND {number}\\n")
        if number == 1:
            print("begun", flush=True)
"""
FULL = """
    import resource, signal, sys
    from codewhale.session.handoff import write_handoff
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
    try:
        write_handoff(sys.argv[1], "y" * 30_000)
    except OSError as error:
        print(error.strerror)
"""


def whole(file: Path) -> bool:
    first, *_, last = file.read_text().splitlines()
    return first.removeprefix("BEGIN ") == last.removeprefix("END ")


def test_ten_kills_leave_whole_files(tmp_path: Path) -> None:
    for number in range(10):
        child = subprocess.Popen([sys.executable, "-c", textwrap.dedent(WRITER), str(tmp_path)], stdout=subprocess.PIPE)
        assert child.stdout is not None and child.stdout.readline() == b"begun\n"
        time.sleep(0.003 * number)  # anywhere within a write
        child.send_signal(signal.SIGKILL)
        child.wait(timeout=HANG)
        child.stdout.close()
        assert whole(tmp_path / HANDOFF)
        assert not (tmp_path / PREVIOUS).exists() or whole(tmp_path / PREVIOUS)


def test_a_full_disk_leaves_what_was_there(tmp_path: Path) -> None:
    write_handoff(str(tmp_path), "first")
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(FULL), str(tmp_path)], capture_output=True, text=True, timeout=60
    )
    assert done.stdout == "File too large\n", done.stderr
    assert [path.name for path in (tmp_path / ".codewhale").iterdir()] == ["handoff.md"]
    assert (tmp_path / HANDOFF).read_text() == "first"


def test_looking_whether_it_can_be_written_leaves_nothing(tmp_path: Path) -> None:
    check_place(str(tmp_path))
    assert list(tmp_path.iterdir()) == []
    (tmp_path / ".codewhale").write_text("a file")
    with pytest.raises(OSError):
        check_place(str(tmp_path))


def test_a_file_is_written_beside_its_other_names(tmp_path: Path) -> None:
    (tmp_path / ".codewhale").mkdir()
    (tmp_path / "mine").write_text("mine")
    (tmp_path / HANDOFF).hardlink_to(tmp_path / "mine")
    sha256, former = write_handoff(str(tmp_path), "relay")
    assert former and (tmp_path / "mine").read_text() == "mine" == (tmp_path / PREVIOUS).read_text()
    assert read_handoff(str(tmp_path), HANDOFF).sha256 == sha256


def test_a_file_is_told_to_one_session_and_to_no_other(tmp_path: Path) -> None:
    store, place = Handoffs(str(tmp_path / "home")), str(tmp_path)
    store.change(place, lambda _: HandoffRow("sha", "writer", 1.0))
    assert [store.claim(place, "sha", name)[1] for name in ("writer", "a", "b", "a")] == [False, True, False, True]
    assert store.claim(place, "other", "b")[1]
    store.change(place, lambda _: HandoffRow("new", "b", 2.0))
    assert store.claim(place, "new", "a")[1]


@pytest.mark.skipif(shutil.which("bwrap") is None, reason="needs bubblewrap for a read-only file system")
@pytest.mark.parametrize("folder", [False, True])
def test_a_read_only_workspace_is_seen_beforehand(tmp_path: Path, folder: bool) -> None:
    if folder:
        (tmp_path / ".codewhale").mkdir()
    program = "import sys\nfrom codewhale.session.handoff import check_place\ncheck_place(sys.argv[1])"
    held = ["bwrap", "--ro-bind", "/", "/", "--dev", "/dev", sys.executable, "-c", program, str(tmp_path)]
    done = subprocess.run(held, capture_output=True, text=True, timeout=HANG)
    assert done.returncode == 1 and done.stderr.splitlines()[-1].startswith(("OSError", "PermissionError")), done.stderr


def test_what_is_known_of_many_workspaces_is_bounded(tmp_path: Path) -> None:
    store = Handoffs(str(tmp_path / "home"))
    for number in range(510):
        store.change(str(tmp_path / str(number)), lambda _, at=number: HandoffRow("sha", "writer", float(at)))
    assert store.claim(str(tmp_path / "cloned"), "theirs", "a")[1]
    assert not store.claim(str(tmp_path / "cloned"), "theirs", "b")[1]
    assert store.claim(str(tmp_path / "509"), "sha", "a")[0].session == "writer"
    assert store.claim(str(tmp_path / "0"), "sha", "a")[0].session == ""
