"""What is left over goes after a day; what is new, whole or named stays."""

import os
import time
from pathlib import Path

import pytest

from codewhale.process.artifacts import ArtifactStore
from codewhale.session.store import SessionStore
from codewhale.session.sweep import MARK, sweep
from support.storage import OPENED, HandClock, new_log

OLD = time.time() - 100_000
HEX = "0123456789abcdef"


def litter(home: Path, session: str, sha: str) -> list[Path]:
    """Every kind of thing that a killed process leaves behind."""
    sessions = home / "sessions"
    left = [
        sessions / session / f".listing.json.{HEX}.tmp",
        home / "artifacts" / sha[:2] / f".{sha}.{HEX}.tmp",
        sessions / "20260101-000000-deadbeef" / "log.jsonl.new",
        sessions / f".removed-{session}-0000" / "log.jsonl",
    ]
    for path in left:
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(b"half")
    return left


def age(paths: list[Path]) -> None:
    """Let them be more than a day old."""
    for path in paths:
        for one in (path, path.parent):
            os.utime(one, (OLD, OLD))


def stage(home: Path) -> tuple[str, str]:
    """A session and an artifact that must stay."""
    log = new_log(home, 2)
    log.close()
    return log.session, ArtifactStore(str(home / "artifacts")).put(b"kept")


def test_what_is_left_over_goes_after_a_day(tmp_path: Path) -> None:
    session, sha = stage(tmp_path)
    left = litter(tmp_path, session, sha)
    age(left)
    assert sweep(str(tmp_path)) == 0  # the opening has looked already today
    os.utime(tmp_path / MARK, (OLD, OLD))
    SessionStore(str(tmp_path), HandClock()).create(OPENED).close()
    assert not any(path.exists() for path in left)
    assert not left[2].parent.exists()
    assert len(list(SessionStore(str(tmp_path), HandClock()).read(session))) == 3
    assert ArtifactStore(str(tmp_path / "artifacts")).get(sha) == b"kept"


def test_what_is_new_may_be_in_the_making(tmp_path: Path) -> None:
    session, sha = stage(tmp_path)
    left = litter(tmp_path, session, sha)
    (tmp_path / MARK).unlink()
    assert sweep(str(tmp_path)) == 0
    assert all(path.exists() for path in left)


def test_it_looks_once_a_day_and_stops_in_time(tmp_path: Path) -> None:
    session, sha = stage(tmp_path)
    left = litter(tmp_path, session, sha)
    age(left)
    os.utime(tmp_path / MARK, (OLD, OLD))
    assert sweep(str(tmp_path), patience=-1.0) == 0
    assert sweep(str(tmp_path)) == 0
    assert all(path.exists() for path in left)


def test_links_are_not_followed_and_nothing_raises(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / f".x.{HEX}.tmp").write_bytes(b"not ours")
    home = tmp_path / "home"
    (home / "sessions").mkdir(parents=True)
    (home / "sessions" / "linked").symlink_to(outside)
    age([outside / f".x.{HEX}.tmp"])
    assert sweep(str(home)) == 0
    assert (outside / f".x.{HEX}.tmp").exists()
    assert sweep(str(tmp_path / "nowhere")) == 0


@pytest.mark.parametrize("name", ["log.jsonl.corrupt", "lock", "listing.json", "notes.tmp"])
def test_other_files_stay(tmp_path: Path, name: str) -> None:
    session, _ = stage(tmp_path)
    path = tmp_path / "sessions" / session / name
    path.write_bytes(b"x")
    age([path])
    (tmp_path / MARK).unlink()
    sweep(str(tmp_path))
    assert path.exists()
