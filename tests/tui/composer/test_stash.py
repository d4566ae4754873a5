"""Parked drafts."""

from pathlib import Path

from codewhale.display.attachments import Folder
from codewhale.display.drafts import MOST_PARKED, Draft, Stash


def stash(tmp_path: Path) -> Stash:
    """The stash of a workspace."""
    return Stash(Folder(str(tmp_path), str(tmp_path)))


def test_it_is_shared_and_bounded(tmp_path: Path) -> None:
    one, other = stash(tmp_path), stash(tmp_path)
    one.park(Draft())
    for number in range(MOST_PARKED + 5):
        (one if number % 2 else other).park(Draft(f"{number}"))
    one.park(Draft("7"))
    rows = other.rows()
    assert len(rows) == MOST_PARKED and [row.draft.text for row in rows[:2]] == ["7", "104"]
    assert one.take(rows[0]) == Draft("7") and other.take(rows[0]) is None


def test_a_damaged_file_is_put_aside_not_overwritten(tmp_path: Path) -> None:
    here = stash(tmp_path)
    here.park(Draft("one"))
    [file] = tmp_path.rglob("stash.json")
    file.write_bytes(b"[{broken")
    here.park(Draft("two"))
    assert [row.draft.text for row in here.rows()] == ["two"]
    assert file.with_name("stash.json.damaged").read_bytes() == b"[{broken"


def test_what_the_disk_does_not_take_stays(tmp_path: Path) -> None:
    (tmp_path / "composer").write_text("in the way")
    here = stash(tmp_path)
    try:
        here.park(Draft("one"))
        raise AssertionError("the disk took it")
    except OSError:
        pass
    [row] = here.rows()
    assert here.take(row) == Draft("one") and here.rows() == []
