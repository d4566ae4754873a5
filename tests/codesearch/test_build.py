"""Indexes made and kept true: of trees that change, of odd trees, by two processes, after a kill, from a wreck."""

import asyncio
import os
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from codewhale.codesearch.build import BusyError, CodeIndex, is_stale, is_unlocked, prepare, refresh
from codewhale.codesearch.indexing import RACY_NS, ReadTask, read_files
from codewhale.codesearch.model import BODY, DEFINED, SYMBOL
from codewhale.codesearch.reader import IndexReader
from codewhale.process.launch import Launch, start
from support.codetree import Happenings, git, grammars, same_as_rebuilt
from support.likeness import likeness

BUILDING = "import asyncio, sys; from codewhale.codesearch.build import CodeIndex, refresh\n"
BUILDING += (
    "index = CodeIndex(sys.argv[1], sys.argv[2]); index.grammar_folder = sys.argv[3]; asyncio.run(refresh(index))"
)


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    yield tmp_path_factory.mktemp("grammars")


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    folder = tmp_path / "tree"
    folder.mkdir()
    (folder / "auth.py").write_text('def resolve_api_key(env):\n    """Where the key comes from."""\n    return env\n')
    (folder / "notes.md").write_text("# Notes\n\nThe harbour opens at noon.\n")
    return folder


def paths(index: CodeIndex) -> list[str]:
    reader = IndexReader(index.open())
    try:
        return reader.paths
    finally:
        reader.close()


def children() -> list[int]:
    """The processes that this one has started and that go on."""
    return [int(child) for child in Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()]


def grow_old(path: Path) -> None:
    """Wait until the stamp of a file says whether it has changed."""
    while path.stat().st_ctime_ns >= time.time_ns() - RACY_NS:
        time.sleep(RACY_NS / 1e9)


def found(index: CodeIndex, field: str, term: str) -> list[str]:
    reader = IndexReader(index.open())
    try:
        return sorted({reader.paths[reader.chunk_file[chunk]] for chunk in reader.postings(field, term)[0]})
    finally:
        reader.close()


async def test_a_tree_is_indexed_and_answers(tree: Path, tmp_path: Path, unpacked: Path) -> None:
    index = grammars(CodeIndex(str(tree), str(tmp_path / "home")), unpacked)
    report = await refresh(index)
    assert (report.indexed, report.complete) == (2, True)
    assert found(index, BODY, "harbour") == ["notes.md"]
    assert found(index, DEFINED, "resolveapikey") == found(index, SYMBOL, "key") == ["auth.py"]


async def test_a_second_look_reads_nothing(tree: Path, tmp_path: Path, unpacked: Path) -> None:
    index = grammars(CodeIndex(str(tree), str(tmp_path / "home")), unpacked)
    await refresh(index)
    assert (await refresh(index)).indexed == 0


async def test_random_changes_leave_what_a_rebuild_makes(tmp_path: Path, unpacked: Path) -> None:
    happenings = Happenings(tmp_path / "tree", 5)
    index = grammars(CodeIndex(str(happenings.root), str(tmp_path / "home")), unpacked)
    await refresh(index)
    told = []
    for _ in range(40):
        told.append(happenings.step())
        await refresh(index)
        if len(told) % 8 == 0:
            await same_as_rebuilt(index, tmp_path)


async def test_content_of_the_same_size_and_time_is_seen(tree: Path, tmp_path: Path, unpacked: Path) -> None:
    index = grammars(CodeIndex(str(tree), str(tmp_path / "home")), unpacked)
    await refresh(index)
    notes = tree / "notes.md"
    before = notes.stat()
    notes.write_text(notes.read_text().replace("harbour", "whalers"))
    os.utime(notes, ns=(before.st_atime_ns, before.st_mtime_ns))
    store = index.open()
    assert await is_stale(index, store)
    store.close()
    await refresh(index)
    assert found(index, BODY, "whaler") == ["notes.md"]


