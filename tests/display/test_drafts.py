"""Drafts in files: at once, whole, per session, and taken over from what is gone."""

import os
import stat
import subprocess
import sys
from pathlib import Path

from codewhale.display.attachments import Folder, text_chip
from codewhale.display.drafts import Draft, Drafts

LEAVE = """
import os, sys
from codewhale.display.drafts import Draft, Drafts
from codewhale.display.attachments import Folder
for number in range(1, 4):
    Drafts(Folder(sys.argv[1], sys.argv[1])).save(f"gone-{number}", Draft(f"left {number}"))
os.kill(os.getpid(), 9)
"""


def test_a_draft_is_kept_for_its_session(tmp_path: Path) -> None:
    drafts = Drafts(Folder(str(tmp_path), str(tmp_path)))
    drafts.save("one", Draft("text", 2))
    drafts.save("two/../x", Draft("other"), sync=True)
    again = Drafts(Folder(str(tmp_path), str(tmp_path)))
    assert again.load("one") == Draft("text", 2) and again.load("two/../x").text == "other"
    assert again.load("three") == Draft()
    files = list(tmp_path.rglob("*.json"))
    assert len(files) == 2 and all(stat.S_IMODE(path.stat().st_mode) == 0o600 for path in files)
    drafts.save("one", Draft(" \n"))
    assert again.load("one") == Draft()


def test_attachments_that_are_gone_are_left_out(tmp_path: Path) -> None:
    folder = Folder(str(tmp_path), str(tmp_path))
    kept, lost = text_chip("kept", folder), text_chip("lost", folder)
    Drafts(folder).save("one", Draft("see", 99, (kept, lost)))
    os.unlink(lost.path)
    assert Drafts(folder).load("one") == Draft("see", 3, (kept,))


def test_a_damaged_draft_is_no_draft(tmp_path: Path) -> None:
    folder = Folder(str(tmp_path), str(tmp_path))
    Drafts(folder).save("one", Draft("x"))
    path = Path(folder.path("drafts", "one.json"))
    for damage in (b"{", b"", b'{"version":99,"session":"one","at":1,"draft":{}}'):
        path.write_bytes(damage)
        assert Drafts(folder).load("one") == Draft()


def test_what_a_killed_process_left_is_taken_over_once(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-c", LEAVE, str(tmp_path)], check=False)
    drafts = Drafts(Folder(str(tmp_path), str(tmp_path)))
    drafts.save("mine", Draft("of a living process"))
    assert [draft.text for draft in drafts.orphans("gone-2")] == ["left 1", "left 3"]
    assert drafts.orphans("gone-2") == [] and drafts.load("gone-2").text == "left 2"
    assert drafts.load("mine").text == "of a living process"
