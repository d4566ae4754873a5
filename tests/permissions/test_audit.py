"""The audit log: a line for each use, bounded, private, and never in the way."""

import json
import os
import stat
from pathlib import Path

from codewhale.permissions.audit import LIMIT, AuditLog
from codewhale.testing import FakeClock


def test_each_use_is_a_line_with_its_time(home: Path) -> None:
    clock = FakeClock()
    log = AuditLog(str(home), clock)
    log.add("alias_used", alias="todo_add", canonical="checklist_add")
    clock.advance(60)
    log.add("alias_used", alias="x\ny\u2028", canonical="z")
    first, second = [json.loads(line) for line in (home / "audit.log").read_text().split("\n")[:-1]]
    assert first == {
        "at": "2025-06-15T15:06:40.000Z", "event": "alias_used", "alias": "todo_add", "canonical": "checklist_add",
    }  # fmt: skip
    assert second["at"] > first["at"] and second["alias"] == "x\ny\u2028"
    assert stat.S_IMODE((home / "audit.log").stat().st_mode) == 0o600


def test_it_keeps_two_files_of_a_mebibyte(home: Path) -> None:
    log = AuditLog(str(home), FakeClock())
    for _ in range(40):
        log.add("alias_used", alias="a" * 100_000)
    sizes = [(home / name).stat().st_size for name in ("audit.log", "audit.log.1")]
    assert sizes[0] < LIMIT <= sizes[1] < LIMIT + 200_000 and len(os.listdir(home)) == 2


def test_where_it_cannot_be_written_nothing_happens(home: Path, tmp_path: Path) -> None:
    (home / "audit.log").symlink_to(tmp_path / "elsewhere")
    AuditLog(str(home), FakeClock()).add("alias_used", alias="a")
    AuditLog(str(tmp_path / "nowhere"), FakeClock()).add("alias_used", alias="a")
    AuditLog(str(home), FakeClock()).add("alias_used", alias="\ud800")
    assert not (tmp_path / "elsewhere").exists() and not (tmp_path / "nowhere").exists()
