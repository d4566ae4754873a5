"""The one walker: the same files whether git or the tree's own rules decide, never a symlink followed, never stuck."""

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from codewhale.workspace.walk import Walker
from support.patience import Moment
from support.repos import TRAPS, commit, lay, make_repo, raw_git, write


@pytest.fixture(params=["git", "plain"])
def tree(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Path]:
    """One folder in both worlds, with something of everything."""
    top = tmp_path / "top"
    write(
        top, {".gitignore": "*.log\n/out/\n", "a.py": "", "sub/b.py": "", "sub/c.log": "", ".hidden/d": "", "out/e": ""}
    )
    if request.param == "git":
        raw_git(top, "init", "-q")
    yield top


async def test_hidden_files_are_listed_and_ignored_ones_are_not(tree: Path) -> None:
    listing = await Walker(str(tree)).files()
    assert listing.files == (".gitignore", ".hidden/d", "a.py", "sub/b.py")
    assert not listing.truncated and listing.unnamed == 0


async def test_ignored_files_are_listed_on_demand_but_never_git_itself(tree: Path) -> None:
    listing = await Walker(str(tree)).files(include_ignored=True)
    assert listing.files == (".gitignore", ".hidden/d", "a.py", "out/e", "sub/b.py", "sub/c.log")


async def test_a_part_of_the_tree_is_named_from_its_root(tree: Path) -> None:
    assert (await Walker(str(tree)).files("sub")).files == ("sub/b.py",)
    assert (await Walker(str(tree)).files("./sub/../sub/")).files == ("sub/b.py",)
    assert (await Walker(str(tree)).files("sub/b.py")).files == ("sub/b.py",)


async def test_what_is_asked_for_by_name_is_walked_though_ignored(tree: Path) -> None:
    assert (await Walker(str(tree)).files("out")).files == ("out/e",)
    assert (await Walker(str(tree)).files("sub/c.log")).files == ("sub/c.log",)
    assert [entry.name for entry in await Walker(str(tree)).entries("out")] == ["e"]


async def test_entries_say_what_they_are(tree: Path) -> None:
    (tree / "link").symlink_to("a.py")
    (tree / "empty").mkdir()
    os.mkfifo(tree / "pipe")
    entries = {entry.name: entry for entry in await Walker(str(tree)).entries(include_ignored=True)}
    assert entries["out"].is_dir and entries["sub"].is_dir and not entries["a.py"].is_dir
    assert entries["link"].is_link and not entries["link"].is_file
    assert not (entries["pipe"].is_file or entries["pipe"].is_dir or entries["pipe"].is_link)
    names = [entry.name for entry in await Walker(str(tree)).entries()]
    assert names == [".gitignore", ".hidden", "a.py", "empty", "link", "pipe", "sub"]


async def test_links_are_told_and_not_followed(tree: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    write(outside, {"secret.py": ""})
    for name, target in (("out_link", outside), ("loop", tree), ("dangling", "nowhere"), ("inside", "sub")):
        (tree / name).symlink_to(target)
    listing = await Walker(str(tree)).files()
    assert listing.links == ("dangling", "inside", "loop", "out_link")
    assert listing.files == (".gitignore", ".hidden/d", "a.py", "sub/b.py")
    assert (await Walker(str(tree)).files("inside")).files == ("sub/b.py",)
    for path in ("out_link", "..", "../outside", str(outside), "out_link/secret.py", "a\0b"):
        with pytest.raises(ValueError):
            await Walker(str(tree)).files(path)
        with pytest.raises(ValueError):
            await Walker(str(tree)).entries(path)


async def test_a_committed_folder_turned_into_a_link_is_not_followed(tmp_path: Path) -> None:
    repo = make_repo(tmp_path / "repo", {"dir/secret.py": "", "a.py": ""})
    outside = tmp_path / "outside"
    write(outside, {"secret.py": ""})
    (repo / "dir" / "secret.py").unlink()
    (repo / "dir").rmdir()
    (repo / "dir").symlink_to(outside)
    listing = await Walker(str(repo)).files()
    assert listing.files == ("a.py",) and listing.links == ("dir",)


async def test_odd_names_do_no_harm(tree: Path) -> None:
    for name in ("new\nline", "-rf", "quote\"'", "é", ":(top)x", "*"):
        (tree / name).write_text("")
    fd = os.open(os.fsencode(tree) + b"/\xff\xfe", os.O_CREAT | os.O_WRONLY)
    os.close(fd)
    listing = await Walker(str(tree)).files()
    assert {"new\nline", "-rf", "quote\"'", "é", ":(top)x", "*"} <= set(listing.files)
    assert listing.unnamed == 1
    json.dumps(listing.files).encode()
    assert len(await Walker(str(tree)).entries()) == 10


async def test_special_files_and_unreadable_places_do_not_stop_it(tree: Path) -> None:
    os.mkfifo(tree / "pipe")
    with pytest.raises(NotADirectoryError):
        await Walker(str(tree)).files("pipe")
    with pytest.raises(FileNotFoundError):
        await Walker(str(tree)).files("absent")
    with pytest.raises(NotADirectoryError):
        await Walker(str(tree)).entries("a.py")
    assert "pipe" not in (await Walker(str(tree)).files()).files


@pytest.mark.skipif(not os.path.isdir("/proc/1"), reason="needs /proc, some of which opens and cannot be read")
async def test_a_folder_that_opens_and_cannot_be_read_does_not_stop_it() -> None:
    assert "comm" in (await Walker("/proc/1").files()).files


@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="needs /proc")
async def test_from_the_top_of_a_machine_the_kernels_own_folders_are_left_out() -> None:
    machine = frozenset({"proc", "sys", "dev"})
    found = await Walker("/").files(skip=frozenset(os.listdir("/")) - machine)
    assert not [path for path in (*found.files, *found.links) if path.partition("/")[0] in machine]
    asked = await Walker("/").files("proc/self/task")  # by name it is walked all the same
    assert asked.files and all(path.startswith("proc/") for path in asked.files)