async def test_a_touched_file_is_not_read_again(tree: Path, tmp_path: Path, unpacked: Path) -> None:
    index = grammars(CodeIndex(str(tree), str(tmp_path / "home")), unpacked)
    await refresh(index)
    os.utime(tree / "notes.md", ns=(1, 1))
    assert (await refresh(index)).indexed == 0
    store = index.open()
    assert store.stamps()["notes.md"].mtime_ns == 1
    store.close()


async def test_a_worktree_has_an_index_of_its_own(tmp_path: Path, unpacked: Path) -> None:
    happenings = Happenings(tmp_path / "main", 1)
    git(happenings.root, "worktree", "add", "-q", "-b", "other", str(tmp_path / "other"))
    (tmp_path / "other" / "only_here.py").write_text("def barnacle(): pass\n")
    home = str(tmp_path / "home")
    main = grammars(CodeIndex(str(happenings.root), home), unpacked)
    other = grammars(CodeIndex(str(tmp_path / "other"), home), unpacked)
    await refresh(main)
    await refresh(other)
    assert main.path != other.path
    assert found(other, BODY, "barnacl") == ["only_here.py"] and found(main, BODY, "barnacl") == []


async def test_a_linked_path_is_the_same_worktree(tree: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tree)
    assert CodeIndex(str(tmp_path / "link"), str(tmp_path)).path == CodeIndex(str(tree), str(tmp_path)).path


async def test_generated_and_ignored_files_are_left_out(tmp_path: Path, unpacked: Path) -> None:
    root = tmp_path / "tree"
    for path in (
        "a.py",
        "node_modules/m/b.js",
        "target/c.rs",
        "dist/d.js",
        "build/e.py",
        "Cargo.lock",
        "x.min.js",
        "logs/f.py",
    ):
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text("x = 1\n")
    git(root, "init", "-q")
    (root / ".gitignore").write_text("logs/\n")
    index = grammars(CodeIndex(str(root), str(tmp_path / "home")), unpacked)
    await refresh(index)
    assert paths(index) == [".gitignore", "a.py"]
    (root / ".gitignore").write_text("")
    await refresh(index)
    assert paths(index) == [".gitignore", "a.py", "logs/f.py"]


async def test_a_first_file_in_an_empty_folder_is_seen(tree: Path, tmp_path: Path, unpacked: Path) -> None:
    (tree / "a" / "b").mkdir(parents=True)
    index = grammars(CodeIndex(str(tree), str(tmp_path / "home")), unpacked)
    await refresh(index)
    (tree / "a" / "b" / "late.py").write_text("x = 1\n")
    await refresh(index)
    assert "a/b/late.py" in paths(index)


async def test_odd_files_do_no_harm(tree: Path, tmp_path: Path, unpacked: Path) -> None:
    (tree / "long.js").write_bytes(b"x=1;" * 1_000_000)
    (tree / "huge.py").write_bytes(b"y = 2\n" * 500_000)
    (tree / "latin.py").write_bytes(b"# caf\xe9 \xff\xfe harbourmaster\nx = 1\n")
    (tree / "picture.png").write_bytes(b"\x89PNG\0\0")
    (tree / "empty.py").write_bytes(b"")
    (tree / "loop").symlink_to(tree)
    (tree / "deep.json").write_text("[" * 5000 + "]" * 5000)
    os.mkfifo(tree / "pipe")
    (tree / "名前.py").write_text("def 検索する(): pass\n")
    index = grammars(CodeIndex(str(tree), str(tmp_path / "home")), unpacked)
    await refresh(index)
    reader = IndexReader(index.open())
    states = {file.path: file.state for file in reader.files}
    reader.close()
    assert states["long.js"] == "large" and states["huge.py"] == "large" and states["empty.py"] == "empty"
    assert "picture.png" not in states and "pipe" not in states and "loop/auth.py" not in states
    assert found(index, BODY, "harbourmast") == ["latin.py"]
    assert found(index, BODY, "検索") == ["名前.py"]


