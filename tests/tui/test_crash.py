"""What is kept of a fault: places, no content."""

import stat
from pathlib import Path

from codewhale.tui.crash import crash_text, write_crash

SECRET = "sk-live-1234567890"


def fail(value: str) -> None:
    """Raise with content, because of something with content."""
    try:
        int(value)
    except ValueError as error:
        raise KeyError(f"no {value}") from error


def fault() -> Exception:
    """An exception with a trace."""
    try:
        fail(SECRET)
    except KeyError as error:
        return error
    raise AssertionError


def test_a_crash_names_places_and_nothing_that_was_written(tmp_path: Path) -> None:
    path = write_crash(str(tmp_path / "home"), fault(), 1_750_000_000.0)
    text = Path(path).read_text()
    assert "builtins.KeyError" in text and "builtins.ValueError" in text
    assert "test_crash.py:" in text and " fail\n" in text
    assert SECRET not in text and str(tmp_path) not in text
    assert stat.S_IMODE(Path(path).stat().st_mode) == 0o600


def test_a_crash_that_cannot_be_kept_is_no_second_one(tmp_path: Path) -> None:
    (tmp_path / "home").write_text("a file")
    assert write_crash(str(tmp_path / "home"), fault(), 0.0) == ""


def test_causes_have_an_end() -> None:
    first = ValueError()
    error: BaseException = first
    for _ in range(50):
        following = ValueError()
        following.__cause__ = error
        error = following
    assert len(crash_text(error, 0.0).splitlines()) < 20
