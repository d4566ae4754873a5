"""Programs and modules that a repository ships, or a command left behind, run neither for the harness nor as it: by no
folder of PATH, no variable and no name. The payload makes a file PWNED."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from codewhale.protocol.modes import Authority, Mode
from support.jail import call, marks, payload, played
from support.minipdf import pdf
from support.patience import HANG
from support.program import environment
from support.repos import make_repo

NAMES = ("rg", "git", "pdftotext", "python", "python3", "sh", "env", "bwrap", "ps", "node", "npm", "gh", "uname", "cat")
LOOKS = (
    call("codebase_search", query="where is the discount applied"),
    call("grep_files", pattern="one"),
    call("git_status"),
    call("git_diff"),
    call("git_log"),
    call("git_blame", path="a.txt"),
    call("list_dir"),
    call("file_search", query="a"),
    call("project_map"),
    call("diagnostics"),
    call("read_file", path="doc.pdf"),
    call("code_symbols", symbol="one"),
)


def plant(folder: Path, jail: Path) -> Path:
    """A folder of programs that all leave the mark."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in NAMES:
        program = folder / name
        program.write_text(f"#!/bin/sh\n: > '{jail}/PWNED'\nexit 1\n")
        program.chmod(0o755)
    return folder


def below(repo: Path, jail: Path) -> str:
    return str(plant(repo / ".venv" / "bin", jail))


def modules(repo: Path, jail: Path) -> str:
    return str(plant(repo / "node_modules" / ".bin", jail))


def relative(repo: Path, jail: Path) -> str:
    plant(repo / "bin", jail)
    return "bin:.:"


def linked(repo: Path, jail: Path) -> str:
    plant(repo / "bin", jail)
    (jail / "elsewhere").symlink_to(repo / "bin")
    return str(jail / "elsewhere")


def linked_one_by_one(repo: Path, jail: Path) -> str:
    (jail / "links").mkdir()
    for program in plant(repo / "bin", jail).iterdir():
        (jail / "links" / program.name).symlink_to(program)
    return str(jail / "links")


def a_second_name(repo: Path, jail: Path) -> str:
    (jail / "names").mkdir()
    for program in plant(repo / "bin", jail).iterdir():
        (jail / "names" / program.name).hardlink_to(program)
    return str(jail / "names")


def roundabout(repo: Path, jail: Path) -> str:
    plant(repo / "bin", jail)
    return f"{jail}/nothing/../{repo.name}/./bin/"


def open_to_all(repo: Path, jail: Path) -> str:
    plant(jail / "shared", jail).chmod(0o777)
    return str(jail / "shared")


def open_to_a_group(repo: Path, jail: Path) -> str:
    plant(jail / "team", jail).chmod(0o775)
    return str(jail / "team")


def programs_open_to_all(repo: Path, jail: Path) -> str:
    for program in plant(jail / "loose", jail).iterdir():
        program.chmod(0o777)
    return str(jail / "loose")


def below_an_open_folder(repo: Path, jail: Path) -> str:
    folder = plant(jail / "spool" / "bin", jail)
    (jail / "spool").chmod(0o777)
    return str(folder)


def another_environment(repo: Path, jail: Path) -> str:
    folder = plant(jail / "other" / ".venv" / "bin", jail)
    (folder.parent / "pyvenv.cfg").write_text("home = /usr/bin\n")
    return str(folder)


WAYS = (below, modules, relative, linked, linked_one_by_one, a_second_name, roundabout, open_to_all, open_to_a_group,
        programs_open_to_all, below_an_open_folder, another_environment)  # fmt: skip


@pytest.fixture(autouse=True)
def own_folder() -> Iterator[None]:
    before = os.getcwd()
    yield
    os.chdir(before)


