"""What is found to be protected in a workspace."""

from pathlib import Path

from codewhale.process.sandbox.bubblewrap import HELD, find_guards
from codewhale.process.sandbox.profiles import GitPlace, Site


def site(workspace: Path, *git: GitPlace, home: str = "", state: str = "") -> Site:
    return Site(str(workspace), str(workspace), "/tmp", home, state, git)


def test_what_is_there_is_fixed_in_any_case_and_what_is_absent_is_held(tmp_path: Path) -> None:
    (tmp_path / ".VSCode").mkdir()
    (tmp_path / ".VSCode" / "tasks.json").write_text("")
    (tmp_path / "AGENTS.md").write_text("")
    found = find_guards(site(tmp_path))
    assert found.fixed == (str(tmp_path / ".VSCode"), str(tmp_path / "AGENTS.md"))
    assert set(found.folders) == {str(tmp_path / name) for name in HELD if name not in (".vscode", "AGENTS.md")}


def test_an_empty_folder_may_be_one_of_ours_and_is_held_again(tmp_path: Path) -> None:
    (tmp_path / ".idea").mkdir()
    assert str(tmp_path / ".idea") in find_guards(site(tmp_path)).folders
    (tmp_path / ".idea" / "x").write_text("")
    assert str(tmp_path / ".idea") not in find_guards(site(tmp_path)).folders


def test_a_git_directory_is_pinned_and_its_settings_fixed(tmp_path: Path) -> None:
    git = tmp_path / ".git"
    (git / "modules" / "deep" / "sub").mkdir(parents=True)
    (git / "config").write_text("")
    (git / "modules" / "deep" / "sub" / "config").write_text("")
    found = find_guards(site(tmp_path, GitPlace(str(git))))
    modules = git / "modules"
    assert set(found.writable) == {str(path) for path in (git, modules)}
    assert str(git / "config") in found.fixed
    assert str(git / "hooks") in found.folders and found.pointers == (str(git / "commondir"),)


def test_a_link_is_followed_into_the_workspace_alone(tmp_path: Path) -> None:
    workspace, out = tmp_path / "w", tmp_path / "out"
    (workspace / "rules").mkdir(parents=True)
    out.mkdir()
    (workspace / "AGENTS.md").symlink_to("rules")
    (workspace / ".vscode").symlink_to(out)
    assert find_guards(site(workspace)).fixed == (str(workspace / "rules"),)


def test_a_workspace_that_holds_the_home_folder_keeps_its_settings(tmp_path: Path) -> None:
    for name in (".ssh", ".config", "bin", "src", "state"):
        (tmp_path / "me" / name).mkdir(parents=True)
    found = find_guards(site(tmp_path, home=str(tmp_path / "me"), state=str(tmp_path / "me" / "state")))
    assert found.home == str(tmp_path / "me") and found.fixed == (str(tmp_path / "me" / "state"),)
    assert {str(tmp_path / "me" / name) for name in ("src", "state")} == set(found.open)
    assert find_guards(site(tmp_path / "me", home=str(tmp_path / "me"))).folders == ()
