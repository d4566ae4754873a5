"""What is shown of a home: what is there of the list and of PATH, never the home itself, nothing beside it."""

import os
from pathlib import Path

import pytest

from codewhale.process.confinement import confine
from codewhale.process.launch import Launch
from codewhale.process.sandbox.homes import TOOLCHAINS, can_narrow, shown
from codewhale.process.sandbox.profiles import FAMILIES
from codewhale.protocol.errors import ToolError
from support.machine import HELD

# Where programs keep keys below a home: nothing of the list may be, or hold, one of these.
KEYS = (
    ".ssh", ".gnupg", ".aws", ".azure", ".kube", ".docker/config.json", ".config/gcloud", ".config/gh", ".netrc",
    ".git-credentials", ".config/git/credentials", ".npmrc", ".pypirc", ".cargo/credentials.toml", ".cargo/credentials",
    ".gem/credentials", ".local/share/gem/credentials", ".local/share/uv/credentials", ".gradle/gradle.properties",
    ".m2/settings.xml", ".m2/settings-security.xml", ".ivy2/.credentials", ".sbt/.credentials", ".hex/hex.config",
    ".pub-cache/credentials.json", ".config/dart", ".nuget/NuGet/NuGet.Config", ".config/pypoetry/auth.toml",
    ".bundle/config", ".composer/auth.json", ".config/composer/auth.json", ".terraform.d/credentials.tfrc.json",
    ".cache/huggingface/token", ".local/share/keyrings", ".mozilla", ".config/google-chrome", ".bash_history",
    ".codewhale", ".npm/_logs", ".yarnrc.yml", ".local/share/mise/config", "Documents",
)  # fmt: skip


def make(home: Path, *names: str) -> None:
    """Files in a home."""
    for name in names:
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text("x")


def test_what_is_there_of_the_list_is_shown_and_no_key(tmp_path: Path) -> None:
    listed = [place for row in TOOLCHAINS.values() for place in row]
    make(tmp_path, *(f"{place}/inner" for place in listed), *KEYS)
    seen = shown({"PATH": "/usr/bin"}, str(tmp_path))
    assert {str(tmp_path / place) for place in listed} <= set(seen)
    for key in KEYS:
        path = str(tmp_path / key)
        assert not any(path == place or path.startswith(f"{place}/") or place.startswith(f"{path}/") for place in seen)


def test_caches_are_shown_but_those_with_keys_beside_them(tmp_path: Path) -> None:
    for family in FAMILIES.values():
        make(tmp_path, *(f"{place}/inner" for place in family.places))
    seen = shown({}, str(tmp_path))
    assert str(tmp_path / ".cache/pip") in seen and str(tmp_path / ".m2/repository") in seen
    assert not {str(tmp_path / name) for name in (".gradle", ".gem", ".local/share/uv", ".npm")}.intersection(seen)


def test_programs_of_path_are_shown_with_their_libraries_and_nothing_above(tmp_path: Path) -> None:
    make(tmp_path, "tool/bin/x", "tool/lib/y", "tool/token", "scripts/x", ".local/bin/x", ".local/share/keyrings/k")
    path = os.pathsep.join(str(tmp_path / name) for name in ("tool/bin", "scripts", ".local/bin", "gone", ""))
    seen = shown({"PATH": f"{path}:{tmp_path}:/"}, str(tmp_path))
    assert seen == tuple(str(tmp_path / name) for name in (".local/bin", "scripts", "tool/bin", "tool/lib"))


def test_a_link_that_leads_to_the_home_shows_nothing(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / ".pyenv").symlink_to(home)
    (home / ".nvm").symlink_to(tmp_path)
    (home / ".cargo").mkdir()
    (home / ".cargo/bin").symlink_to("/usr/bin")
    assert shown({"VIRTUAL_ENV": str(home), "NVM_DIR": "relative"}, str(home)) == (str(home / ".cargo/bin"),)


def test_a_home_in_the_workspace_cannot_be_hidden(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "home/shop").mkdir(parents=True)
    for home, workspace, can in (
        ("home", "home/shop", True), ("home", ".", False), ("home", "home", False), ("gone", ".", True),
    ):  # fmt: skip
        monkeypatch.setenv("HOME", str(tmp_path / home))
        assert can_narrow(str(tmp_path / workspace)) is can
    monkeypatch.setenv("HOME", "/")
    assert can_narrow(str(tmp_path)) is False


@HELD
async def test_what_cannot_be_hidden_is_not_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    launch = Launch(("/bin/true",), str(tmp_path), "workspace-write", allowances=("home:toolchains",))
    with pytest.raises(ToolError, match="home lies in the workspace"):
        await confine(launch)
