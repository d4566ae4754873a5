"""Workspace files: contained, atomic, all or nothing, byte for byte, never over what the session has not seen."""

import hashlib
import os
import socket
import stat
import sys
import threading
import time
from pathlib import Path

import pytest

from codewhale.process.artifacts import ArtifactStore
from codewhale.protocol.errors import ToolError
from codewhale.workspace.files import READ_LIMIT, FileEdit, Workspace, Workspaces
from codewhale.workspace.files.workspace import file_mask
from support.flipper import while_flipping
from support.patchland import read_tree, workspace, write_tree
from support.patience import HANG, Moment


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "w").mkdir()
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "f").write_bytes(b"secret\n")
    return tmp_path / "w"


@pytest.fixture
def space(root: Path, tmp_path: Path) -> Workspace:
    return workspace(root, tmp_path / "store")


def sha(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def outside(root: Path) -> dict[str, bytes]:
    return read_tree(root.parent / "out")


def refusal(use: object, *args: object) -> ToolError:
    with pytest.raises(ToolError) as caught:
        use(*args)  # type: ignore[operator]
    assert caught.value.fix is None and caught.value.expected
    return caught.value


# ------------------------------------------------------------------ reading and writing


def test_a_write_creates_folders_and_tells_what_changed(space: Workspace, root: Path) -> None:
    change = space.write("s", "a/b/c.txt", b"one")
    assert (change.path, change.before, change.after, change.before_artifact) == ("a/b/c.txt", None, sha(b"one"), None)
    change = space.write("s", "./a//b/c.txt", b"two")
    assert change.before == sha(b"one") and change.after == sha(b"two")
    assert space.artifacts.get(change.before_artifact or "") == b"one"
    assert read_tree(root) == {"a/b/c.txt": b"two"}
    file = space.read(str(root / "a/b/c.txt"))
    assert (file.path, file.data, file.sha256, file.mode) == ("a/b/c.txt", b"two", sha(b"two"), 0o666 & ~file_mask())


def test_a_write_keeps_the_mode_and_sets_the_execute_bits(space: Workspace, root: Path) -> None:
    (root / "run.sh").write_bytes(b"x")
    (root / "run.sh").chmod(0o750)
    space.write("s", "run.sh", b"y")
    assert stat.S_IMODE((root / "run.sh").stat().st_mode) == 0o750
    space.apply("s", [FileEdit("run.sh", b"y", executable=False)])
    assert stat.S_IMODE((root / "run.sh").stat().st_mode) == 0o640
    space.apply("s", [FileEdit("moved.sh", b"z", move_from="run.sh", executable=True)])
    assert stat.S_IMODE((root / "moved.sh").stat().st_mode) == 0o750
    assert read_tree(root) == {"moved.sh": b"z"}


def test_the_same_content_is_not_written_again(space: Workspace, root: Path) -> None:
    (root / "f").write_bytes(b"x")
    before = (root / "f").stat()
    change = space.write("s", "f", b"x")
    assert change.before == change.after
    assert ((root / "f").stat().st_ino, (root / "f").stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


def test_links_inside_are_written_through(space: Workspace, root: Path) -> None:
    (root / "real").write_bytes(b"x")
    (root / "l").symlink_to("real")
    assert space.write("s", "l", b"y").path == "real"
    assert (root / "l").is_symlink() and (root / "real").read_bytes() == b"y"
    assert "is a link" in refusal(space.apply, "s", [FileEdit("l", None)]).message
    assert (root / "real").exists()


def test_moves_swaps_and_deletions(space: Workspace, root: Path) -> None:
    write_tree(root, {"a": b"A", "b": b"B", "c": b"C", "d": b"D"})
    changes = space.apply(
        "s",
        [
            FileEdit("a", b"B", move_from="b"),
            FileEdit("b", b"A", move_from="a"),
            FileEdit("new/c", b"C", "c"),
            FileEdit("d", None),
        ],
    )
    assert read_tree(root) == {"a": b"B", "b": b"A", "new/c": b"C"}
    assert [(c.path, c.after is None) for c in changes] == [
        ("a", False),
        ("b", False),
        ("new/c", False),
        ("c", True),
        ("d", True),
    ]


def test_all_or_nothing(space: Workspace, root: Path) -> None:
    write_tree(root, {"a": b"A", "dir/x": b"X"})
    for bad in (
        FileEdit("dir", b"no"),
        FileEdit("gone", None),
        FileEdit("a/under", b"no"),
        FileEdit("../out/f", b"no"),
    ):
        refusal(space.apply, "s", [FileEdit("a", b"changed"), FileEdit("made/new", b"n"), bad])
        assert read_tree(root) == {"a": b"A", "dir/x": b"X"}
        assert sorted(os.listdir(root)) == ["a", "dir"]


def test_a_failure_halfway_is_rolled_back(space: Workspace, root: Path) -> None:
    write_tree(root, {"a": b"A", "b": b"B"})
    (root / "same").symlink_to("b")
    edits = [FileEdit("a", b"changed"), FileEdit("new/n", b"n"), FileEdit("b", b"one"), FileEdit("same", b"two")]
    assert "changed while it was being written" in refusal(space.apply, "s", edits).message
    assert read_tree(root) == {"a": b"A", "b": b"B", "same": b"B"}
    assert sorted(os.listdir(root)) == ["a", "b", "same"]


def test_workspaces_share_one_per_root(root: Path, tmp_path: Path) -> None:
    (tmp_path / "alias").symlink_to("w")
    spaces = Workspaces(ArtifactStore(str(tmp_path / "store")))
    assert spaces.at(str(root)) is spaces.at(str(tmp_path / "alias"))
    assert spaces.at(str(root)).root == str(root)


# ------------------------------------------------------------------ hostile paths


@pytest.mark.parametrize(
    "path",
    ["../x", "/etc/x", "a/../../x", "C:\\x", "\\\\srv\\x", "//srv/x", "a\0b", "x.", "x ", "d./x", "..\\x", "~/x", ""],
)
def test_b1_hostile_spellings(space: Workspace, root: Path, path: str) -> None:
    for use in (space.read, space.relative, space.resolve, space.stat, space.scandir, space.open):
        assert refusal(use, path).kind == "path_escape"
    assert refusal(space.write, "s", path, b"PWNED").kind == "path_escape"
    assert refusal(space.apply, "s", [FileEdit("ok", b"x"), FileEdit(path, b"PWNED")]).kind == "path_escape"
    assert refusal(space.apply, "s", [FileEdit("ok", b"x"), FileEdit(path, None)]).kind == "path_escape"
    assert refusal(space.apply, "s", [FileEdit("ok", b"x", move_from=path or "..")]).kind == "path_escape"
    assert os.listdir(root) == []


def test_backslashes_make_no_new_file(space: Workspace, root: Path) -> None:
    (root / "od\\d").write_bytes(b"x")
    assert space.read("od\\d").data == b"x"
    assert "src/new.py" in refusal(space.write, "s", "src\\new.py", b"x").expected


@pytest.mark.parametrize("target", ["../out/f", "../out", "../out/nothing", "/etc/passwd", "../nothing/at/all"])
def test_b2_links_out_are_refused_for_every_use(space: Workspace, root: Path, target: str) -> None:
    (root / "l").symlink_to(target)
    (root / "ok").write_bytes(b"ok")
    for path in ("l", "l/f", "l/new"):
        for use in (space.read, space.resolve, space.stat, space.scandir, space.open):
            assert refusal(use, path).kind in ("path_escape", "execution_failed")
        refusal(space.write, "s", path, b"PWNED")
        refusal(space.apply, "s", [FileEdit(path, None)])
        refusal(space.apply, "s", [FileEdit("here", b"x", move_from=path)])
        refusal(space.apply, "s", [FileEdit(path, b"x", move_from="ok")])
    assert outside(root) == {"f": b"secret\n"}
    assert sorted(os.listdir(root)) == ["l", "ok"]


@pytest.mark.skipif(sys.platform != "linux", reason="exchanging two names at once is Linux's")
def test_b3_a_flipping_parent_never_lets_a_write_out(space: Workspace, root: Path) -> None:
    (root / "d").mkdir()
    leaked: list[bytes] = []

    def attempt(number: int) -> None:
        if number % 3:
            space.write("", "d/f", b"payload %d" % number)
        else:
            data = space.read("d/f", limit=100).data
            leaked.extend([data] if data == b"secret\n" else [])

    done, refused = while_flipping(root, 100_000, attempt)
    assert outside(root) == {"f": b"secret\n"}
    assert os.listdir(root.parent / "out") == ["f"]
    assert not leaked and done and refused


def test_b4_a_hardlink_to_an_outside_file_is_broken(space: Workspace, root: Path) -> None:
    os.link(root.parent / "out" / "f", root / "hard")
    space.write("s", "hard", b"PWNED")
    assert outside(root) == {"f": b"secret\n"} and (root / "hard").read_bytes() == b"PWNED"
    os.link(root.parent / "out" / "f", root / "hard2")
    space.apply("s", [FileEdit("hard2", None)])
    assert outside(root) == {"f": b"secret\n"}


def test_b5_a_sibling_folder_that_shares_the_prefix(space: Workspace, root: Path) -> None:
    evil = root.with_name("w-evil")
    evil.mkdir()
    (evil / "x").write_bytes(b"secret")
    assert refusal(space.read, str(evil / "x")).kind == "path_escape"
    assert refusal(space.write, "s", str(evil / "y"), b"").kind == "path_escape"
    assert os.listdir(evil) == ["x"]


def test_b6_special_files_never_hang(space: Workspace, root: Path) -> None:
    os.mkfifo(root / "pipe")
    (root / "dir").mkdir()
    with open(root / "sparse", "wb") as stream:
        stream.truncate(100 * 1024**3)
    server = socket.socket(socket.AF_UNIX)
    server.bind(os.path.relpath(root / "sock"))
    server.close()
    kinds = {"pipe": "a named pipe", "dir": "a folder", "sock": "a socket", "sparse": "107,374,182,400 bytes"}
    if os.geteuid() == 0:
        try:
            os.mknod(root / "zero", 0o666 | stat.S_IFCHR, os.makedev(1, 5))
            kinds["zero"] = "a character device"
        except PermissionError:
            pass
    begun = Moment()
    for name, kind in kinds.items():
        assert kind in refusal(space.read, name).message
        assert kind in refusal(space.write, "s", name, b"x").message
        assert kind in refusal(space.apply, "s", [FileEdit(name, None)]).message
        assert kind in refusal(space.apply, "s", [FileEdit("to", b"x", move_from=name)]).message
    assert not begun.hung
    assert sorted(os.listdir(root)) == sorted(kinds)


@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="there is no /proc here")
def test_b6_proc_files_are_bounded(tmp_path: Path) -> None:
    proc = workspace(Path("/proc/self"), tmp_path / "store")
    for name in ("mem", "root/etc/passwd", "fd/0", "cwd/x"):
        refusal(proc.read, name)
    assert proc.read("status").data.startswith(b"Name:")


@pytest.mark.parametrize(
    "path",
    [".git/config", ".git/hooks/pre-commit", ".git", ".GIT/config", "sub/.git/config", ".codewhale/config.toml",
     ".CodeWhale/x", ".g\u200bit/config", "alias/config", "alias/new", "git~1/config", "leaf", "store/config"],
)  # fmt: skip
def test_b7_git_and_harness_files_are_never_written(space: Workspace, root: Path, path: str) -> None:
    write_tree(root, {".git/config": b"[core]\n", "ok": b"ok", "nested/.git": b"gitdir: ../store\n"})
    (root / "alias").symlink_to(".git")
    (root / "leaf").symlink_to(".git/config")
    if path.startswith("store/"):
        (root / ".git" / "config").unlink()
        (root / ".git").rmdir()
        (root / ".git").write_bytes(b"gitdir: store\n")
    before = read_tree(root)
    for edit in (FileEdit(path, b"PWNED"), FileEdit(path, b"x", move_from="ok"), FileEdit("here", b"x", path)):
        refusal(space.apply, "s", [FileEdit("fine", b"x"), edit])
        assert read_tree(root) == before
    assert refusal(space.write, "s", path, b"PWNED").kind == "permission_denied"


@pytest.mark.parametrize(
    "data",
    [b"a\r\nb\r\n", b"a\r\nb\nc\r", b"no newline", b"\xef\xbb\xbfbom\n", b"nul\0nul\n", b"caf\xe9\n", b"\xed\xa0\x80\n",
     b"x" * 5_000_000, b"", bytes(range(256))],
    ids=["crlf", "mixed", "no newline", "bom", "nul", "latin-1", "surrogate", "5 MB line", "empty", "every byte"],
)  # fmt: skip
def test_b8_bytes_come_back_as_they_went(space: Workspace, root: Path, data: bytes) -> None:
    space.write("s", "f", data)
    assert (root / "f").read_bytes() == data == space.read("f", "s").data


def test_b9_a_file_that_changed_since_it_was_read_is_not_overwritten(space: Workspace, root: Path) -> None:
    (root / "f").write_bytes(b"one")
    space.read("f", "s")
    (root / "f").write_bytes(b"two")
    error = refusal(space.write, "s", "f", b"three")
    assert sha(b"two") in error.message and error.look is not None and error.look.name == "read_file"
    refusal(space.apply, "s", [FileEdit("f", None)])
    refusal(space.check, "s", [FileEdit("f", b"x")])
    assert (root / "f").read_bytes() == b"two"
    space.write("other", "f", b"by another session")
    refusal(space.write, "s", "f", b"three")
    space.read("f", "s")
    space.write("s", "f", b"three")
    space.write("s", "f", b"four")
    os.remove(root / "f")
    assert "was deleted" in refusal(space.write, "s", "f", b"five").message
    space.write("s", "f", b"five")
    assert (root / "f").read_bytes() == b"five"


def test_b9_an_edit_made_from_other_bytes_is_refused(space: Workspace, root: Path) -> None:
    (root / "f").write_bytes(b"one")
    refusal(space.apply, "s", [FileEdit("f", b"x", base=sha(b"zero"))])
    refusal(space.apply, "s", [FileEdit("f", b"x", base="")])
    space.apply("s", [FileEdit("f", b"x", base=sha(b"one"))])
    space.apply("s", [FileEdit("g", b"x", base="")])


def test_b10_temporary_files_are_private_unguessable_and_gone(space: Workspace, root: Path) -> None:
    seen: dict[str, int] = {}
    stop = threading.Event()

    def watch() -> None:
        while not stop.is_set():
            for entry in os.scandir(root):
                if entry.name != "f":
                    try:
                        seen[entry.name] = entry.stat().st_mode
                    except FileNotFoundError:
                        continue

    watcher = threading.Thread(target=watch)
    watcher.start()
    deadline = time.monotonic() + HANG
    number = 0
    while len(seen) < 3 and time.monotonic() < deadline:
        number += 1
        space.write("s", "f", b"%d" % number * 200_000)
    stop.set()
    watcher.join()
    assert len(seen) >= 3
    assert all(len(name) > 20 and name.startswith(".") for name in seen)
    assert all(stat.S_IMODE(mode) in (0o600, 0o666 & ~file_mask()) for mode in seen.values())
    assert os.listdir(root) == ["f"]


# ------------------------------------------------------------------ bounds


def test_reads_are_bounded(space: Workspace, root: Path) -> None:
    (root / "big").write_bytes(b"x" * 1001)
    error = refusal(space.read, "big", "", 1000)
    assert "1,001 bytes" in error.message
    with open(root / "huge", "wb") as stream:
        stream.truncate(READ_LIMIT + 1)
    refusal(space.read, "huge")


def test_a_read_only_file_is_left_alone(space: Workspace, root: Path) -> None:
    (root / "f").write_bytes(b"x")
    (root / "f").chmod(0o444)
    assert refusal(space.write, "s", "f", b"y").kind == "permission_denied"
    assert (root / "f").read_bytes() == b"x"
