"""The trust store over real files: content decides, and the content of what a file names."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from codewhale.permissions.trust import MAX_NAMED, ProjectFile, TrustStore
from codewhale.protocol.errors import ConfigError

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
    (found,) = store.survey(str(workspace))
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
    assert [process.wait(60) for process in both] == [0, 0]
    assert len(TrustStore(str(home)).all()) == 40
