"""Frecency: use counts, time takes away, and neither files nor workspaces grow without end."""

from pathlib import Path

from codewhale.testing import FakeClock
from codewhale.workspace import file_search
from codewhale.workspace.file_search import FrecencyStore


def test_use_counts_and_fades(tmp_path: Path) -> None:
    clock = FakeClock()
    store = FrecencyStore(str(tmp_path), clock)
    store.note("/w", "a")
    store.note("/w", "a")
    store.note("/w", "b")
    assert store.scores("/w") == {"a": 2.0, "b": 1.0}
    clock.advance(file_search.HALF_LIFE)
    assert FrecencyStore(str(tmp_path), clock).scores("/w") == {"a": 1.0, "b": 0.5}
    assert store.scores("/elsewhere") == {}


def test_the_least_used_go_first(tmp_path: Path) -> None:
    store = FrecencyStore(str(tmp_path), FakeClock())
    store.note("/w", "kept")
    store.note("/w", "kept")
    for number in range(file_search.MOST_FILES + 5):
        store.note("/w", f"f{number}")
    rows = store.scores("/w")
    assert len(rows) == file_search.MOST_FILES and "kept" in rows


def test_a_damaged_file_is_no_file(tmp_path: Path) -> None:
    store = FrecencyStore(str(tmp_path), FakeClock())
    store.note("/w", "a")
    (kept,) = (tmp_path / "frecency").iterdir()
    assert kept.stat().st_mode & 0o077 == 0
    kept.write_bytes(b"\xff{")
    assert store.scores("/w") == {}
    store.note("/w", "b")
    assert store.scores("/w") == {"b": 1.0}
