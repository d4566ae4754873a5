"""What is shown of a home: what is there of the list and of PATH, never the home itself, nothing beside it."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from codewhale.process.confinement import CHOICE, LANDLOCK, confine, sandbox
from codewhale.process.launch import Launch, run
from codewhale.process.sandbox.homes import TOOLCHAINS, can_narrow, shown
from codewhale.process.sandbox.profiles import FAMILIES, WORKSPACE_WRITE
from codewhale.protocol.errors import ToolError
from support.house import ROOT
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
    ".codewhale", ".npm/_logs", ".yarnrc.yml", ".local/share/mise/config", "Documents", ".gitconfig",
    ".config/git/config", ".config/pip/pip.conf", ".pip/pip.conf", ".condarc", "miniconda3/.condarc",
    ".virtualenvs/pip.conf", ".npm-global/etc/npmrc", ".stack/upload/credentials.json", ".stack/config.yaml",
    ".dotnet/corefx/cryptography/x509stores/my/a.pfx", ".cargo/config",
)  # fmt: skip
WITH_SETTINGS = ("miniconda3", ".virtualenvs")  # shown but for a file of settings in it
CANARY, CARGO = "canary-5c1d", ".cargo/config.toml"
# Keys in settings as programs take them, each beside something harmless.
GIT_SETTINGS = f"""
[user]
name = Ada
email = ada@localhost
token = {CANARY}
[core]
autocrlf = input
sshCommand = ssh -i {CANARY}
[http]
extraheader = Authorization: {CANARY}
[url "https://me:{CANARY}@localhost/"]
insteadOf = https://localhost/
[credential]
helper = "!echo {CANARY}"
[alias]
up = "!curl -H {CANARY}"
[github]
token = {CANARY}
[includeIf "gitdir:**/shop/"]
path = work.inc
"""
CARGO_SETTINGS = (
    f'[registry]\ntoken = "{CANARY}"',
    f'[registries.own]\nindex = "https://a.example"\ntoken = "{CANARY}"',
    f'[http]\nproxy = "me:{CANARY}@localhost"',
    f'[env]\nOWN = "{CANARY}"',
    f'[source.own]\nregistry = "https://{CANARY}@localhost/"',
    f'[build]\njobs = 2\n[credential-alias]\nx = ["{CANARY}"]',
    f"[build\n{CANARY}",
    CANARY.replace("-", " = ") + "x",
)


def make(home: Path, *names: str) -> None:
    """Files in a home."""
    for name in names:
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text("x")


def test_what_is_there_of_the_list_is_shown_and_no_key(tmp_path: Path) -> None:
    listed = [place for row in TOOLCHAINS.values() for place in row]
    make(tmp_path, *(f"{place}/inner" for place in listed if place != CARGO), *KEYS)
    (tmp_path / CARGO).write_text("[build]\njobs = 2\n")
    seen = shown({"PATH": "/usr/bin"}, str(tmp_path))
    assert {str(tmp_path / place) for place in listed} - {str(tmp_path / name) for name in WITH_SETTINGS} <= set(seen)
    assert {str(tmp_path / name / "inner") for name in WITH_SETTINGS} <= set(seen)
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


@pytest.mark.parametrize("settings", CARGO_SETTINGS)
def test_settings_of_cargo_are_shown_where_they_build_and_nothing_else(tmp_path: Path, settings: str) -> None:
    make(tmp_path, CARGO)
    file = tmp_path / CARGO
    file.write_text('[build]\nrustflags = ["-O"]\n[target.x]\nlinker = "mold"\n')
    assert shown({}, str(tmp_path)) == (str(file),)
    file.write_text(settings)
    assert shown({}, str(tmp_path)) == ()


@pytest.fixture
def home(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A home that no private folder lies over, with a repository in it."""
    place = ROOT / ".scratch" / f"home-{os.getpid()}"
    (place / "shop").mkdir(parents=True)
    subprocess.run(["git", "init", "-q"], cwd=place / "shop", check=True)
    monkeypatch.setenv("HOME", str(place))
    yield place
    shutil.rmtree(place)


@pytest.fixture(params=["", LANDLOCK], ids=["best", LANDLOCK])
def mechanism(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    if request.param:
        monkeypatch.setenv(CHOICE, request.param)
    sandbox.cache_clear()
    if not sandbox().mechanism:
        pytest.skip("nothing holds commands on this machine")
    yield sandbox().mechanism
    sandbox.cache_clear()


async def inside(home: Path, line: str) -> str:
    """What a line prints that sees of the home what toolchains need."""
    shop = str(home / "shop")
    done = await run(Launch(("/bin/sh", "-c", line), shop, WORKSPACE_WRITE, allowances=("home:toolchains",)))
    return (done.stdout + done.stderr).decode()


async def test_no_key_of_a_home_can_be_read_from_inside(home: Path, mechanism: str) -> None:
    make(home, *(f"{place}/inner" for row in TOOLCHAINS.values() for place in row if place != CARGO))
    make(home, *KEYS, CARGO)
    for name in KEYS:
        (home / name).write_text(CANARY)
    (home / CARGO).write_text(CARGO_SETTINGS[0])
    (home / ".gitconfig").write_text(GIT_SETTINGS)
    (home / "work.inc").write_text(f"[user]\nemail = ada@work\n[http]\nproxy = http://{CANARY}@localhost\n")
    assert CANARY in (home / ".gitconfig").read_text()
    printed = await inside(home, "grep -rs canary $HOME; env; git config --list; echo; cat $GIT_CONFIG_GLOBAL; id")
    assert CANARY not in printed and "uid=" in printed
    assert "user.name=Ada" in printed and "user.email=ada@work" in printed and "core.autocrlf=input" in printed


async def test_git_does_without_settings_that_cannot_be_read(home: Path, mechanism: str) -> None:
    (home / ".gitconfig").write_text("[user\n")
    assert "no branch" not in await inside(home, "git status --short --branch") and mechanism


@HELD
async def test_what_cannot_be_hidden_is_not_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    launch = Launch(("/bin/true",), str(tmp_path), "workspace-write", allowances=("home:toolchains",))
    with pytest.raises(ToolError, match="home folder is in the workspace"):
        await confine(launch)
