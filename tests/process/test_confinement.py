"""Commands held by the sandbox of this machine, whichever it is; what is special to bubblewrap says so."""

import asyncio
import os
import shutil
import signal
from pathlib import Path

import pytest

from codewhale.process.confinement import BUBBLEWRAP, confine, held_where_possible, sandbox
from codewhale.process.denial import denial
from codewhale.process.launch import Ceiling, Child, Completed, Launch, run, start
from codewhale.protocol.errors import ToolError
from support.patience import HANG, Moment
from support.running import eventually, open_files

held = pytest.mark.skipif(not sandbox().mechanism, reason="nothing on this machine holds a command")
bubblewrap = pytest.mark.skipif(sandbox().mechanism != BUBBLEWRAP, reason="bubblewrap holds nothing on this machine")


async def shell(line: str, workspace: Path, profile: str = "workspace-write", **more: object) -> Completed:
    return await run(Launch(("/bin/sh", "-c", line), str(workspace), profile=profile, **more))  # type: ignore[arg-type]


@held
@pytest.mark.parametrize("profile", ["read-only", "workspace-write"])
async def test_output_input_and_exit_code_pass(workspace: Path, profile: str) -> None:
    done = await shell("cat; echo err >&2; exit 7", workspace, profile, stdin=b"in")
    assert (done.exit_code, done.stdout, done.stderr, done.leftovers) == (7, b"in", b"err\n", 0)
    assert done.confined == sandbox().mechanism
    assert (await shell("true", workspace, "none")).confined == ""


@held
@pytest.mark.parametrize("profile", ["read-only", "workspace-write"])
async def test_a_signal_is_128_and_its_number_or_itself(workspace: Path, profile: str) -> None:
    done = await shell("kill -SEGV $$", workspace, profile)
    assert done.exit_code in (128 + signal.SIGSEGV, -signal.SIGSEGV)


@bubblewrap
async def test_names_taken_are_given_back(git_workspace: Path) -> None:
    before = sorted(git_workspace.rglob("*"))
    done = await shell(
        "ls -a; echo new > made; git add -A; git -c user.name=a -c user.email=a@b commit -qm x", git_workspace
    )
    assert done.exit_code == 0, done.stderr
    assert b".mcp.json" in done.stdout
    left = {path for path in git_workspace.rglob("*") if ".git/" not in f"{path}/"}
    assert left == {path for path in before if ".git/" not in f"{path}/"} | {git_workspace / "made"}
    assert not (git_workspace / ".git" / "commondir").exists()
    assert (await shell("git ls-files", git_workspace, "none")).stdout.split() == [b"README.md", b"made"]


@bubblewrap
async def test_names_stay_taken_while_any_command_runs(workspace: Path) -> None:
    first = await start(Launch(("/bin/sh", "-c", "read x"), str(workspace), profile="workspace-write", keep_stdin=True))
    try:
        await eventually(lambda: (workspace / ".vscode").is_dir())
        done = await shell("mkdir .vscode/x; echo x > .mcp.json", workspace)
        assert done.exit_code != 0 and (workspace / ".vscode").is_dir()
        assert not any(path.is_file() for path in workspace.rglob("*"))
    finally:
        await first.kill()
    await eventually(lambda: list(workspace.iterdir()) == [])


@bubblewrap
async def test_names_are_given_back_though_the_launcher_is_killed(git_workspace: Path) -> None:
    child = await start(Launch(("sleep", "60"), str(git_workspace), profile="workspace-write"))
    await eventually(lambda: (git_workspace / ".vscode").is_dir())
    status = Path(f"/proc/{child.pid}/status").read_text()
    os.kill(int(status.partition("PPid:")[2].split()[0]), signal.SIGKILL)
    await child.ended()
    assert sorted(path.name for path in git_workspace.iterdir()) == [".git", "README.md"]
    assert not (git_workspace / ".git" / "commondir").exists()


