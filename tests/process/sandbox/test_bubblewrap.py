"""The command line of bubblewrap: what it opens, covers and leaves out."""

import os
import shutil
import socket
from pathlib import Path

import pytest

from codewhale.process.sandbox.bubblewrap import bubblewrap
from codewhale.process.sandbox.landlock import LEAST_ABI, landlock_abi, scoped
from codewhale.process.sandbox.profiles import Confinement, GitPlace, SandboxPlan, Site


def site(workspace: Path, *git: GitPlace, foreign: bool = False, lasting: bool = True, home: str = "") -> Site:
    return Site(str(workspace), str(workspace), "/tmp/private", home, "", git, foreign, lasting)


def mounts(plan: SandboxPlan, kind: str) -> list[tuple[str, str]]:
    """(source, place) of each mount of a kind, in order."""
    return [(plan.argv[n + 1], plan.argv[n + 2]) for n, word in enumerate(plan.argv) if word == kind]


def test_nothing_is_writable_and_nothing_is_reached_by_default(tmp_path: Path) -> None:
    plan = bubblewrap("bwrap", ("make", "test"), Confinement(), site(tmp_path))
    assert ("/tmp/private", "/tmp") in mounts(plan, "--bind")
    assert all(place in ("/tmp", "/var/tmp") for _, place in mounts(plan, "--bind"))
    assert plan.argv[plan.argv.index("--") + 1 :] == ("make", "test")
    assert {"--unshare-net", "--unshare-pid", "--unshare-ipc", "--unshare-user", "--cap-drop"} <= set(plan.argv)
    order = [plan.argv.index(word) for word in ("--ro-bind", "--dev", "--proc", "--remount-ro")]
    assert order == sorted(order) and plan.argv[order[-1] + 1] == "/proc"
    assert plan.env["TMPDIR"] == "/tmp" and plan.filter and not plan.folders


def test_the_workspace_is_opened_before_what_it_protects(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "config").write_text("")
    plan = bubblewrap("bwrap", ("true",), Confinement(writes=True), site(tmp_path, GitPlace(str(tmp_path / ".git"))))
    opened, fixed = mounts(plan, "--bind"), mounts(plan, "--ro-bind")
    assert (str(tmp_path), str(tmp_path)) in opened and (str(tmp_path / ".git"), str(tmp_path / ".git")) in opened
    assert {(path, path) for path in (str(tmp_path / ".git" / "config"), str(tmp_path / ".vscode"))} <= set(fixed)
    assert plan.argv.index(str(tmp_path)) < plan.argv.index(str(tmp_path / ".git" / "config"))
    assert str(tmp_path / ".vscode") in plan.folders and plan.pointers == (str(tmp_path / ".git" / "commondir"),)


def test_a_name_that_is_there_and_taken_too_is_bound_once(tmp_path: Path) -> None:
    for name in (".vscode", "AGENTS.md"):
        (tmp_path / name).mkdir()
    plan = bubblewrap("bwrap", ("true",), Confinement(writes=True), site(tmp_path))
    places = [place for _, place in mounts(plan, "--ro-bind")]
    assert str(tmp_path / ".vscode") in plan.folders and places.count(str(tmp_path / ".vscode")) == 1
    assert len(places) == len(set(places))


def test_allowances_open_more(tmp_path: Path) -> None:
    folder = Path(os.path.realpath("/usr/share"))
    (tmp_path / "me" / ".npm").mkdir(parents=True)
    (tmp_path / "me" / ".ssh").mkdir()
    wanted = Confinement(network=True, caches=("npm",), folders=(str(folder),))
    plan = bubblewrap("bwrap", ("true",), wanted, site(tmp_path, home=str(tmp_path / "me")))
    assert "--unshare-net" not in plan.argv and "npm_config_cache" not in plan.env
    assert {str(folder), str(tmp_path / "me" / ".npm")} <= {place for _, place in mounts(plan, "--bind")}
    assert str(tmp_path / "me" / ".ssh") not in plan.argv


def test_with_a_network_abstract_sockets_stay_the_commands_own(tmp_path: Path) -> None:
    plan = bubblewrap("bwrap", ("true",), Confinement(network=True), site(tmp_path))
    assert plan.argv[: plan.argv.index("bwrap")] == (scoped(()) if landlock_abi() >= LEAST_ABI else ())
    assert bubblewrap("bwrap", ("true",), Confinement(), site(tmp_path)).argv[0] == "bwrap"


def test_root_in_anothers_workspace_keeps_its_rights_over_files_alone(tmp_path: Path) -> None:
    plan = bubblewrap("bwrap", ("true",), Confinement(), site(tmp_path, foreign=True, lasting=False))
    assert "--unshare-user" not in plan.argv and "--die-with-parent" in plan.argv
    added = [plan.argv[n + 1] for n, word in enumerate(plan.argv) if word == "--cap-add"]
    assert added == ["CAP_DAC_OVERRIDE", "CAP_FOWNER"]


def outside() -> Path:
    """A folder that no private one lies over: this one, unless the whole checkout stands below /tmp."""
    for folder in (Path(__file__).resolve().parent, Path.home().resolve(), Path("/var/lib")):
        if not str(folder).startswith(("/tmp/", "/var/tmp/", "/run/")) and os.access(folder, os.W_OK):
            return folder
    pytest.skip("every folder that can be written stands below /tmp")


def test_lasting_sockets_of_others_are_covered_and_the_workspaces_own_are_not(tmp_path: Path) -> None:
    place = outside() / f".socket-{os.getpid()}"
    try:
        with socket.socket(socket.AF_UNIX) as other:
            other.bind(str(place))
            assert str(place) not in bubblewrap("bwrap", ("true",), Confinement(), site(tmp_path)).masks
            os.utime(place, (1, 1))
            assert str(place) in bubblewrap("bwrap", ("true",), Confinement(), site(tmp_path)).masks
            assert str(place) not in bubblewrap("bwrap", ("true",), Confinement(), site(place.parent)).masks
    finally:
        place.unlink(missing_ok=True)


def test_what_lies_in_a_closed_folder_cannot_be_covered_and_need_not_be(tmp_path: Path) -> None:
    folder = outside() / f".closed-{os.getpid()}"
    folder.mkdir()
    place = folder / "socket"
    try:
        with socket.socket(socket.AF_UNIX) as other:
            other.bind(str(place))
            os.utime(place, (1, 1))
            folder.chmod(0o711)
            assert str(place) in bubblewrap("bwrap", ("true",), Confinement(), site(tmp_path)).masks
            folder.chmod(0o600)
            assert str(place) not in bubblewrap("bwrap", ("true",), Confinement(), site(tmp_path)).masks
    finally:
        folder.chmod(0o700)
        shutil.rmtree(folder)
