"""Which folders and programs the harness trusts, and what of an environment it hands to what it starts."""

import os
from pathlib import Path

import pytest

from codewhale.process.programs import find_program, own_env, split_loader, trusted_folders, trusted_program


def make(folder: Path, name: str = "tool", mode: int = 0o755) -> str:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text("#!/bin/sh\n")
    (folder / name).chmod(mode)
    return str(folder)


def test_a_folder_of_ones_own_is_trusted_and_the_first_that_holds_the_program_counts(tmp_path: Path) -> None:
    first, second = make(tmp_path / "one"), make(tmp_path / "two")
    assert trusted_program("tool", f"{first}:{second}", str(tmp_path / "work")) == f"{first}/tool"
    assert trusted_folders(f"{first}:/nowhere:{second}", str(tmp_path / "work")) == [first, second]


@pytest.mark.parametrize("inside", ["", "bin", "a/b/c"])
def test_nothing_in_the_workspace_is_trusted_nor_in_the_repository_around_it(inside: str, tmp_path: Path) -> None:
    (tmp_path / ".git" / "objects").mkdir(parents=True)
    (tmp_path / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    work = tmp_path / "work"
    make(work)
    assert trusted_program("tool", make(work / inside), str(work)) is None
    assert trusted_program("tool", make(tmp_path / "tools" / inside), str(work)) is None


def test_neither_a_folder_nor_a_program_nor_what_is_above_may_be_open_to_others(tmp_path: Path) -> None:
    for number, modes in enumerate([(0o777, 0o755, 0o755), (0o775, 0o755, 0o755), (0o755, 0o777, 0o755),
                                    (0o755, 0o755, 0o777), (0o755, 0o755, 0o775)]):  # fmt: skip
        above = tmp_path / str(number)
        folder = make(above / "bin", mode=modes[2])
        above.chmod(modes[0] if modes[0] == 0o777 else 0o755)
        os.chmod(folder, modes[1] if modes[0] != 0o775 else 0o775)
        assert trusted_program("tool", folder, "/nowhere") is None, modes


def test_relative_folders_and_links_into_the_workspace_are_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    work = tmp_path / "work"
    folder = make(work / "bin")
    (tmp_path / "link").symlink_to(folder)
    monkeypatch.chdir(tmp_path)
    assert trusted_folders(f"{tmp_path}/link:work/bin:.::{tmp_path}/x/../work/bin", str(work)) == []
    assert find_program("tool", str(work)) is None


def test_an_environment_of_a_project_is_no_place_for_programs_of_the_harness(tmp_path: Path) -> None:
    folder = make(tmp_path / "env" / "bin")
    (tmp_path / "env" / "pyvenv.cfg").write_text("")
    assert trusted_program("tool", folder, "/nowhere") is None
    assert trusted_program("tool", make(tmp_path / "node_modules" / ".bin"), "/nowhere") is None


def test_the_harness_hands_on_nothing_that_leads_into_the_workspace(tmp_path: Path) -> None:
    good, work = make(tmp_path / "good"), tmp_path / "work"
    bad = make(work / "bin")
    source = {"PATH": f"{bad}:{good}", "LD_LIBRARY_PATH": f"{bad}:{good}", "LD_PRELOAD": f"{bad}/x.so",
              "XDG_CONFIG_HOME": str(work / ".config"), "HOME": str(tmp_path), "PYTHONPATH": good, "GIT_DIR": bad,
              "LC_ALL": "C.UTF-8"}  # fmt: skip
    assert own_env(source, str(work)) == {
        "PATH": good, "LD_LIBRARY_PATH": good, "HOME": str(tmp_path), "LC_ALL": "C.UTF-8"
    }  # fmt: skip
    assert own_env({"PATH": bad}, str(work))["PATH"] == os.defpath


def test_what_the_loader_heeds_goes_to_the_held_command_alone(tmp_path: Path) -> None:
    good, work = make(tmp_path / "good"), tmp_path / "work"
    lists = {"LD_LIBRARY_PATH": f"{work}/lib:{good}", "DYLD_LIBRARY_PATH": good}
    env = {**lists, "LD_PRELOAD": "x.so", "GCONV_PATH": "g", "GLIBC_TUNABLES": "t", "A": "1"}
    outer, inner = split_loader(env, str(work))
    assert outer == {"A": "1", "LD_LIBRARY_PATH": good, "DYLD_LIBRARY_PATH": good}
    assert inner == {"LD_LIBRARY_PATH": f"{work}/lib:{good}", "LD_PRELOAD": "x.so", "GCONV_PATH": "g",
                     "GLIBC_TUNABLES": "t"}  # fmt: skip
    assert split_loader({"A": "1"}, str(work)) == ({"A": "1"}, {})