@bubblewrap
async def test_what_vanishes_between_the_look_and_the_mount_is_no_failure(workspace: Path) -> None:
    (workspace / ".vscode").mkdir()
    (workspace / ".vscode" / "x").write_text("")
    launch = Launch(("cat",), str(workspace), profile="workspace-write", stdin=b"hello")
    confined = await confine(launch)
    shutil.rmtree(workspace / ".vscode")
    heard: list[bytes] = []
    child = Child(launch, confined, lambda stream, data: heard.append(data))
    await child.begin()
    done = await child.wait()
    await child.ended()
    assert (done.exit_code, done.stdout, done.stderr, b"".join(heard)) == (0, b"hello", b"", b"hello")


@bubblewrap
async def test_what_the_sandbox_says_twice_is_told(workspace: Path) -> None:
    done = await shell('echo "bwrap: Can\'t do this" >&2; exit 1', workspace)
    assert (done.exit_code, done.stderr) == (1, b"bwrap: Can't do this\n")


@bubblewrap
async def test_a_command_that_only_reads_sees_nothing_foreign(git_workspace: Path) -> None:
    done = await shell("ls -A; git status --short", git_workspace, "read-only")
    assert done.stdout.split() == [b".git", b"README.md"]


@bubblewrap
async def test_what_a_person_made_meanwhile_stays(workspace: Path) -> None:
    child = await start(Launch(("/bin/sh", "-c", "read x"), str(workspace), profile="workspace-write", keep_stdin=True))
    await eventually(lambda: (workspace / ".vscode").is_dir())
    (workspace / ".vscode" / "settings.json").write_text("{}")
    await child.kill()
    await eventually(lambda: [path.name for path in workspace.iterdir()] == [".vscode"])
    assert (workspace / ".vscode" / "settings.json").read_text() == "{}"


@held
async def test_a_program_or_a_folder_that_is_not_there_is_told_as_ever(workspace: Path) -> None:
    (workspace / "text").write_text("")
    for supervised in (True, False):
        with pytest.raises(FileNotFoundError):
            await run(Launch(("no-such-program",), str(workspace), profile="read-only", supervised=supervised))
        with pytest.raises(PermissionError):
            await run(Launch(("./text",), str(workspace), profile="read-only", supervised=supervised))


