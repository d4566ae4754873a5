import hashlib
import os
import signal
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from codewhale.process.artifacts import ArtifactStore
from codewhale.protocol.errors import StorageFullError
from support.storage import FailingOps, QuickOps, child


@pytest.fixture
def store(tmp_path: Path) -> ArtifactStore:
    return ArtifactStore(str(tmp_path / "artifacts"))


def test_put_and_get(store: ArtifactStore, tmp_path: Path) -> None:
    assert not (tmp_path / "artifacts").exists()
    for data in (b"", b"hello", os.urandom(100_000)):
        sha = store.put(data)
        assert sha == hashlib.sha256(data).hexdigest() == store.put(data)
        assert store.get(sha) == data
        assert store.size(sha) == len(data)
        assert store.has(sha)
        assert stat.S_IMODE(os.stat(store.path(sha)).st_mode) == 0o600
        assert stat.S_IMODE(os.stat(os.path.dirname(store.path(sha))).st_mode) == 0o700


def test_what_is_not_there_or_no_sha(store: ArtifactStore) -> None:
    for name in ("0" * 64, "../../etc/passwd", "", "ABC", "0" * 63):
        assert not store.has(name)
        with pytest.raises(KeyError):
            store.get(name)
        with pytest.raises(KeyError):
            store.size(name)


def test_blocks_are_kept_as_one(store: ArtifactStore, tmp_path: Path) -> None:
    blocks = [os.urandom(70_000) for _ in range(5)]
    sha, size = store.put_blocks(iter(blocks))
    assert (sha, size) == (hashlib.sha256(b"".join(blocks)).hexdigest(), 350_000)
    assert store.get(sha) == b"".join(blocks) and store.put_blocks(iter(blocks)) == (sha, size)
    assert stat.S_IMODE(os.stat(store.path(sha)).st_mode) == 0o600
    assert store.put_blocks(()) == (hashlib.sha256(b"").hexdigest(), 0)


def test_blocks_that_fail_leave_nothing_half_made(store: ArtifactStore, tmp_path: Path) -> None:
    def broken() -> Iterator[bytes]:
        yield b"one"
        raise KeyError("two")

    with pytest.raises(KeyError):
        store.put_blocks(broken())
    assert [path for path in (tmp_path / "artifacts").rglob("*") if path.is_file()] == []


def test_find_by_prefix(tmp_path: Path) -> None:
    store = ArtifactStore(str(tmp_path), ops=QuickOps())
    shas = sorted(store.put(str(number).encode()) for number in range(300))
    assert store.find(shas[0][:16]) == [shas[0]]
    assert store.find(shas[0][:2]) == [sha for sha in shas if sha[:2] == shas[0][:2]]
    assert [store.find(prefix) for prefix in ("", "a", "zz", "../", "0" * 65)] == [[]] * 5


def test_damage_is_not_handed_out_and_is_repaired_by_the_next_put(store: ArtifactStore) -> None:
    sha = store.put(b"hello")
    Path(store.path(sha)).write_bytes(b"hell")
    with pytest.raises(KeyError, match="damaged"):
        store.get(sha)
    store.put(b"hello")
    assert store.get(sha) == b"hello"


def test_a_full_disk_is_told_and_leaves_nothing(tmp_path: Path) -> None:
    store = ArtifactStore(str(tmp_path / "a"), ops=FailingOps(1, taken=100, lasting=True))
    with pytest.raises(StorageFullError):
        store.put(b"x" * 1000)
    assert [files for _, _, files in os.walk(tmp_path) if files] == []


@pytest.mark.parametrize("point", ["artifact.before_rename", "artifact.after_rename"])
def test_killed_around_the_rename(tmp_path: Path, point: str) -> None:
    lines = """
        from codewhale.process.artifacts import ArtifactStore
        ArtifactStore(home).put(b"whole")
    """
    process = child(lines, tmp_path, failpoints=f"{point}=kill@1")
    process.communicate()
    assert process.returncode == -signal.SIGKILL
    store = ArtifactStore(str(tmp_path))
    sha = hashlib.sha256(b"whole").hexdigest()
    assert store.find(sha) == ([sha] if "after" in point else [])
    assert store.get(store.put(b"whole")) == b"whole"


def test_calls_stand_for_outputs_by_session(store: ArtifactStore) -> None:
    store.remember("s", "call_1", "a" * 64)
    store.remember("s", "call_2", "b" * 64)
    assert store.recall("s", "call_1") == "a" * 64
    assert store.recall("other", "call_1") is None
    assert store.remembered("s") == (("call_1", "a" * 64), ("call_2", "b" * 64))
    assert store.remembered("other") == ()