@pytest.mark.parametrize("mode", [Mode.AGENT, Mode.PLAN], ids=lambda mode: mode.value)
@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
async def test_looking_starts_no_program_of_the_project(
    way: object, mode: Mode, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repo = make_repo(tmp_path / "repo", {"a.txt": "one\ntwo\n", "shop.py": "def discount():\n    return 1\n"})
    (repo / "doc.pdf").write_bytes(pdf("one"))
    monkeypatch.setenv("PATH", f"{way(repo, tmp_path)}:{os.environ['PATH']}")  # type: ignore[operator]
    os.chdir(repo)
    found = await played(home, repo, *LOOKS, mode=mode, authority=Authority.HEADLESS)
    assert marks(tmp_path) == []
    assert sum(result.ok for result in found) >= len(LOOKS) - 2, [result.content for result in found if not result.ok]


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
async def test_what_can_be_undone_is_kept_by_no_git_of_the_project(
    way: object, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repo = make_repo(tmp_path / "repo", {"a.txt": "one\ntwo\n"})
    monkeypatch.setenv("PATH", f"{way(repo, tmp_path)}:{os.environ['PATH']}")  # type: ignore[operator]
    os.chdir(repo)
    calls = (call("write_file", path="b.txt", content="b\n"), call("revert_turn"))
    found = await played(home, repo, *calls, mode=Mode.AGENT, authority=Authority.AUTO)
    assert found[0].ok and marks(tmp_path) == []


async def test_a_program_that_a_patch_makes_is_not_run_by_the_next_search(
    home: Path, workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (workspace / "shop.py").write_text("def discount():\n    return 1\n")
    (workspace / ".venv" / "bin").mkdir(parents=True)
    monkeypatch.setenv("PATH", f"{workspace}/.venv/bin:{os.environ['PATH']}")
    lines = ["#!/bin/sh", f": > '{tmp_path}/PWNED'"]
    patch = "diff --git a/.venv/bin/rg b/.venv/bin/rg\nnew file mode 100755\n--- /dev/null\n+++ b/.venv/bin/rg\n"
    patch += f"@@ -0,0 +1,{len(lines)} @@\n" + "".join(f"+{line}\n" for line in lines)
    await played(home, workspace, call("apply_patch", patch=patch), call("codebase_search", query="discount"),
                 mode=Mode.YOLO, authority=Authority.AUTO)  # fmt: skip
    assert marks(tmp_path) == []


@pytest.mark.parametrize("name", ["LD_LIBRARY_PATH", "PYTHONPATH", "PYTHONHOME", "PYTHONSTARTUP", "GIT_EXEC_PATH",
                                  "GIT_CONFIG_GLOBAL", "GIT_DIR", "XDG_CONFIG_HOME", "RIPGREP_CONFIG_PATH",
                                  "PYTHONPYCACHEPREFIX", "NODE_PATH", "GCONV_PATH"])  # fmt: skip
async def test_no_variable_leads_the_harness_into_the_workspace(
    name: str, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = payload(tmp_path)
    repo = make_repo(tmp_path / "repo", {"a.txt": "one\ntwo\n", "shop.py": "def discount():\n    return 1\n"})
    (repo / "doc.pdf").write_bytes(pdf("one"))
    place = repo / "env"
    for path in ("git/config", "sitecustomize.py", "json.py", "encodings/__init__.py", "libc.so.6", "libz.so.1",
                 "libpcre2-8.so.0", "libcap.so.2", "git-status", "pypdfium2.py", "msgspec/__init__.py"):  # fmt: skip
        (place / path).parent.mkdir(parents=True, exist_ok=True)
        (place / path).write_text(f"open({str(tmp_path / 'PWNED')!r}, 'w')\n")
    (place / "git" / "config").write_text(f"[core]\n\tfsmonitor = {program}\n[diff]\n\texternal = {program}\n")
    monkeypatch.setenv(name, str(place / "git" / "config" if name == "GIT_CONFIG_GLOBAL" else place))
    os.chdir(repo)
    held = call("exec_shell", command="unset LD_LIBRARY_PATH; echo held")
    found = await played(home, repo, *LOOKS, held, mode=Mode.AGENT, authority=Authority.AUTO)
    assert marks(tmp_path) == []
    assert sum(result.ok for result in found[:-1]) >= len(LOOKS) - 2, [one.content for one in found if not one.ok]


async def _page(port: int, token: str) -> None:
    import aiohttp

    async with aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as session, asyncio.timeout(HANG):
        await session.get(f"http://127.0.0.1:{port}/?token={token}")
        async with session.ws_connect(f"http://127.0.0.1:{port}/ws?width=80&height=24") as page:
            while (await page.receive()).type is not aiohttp.WSMsgType.BINARY:  # until the interface draws
                assert not page.closed


@pytest.mark.parametrize("path", ["", ".", "WORKSPACE"])
def test_a_page_runs_the_program_that_serves_it_and_nothing_of_the_folder(path: str, tmp_path: Path) -> None:
    pytest.importorskip("textual_serve")
    place = tmp_path / "workspace"
    mark = f"open({str(tmp_path / 'PWNED')!r}, 'w')\n"
    for name in ("codewhale/__main__.py", "codewhale/__init__.py", "textual.py", "runpy.py", "asyncio.py"):
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_text(mark)
    package = str(Path(sys.modules["codewhale"].__file__ or "").parents[1])
    start = f"import sys; sys.path.insert(0, {package!r}); from codewhale.cli import main; sys.exit(main())"
    environ = {**environment(tmp_path), "PYTHONPATH": path.replace("WORKSPACE", str(place))}
    with subprocess.Popen(
        [sys.executable, "-P", "-E", "-c", start, "web", "--port", "0", "-w", str(place)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=place, env=environ,
    ) as child:  # fmt: skip
        assert child.stdout is not None
        _, _, address = child.stdout.readline().strip().partition("http://127.0.0.1:")
        port, _, token = address.partition("/?token=")
        try:
            asyncio.run(_page(int(port), token))
        finally:
            child.send_signal(signal.SIGINT)
            child.communicate(timeout=HANG)
    assert marks(tmp_path) == []
