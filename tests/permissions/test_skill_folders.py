"""Where skills stand."""

from pathlib import Path

from codewhale.permissions.skill_folders import any_there, places


def test_the_workspace_comes_before_the_person(tmp_path: Path) -> None:
    work, home, person = str(tmp_path / "w"), str(tmp_path / "h"), str(tmp_path / "p")
    shown = [place.shown for place in places(work, home, person)]
    assert shown[0] == ".agents/skills" and shown[6:] == ["~/.agents/skills", "~/.claude/skills", f"{home}/skills"]
    assert not any_there(work, home, person)
    (tmp_path / "h/skills").mkdir(parents=True)
    assert any_there(work, home, person)
