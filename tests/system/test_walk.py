"""The one walker: the same files whether git or the tree's own rules decide, never a symlink followed, never stuck."""

import json
import os
import random
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from codewhale.system.walk import Walker
from support.repos import TRAPS, commit, lay, make_repo, raw_git, write

SUITE = Path(os.environ.get("CODEWHALE_SUITES") or Path(__file__).parents[3] / "shared" / "suites") / "gitignore"
needs_suite = pytest.mark.skipif(not SUITE.is_dir(), reason=f"no gitignore suite at {SUITE}; set CODEWHALE_SUITES")


def cases(name: str) -> list[dict[str, object]]:
    return [json.loads(line) for line in (SUITE / name).read_text().splitlines()]


def lay_out(folder: Path, path: str, is_dir: bool) -> None:
    target = folder / path
    target.parent.mkdir(parents=True, exist_ok=True)
    if is_dir:
        target.mkdir(exist_ok=True)
    elif not target.exists():
        target.write_text("x")


async def is_ignored(walker: Walker, path: str, is_dir: bool) -> bool:
    """Whether the walker leaves `path` out, by one folder at a time and for a file by a whole walk as well."""
    here, hidden = ".", False
    for step in path.split("/"):
        hidden = hidden or step not in {entry.name for entry in await walker.entries(here)}
        here = step if here == "." else f"{here}/{step}"
    if not is_dir:
        assert (path in (await walker.files()).files) is not hidden, path
    return hidden


def git_ignores(repo: Path, paths: list[str]) -> set[str]:
    """Those of `paths` that git itself ignores, by their patterns alone."""
    data = "".join(f"./{path}\0" for path in paths).encode()
    told = raw_git(repo, "check-ignore", "--no-index", "-z", "--stdin", stdin=data, check=False)
    return {path.removeprefix("./") for path in told.decode().split("\0") if path}


@pytest.mark.parametrize("in_git", [True, False], ids=["git", "plain"])
@needs_suite
async def test_single_rules_ignore_what_git_ignores(tmp_path: Path, in_git: bool) -> None:
    subjects = []
    for number, case in enumerate(cases("ripgrep_ignore_cases.jsonl")):
        top, path = os.path.normpath(str(case["root"])), os.path.normpath(str(case["path"]))
        path = path.removeprefix(top + "/")
        folder = tmp_path / f"c{number}"
        lay_out(folder, path, bool(case["is_dir"]))
        (folder / ".gitignore").write_text(str(case["gitignore"]))
        subjects.append((folder, path, case))
    raw_git(tmp_path, "init", "-q")
    truth = git_ignores(tmp_path, [f"{folder.name}/{path}" for folder, path, _ in subjects])
    if not in_git:
        shutil.rmtree(tmp_path / ".git")
    for folder, path, case in subjects:
        ignored = await is_ignored(Walker(str(folder)), path, bool(case["is_dir"]))
        assert ignored is case["ignored"] is (f"{folder.name}/{path}" in truth), case


@pytest.mark.parametrize("in_git", [True, False], ids=["git", "plain"])
@needs_suite
async def test_rules_reach_into_folders_as_in_git(tmp_path: Path, in_git: bool) -> None:
    (tmp_path / ".gitignore").write_bytes(
        (SUITE / "gitignore_matched_path_or_any_parents_tests.gitignore").read_bytes()
    )
    rows = [(str(row["path"]).removeprefix("ROOT/"), row) for row in cases("ripgrep_parents_cases.jsonl")]
    for path, row in sorted(rows, key=lambda pair: not pair[1]["is_dir"]):
        lay_out(tmp_path, path, bool(row["is_dir"]))
    if in_git:
        raw_git(tmp_path, "init", "-q")
        truth = git_ignores(tmp_path, [path for path, _ in rows])
        assert truth == {path for path, row in rows if row["expect"] == "is_ignore"}
    walker = Walker(str(tmp_path))
    listed = set((await walker.files()).files)
    for path, row in rows:
        if row["is_dir"]:
            assert await is_ignored(walker, path, True) is (row["expect"] == "is_ignore"), path
        else:
            assert (path not in listed) is (row["expect"] == "is_ignore"), path


async def test_random_trees_and_rules_list_the_same_with_and_without_git(tmp_path: Path) -> None:
    # Known difference, kept out here: git's ? and [sets] match one byte, ours one character ("?" and "é").
    steps = ["a", "b", "foo", "*", "*.py", "**", "?", "[ab]", "x*", "build", ".*", "\\[x\\]", "a b", "[!a]", "f??"]
    names = ["a", "b", "foo", "x.py", "y.txt", "build", ".hid", "a b", "[x]"]
    for seed in range(40):
        chance = random.Random(seed)
        top = tmp_path / str(seed)
        top.mkdir()
        for _ in range(25):
            path = top / "/".join(chance.choice(names) for _ in range(chance.randint(1, 4)))
            if not any(parent.is_file() for parent in path.parents) and not path.exists():
                lay_out(top, str(path.relative_to(top)), False)
        folders = [top, *sorted(path for path in top.rglob("*") if path.is_dir())]
        for folder in chance.sample(folders, min(len(folders), 3)):
            rules = (
                chance.choice(["", "", "!"])
                + chance.choice(["", "", "/"])
                + "/".join(chance.choice(steps) for _ in range(chance.choice([1, 1, 2, 3])))
                + chance.choice(["", "", "/", "  "])
                for _ in range(chance.randint(1, 5))
            )
            (folder / ".gitignore").write_text("\n".join(rules) + "\n")
        plain = await Walker(str(top)).files()
        raw_git(top, "init", "-q")
        assert (await Walker(str(top)).files()).files == plain.files, seed


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


async def test_entries_are_marked(tree: Path) -> None:
    (tree / "link").symlink_to("a.py")
    (tree / "empty").mkdir()
    os.mkfifo(tree / "pipe")
    entries = {entry.name: entry for entry in await Walker(str(tree)).entries(include_ignored=True)}
    assert entries["out"].ignored and entries["out"].is_dir and not entries["sub"].ignored
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


async def test_a_rule_file_that_is_no_file_does_not_hang(workspace: Path) -> None:
    os.mkfifo(workspace / ".gitignore")
    write(workspace, {"a.py": "", "sub/.ignore": "*.txt\n[\n", "sub/b.txt": "", "sub/c.py": ""})
    assert (await Walker(str(workspace)).files()).files == ("a.py", "sub/.ignore", "sub/c.py")


async def test_bounds_are_met_and_told(tree: Path) -> None:
    write(tree, {f"many/{n}.py": "" for n in range(2000)})
    listing = await Walker(str(tree), limit=600).files()
    assert listing.truncated and 0 < len(listing.files) < 1200
    started = time.monotonic()
    listing = await Walker(str(tree), seconds=0.0).files()
    assert listing.truncated and time.monotonic() - started < 2


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


async def test_rules_of_the_person_apply_outside_a_repository(
    workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "xdg"))
    write(tmp_path / "xdg", {"git/ignore": "*.swp\n"})
    write(workspace, {"a.swp": "", "b.py": ""})
    assert (await Walker(str(workspace)).files()).files == ("b.py",)
