"""What a call leaves in a workspace for others to run later: git's settings under any name, configuration of the home
folder, files that editors, shells, agents and servers act on, and new programs. Written by tools."""

import asyncio
from pathlib import Path

import pytest

from codewhale.protocol.events import CallFinished, Notice
from codewhale.protocol.modes import Authority, Mode
from codewhale.protocol.ops import SendMessage
from codewhale.testing import collect, harness
from support.jail import call, marks, played
from support.repos import make_repo, raw_git
from support.scenes import only

MONITOR = "[core]\n\trepositoryformatversion = 0\n\tbare = false\n\tfsmonitor = touch PWNED; false\n\tworktree = .\n"
LAYOUT = {"HEAD": "ref: refs/heads/main\n", "config": MONITOR, "objects/x": "", "refs/x": ""}
STARTED = (
    ".github/workflows/x.yml", ".devcontainer.json", ".zed/tasks.json", ".gemini/settings.json", ".codex/config.toml",
    "x.code-workspace", ".pre-commit-config.yaml", ".mise.toml", "sub/.mise.toml", ".Zed/tasks.json", ".npmrc",
    ".tool-versions", "lefthook.yml", ".gitlab-ci.yml", "Jenkinsfile", ".cargo/config.toml", ".dir-locals.el", ".exrc",
    ".yarnrc.yml", "sub/.github/workflows/deploy.yaml", ".opencode/agent.json", "sitecustomize.py",
)  # fmt: skip
HOME = (
    ".ssh/authorized_keys", ".bash_login", ".config/autostart/x.desktop", ".netrc", ".gitconfig", ".xprofile", ".vimrc",
    ".config/systemd/user/x.service", ".local/bin/ls", "bin/ls", ".pam_environment", ".tmux.conf", ".config/fish/x",
    ".unheard-of",
)  # fmt: skip
HEADER = "diff --git a/run.sh b/run.sh\n"
PROGRAMS = {
    "made": f"{HEADER}new file mode 100755\n--- /dev/null\n+++ b/run.sh\n@@ -0,0 +1 @@\n+echo\n",
    "changed": f"{HEADER}old mode 100644\nnew mode 100755\n",
    "changed with its text": (
        f"{HEADER}old mode 100644\nnew mode 100755\n--- a/run.sh\n+++ b/run.sh\n@@ -1 +1 @@\n-a\n+b\n"
    ),
}


async def written(home: Path, workspace: Path, path: str, text: str = "x\n", **fields: object) -> CallFinished:
    """One file by one call in a new session."""
    (result,) = await played(home, workspace, call("write_file", path=path, content=text), **fields)
    return result


@pytest.mark.parametrize("order", [list(LAYOUT), list(reversed(LAYOUT)), ["objects/x", "HEAD", "refs/x", "config"]])
@pytest.mark.parametrize("mode", [Mode.AGENT, Mode.YOLO])
@pytest.mark.parametrize("folder", ["lib", "."])
async def test_b7_no_tool_makes_a_folder_that_git_obeys(
    order: list[str], mode: Mode, folder: str, home: Path, workspace: Path
) -> None:
    calls = [call("write_file", path=f"{folder}/{name}", content=LAYOUT[name]) for name in order]
    found = await played(home, workspace, *calls, mode=mode, authority=Authority.AUTO)
    assert [result.error for result in found].count("permission_denied") == 1
    raw_git(workspace / folder, "status", check=False)
    assert marks(workspace) == []


async def test_b7_no_patch_makes_a_folder_that_git_obeys_at_once(home: Path, workspace: Path) -> None:
    changes = [{"path": f"lib/{name}", "content": text} for name, text in LAYOUT.items()]
    (result,) = await played(home, workspace, call("apply_patch", changes=changes), mode=Mode.YOLO)
    assert result.error == "permission_denied" and not (workspace / "lib").exists()


@pytest.mark.parametrize(
    "name", ["config", "hooks/pre-commit", "commondir", "info/attributes", "objects/info/alternates"]
)
async def test_b7_no_tool_changes_what_git_reads_in_a_bare_repository(name: str, home: Path, workspace: Path) -> None:
    raw_git(workspace, "init", "-q", "--bare", "store")
    result = await written(home, workspace, f"store/{name}", mode=Mode.YOLO)
    assert result.error == "permission_denied" and "git" in result.content


