"""Each row of the tables of places that the sandbox protects, tried by commands that run in it, under each mechanism;
what a row is for stands here once more, so that one which was dropped is missed."""

import atexit
import fcntl
import json
import os
import shutil
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from msgspec import structs

from codewhale.process.confinement import BUBBLEWRAP, CHOICE, LANDLOCK, Confined, confine, sandbox
from codewhale.process.launch import Child, Launch, run
from codewhale.process.sandbox.bubblewrap import _CREDENTIALS, HELD
from codewhale.protocol.protected import (
    GIT_FILES,
    GIT_FOLDERS,
    HOME_FOLDERS,
    PROTECTED_FILES,
    PROTECTED_FOLDERS,
    RULE_FILES,
)
from support.escapeworld import PYTHON
from support.house import ROOT
from support.repos import raw_git

CANARY = "canary-5e1f\n"
CREDENTIALS = {
    ".ssh", ".gnupg", ".aws", ".azure", ".kube", ".docker", ".config/gcloud", ".config/gh", ".netrc",
    ".git-credentials", ".npmrc", ".pypirc",
}  # fmt: skip
TAKEN = {
    ".git", ".codewhale", ".vscode", ".idea", ".gitmodules", ".gitconfig", ".mcp.json", ".ripgreprc", ".bashrc",
    ".bash_profile", ".profile", ".zshrc", ".zprofile", ".zshenv", "AGENTS.md",
}  # fmt: skip
FOLDERS = {".codewhale", ".vscode", ".idea", ".husky", ".githooks", ".claude", ".cursor", ".devcontainer"}
FILES = {
    ".gitmodules", ".gitconfig", ".mcp.json", ".ripgreprc", ".bashrc", ".bash_profile", ".bash_login", ".bash_logout",
    ".bash_aliases", ".profile", ".zshrc", ".zprofile", ".zshenv", ".zlogin", ".zlogout", ".envrc", "AGENTS.md",
    "CLAUDE.md", ".cursorrules",
}  # fmt: skip
OF_GIT = {"config", "config.worktree", "commondir", "gitdir", "hooks"}
# Tries every way to change or make the places that are given as words; what was made stays.
CHANGE = """
import os, shutil, sys
def put(path): open(path, "w").write("PWNED")
def put_below(path): os.makedirs(path, exist_ok=True); put(path + "/PWNED")
def move_over(path): put("moved"); os.replace("moved", path)
def move_away(path): os.rename(path, "away")
def link(path): os.symlink("elsewhere", path)
def join(path): put("joined"); os.link("joined", path)
def remove(path): shutil.rmtree(path) if os.path.isdir(path) else os.unlink(path)
for path in sys.argv[1:]:
    for way in (remove, move_away, put, put_below, move_over, link, join):
        try: way(path)
        except OSError: pass
"""


@pytest.fixture
def base() -> Iterator[Path]:
    """A folder that no private one lies over."""
    place = ROOT / ".scratch" / f"places-{os.getpid()}-{os.urandom(4).hex()}"
    if str(place).startswith(("/tmp/", "/var/tmp/", "/run/")):
        pytest.fail("the checkout stands below a folder for temporary files, where nothing of this can be seen")
    place.mkdir(parents=True)
    yield place
    atexit.register(shutil.rmtree, place)  # another test's command may be about to cover a socket in it


