"""Watching a workspace: what is new and steers git goes out of the way, what was there before stays."""

import os
from pathlib import Path

from codewhale.process.sandbox.watch import GitWatch
from support.repos import make_repo


def test_what_was_there_stays_and_what_is_new_goes(tmp_path: Path) -> None:
    old, new = make_repo(tmp_path / "old", {"a": "a\n"}), tmp_path / "new"
    (old / ".git" / "config").write_text("[alias]\n a = !b\n")
    ward = GitWatch(str(tmp_path))
    assert str(old / ".git" / "config") in ward.enter()
    assert ward.restore(()) == []
    make_repo(new, {"a": "a\n"})
    (new / ".git" / "config").write_text("[alias]\n a = !b\n")
    told = ward.restore(())
    assert len(told) == 2 and "new/.git/config (alias.a): moved to config.set-aside" in told[1]
    assert ward.restore(()) == [] and (old / ".git" / "config").read_text() == "[alias]\n a = !b\n"


def test_what_was_changed_is_put_back_and_what_moved_may_move(tmp_path: Path) -> None:
    repo = make_repo(tmp_path / "repo", {"a": "a\n"})
    (repo / ".git" / "config").write_text("[alias]\n a = !b\n")
    ward = GitWatch(str(tmp_path))
    ward.enter()
    (repo / ".git" / "config").write_text("[alias]\n a = !c\n")
    assert "restored" in ward.restore(())[1]
    assert (repo / ".git" / "config").read_text() == "[alias]\n a = !b\n"
    ward.leave()
    ward.enter()
    os.rename(repo, tmp_path / "moved")
    assert ward.restore(()) == [] and "!b" in (tmp_path / "moved" / ".git" / "config").read_text()


def test_a_second_command_does_not_begin_anew(tmp_path: Path) -> None:
    ward = GitWatch(str(tmp_path))
    ward.enter()
    (make_repo(tmp_path / "new", {"a": "a\n"}) / ".git" / "config").write_text("[alias]\n a = !b\n")
    ward.enter()
    assert ward.restore(()) and not ward.restore(())
    ward.leave()
    ward.leave()


def test_what_cannot_be_changed_is_left_to_the_person(tmp_path: Path) -> None:
    repo = make_repo(tmp_path / "repo", {"a": "a\n"})
    ward = GitWatch(str(tmp_path))
    ward.enter()
    (repo / ".git" / "config").write_text("[alias]\n a = !b\n")
    assert ward.restore((str(repo / ".git"),)) == [] and ward.restore(())


def test_setting_aside_follows_no_link_out(tmp_path: Path) -> None:
    space, out = tmp_path / "space", make_repo(tmp_path / "out", {"a": "a\n"})
    space.mkdir()
    (out / ".git" / "config").write_text("[alias]\n a = !b\n")
    ward = GitWatch(str(space))
    ward.enter()
    (space / "x").mkdir()
    (space / "x" / ".git").symlink_to(out / ".git")
    assert "x/.git (leads elsewhere): moved to .git.set-aside" in ward.restore(())[1]
    assert (out / ".git" / "config").read_text() == "[alias]\n a = !b\n"
