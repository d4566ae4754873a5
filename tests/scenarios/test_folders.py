"""Paths outside the workspace: asked about, opened by an added folder, and what stays closed whatever is added."""

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from codewhale.protocol.errors import ConfigError
from codewhale.protocol.events import ApprovalAsked, FolderRemoved, Notice
from codewhale.protocol.modes import Authority, Mode
from codewhale.protocol.ops import RunCommand
from codewhale.testing import Harness, harness
from support.machine import MAKES_FILES
from support.program import codewhale_program, scripted
from support.scenes import answered, only, results

DONE = {"text": "That is all."}
PERSON: dict[str, Any] = {"mode": Mode.AGENT, "authority": Authority.PERSON}


def call(name: str, **arguments: Any) -> dict[str, Any]:
    """One call of a script."""
    return {"name": name, "arguments": {key: str(v) if isinstance(v, Path) else v for key, v in arguments.items()}}


@pytest.fixture
def beside(tmp_path: Path) -> Path:
    """A folder beside the workspace."""
    folder = tmp_path / "beside" / "lib"
    folder.mkdir(parents=True)
    (folder / "notes.txt").write_text("first line\nneedle\n")
    return folder


async def command(stage: Harness, session: str, line: str) -> tuple[bool, str]:
    """What a slash command says."""
    done = await stage.client.submit(RunCommand(session, line))
    return done.ok, done.text


READS = ("read_file", "list_dir", "grep_files", "file_search")


def reading(tool: str, place: Path) -> dict[str, Any]:
    """A call that reads in a folder."""
    if tool == "read_file":
        return call(tool, path=place / "notes.txt")
    more = {"grep_files": {"pattern": "needle"}, "file_search": {"query": "notes"}}.get(tool, {})
    return call(tool, path=place, **more)


@pytest.mark.parametrize("tool", READS)
async def test_reading_outside_is_asked_about_once_each_time(
    home: Path, workspace: Path, beside: Path, tool: str
) -> None:
    script = [{"calls": [reading(tool, beside)]}, {"calls": [reading(tool, beside)]}, DONE]
    async with harness(home, workspace, script) as stage:
        session = await stage.open(**PERSON)
        events = await answered(stage, session)
    asks = only(events, ApprovalAsked)
    assert [(ask.rule, ask.tool) for ask in asks] == [("path.outside", tool)] * 2
    assert asks[0].offer is not None and (asks[0].offer.field, asks[0].offer.value) == ("folder", str(beside))
    assert [result.ok for result in results(events)] == [True, True]
    assert ("needle" if tool in ("read_file", "grep_files") else "notes.txt") in results(events)[0].content
    if tool in ("grep_files", "file_search"):
        assert str(beside / "notes.txt") in results(events)[0].content


async def test_a_no_reads_nothing(home: Path, workspace: Path, beside: Path) -> None:
    async with harness(home, workspace, [{"calls": [reading("read_file", beside)]}, DONE]) as stage:
        events = await answered(stage, await stage.open(**PERSON), allowed=False)
    assert results(events)[0].error == "permission_denied" and "needle" not in results(events)[0].content


async def test_allowed_for_the_session_the_folder_belongs_to_it(home: Path, workspace: Path, beside: Path) -> None:
    script = [
        {"calls": [call("read_file", path="../beside/lib/notes.txt")]},
        {
            "calls": [
                call("edit_file", path=beside / "notes.txt", search="needle", replace="thread"),
                call("write_file", path=beside / "new" / "a.txt", content="made\n"),
                call("apply_patch", changes=[{"path": str(beside / "b.txt"), "content": "patched\n"}]),
                call("list_dir", path=beside),
            ]
        },
        DONE,
    ]
    async with harness(home, workspace, script) as stage:
        session = await stage.open(**PERSON)
        events = await answered(stage, session, "session")
        listed = await command(stage, session, "/permissions")
    assert len(only(events, ApprovalAsked)) == 1
    assert [result.ok for result in results(events)] == [True] * 5, [one.content for one in results(events)]
    assert (beside / "notes.txt").read_text() == "first line\nthread\n"
    assert (beside / "new" / "a.txt").read_text() == "made\n" and (beside / "b.txt").read_text() == "patched\n"
    assert str(beside) in listed[1]
    told = [notice.text for notice in only(events, Notice) if notice.code == "undo_unavailable"]
    assert any("cannot be undone: it is outside the workspace" in text for text in told)