@pytest.fixture(params=[BUBBLEWRAP, LANDLOCK])
def mechanism(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Each mechanism, where it is to be had: whether it is, an independent probe tells."""
    monkeypatch.setenv(CHOICE, request.param)
    sandbox.cache_clear()
    if sandbox().mechanism != request.param:
        pytest.skip(f"{request.param} holds nothing on this machine")
    yield request.param
    sandbox.cache_clear()


bubblewrap = pytest.mark.parametrize("mechanism", [BUBBLEWRAP], indirect=True)


async def python(
    code: str, workspace: Path, *words: str, profile: str = "workspace-write", network: bool = False
) -> str:
    """What a held program prints."""
    allowances = ("network",) if network and profile != "none" else ()
    argv = (PYTHON, "-I", "-S", "-c", code, *words)
    done = await run(Launch(argv, str(workspace), profile, workspace=str(workspace), allowances=allowances, seconds=60))
    assert done.exit_code == 0, done.stderr.decode()
    return done.stdout.decode()


def tree(folder: Path) -> dict[str, str]:
    """All that stands in a folder: what is in files, and where links lead."""
    rows = {}
    for path in sorted(folder.rglob("*")):
        kind = "-> " + os.readlink(path) if path.is_symlink() else path.read_text() if path.is_file() else "/"
        rows[str(path.relative_to(folder))] = kind
    return rows


def lay(folder: Path, names: set[str], *, folders: set[str]) -> None:
    """Each name as a file, or as a folder with a file in it."""
    for name in names:
        path = folder / name / "inner" if name in folders else folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(CANARY)


# ------------------------------------------------------------------ what gives access elsewhere


@bubblewrap
@pytest.mark.parametrize("as_folders", [True, False], ids=["folders", "files"])
@pytest.mark.parametrize("profile", ["read-only", "workspace-write"])
async def test_each_place_of_credentials_is_unreadable_without_a_network(
    as_folders: bool, profile: str, mechanism: str, base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = CREDENTIALS | set(_CREDENTIALS)
    (base / "workspace").mkdir()
    lay(base / "home", names, folders=names if as_folders else set())
    monkeypatch.setenv("HOME", str(base / "home"))
    paths = sorted(f"{base}/home/{name}/inner" if as_folders else f"{base}/home/{name}" for name in names)
    code = (
        "import sys\nfor path in sys.argv[1:]:\n"
        f"    try: print(path) if open(path).read() == {CANARY!r} else None\n    except OSError: pass\n"
    )
    assert await python(code, base / "workspace", *paths, profile=profile) == ""
    with_network = await python(code, base / "workspace", *paths, profile=profile, network=True)
    assert with_network.splitlines() == paths


@bubblewrap
async def test_keys_of_the_harness_are_unreadable_with_a_network_too(
    mechanism: str, base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (base / "workspace").mkdir()
    lay(base / "state" / "secrets", {"keys.json"}, folders=set())
    monkeypatch.setenv("CODEWHALE_HOME", str(base / "state"))
    code = "import os, sys; print(os.path.exists(sys.argv[1]))"
    for network in (False, True):
        told = await python(code, base / "workspace", f"{base}/state/secrets/keys.json", network=network)
        assert told == "False\n"


# ------------------------------------------------------------------ what makes others run things


async def test_each_name_that_is_taken_cannot_be_made(mechanism: str, base: Path) -> None:
    (base / "workspace").mkdir()
    names = sorted(TAKEN | set(HELD))
    await python(CHANGE + "put('made')", base / "workspace", *names)
    left = set(tree(base / "workspace"))
    assert left - {"moved", "joined", "away", "made"} == set()
    assert "made" in left, "a command that can make nothing proves nothing"


@pytest.mark.parametrize("spelling", [str, str.upper], ids=["as it is", "in capitals"])
async def test_each_protected_name_that_is_there_stays_as_it_is(
    spelling: Callable[[str], str], mechanism: str, base: Path
) -> None:
    folders = {spelling(name) for name in FOLDERS.union(PROTECTED_FOLDERS)}
    names = folders | {spelling(name) for name in FILES.union(PROTECTED_FILES, RULE_FILES)}
    lay(base / "workspace", {*names, "open"}, folders=folders)
    before = tree(base / "workspace")
    below = [f"{name}/inner" for name in folders]
    await python(CHANGE, base / "workspace", *sorted(names), *sorted(below), "open")
    now = tree(base / "workspace")
    assert {name: now.get(name) for name in before if name != "open"} == {
        name: text for name, text in before.items() if name != "open"
    }
    assert now.get("open") != CANARY, "a command that can change nothing proves nothing"


async def test_each_setting_of_git_stays_as_it_is_and_none_is_made(mechanism: str, base: Path) -> None:
    settings = OF_GIT | set(GIT_FILES) | set(GIT_FOLDERS)
    for present in (settings - {"commondir", "gitdir"}, {"config"}):
        workspace = base / f"workspace{len(present)}"
        workspace.mkdir()
        raw_git(workspace, "init", "-q", "--template=")
        text = (workspace / ".git" / "config").read_text()
        lay(workspace / ".git", present - {"config"}, folders={"hooks"})
        before = tree(workspace / ".git")
        await python(CHANGE, workspace, *(f".git/{name}" for name in sorted(settings)), ".git/hooks/inner", ".git/open")
        now = tree(workspace / ".git")
        assert {name: now.get(name) for name in before} == before and now["config"] == text
        # Git looks for a gitdir only in the folder of a linked worktree.
        steering = {name for name in now if name.split("/")[0] in settings - {"gitdir"} and name not in before}
        assert steering == set()


async def test_each_folder_of_programs_in_a_home_folder_in_the_workspace_stays_as_it_is(
    mechanism: str, base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = {"bin", "Library", ".config", ".local"} | set(HOME_FOLDERS)
    home = base / "workspace" / "me"
    lay(home, names, folders=names)
    monkeypatch.setenv("HOME", str(home))
    before = tree(home)
    below = [f"me/{name}/inner" for name in names]
    await python(CHANGE, base / "workspace", *(f"me/{name}" for name in sorted(names)), *below, "me/.new", "me/new")
    assert tree(home) == before


# ------------------------------------------------------------------ rights, and services of the machine


CAPABILITIES = """
rows = dict(line.split(":\\t") for line in open("/proc/self/status"))
print({name: int(rows[name], 16) for name in ("CapPrm", "CapEff", "CapAmb", "NoNewPrivs")})
"""


async def capabilities(workspace: Path, profile: str) -> dict[str, int]:
    """What a held command has, the last of them that it cannot gain any."""
    return dict(json.loads((await python(CAPABILITIES, workspace, profile=profile)).replace("'", '"')))


@pytest.mark.parametrize("profile", ["read-only", "workspace-write"])
async def test_no_right_of_root_is_left(profile: str, mechanism: str, base: Path) -> None:
    (base / "workspace").mkdir()
    kept = await capabilities(base / "workspace", profile)
    assert kept == {"CapPrm": 0, "CapEff": 0, "CapAmb": 0, "NoNewPrivs": 1}


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder to another user")
@pytest.mark.parametrize("profile", ["read-only", "workspace-write"])
async def test_in_anothers_workspace_root_keeps_its_rights_over_files_alone(
    profile: str, mechanism: str, base: Path
) -> None:
    (base / "workspace").mkdir()
    os.chown(base / "workspace", 12345, 12345)
    over_files = 1 << 1 | 1 << 3
    kept = await capabilities(base / "workspace", profile)
    if profile == "workspace-write":
        await python("open('new', 'w')", base / "workspace")
        assert (base / "workspace" / "new").exists()
    assert kept | {"CapAmb": 0} == {"CapPrm": over_files, "CapEff": over_files, "CapAmb": 0, "NoNewPrivs": 1}


REACH = """
import socket, sys
for path in sys.argv[1:]:
    try: socket.socket(socket.AF_UNIX).connect(path); print(path)
    except OSError: pass
"""


@bubblewrap
@pytest.mark.parametrize("network", [False, True], ids=["offline", "with-a-network"])
async def test_no_socket_of_the_machine_that_is_older_than_a_second_is_reached(
    network: bool, mechanism: str, base: Path
) -> None:
    places = [base / "out" / name for name in ("socket", "a b.sock", "ünd", "below/deep/agent.1")]
    own = base / "workspace" / "own.sock"
    sockets = []
    try:
        for path in (*places, own):
            path.parent.mkdir(parents=True, exist_ok=True)
            listening = socket.socket(socket.AF_UNIX)
            sockets.append(listening)
            listening.bind(str(path))
            listening.listen()
            os.utime(path, ns=(os.stat(path).st_mtime_ns - 1_100_000_000,) * 2)
        paths = [*map(str, places), str(own)]
        for profile in ("read-only", "workspace-write"):
            assert (await python(REACH, own.parent, *paths, profile=profile, network=network)).split("\n") == [
                str(own),
                "",
            ]
        assert (await python(REACH, own.parent, *paths, profile="none")).splitlines() == paths
    finally:
        for listening in sockets:
            listening.close()


# ------------------------------------------------------------------ no command without what holds it


WRITE = ("/bin/sh", "-c", "echo ran > src/ran")


async def started(launch: Launch, spoil: Callable[[Confined], Confined]) -> OSError | None:
    """Run it after something changed between the plan and the start; what that raises."""
    confined = spoil(await confine(launch))
    child = Child(launch, confined, lambda stream, data: None)
    try:
        await child.begin()
        await child.wait()
    except OSError as error:
        return error
    finally:
        await child.kill()
        if confined.watch is not None:
            confined.watch.leave()
    return None


def a_folder_that_is_gone(confined: Confined) -> Confined:
    shutil.rmtree(os.path.join(confined.launch.cwd, ".git"))
    return confined


def a_place_that_is_no_folder(confined: Confined) -> Confined:
    return structs.replace(confined, words=(*confined.words, f"folder={confined.launch.cwd}/file/.vscode"))


def no_way_to_take(confined: Confined) -> Confined:
    return structs.replace(confined, words=(*confined.words, "folder=/proc/self/no-such"))


@bubblewrap
@pytest.mark.parametrize("spoil", [a_folder_that_is_gone, a_place_that_is_no_folder, no_way_to_take])
async def test_where_a_protected_name_cannot_be_taken_the_command_does_not_start(
    spoil: Callable[[Confined], Confined], mechanism: str, workspace: Path
) -> None:
    (workspace / "src").mkdir()
    (workspace / "file").write_text("")
    raw_git(workspace, "init", "-q", "--template=")
    launch = Launch(WRITE, str(workspace), "workspace-write", workspace=str(workspace))
    assert await started(launch, lambda confined: confined) is None
    assert (workspace / "src" / "ran").exists()
    (workspace / "src" / "ran").unlink()
    error = await started(launch, spoil)
    assert error is not None
    assert not (workspace / "src" / "ran").exists()


@bubblewrap
async def test_where_another_holds_the_lock_of_the_names_the_command_does_not_start(
    mechanism: str, workspace: Path
) -> None:
    (workspace / "src").mkdir()
    lock = os.open(workspace, os.O_RDONLY)
    fcntl.flock(lock, fcntl.LOCK_EX)
    launch = Launch(WRITE, str(workspace), "workspace-write", workspace=str(workspace))
    try:
        with pytest.raises(BlockingIOError):
            await run(launch)
    finally:
        os.close(lock)
    assert list((workspace / "src").iterdir()) == []
    assert (await run(launch)).exit_code == 0


async def test_where_nothing_can_answer_for_names_the_command_does_not_start(
    tmp_path: Path, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(CHOICE, LANDLOCK)
    sandbox.cache_clear()
    try:
        if not sandbox().brokered:
            pytest.skip("the kernel lets no filter ask here")
        (workspace / "src").mkdir()
        launch = Launch(WRITE, str(workspace), "workspace-write", workspace=str(workspace))

        def without_broker(confined: Confined) -> Confined:
            words = (f"broker={tmp_path}/broker.py" if word.startswith("broker=") else word for word in confined.words)
            return structs.replace(confined, words=tuple(words))

        assert await started(launch, without_broker) is not None
    finally:
        sandbox.cache_clear()
    assert list((workspace / "src").iterdir()) == []
