"""Files replaced together, or not at all."""

import os
from pathlib import Path

import pytest

from codewhale.lib.beneath import Root
from codewhale.lib.staging import Staging


@pytest.fixture
def staging(tmp_path: Path) -> Staging:
    (tmp_path / "a").write_bytes(b"A")
    (tmp_path / "b").write_bytes(b"B")
    return Staging(Root(str(tmp_path)))


def test_nothing_shows_before_the_commit(staging: Staging, tmp_path: Path) -> None:
    staging.replace(staging.slot("a", create=True), b"A", b"AA", 0o600)
    staging.replace(staging.slot("d/e/n", create=True), None, b"N", 0o644)
    staging.delete(staging.slot("b", create=False), b"B")
    assert (tmp_path / "a").read_bytes() == b"A" and not (tmp_path / "d/e/n").exists()
    staging.commit()
    staging.close()
    assert sorted(os.listdir(tmp_path)) == ["a", "d"] and os.listdir(tmp_path / "d/e") == ["n"]
    assert (tmp_path / "a").read_bytes() == b"AA" and (tmp_path / "a").stat().st_mode & 0o777 == 0o600


def test_closing_without_a_commit_leaves_no_trace(staging: Staging, tmp_path: Path) -> None:
    staging.replace(staging.slot("x/y/n", create=True), None, b"N", 0o644)
    staging.close()
    assert sorted(os.listdir(tmp_path)) == ["a", "b"]


def test_a_change_from_outside_undoes_all(staging: Staging, tmp_path: Path) -> None:
    (tmp_path / "a").chmod(0o640)
    staging.replace(staging.slot("a", create=True), b"A", b"AA", 0o640)
    staging.replace(staging.slot("n", create=True), None, b"N", 0o644)
    staging.delete(staging.slot("b", create=False), b"B")
    (tmp_path / "b").write_bytes(b"by another")
    with pytest.raises(OSError, match="busy"):
        staging.commit()
    staging.close()
    assert sorted(os.listdir(tmp_path)) == ["a", "b"]
    assert (tmp_path / "a").read_bytes() == b"A" and (tmp_path / "a").stat().st_mode & 0o777 == 0o640
    assert (tmp_path / "b").read_bytes() == b"by another"


def test_no_descriptor_is_left_open(staging: Staging, tmp_path: Path) -> None:
    if not os.path.isdir("/proc/self/fd"):
        pytest.skip("there is no /proc here")
    before = len(os.listdir("/proc/self/fd"))
    for name in ("a", "n", "d/e/f"):
        staging.replace(staging.slot(name, create=True), None, b"x", 0o644)
    staging.close()
    assert len(os.listdir("/proc/self/fd")) == before
