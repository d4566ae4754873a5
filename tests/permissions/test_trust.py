"""The trust store over real files: content decides, and the content of what a file names."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from codewhale.permissions.trust import MAX_BYTES, MAX_NAMED, ProjectFile, TrustStore, settled
from codewhale.protocol.errors import ConfigError
from support.patience import HANG

HOOKS = '[[hooks.hooks]]\nevent = "tool_call_before"\ncommand = "sh tools/check.sh --with=rules.txt"\n'


@pytest.fixture
def project(workspace: Path) -> Path:
    """A workspace with hooks that name two files."""
    (workspace / ".codewhale").mkdir()
    (workspace / ".codewhale" / "hooks.toml").write_text(HOOKS)
    (workspace / "tools").mkdir()
    (workspace / "tools" / "check.sh").write_text("true\n")
    (workspace / "rules.txt").write_text("none\n")
    return workspace


def only(store: TrustStore, workspace: Path) -> ProjectFile:
    (found,) = store.survey(str(workspace), map(str, workspace.glob("*/skills/*/SKILL.md")))
    return found


def test_a_file_is_trusted_as_it_is_with_what_it_names(home: Path, project: Path) -> None:
    store = TrustStore(str(home))
    new = only(store, project)
    assert (new.state, new.path) == ("new", str(project / ".codewhale" / "hooks.toml"))
    assert not store.holds(new.path, new.sha256)
    assert sorted(new.named) == [str(project / "rules.txt"), str(project / "tools" / "check.sh")]
    store.add(new)
    assert store.holds(new.path, new.sha256) and only(store, project).state == "trusted"
    assert not store.holds(new.path, "0" * 64) and not store.holds(new.path + "x", new.sha256)
    assert (home / "trust.json").stat().st_mode & 0o777 == 0o600
    assert TrustStore(str(home)).all() == store.all()


@pytest.mark.parametrize("name", [".codewhale/hooks.toml", "tools/check.sh", "rules.txt"])
def test_whatever_changes_is_asked_again(name: str, home: Path, project: Path) -> None:
    store = TrustStore(str(home))
    store.add(only(store, project))
    path = project / name
    before = path.read_bytes()
    path.write_bytes(before + b"# more\n")
    item = only(store, project)
    assert item.state == "changed" and not store.holds(item.path, item.sha256)
    assert item.changed == (() if name.startswith(".") else (str(path),))
    path.write_bytes(before)
    item = only(store, project)
    assert item.state == "trusted" and store.holds(item.path, item.sha256)
    path.unlink()
    assert not store.holds(item.path, item.sha256) or name.startswith(".")


def test_what_is_removed_is_new_again(home: Path, project: Path) -> None:
    store = TrustStore(str(home))
    item = only(store, project)
    assert not store.remove(item.path)
    store.add(item)
    assert store.remove(item.path) and only(store, project).state == "new"
    assert not store.remove(item.path)


@pytest.mark.parametrize(
    "command",
    [
        "./tools/check.sh",
        "cd . && tools/check.sh;true",
        "x >tools/check.sh",
        "python3 -c 'x' \"tools/check.sh\"",
        "it's tools/check.sh",
    ],
)
def test_words_are_found_as_a_shell_would(command: str, home: Path, project: Path) -> None:
    quoted = command.replace("\\", "\\\\").replace('"', '\\"')
    (project / ".codewhale" / "hooks.toml").write_text(f'[[hooks.hooks]]\ncommand = "{quoted}"\n')
    assert list(only(TrustStore(str(home)), project).named) == [str(project / "tools" / "check.sh")]


def test_what_cannot_be_kept_apart_is_refused(home: Path, project: Path) -> None:
    store, hooks = TrustStore(str(home)), project / ".codewhale" / "hooks.toml"
    names = [f"f{number}" for number in range(MAX_NAMED + 1)]
    for name in names:
        (project / name).write_text("x")
    hooks.write_text(f'command = "{" ".join(names)}"')
    with pytest.raises(ConfigError, match="one script"):
        store.survey(str(project))
    hooks.write_bytes(b"\xff")
    with pytest.raises(ConfigError, match="not UTF-8 text"):
        store.survey(str(project))
    hooks.write_bytes(b"#" * ((1 << 20) + 1))
    with pytest.raises(ConfigError, match="larger"):
        store.survey(str(project))


def test_a_store_that_others_could_have_written_is_not_used(home: Path, project: Path) -> None:
    store = TrustStore(str(home))
    item = only(store, project)
    store.add(item)
    (home / "trust.json").chmod(0o666)
    with pytest.raises(ConfigError, match="other users could write it"):
        store.holds(item.path, item.sha256)
    (home / "trust.json").chmod(0o600)
    (home / "trust.json").write_text("{")
    with pytest.raises(ConfigError, match="damaged"):
        store.all()
    (home / "trust.json").unlink()
    (home / "trust.json").symlink_to(home / "elsewhere")
    with pytest.raises(ConfigError, match="cannot be read"):
        store.all()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_anothers_store_is_not_used(home: Path) -> None:
    (home / "trust.json").write_text('{"version":1,"files":{}}')
    os.chown(home / "trust.json", 12345, 12345)
    with pytest.raises(ConfigError, match="other users could write it"):
        TrustStore(str(home)).all()


def test_two_processes_lose_no_row(home: Path, project: Path) -> None:
    program = (
        "import sys\nfrom codewhale.permissions.trust import ProjectFile, TrustStore\n"
        "for n in range(20): TrustStore(sys.argv[1]).add(ProjectFile(f'/{sys.argv[2]}/{n}', 'new', 'a', b''))\n"
    )
    both = [subprocess.Popen([sys.executable, "-c", program, str(home), who]) for who in "ab"]
    assert [process.wait(HANG) for process in both] == [0, 0]
    assert len(TrustStore(str(home)).all()) == 40


@pytest.fixture
def skill(workspace: Path) -> Path:
    """A workspace whose one project file is a skill with a script."""
    folder = workspace / ".claude/skills/house"
    (folder / "scripts").mkdir(parents=True)
    (folder / "SKILL.md").write_text("# House\n")
    (folder / "scripts/go.sh").write_text("true\n")
    os.symlink("scripts/go.sh", folder / "go")
    return folder


def trusted(home: Path, workspace: Path) -> TrustStore:
    """A store in which the one project file of a workspace is trusted."""
    store = TrustStore(str(home))
    store.add(only(store, workspace))
    return store


@pytest.mark.parametrize("change", ["content", "added", "removed", "link"])
def test_a_skill_is_trusted_with_all_files_of_its_folder(change: str, home: Path, skill: Path, workspace: Path) -> None:
    store = trusted(home, workspace)
    while not settled(os.stat(skill / "scripts/go.sh")):  # from when on it is known again by its times
        time.sleep(0.01)
    before = only(store, workspace)
    assert before.state == "trusted" and store.holds(before.path, before.sha256)
    script = skill / "scripts/go.sh"
    if change == "content":  # of the same size, with the times of before
        times = script.stat()
        script.write_text("evil\n")
        os.utime(script, ns=(times.st_atime_ns, times.st_mtime_ns))
    elif change == "added":
        (skill / "scripts/more.sh").write_text("evil\n")
    elif change == "removed":
        script.unlink()
    else:
        (skill / "go").unlink()
        os.symlink("/tmp/evil.sh", skill / "go")
    now = only(store, workspace)
    assert now.state == "changed" and len(now.changed) == 1 and not store.holds(now.path, now.sha256)
    store.add(now)
    assert only(store, workspace).state == "trusted"


def test_what_stands_in_a_hidden_folder_of_a_skill_is_not_its_own(home: Path, skill: Path, workspace: Path) -> None:
    store = trusted(home, workspace)
    (skill / ".cache").mkdir()
    (skill / ".cache/x").write_text("x")
    assert only(store, workspace).state == "trusted"


@pytest.mark.parametrize(
    ("damage", "why"), [("many", "more than 250 files"), ("pipe", "cannot be read"), ("large", "larger than 1048576")]
)
def test_a_skill_that_cannot_be_kept_apart_is_refused_and_no_other(
    damage: str, why: str, home: Path, skill: Path, workspace: Path
) -> None:
    if damage == "many":
        for number in range(251):
            (skill / f"{number}").write_text("")
    elif damage == "pipe":
        os.mkfifo(skill / "pipe")
    else:
        (skill / "SKILL.md").write_bytes(b"x" * (MAX_BYTES + 1))
    (workspace / "skills/fine").mkdir(parents=True)
    (workspace / "skills/fine/SKILL.md").write_text("# Fine\n")
    store = TrustStore(str(home))
    refused, fine = store.survey(str(workspace), [str(skill / "SKILL.md"), str(workspace / "skills/fine/SKILL.md")])
    assert refused.state == "new" and why in refused.problem and not fine.problem
    with pytest.raises(ConfigError, match="cannot be trusted"):
        store.add(refused)
    store.add(fine)
    assert store.all().keys() == {fine.path}


def test_a_store_never_grows_beyond_what_can_be_read_again(home: Path) -> None:
    store = TrustStore(str(home))
    named = {f"/{'x' * 150}/{number}": "0" * 64 for number in range(2_000)}
    store.add(ProjectFile("/first", "new", "a", b"", named))
    with pytest.raises(ConfigError, match="no room"):
        for number in range(9):
            store.add(ProjectFile(f"/{number}", "new", "a", b"", named))
    assert "/first" in TrustStore(str(home)).all()