async def test_many_files_are_read_by_workers_with_the_same_result(tmp_path: Path, unpacked: Path) -> None:
    happenings = Happenings(tmp_path / "tree", 9)
    for number in range(60):
        happenings.write(f"group{number % 7}/unit{number}.py")
    index = grammars(CodeIndex(str(happenings.root), str(tmp_path / "home")), unpacked)
    seen: list[tuple[int, int]] = []
    await refresh(index, progress=lambda done, total: seen.append((done, total)))
    assert seen[0][0] == 0 and seen[-1][0] == seen[-1][1] > 60
    one = grammars(CodeIndex(str(happenings.root), str(tmp_path / "second")), unpacked)
    store = one.open()
    store.put(read_files(one.sources(), ReadTask(one.root, happenings.files())))
    other = index.open()
    assert likeness(store) == likeness(other)
    store.close()
    other.close()


async def test_workers_killed_in_the_middle_lose_no_file(tmp_path: Path, unpacked: Path) -> None:
    happenings = Happenings(tmp_path / "tree", 6)
    for number in range(120):
        path = happenings.root / f"group{number % 7}" / f"unit{number}.py"
        path.parent.mkdir(exist_ok=True)
        path.write_text("# sand\n" * 1500 + happenings.text("a.py"))
    index = grammars(CodeIndex(str(happenings.root), str(tmp_path / "home")), unpacked)
    killed: list[int] = []

    def kill(done: int, total: int) -> None:
        for worker in children() if done and len(killed) < 4 else []:
            killed.append(worker)
            os.kill(worker, signal.SIGKILL)

    report = await refresh(index, progress=kill)
    assert killed and report.complete and paths(index) == happenings.files()
    await same_as_rebuilt(index, tmp_path)


async def test_an_index_that_lost_files_finds_them_again(tree: Path, tmp_path: Path, unpacked: Path) -> None:
    index = grammars(CodeIndex(str(tree), str(tmp_path / "home")), unpacked)
    await refresh(index)
    store = index.open()
    store.forget(["notes.md"])  # behind the back of whoever concluded that all is in
    index.forget_stamps()
    assert await is_stale(index, store)
    assert (await refresh(index)).complete and paths(index) == ["auth.py", "notes.md"]
    assert not await is_stale(index, store)
    store.close()


async def test_a_file_that_workers_died_of_has_its_row_and_is_read_by_workers_again(
    tree: Path, tmp_path: Path, unpacked: Path
) -> None:
    index = grammars(CodeIndex(str(tree), str(tmp_path / "home")), unpacked)
    await refresh(index)
    store = index.open()
    grow_old(tree / "notes.md")
    store.put(read_files(index.sources(), ReadTask(index.root, ["notes.md"], failed=True)))
    store.remember(complete=1)
    index.forget_stamps()
    assert store.rows("SELECT state FROM files WHERE path = 'notes.md'") == [("failed",)]
    assert found(index, BODY, "harbour") == [] and "notes.md" in paths(index)
    assert not await is_stale(index, store)
    (tree / "notes.md").write_text("The harbour is closed.\n")
    assert (await refresh(index)).complete and found(index, BODY, "harbour") == ["notes.md"]
    store.close()