async def test_bounds_are_met_and_told(tree: Path) -> None:
    write(tree, {f"many/{n}.py": "" for n in range(2000)})
    listing = await Walker(str(tree), limit=600).files()
    assert listing.truncated and 0 < len(listing.files) < 1200
    started = Moment()
    listing = await Walker(str(tree), seconds=0.0).files()
    assert listing.truncated and not started.hung


async def test_folders_to_skip_are_not_entered(tree: Path) -> None:
    write(tree, {"node_modules/x.js": "", "sub/node_modules/y.js": ""})
    listing = await Walker(str(tree)).files(skip=frozenset({"node_modules", ".hidden"}))
    assert listing.files == (".gitignore", "a.py", "sub/b.py")
    assert (await Walker(str(tree)).files("node_modules", skip=frozenset({"node_modules"}))).files == (
        "node_modules/x.js",
    )


async def test_a_very_deep_tree_ends(workspace: Path) -> None:
    here = workspace
    for _ in range(150):
        here = here / "d"
    here.mkdir(parents=True)
    (here / "deep.py").write_text("")
    listing = await Walker(str(workspace)).files()
    assert listing.truncated and listing.files == ()


async def test_a_workspace_inside_a_repository_obeys_the_rules_above_it(tmp_path: Path) -> None:
    repo = make_repo(tmp_path / "repo", {".gitignore": "*.log\n", "top.py": "", "part/a.py": "", "part/deep/b.py": ""})
    write(repo, {"part/x.log": "", "part/new.py": ""})
    walker = Walker(str(repo / "part"))
    assert (await walker.files()).files == ("a.py", "deep/b.py", "new.py")
    assert [entry.name for entry in await walker.entries()] == ["a.py", "deep", "new.py"]


async def test_a_workspace_its_repository_ignores_speaks_for_itself(tmp_path: Path) -> None:
    repo = make_repo(tmp_path / "repo", {".gitignore": "*\n"})
    write(repo, {"work/a.py": "", "work/b.log": "", "work/.gitignore": "*.log\n"})
    walker = Walker(str(repo / "work"))
    assert (await walker.files()).files == (".gitignore", "a.py")
    assert [entry.name for entry in await walker.entries()] == [".gitignore", "a.py"]


async def test_committed_files_are_listed_though_a_rule_names_them(tmp_path: Path) -> None:
    repo = make_repo(tmp_path / "repo", {"gen/a.py": "", "gen/b.py": ""})
    commit(repo, {".gitignore": "gen/\n"})
    write(repo, {"gen/new.py": ""})
    (repo / "gen" / "b.py").unlink()
    walker = Walker(str(repo))
    assert (await walker.files()).files == (".gitignore", "gen/a.py")
    assert [entry.name for entry in await walker.entries()] == [".gitignore", "gen"]


async def test_repositories_within_are_asked_for_themselves(tmp_path: Path) -> None:
    for top in (make_repo(tmp_path / "outer", {"a.py": ""}), tmp_path / "folder"):
        inner = make_repo(top / "inner", {".gitignore": "*.tmp\n", "b.py": ""})
        make_repo(inner / "deeper", {"c.py": ""})
        write(inner, {"x.tmp": "", "x.py": ""})
        listing = await Walker(str(top)).files("inner")
        assert listing.files == ("inner/.gitignore", "inner/b.py", "inner/deeper/c.py", "inner/x.py")
        assert set(listing.files) <= set((await Walker(str(top)).files()).files)


async def test_submodules_are_walked(tmp_path: Path) -> None:
    library = make_repo(tmp_path / "library", {"lib.py": "", ".gitignore": "*.tmp\n"})
    repo = make_repo(tmp_path / "repo", {"a.py": ""})
    raw_git(repo, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(library), "lib")
    write(repo, {"lib/x.tmp": "", "lib/new.py": ""})
    listing = await Walker(str(repo)).files()
    assert listing.files == (".gitmodules", "a.py", "lib/.gitignore", "lib/lib.py", "lib/new.py")
    assert (await Walker(str(repo)).files("lib")).files == ("lib/.gitignore", "lib/lib.py", "lib/new.py")


async def test_a_broken_repository_is_walked_as_a_plain_folder(tmp_path: Path) -> None:
    repo = make_repo(tmp_path / "repo", {"a.py": "", ".gitignore": "*.log\n"})
    write(repo, {"x.log": ""})
    (repo / ".git" / "config").write_text("[broken\n")
    assert (await Walker(str(repo)).files()).files == (".gitignore", "a.py")
    assert [entry.name for entry in await Walker(str(repo)).entries()] == [".gitignore", "a.py"]


@pytest.mark.parametrize("trap", TRAPS, ids=lambda trap: trap.name)
async def test_walking_runs_nothing(trap: object, tmp_path: Path) -> None:
    marker = tmp_path / "PWNED"
    repo = lay(trap, tmp_path / "outer" / "repo", marker)  # type: ignore[arg-type]
    for top in (repo, repo.parent):
        await Walker(str(top)).files()
        await Walker(str(top)).entries()
    assert not marker.exists()
