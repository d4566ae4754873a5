"""Which other files belong to a skill, and which file is one."""

import os
from pathlib import Path

import pytest

from codewhale.permissions.skill_folders import companions, is_skill


def test_the_other_files_of_a_skill_are_bounded(tmp_path: Path) -> None:
    for name in ("SKILL.md", "scripts/run.sh", "sub/SKILL.md", ".hidden/x", ".env"):
        (tmp_path / "pdf" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "pdf" / name).write_text("")
    os.symlink("/", tmp_path / "pdf/root")
    assert sorted(companions(str(tmp_path / "pdf"))) == [".env", "root", "scripts/run.sh", "sub/SKILL.md"]
    for number in range(250):
        (tmp_path / f"pdf/sub/{number}").mkdir()
    with pytest.raises(ValueError, match="more than 250"):
        list(companions(str(tmp_path / "pdf")))


def test_a_command_that_is_called_skill_is_none() -> None:
    assert is_skill("/w/.claude/skills/x/skill.md") and not is_skill("/w/.codewhale/commands/skill.md")
