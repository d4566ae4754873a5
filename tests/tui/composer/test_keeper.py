"""Where text is kept, and what comes back at the start."""

import subprocess
import sys
from pathlib import Path

from codewhale.display.drafts import Draft, Drafts
from codewhale.tui.composer.store import ComposerStore

LEAVE = """
import os, sys
from codewhale.display.drafts import Draft, Drafts
from codewhale.tui.composer.store import ComposerStore
keeper = ComposerStore(sys.argv[1], sys.argv[1])
keeper.session = sys.argv[2]
keeper.save(Draft(sys.argv[3], len(sys.argv[3])))
os.kill(os.getpid(), 9)
"""


def leave(home: Path, session: str, text: str) -> None:
    """Let a process die with a draft."""
    subprocess.run([sys.executable, "-c", LEAVE, str(home), session, text], check=False)


def test_what_a_killed_process_left_stands_in_the_next_session(tmp_path: Path) -> None:
    leave(tmp_path, "a", "older")
    leave(tmp_path, "b", "newer")
    keeper = ComposerStore(str(tmp_path), str(tmp_path))
    assert keeper.open("c", "", Draft()).text == "newer"
    assert [row.draft.text for row in keeper.parked()] == ["older"]
    assert Drafts(keeper.folder).load("c").text == "newer"


def test_what_was_typed_already_stays_and_nothing_is_lost(tmp_path: Path) -> None:
    leave(tmp_path, "a", "left")
    keeper = ComposerStore(str(tmp_path), str(tmp_path))
    keeper.save(Draft("typed"))
    assert keeper.open("c", "", Draft("typed")) == Draft("typed")
    assert Drafts(keeper.folder).load("c") == Draft("typed")
    assert [path.name for path in tmp_path.rglob("drafts/*")] == ["c.json"]
    assert [row.draft.text for row in keeper.parked()] == ["left"]


def test_another_workspace_keeps_its_own(tmp_path: Path) -> None:
    keeper = ComposerStore(str(tmp_path), str(tmp_path / "one"))
    keeper.open("s1", "", Draft())
    keeper.sent(Draft("sent in one"))
    assert keeper.open("s2", str(tmp_path / "two"), Draft("draft of one")) == Draft()
    assert keeper.history.entries == []
    assert keeper.open("s1", str(tmp_path / "one"), Draft()) == Draft("draft of one")
    assert [entry.text for entry in keeper.history.entries] == ["sent in one"]


def test_a_disk_that_takes_nothing_is_told_once(tmp_path: Path) -> None:
    (tmp_path / "composer").write_text("in the way")
    told: list[str] = []
    keeper = ComposerStore(str(tmp_path), str(tmp_path))
    keeper.trouble = told.append
    keeper.save(Draft("one"))
    keeper.park(Draft("two"))
    keeper.sent(Draft("three"))
    assert keeper.text("four") is None and keeper.image(b"", "x") is None and keeper.chip("x" * 9_000) is None
    assert len(told) == 1
    [row] = keeper.parked()
    assert keeper.take(row) == Draft("two")
    assert [entry.text for entry in keeper.history.entries] == ["three"]