async def test_one_yes_opens_one_file_and_nothing_beside_it(home: Path, workspace: Path, beside: Path) -> None:
    (beside / "other.txt").write_text("other\n")
    write = call("write_file", path=beside / "made" / "x.txt", content="x\n")
    async with harness(home, workspace, [{"calls": [write]}, {"calls": [write]}, DONE]) as stage:
        events = await answered(stage, await stage.open(**PERSON))
    assert len(only(events, ApprovalAsked)) == 2
    assert [one.ok for one in results(events)] == [True, True] and (beside / "made" / "x.txt").read_text() == "x\n"


async def test_without_a_person_the_refusal_names_both_ways_in(home: Path, workspace: Path, beside: Path) -> None:
    for authority in (Authority.HEADLESS, Authority.AUTO):
        async with harness(home, workspace, [{"calls": [reading("read_file", beside)]}, DONE]) as stage:
            events = await stage.turn("Go", await stage.open(mode=Mode.AGENT, authority=authority))
        (refused,) = results(events)
        assert refused.error == "path_escape"
        assert "--add-dir" in refused.content and "sandbox.writable" in refused.content


async def test_the_setting_opens_a_folder_without_a_question(home: Path, workspace: Path, beside: Path) -> None:
    (home / "config.toml").write_text(f'[sandbox]\nwritable = ["{beside}"]\n')
    calls = [reading("read_file", beside), call("write_file", path=beside / "a.txt", content="a\n")]
    async with harness(home, workspace, [{"calls": calls}, DONE]) as stage:
        events = await stage.turn("Go", await stage.open(mode=Mode.AGENT, authority=Authority.HEADLESS))
    assert [one.ok for one in results(events)] == [True, True]


async def test_plan_mode_asks_about_reading_and_refuses_to_write(home: Path, workspace: Path, beside: Path) -> None:
    calls = [reading("read_file", beside), call("write_file", path=beside / "a.txt", content="a\n")]
    async with harness(home, workspace, [{"calls": calls}, DONE]) as stage:
        events = await answered(stage, await stage.open(mode=Mode.PLAN, authority=Authority.PERSON), "session")
    read, written = results(events)
    assert read.ok and written.error == "permission_denied" and "Plan mode" in written.content
    assert len(only(events, ApprovalAsked)) == 1 and not (beside / "a.txt").exists()


@MAKES_FILES
async def test_commands_write_in_an_added_folder_and_nowhere_else(home: Path, workspace: Path, beside: Path) -> None:
    (beside / ".git" / "hooks").mkdir(parents=True)
    shutil.copytree(beside / ".git", beside / ".git-not")
    (beside / ".git" / "config").write_text("[core]\n")
    other = beside.parent / "other"
    other.mkdir()
    go = f"echo made > {beside}/made; echo x > {other}/made; echo x > {beside}/.git/config; mkdir {beside}/.vscode"
    (workspace / "go.sh").write_text(go.replace("; ", "\n") + f"\nmv {beside}/.git {beside}/moved\n")
    script = [{"calls": [call("exec_shell", command="sh go.sh")]}, DONE]
    async with harness(home, workspace, script) as stage:
        session = await stage.open(mode=Mode.AGENT, authority=Authority.AUTO, folders=(str(beside),))
        await stage.turn("Go", session)
    assert (beside / "made").read_text() == "made\n"
    assert not (other / "made").exists()
    assert (beside / ".git" / "config").read_text() == "[core]\n"
    assert not (beside / ".vscode" / "tasks.json").exists()


async def test_a_resumed_session_has_its_folders_and_asks_where_one_changed(
    home: Path, workspace: Path, beside: Path
) -> None:
    second = beside.parent / "second"
    second.mkdir()
    (second / "notes.txt").write_text("second\n")
    async with harness(home, workspace, [DONE]) as stage:
        session = await stage.open(**PERSON, folders=(str(beside), str(second)))
        await stage.turn("Go", session)
    second.rename(second.with_name("former"))  # kept, so that the new one is another
    second.mkdir()
    (second / "notes.txt").write_text("swapped\n")
    script = [{"calls": [reading("read_file", beside), reading("read_file", second)]}, DONE]
    async with harness(home, workspace, script) as stage:
        again = await stage.open(**PERSON, resume=session)
        logged = [event async for event in _logged(stage, again)]
        events = await answered(stage, again, allowed=False)
    assert [one.path for one in only(logged, FolderRemoved)] == [str(second)]
    assert any(notice.code == "folder_gone" and str(second) in notice.text for notice in only(logged, Notice))
    assert [result.ok for result in results(events)] == [True, False]