@bubblewrap
async def test_files_of_tmp_stay_between_commands_and_are_the_workspaces_own(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    one.mkdir()
    two.mkdir()
    name = f"/tmp/kept-{os.getpid()}"
    assert (await shell(f"echo x > {name}", one, "read-only")).exit_code == 0
    assert (await shell(f"cat {name}", one)).stdout == b"x\n"
    assert (await shell(f"cat {name}", two)).exit_code != 0
    assert not os.path.exists(name)


@bubblewrap
async def test_a_folder_below_is_not_where_writing_ends_and_the_workspace_is(tmp_path: Path) -> None:
    below = tmp_path / "w" / "below"
    below.mkdir(parents=True)
    workspace = str(tmp_path / "w")
    line = "echo x > ../up; echo x > ../../out; pwd"
    done = await run(Launch(("/bin/sh", "-c", line), str(below), profile="workspace-write", workspace=workspace))
    assert done.stdout.decode().strip() == str(below)
    assert (tmp_path / "w" / "up").exists() and not (tmp_path / "out").exists()


@bubblewrap
async def test_git_works_in_a_linked_worktree_and_a_forged_one_opens_nothing(git_workspace: Path) -> None:
    linked, forged = git_workspace.parent / "linked", git_workspace.parent / "forged"
    await shell(f"git worktree add -q {linked}", git_workspace, "none")
    commit = "git -c user.name=a -c user.email=a@b commit -q --allow-empty -m x"
    done = await shell(f"{commit}; echo x > {git_workspace}/.git/hooks/pre-commit", linked)
    assert b"Read-only" in done.stderr and done.stderr.count(b"\n") == 1, done.stderr
    forged.mkdir()
    (forged / ".git").write_text((linked / ".git").read_text())
    done = await shell(commit, forged)
    assert done.exit_code != 0 and not (git_workspace / ".git" / "hooks" / "pre-commit").exists()


@held
async def test_cancelling_ends_the_whole_tree_and_leaves_no_descriptor(workspace: Path) -> None:
    (workspace / "src").mkdir()
    await shell("true", workspace)
    before = open_files()
    line = "cd src; (setsid sh -c 'trap \"\" TERM; while :; do date > beat; sleep 0.02; done' &) ; sleep 600"
    task = asyncio.create_task(shell(line, workspace))
    await eventually((workspace / "src" / "beat").exists)
    began = Moment()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not began.hung
    (workspace / "src" / "beat").unlink()
    await asyncio.sleep(0.1)
    assert not (workspace / "src" / "beat").exists() and open_files() == before


@held
async def test_what_is_left_behind_is_counted_without_the_sandbox_itself(workspace: Path) -> None:
    child = await start(Launch(("/bin/sh", "-c", "sleep 600 >&- 2>&- & "), str(workspace), profile="workspace-write"))
    done = await child.wait()
    assert (done.exit_code, done.leftovers) == (0, 1)
    await child.kill()


@held
async def test_g5_a_fork_bomb_in_the_sandbox_is_ended(workspace: Path) -> None:
    bomb = "b() { sleep 600 & b; }; b"
    began = Moment()
    done = await shell(bomb, workspace, ceiling=Ceiling(processes=60), seconds=HANG)
    assert done.over == "processes" and not began.hung


@held
async def test_a_terminal_is_one_in_the_sandbox_too(workspace: Path) -> None:
    done = await shell("test -t 0 && test -t 1 && stty size", workspace, "read-only", tty=True)
    assert done.exit_code == 0 and done.stdout.split() == [b"40", b"120"]


@held
async def test_a_denial_is_known_by_the_end_of_the_command(workspace: Path) -> None:
    done = await shell("echo x > /usr/x", workspace)
    found = denial("workspace-write", (), done.exit_code, done.stderr.decode())
    assert found is not None and found.allowance == "write" and "/usr/x" in found.evidence
    assert denial("none", (), 1, "Read-only file system") is None
    assert await held_where_possible("read-only") == "read-only"


async def test_nothing_runs_where_it_cannot_be_held(workspace: Path) -> None:
    with pytest.raises(ToolError) as caught:
        await run(Launch(("true",), "/", profile="workspace-write"))
    assert caught.value.kind == "not_available"


@held
@pytest.mark.parametrize("profile", ["read-only", "workspace-write"])
async def test_folders_that_programs_are_taken_from_stay_as_they_are_where_a_folder_is_opened(
    profile: str, workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "go"
    (place / "a" / "bin").mkdir(parents=True)
    (place / "pkg").mkdir()
    monkeypatch.setenv("PATH", f"{place}/a/bin:{os.environ['PATH']}")
    line = f"touch {place}/pkg/x; touch {place}/a/bin/git; mv {place}/a {place}/b; mkdir -p {place}/a/bin"
    line += f"; touch {place}/a/bin/rg; ls {place}/a/bin"
    done = await shell(line, workspace, profile, allowances=(f"write:{place}",))
    assert (place / "pkg" / "x").exists(), done
    assert list((place / "a" / "bin").iterdir()) == [], done


@held
@pytest.mark.parametrize("profile", ["read-only", "workspace-write"])
async def test_a_folder_that_is_gone_does_not_end_the_command(profile: str, workspace: Path, tmp_path: Path) -> None:
    (place := tmp_path / "place").mkdir()
    allowances = (f"write:{tmp_path}/gone", f"write:{place}")
    done = await shell(f"echo new > {place}/file", workspace, profile, allowances=allowances)
    assert (done.exit_code, (place / "file").read_text()) == (0, "new\n"), done


@held
async def test_what_the_loader_would_take_reaches_the_command_and_nothing_around_it(
    workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (workspace / "libc.so.6").write_bytes(b"no library" * 400)
    (workspace / "libcap.so.2").write_bytes(b"no library" * 400)
    monkeypatch.setenv("LD_LIBRARY_PATH", str(workspace))
    done = await shell("true", workspace, env={"LD_PRELOAD": str(workspace / "libc.so.6")})
    assert done.exit_code == 127 and b"/bin/sh" in done.stderr and b"invalid ELF header" in done.stderr, done