@pytest.mark.parametrize("harm", ["garbage", "cut", "middle", "empty"])
async def test_a_wreck_is_set_aside_and_made_anew(tree: Path, tmp_path: Path, unpacked: Path, harm: str) -> None:
    index = grammars(CodeIndex(str(tree), str(tmp_path / "home")), unpacked)
    await refresh(index)
    database = Path(index.path)
    data = database.read_bytes()
    for ending in ("-wal", "-shm"):
        Path(index.path + ending).unlink(missing_ok=True)
    spoiled = {"garbage": b"no database" * 500, "cut": data[: len(data) // 2], "empty": b""}
    database.write_bytes(spoiled.get(harm, data[:9000] + os.urandom(len(data) - 9000)))
    index.forget_stamps()
    (tree / "more.py").write_text("more = 1\n")
    await refresh(index)
    assert found(index, BODY, "harbour") == ["notes.md"] and found(index, BODY, "more") == ["more.py"]
    await same_as_rebuilt(index, tmp_path)


async def test_words_of_a_file_that_cannot_be_read_are_damage(tree: Path, tmp_path: Path, unpacked: Path) -> None:
    index = grammars(CodeIndex(str(tree), str(tmp_path / "home")), unpacked)
    await refresh(index)
    store = index.open()
    with store.writing() as db:
        db.execute("UPDATE file_words SET data = x'00' WHERE file = (SELECT id FROM files WHERE path = 'notes.md')")
    store.close()
    (tree / "notes.md").write_text("The harbour is closed.\n")
    assert (await refresh(index)).complete
    assert Path(index.path + ".damaged").exists() and found(index, BODY, "close") == ["notes.md"]
    await same_as_rebuilt(index, tmp_path)


async def test_two_processes_build_at_once(tmp_path: Path, unpacked: Path) -> None:
    happenings = Happenings(tmp_path / "tree", 3)
    for number in range(40):
        happenings.write(f"unit{number}.py")
    index = grammars(CodeIndex(str(happenings.root), str(tmp_path / "home")), unpacked)
    argv = (sys.executable, "-c", BUILDING, index.root, str(tmp_path / "home"), index.grammar_folder)
    children = [await start(Launch(argv=argv, cwd=str(tmp_path), profile="none")) for _ in range(2)]
    ends = await asyncio.gather(*(child.wait() for child in children))
    assert [end.exit_code for end in ends] == [0, 0], [end.stderr for end in ends]
    await same_as_rebuilt(index, tmp_path)


async def test_a_killed_build_goes_on_where_it_was(tmp_path: Path, unpacked: Path) -> None:
    happenings = Happenings(tmp_path / "tree", 4)
    for number in range(80):
        happenings.write(f"unit{number}.py")
    index = grammars(CodeIndex(str(happenings.root), str(tmp_path / "home")), unpacked)
    argv = (sys.executable, "-c", BUILDING, index.root, str(tmp_path / "home"), index.grammar_folder)
    for after in (0.25, 0.5):
        child = await start(Launch(argv=argv, cwd=str(tmp_path), profile="none", supervised=False))
        await asyncio.wait([asyncio.ensure_future(child.ended())], timeout=after)
        if child.pid and os.path.exists(f"/proc/{child.pid}"):
            os.kill(child.pid, signal.SIGKILL)
        await child.kill()
    await refresh(index)
    await same_as_rebuilt(index, tmp_path)


async def test_who_waits_too_long_is_told(tree: Path, tmp_path: Path, unpacked: Path) -> None:
    import fcntl

    index = grammars(CodeIndex(str(tree), str(tmp_path / "home")), unpacked)
    await refresh(index)
    fd = os.open(index.path + ".lock", os.O_RDWR)
    fcntl.flock(fd, fcntl.LOCK_EX)
    try:
        assert not is_unlocked(index)
        with pytest.raises(BusyError, match="another process"):
            await refresh(index, wait_seconds=0.1)
    finally:
        os.close(fd)
    assert is_unlocked(index)


async def test_history_is_taken_from_git_or_as_given(tmp_path: Path, unpacked: Path) -> None:
    from codewhale.codesearch.model import Commit

    happenings = Happenings(tmp_path / "tree", 2)
    index = grammars(CodeIndex(str(happenings.root), str(tmp_path / "home")), unpacked)
    await refresh(index)
    reader = IndexReader(index.open())
    assert reader.commit_count == 1 and reader.commit(0).subject.startswith("Change the ")
    starts, files = reader.commit_files
    assert len(files) == starts[-1] > 5
    reader.close()
    other = grammars(CodeIndex(str(happenings.root), str(tmp_path / "given")), unpacked)
    await refresh(other, commits=[Commit("a" * 40, 7, "Teach the barnacles to sing", (".gitignore",))])
    reader = IndexReader(other.open())
    numbers, often = reader.history("barnacl")
    assert (list(numbers), list(often), reader.commit(0).at) == ([0], [1.0], 7)
    reader.close()


async def test_what_is_known_of_files_keeps_up_with_what_is_written(tree: Path, tmp_path: Path, unpacked: Path) -> None:
    one, other = (grammars(CodeIndex(str(tree), str(tmp_path / "home")), unpacked) for _ in range(2))

    async def agree(index: CodeIndex) -> None:
        await refresh(index)
        store = index.open()
        try:
            assert index.stamps(store) == store.stamps()
        finally:
            store.close()

    await agree(one)
    await agree(other)
    (tree / "auth.py").write_text("changed = 1\n")
    (tree / "more.py").write_text("more = 1\n")
    await agree(one)
    (tree / "notes.md").unlink()
    os.utime(tree / "more.py", ns=(5, 5))
    await agree(other)
    await agree(one)
    git(tree, "init", "-q")
    git(tree, "add", "-A")
    await agree(one)
    git(tree, "commit", "-q", "-m", "Open the harbour")
    await agree(one)
    store = one.open()
    assert len(store.rows("SELECT number FROM commits")) == 1
    store.close()


async def test_a_commit_without_a_change_of_files_is_seen(tree: Path, tmp_path: Path, unpacked: Path) -> None:
    index = grammars(CodeIndex(str(tree), str(tmp_path / "home")), unpacked)
    git(tree, "init", "-q")
    git(tree, "add", "-A")
    git(tree, "commit", "-q", "-m", "First")
    for number in range(3):
        await refresh(index)
        git(tree, "commit", "-q", "--allow-empty", "-m", f"Merge {number}")
    git(tree, "reset", "-q", "--soft", "HEAD~1")
    await refresh(index)
    head = git(tree, "rev-parse", "HEAD").strip()
    store = index.open()
    assert store.meta("history") == head and store.rows("SELECT count(*) FROM commits") == [(3,)]
    store.close()


async def test_history_that_git_cannot_read_any_more_stays_as_it_was_known(
    tree: Path, tmp_path: Path, unpacked: Path
) -> None:
    index = grammars(CodeIndex(str(tree), str(tmp_path / "home")), unpacked)
    git(tree, "init", "-q")
    git(tree, "add", "-A")
    git(tree, "commit", "-q", "-m", "Open the harbour")
    await refresh(index)
    git(tree, "commit", "-q", "--allow-empty", "-m", "Merge the piers")
    head = git(tree, "rev-parse", "HEAD").strip()
    lost, kept = tree / ".git" / "objects" / head[:2] / head[2:], tmp_path / "kept"
    lost.rename(kept)
    await refresh(index)
    store = index.open()
    assert store.rows("SELECT count(*) FROM commits") == [(1,)]
    store.close()
    kept.rename(lost)
    git(tree, "commit", "-q", "--allow-empty", "-m", "Merge the quays")
    await refresh(index)
    store = index.open()
    assert store.rows("SELECT count(*) FROM commits") == [(3,)]
    store.close()


async def test_grammars_of_the_trees_languages_are_loaded_when_it_is_quiet(
    tree: Path, tmp_path: Path, unpacked: Path
) -> None:
    index = grammars(CodeIndex(str(tree), str(tmp_path / "home")), unpacked)
    (tree / "main.rs").write_text("fn main() {}\n")
    await refresh(index)
    index.forget_stamps()
    again = grammars(CodeIndex(str(tree), str(tmp_path / "home")), unpacked)
    assert (await refresh(again)).indexed == 0
    await prepare(again)
    assert {"python", "rust"} <= again.sources().grammars.known.keys()


async def test_many_small_changes_leave_what_a_rebuild_makes(tree: Path, tmp_path: Path, unpacked: Path) -> None:
    index = grammars(CodeIndex(str(tree), str(tmp_path / "home")), unpacked)
    for number in range(60):
        (tree / f"new{number % 20}.py").write_text(f"value_{number} = {number}\n")
        await refresh(index)
    await same_as_rebuilt(index, tmp_path)