async def _logged(stage: Harness, session: str) -> Any:
    status = await stage.client.submit(RunCommand(session, "/status"))
    assert status.ok
    async for envelope in stage.client.events(session, from_seq=0):
        yield envelope.event
        if isinstance(envelope.event, Notice) and envelope.event.code == "folder_gone":
            return


async def test_a_folder_that_is_taken_away_is_asked_about_again(home: Path, workspace: Path, beside: Path) -> None:
    script = [{"calls": [reading("read_file", beside)]}, DONE, {"calls": [reading("read_file", beside)]}, DONE]
    async with harness(home, workspace, script) as stage:
        session = await stage.open(**PERSON)
        added = await command(stage, session, f"/add-dir {beside}")
        first = await answered(stage, session)
        listed = await command(stage, session, "/add-dir")
        removed = await command(stage, session, f"/add-dir --remove {beside}")
        again = await command(stage, session, f"/add-dir --remove {beside}")
        second = await answered(stage, session)
    assert added[0] and "undo" in added[1] and str(beside) in listed[1]
    assert removed[0] and not again[0] and "is not an added folder" in again[1]
    assert (len(only(first, ApprovalAsked)), len(only(second, ApprovalAsked))) == (0, 1)


async def test_what_cannot_be_added_is_refused_with_the_reason(
    home: Path, workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    person = tmp_path / "person"
    for folder in (".ssh", "work/.git/hooks", "work/.codewhale", ".aws/sub"):
        (person / folder).mkdir(parents=True)
    (person / "file").write_text("x")
    (person / "link").symlink_to(home)
    monkeypatch.setenv("HOME", str(person))
    reasons = {
        str(person): "home folder itself", str(tmp_path): "top folder", "/": "top folder", "/etc": "top folder",
        "/usr/share": "belongs to the system", str(home): "keeps its state", f"{home}/sessions": "keeps its state",
        f"{person}/.ssh": "keys and passwords", f"{person}/.aws/sub": "keys and passwords",
        f"{person}/work/.git/hooks": "automatically", f"{person}/work/.codewhale": "keys and passwords",
        f"{person}/link": "keeps its state", f"{person}/file": "not a folder", f"{person}/gone": "No such file",
        str(workspace): "already in the workspace", "/proc/self": "cannot be added", "": "",
    }  # fmt: skip
    (home / "sessions").mkdir(exist_ok=True)
    async with harness(home, workspace, []) as stage:
        session = await stage.open(**PERSON)
        for folder, reason in reasons.items():
            ok, text = await command(stage, session, f"/add-dir {folder}")
            assert reason in text and (ok or folder) and (not ok or not folder), (folder, text)
        with pytest.raises(ConfigError, match="home folder itself"):
            await stage.open(**PERSON, folders=(str(person),))


async def test_attacks_through_an_added_folder_stay_inside_it(
    home: Path, workspace: Path, beside: Path, tmp_path: Path
) -> None:
    secret = tmp_path / "elsewhere.txt"
    secret.write_text("hidden words\n")
    (beside / "out").symlink_to(secret)
    (beside / "up").symlink_to(tmp_path)
    (beside / ".git").mkdir()
    os.link(beside / "notes.txt", beside / "hard.txt")
    calls = [
        call("read_file", path=beside / "out"),
        call("read_file", path=beside / ".." / ".." / "elsewhere.txt"),
        call("read_file", path=beside / "up" / "elsewhere.txt"),
        call("write_file", path=beside / "out", content="x"),
        call("write_file", path=beside / "up" / "made.txt", content="x"),
        call("write_file", path=beside / ".git" / "config", content="x"),
        call("write_file", path=f"{beside}/.GIT/hooks/pre-commit", content="x"),
        call("read_file", path=home / "sessions"),
        call("grep_files", pattern="hidden", path=beside / "up"),
        call("read_file", path="/proc/self/environ"),
        call("read_file", path=f"{beside}-not/../../elsewhere.txt"),
        call("write_file", path=beside / ".vscode" / "tasks.json", content="{}"),
    ]
    (home / "sessions").mkdir(exist_ok=True)
    async with harness(home, workspace, [{"calls": calls}, DONE]) as stage:
        session = await stage.open(mode=Mode.AGENT, authority=Authority.AUTO, folders=(str(beside),))
        events = await stage.turn("Go", session)
    assert [one.ok for one in results(events)] == [False] * len(calls), [one.content[:200] for one in results(events)]
    assert not any("hidden words" in one.content for one in results(events))
    assert secret.read_text() == "hidden words\n" and sorted(os.listdir(beside / ".git")) == []
    assert not (tmp_path / "made.txt").exists() and not (beside / ".vscode").exists()


async def test_keys_and_state_outside_are_refused_in_every_mode(home: Path, workspace: Path, tmp_path: Path) -> None:
    person = tmp_path / "person"
    (person / ".ssh").mkdir(parents=True)
    (person / ".ssh" / "id_ed25519").write_text("key words\n")
    (person / ".env").write_text("PASSWORD=x\n")
    (home / "config.toml").write_text("")
    paths = (person / ".ssh" / "id_ed25519", person / ".env", home / "config.toml", "/proc/self/environ", "/etc/shadow")
    for fields in ({**PERSON, "mode": Mode.YOLO}, PERSON):
        script = [{"calls": [call("read_file", path=path) for path in paths]}, DONE]
        async with harness(home, workspace, script) as stage:
            events = await answered(stage, await stage.open(**fields))
        assert only(events, ApprovalAsked) == []
        assert [one.error for one in results(events)] == ["permission_denied"] * len(paths)


async def test_yolo_asks_too_and_without_a_person_refuses(home: Path, workspace: Path, beside: Path) -> None:
    calls = [reading("read_file", beside), call("write_file", path=beside / "y.txt", content="y\n")]
    for fields in ({**PERSON, "mode": Mode.YOLO}, {}):
        async with harness(home, workspace, [{"calls": calls}, DONE]) as stage:
            events = await answered(stage, await stage.open(**fields), allowed=False)
        assert len(only(events, ApprovalAsked)) == (2 if fields else 0)
        assert [one.ok for one in results(events)] == [False, False] and not (beside / "y.txt").exists()


async def test_a_link_out_names_the_path_to_ask_for(home: Path, workspace: Path, beside: Path) -> None:
    (workspace / "link").symlink_to(beside / "notes.txt")
    async with harness(home, workspace, [{"calls": [call("read_file", path="link")]}, DONE]) as stage:
        events = await stage.turn("Go", await stage.open(**PERSON))
    assert str(beside / "notes.txt") in json.dumps(results(events)[0].content)


@pytest.mark.parametrize("tool", ["git_status", "git_log"])
async def test_git_looks_at_a_repository_in_an_added_folder(
    home: Path, workspace: Path, git_workspace: Path, tmp_path: Path, tool: str
) -> None:
    other = tmp_path / "other"
    shutil.copytree(git_workspace, other)
    (other / "fresh.txt").write_text("x")
    place = tmp_path / "place"
    place.mkdir()
    async with harness(home, place, [{"calls": [call(tool, path=other)]}, DONE]) as stage:
        events = await answered(stage, await stage.open(**PERSON))
    assert ("fresh.txt" if tool == "git_status" else "Begin") in results(events)[0].content


def test_the_option_opens_folders_for_a_run(home: Path, workspace: Path, beside: Path) -> None:
    scripted(home, json.dumps({"calls": [reading("read_file", beside)]}), json.dumps(DONE))
    option = ("--add-dir", str(beside))
    done = codewhale_program(home, "exec", "-w", str(workspace), *option, "--output-format", "json", "Go")
    (tool,) = json.loads(done.stdout)["tools"]
    assert tool["ok"], done.stdout + done.stderr
    refused = codewhale_program(home, "exec", "-w", str(workspace), "--add-dir", "/etc", "Go")
    assert refused.returncode == 2 and "top folder" in refused.stderr