async def test_b7_files_of_that_name_elsewhere_are_free(home: Path, workspace: Path) -> None:
    for name in ("docs/HEAD", "docs/config", "src/objects/a.py", "src/refs/b.py", "hooks/use.ts"):
        assert (await written(home, workspace, name)).ok, name


async def test_b7_what_gits_settings_include_or_take_hooks_from_is_guarded(home: Path, tmp_path: Path) -> None:
    repo = make_repo(tmp_path / "repo", {"a": "a\n"})
    (repo / ".git" / "config").write_text("[include]\n path = ../shared.ini\n[core]\n hooksPath = scripts/hooks\n")
    assert (await written(home, repo, "shared.ini", mode=Mode.YOLO)).error == "permission_denied"
    assert (await written(home, repo, "scripts/hooks/pre-commit", mode=Mode.AGENT)).error == "permission_denied"
    assert (await written(home, repo, "scripts/build")).ok


@pytest.mark.parametrize("name", STARTED)
async def test_b7_files_that_others_run_are_asked_about(name: str, home: Path, workspace: Path) -> None:
    result = await written(home, workspace, name, mode=Mode.AGENT, authority=Authority.AUTO)
    assert result.error == "permission_denied" and "permissions.toml" in result.content
    assert not list(workspace.rglob("*.*")) and (await written(home, workspace, name, mode=Mode.YOLO)).ok


async def test_b7_a_row_of_the_persons_permissions_allows_them(home: Path, workspace: Path) -> None:
    (home / "permissions.toml").write_text('[[rules]]\naction = "allow"\npath = ".github/workflows/*"\n')
    assert (await written(home, workspace, ".github/workflows/x.yml", mode=Mode.AGENT, authority=Authority.AUTO)).ok


@pytest.mark.parametrize("name", HOME)
async def test_b7_the_home_folders_configuration_is_asked_about(
    name: str, home: Path, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(workspace))
    result = await written(home, workspace, name, mode=Mode.YOLO, authority=Authority.AUTO)
    assert result.error == "permission_denied" and not (workspace / name).exists()
    assert (await written(home, workspace, "project/.cache-of-it", mode=Mode.AGENT, authority=Authority.AUTO)).ok


@pytest.mark.parametrize("patch", PROGRAMS.values(), ids=list(PROGRAMS))
async def test_b7_a_patch_that_makes_a_program_is_asked_about(patch: str, home: Path, workspace: Path) -> None:
    if "new file" not in patch:
        (workspace / "run.sh").write_text("a\n")
    (refused,) = await played(
        home, workspace, call("apply_patch", patch=patch), mode=Mode.AGENT, authority=Authority.AUTO
    )
    assert refused.error == "permission_denied" and "run.sh becomes executable" in refused.content
    (done,) = await played(home, workspace, call("apply_patch", patch=patch), mode=Mode.YOLO)
    assert done.ok and (workspace / "run.sh").stat().st_mode & 0o111


async def test_a7_a_command_of_the_model_that_leaves_settings_is_told(home: Path, workspace: Path) -> None:
    (workspace / "sub").mkdir()
    text = "mkdir -p sub/objects sub/refs; echo 'ref: refs/heads/x' > sub/HEAD; printf '[alias]\\n x = !y' > sub/config"
    (result,) = await played(
        home, workspace, call("exec_shell", command=text), mode=Mode.AGENT, authority=Authority.AUTO
    )
    assert result.ok and "sub/config (alias.x): moved to config.set-aside" in result.content
    assert (workspace / "sub" / "config.set-aside").exists() and not (workspace / "sub" / "config").exists()


async def test_b7_a_session_in_the_home_folder_says_so(
    home: Path, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def told() -> list[str]:
        async with harness(home, workspace, [{"text": "Done."}]) as stage:
            session = await stage.open()
            heard = asyncio.ensure_future(collect(stage.client.events(session, from_seq=0)))
            await stage.client.submit(SendMessage(session, "Go."))
            return [notice.code for notice in only([envelope.event for envelope in await heard], Notice)]

    assert "workspace_home" not in await told()
    monkeypatch.setenv("HOME", str(workspace))
    assert "workspace_home" in await told()
