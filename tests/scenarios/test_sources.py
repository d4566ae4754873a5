"""Attached sources through the front door: attached, searched, read and never written; the version that was read is
recorded, and a replay names what has changed since."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from codewhale.protocol.events import ApprovalAsked, CallFinished, ContextAppended, Event, SourceRead
from codewhale.protocol.modes import Authority, Mode
from codewhale.protocol.ops import RunCommand
from codewhale.testing import Harness, harness
from support.program import codewhale_program, configure
from support.scenes import answered, only, results, sent, watching

DONE = {"text": "That is all."}
PERSON: dict[str, Any] = {"mode": Mode.AGENT, "authority": Authority.PERSON}
ALONE: dict[str, Any] = {"mode": Mode.AGENT, "authority": Authority.HEADLESS}


def call(name: str, **arguments: Any) -> dict[str, Any]:
    """One call of a script."""
    return {"name": name, "arguments": {key: str(v) if isinstance(v, Path) else v for key, v in arguments.items()}}


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A folder beside the workspace that belongs to something else."""
    folder = tmp_path / "beside" / "data"
    (folder / "deep").mkdir(parents=True)
    (folder / "notes.txt").write_text("first line\nneedle\n")
    (folder / "deep" / "more.csv").write_text("a,b\nneedle,2\n")
    return folder


async def command(stage: Harness, session: str, line: str) -> tuple[bool, str]:
    """What a slash command says."""
    done = await stage.client.submit(RunCommand(session, line))
    return done.ok, done.text


def news(events: Sequence[Event]) -> list[str]:
    """What the model was told of attached sources."""
    return [one.text for one in only(events, ContextAppended) if one.kind == "sources"]


def readings(folder: Path) -> list[dict[str, Any]]:
    """A call of each tool that looks around."""
    return [
        call("grep_files", pattern="needle", path=folder),
        call("read_file", path=folder / "notes.txt"),
        call("file_search", query="more", path=folder),
        call("list_dir", path=folder / "deep"),
    ]


@pytest.mark.parametrize("fields", [PERSON, ALONE])
async def test_a_source_is_searched_unasked_and_its_version_is_in_the_log(
    home: Path, workspace: Path, data: Path, fields: dict[str, Any]
) -> None:
    async with harness(home, workspace, [{"calls": readings(data)}, DONE, DONE]) as stage:
        session = await stage.open(**fields)
        ok, text = await command(stage, session, f"/context attach {data} as rivers")
        assert ok and "rivers" in text and "2 files" in text, text
        events = await stage.turn("Go", session)
        again = await stage.turn("And again", session)
        body = b"".join(stage.provider.requests[:1])
    assert [(one.ok, one.name) for one in results(events)] == [
        (True, name) for name in ("grep_files", "read_file", "file_search", "list_dir")
    ]
    assert not only(events, ApprovalAsked)
    (read,) = only(events, SourceRead)
    assert (read.name, read.path, read.bytes, len(read.sha256)) == ("rivers", str(data), 31, 64)
    (update,) = news(events)
    assert "rivers" in update and str(data) in update and "read only" in update
    assert b"needle" not in body and not news(again)


@pytest.mark.parametrize("mode", [Mode.AGENT, Mode.YOLO])
@pytest.mark.parametrize("authority", [Authority.PERSON, Authority.AUTO, Authority.HEADLESS])
async def test_no_tool_writes_in_a_source_whatever_else_is_allowed(
    home: Path, workspace: Path, data: Path, mode: Mode, authority: Authority
) -> None:
    calls = [
        call("write_file", path=data / "notes.txt", content="x\n"),
        call("write_file", path=data / "new" / "a.txt", content="x\n"),
        call("edit_file", path=data / "notes.txt", search="needle", replace="thread"),
        call("apply_patch", changes=[{"path": str(data / "b.txt"), "content": "patched\n"}]),
        call("write_file", path="../beside/data/notes.txt", content="x\n"),
    ]
    before = sorted((path, path.read_bytes()) for path in data.rglob("*") if path.is_file())
    async with harness(home, workspace, [{"calls": calls}, DONE]) as stage:
        # An added folder may be written in, and one that is also attached may not.
        session = await stage.open(mode=mode, authority=authority, folders=(str(data.parent),))
        assert (await command(stage, session, f"/context attach {data}"))[0]
        events = await answered(stage, session, "session")
    assert [one.error for one in results(events)] == ["permission_denied"] * len(calls)
    assert all("attached source, which is read only" in one.content for one in results(events))
    assert "/context detach" in results(events)[0].content
    assert sorted((path, path.read_bytes()) for path in data.rglob("*") if path.is_file()) == before


async def test_a_source_belongs_to_its_workspace_and_a_global_one_to_all(
    home: Path, workspace: Path, data: Path, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    script = [{"calls": readings(data)[:1]}, DONE]
    async with harness(home, workspace, []) as stage:
        session = await stage.open(**ALONE)
        assert (await command(stage, session, f"/context attach {data} as data"))[0]
    async with harness(home, other, script) as stage:
        session = await stage.open(**ALONE)
        listed = await command(stage, session, "/context sources")
        refused = await stage.turn("Go", session)
        assert (await command(stage, session, f"/context attach --global {data} as everywhere"))[0]
    assert "No sources" in listed[1]
    assert results(refused)[0].error == "path_escape" and not news(refused)
    async with harness(home, workspace, script) as stage:
        session = await stage.open(**ALONE)
        both = await command(stage, session, "/context external sources")
        events = await stage.turn("Go", session)
    assert [line.split()[0] for line in both[1].splitlines()] == ["data", "everywhere"]
    assert results(events)[0].ok and "needle" in results(events)[0].content


async def test_after_detaching_the_next_call_is_refused_and_the_model_is_told_once(
    home: Path, workspace: Path, data: Path
) -> None:
    look = {"calls": readings(data)[1:2]}
    async with harness(home, workspace, [look, DONE, look, DONE, DONE]) as stage:
        session = await stage.open(**ALONE)
        assert (await command(stage, session, f"/context attach '{data}' as data"))[0]
        first = await stage.turn("Go", session)
        gone = await command(stage, session, "/context detach data")
        again = await command(stage, session, "/context detach data")
        second = await stage.turn("Go", session)
        third = await stage.turn("Go", session)
    assert gone[0] and not again[0] and "no attached source 'data'" in again[1]
    assert results(first)[0].ok and results(second)[0].error == "path_escape"
    (update,) = news(second)
    assert "removed" in update and not news(third) and data.exists()


async def test_a_person_is_asked_about_what_was_a_source(home: Path, workspace: Path, data: Path) -> None:
    async with harness(home, workspace, [{"calls": readings(data)[1:2]}, DONE]) as stage:
        session = await stage.open(**PERSON)
        assert (await command(stage, session, f"/context attach {data}"))[0]
        assert (await command(stage, session, "/context detach data"))[0]
        events = await answered(stage, session, allowed=False)
    assert [ask.rule for ask in only(events, ApprovalAsked)] == ["path.outside"]
    assert results(events)[0].error == "permission_denied"


async def test_a_detach_while_a_turn_runs_holds_from_its_next_call_on(home: Path, workspace: Path, data: Path) -> None:
    stages: list[Harness] = []

    def then(request: dict[str, Any]) -> dict[str, Any]:
        stages[0].client.parts.memory.sources.detach(str(workspace), "data")
        return {"calls": readings(data)[1:2]}

    async with harness(home, workspace, [{"calls": readings(data)[1:2]}, then, DONE]) as stage:
        stages.append(stage)
        session = await stage.open(**ALONE)
        assert (await command(stage, session, f"/context attach {data}"))[0]
        events = await stage.turn("Go", session)
    assert [(one.ok, one.error) for one in results(events)] == [(True, ""), (False, "path_escape")]


async def test_each_version_that_is_read_is_recorded_once(home: Path, workspace: Path, data: Path) -> None:
    look = {"calls": readings(data)[1:2]}
    async with harness(home, workspace, [look, look, DONE, look, DONE, look, DONE]) as stage:
        session = await stage.open(**ALONE)
        assert (await command(stage, session, f"/context attach {data}"))[0]
        first = only(await stage.turn("Go", session), SourceRead)
        same = only(await stage.turn("Go", session), SourceRead)
        about = (data / "notes.txt").stat()
        (data / "notes.txt").write_text("first line\nthread\n")  # of the same size, with the time that it had
        os.utime(data / "notes.txt", ns=(about.st_atime_ns, about.st_mtime_ns))
        changed = only(await stage.turn("Go", session), SourceRead)
    assert (len(first), len(same), len(changed)) == (1, 0, 1)
    assert first[0].sha256 != changed[0].sha256 and first[0].bytes == changed[0].bytes


async def test_a_call_does_not_wait_for_a_version_that_takes_long(home: Path, workspace: Path, data: Path) -> None:
    with open(data / "hole", "wb") as file:
        file.truncate(1 << 30)
    async with harness(home, workspace, [{"calls": readings(data)[1:2]}, DONE]) as stage:
        session = await stage.open(**ALONE)
        assert (await command(stage, session, f"/context attach {data}"))[0]
        os.utime(data / "hole")
        async with watching(stage, session) as watch:
            await stage.turn("Go", session)
            first, second = await watch.until(SourceRead), await watch.until(SourceRead, 2)
            done = await watch.until(CallFinished)
    assert first.sha256 == "" and len(second.sha256) == 64 and second.bytes == 31 + (1 << 30)
    assert watch.events.index(done) < watch.events.index(second)


async def test_commands_are_asked_about_as_without_a_source(home: Path, workspace: Path, data: Path) -> None:
    line = {"calls": [call("exec_shell", command=f"cat {data}/notes.txt")]}
    async with harness(home, workspace, [line, DONE]) as stage:
        session = await stage.open(**PERSON)
        assert (await command(stage, session, f"/context attach {data}"))[0]
        events = await answered(stage, session, allowed=False)
    assert [ask.rule for ask in only(events, ApprovalAsked)] == ["shell.outside"]


async def test_a_replay_names_the_source_that_has_changed_or_is_gone(
    tmp_path: Path, workspace: Path, data: Path
) -> None:
    (data / ".bash_history").write_text("hidden\n")
    calls = [*readings(data), call("read_file", path="rivers/notes.txt")]
    calls.append(call("read_file", path=data / ".bash_history"))
    async with harness(tmp_path / "state", workspace, [{"calls": calls}, DONE]) as stage:
        session = await stage.open(**ALONE)
        assert (await command(stage, session, f"/context attach {data} as rivers"))[0]
        await stage.turn("Go", session)
    configure(tmp_path, "")

    def replayed(*options: str) -> tuple[int, str]:
        done = codewhale_program(tmp_path, "sessions", "replay", session, *options)
        assert done.stderr == ""
        return done.returncode, done.stdout

    code, same = replayed("--run-reads")
    assert code == 0 and f"source rivers ({data}): read as" in same and "the same now" in same
    assert same.count("now        the same") == 5 and "hidden" not in same, same
    (data / "notes.txt").write_text("second line\nneedle\n")
    code, changed = replayed()
    assert code == 1 and "changed since" in changed
    (data / "notes.txt").rename(data.parent / "kept")
    data.rename(data.parent / "moved")
    code, rows = replayed("--json")
    assert code == 1 and '"source":"rivers"' in rows and "gone" in rows


async def test_what_leads_out_of_a_source_or_is_secret_is_not_read(
    home: Path, workspace: Path, data: Path, tmp_path: Path
) -> None:
    outer = tmp_path / "elsewhere.txt"
    outer.write_text("hidden words\n")
    (data / "out").symlink_to(outer)
    (data / "up").symlink_to(tmp_path)
    (data / ".env").write_text("PASSWORD=hidden words\n")
    (data / "server.pem").write_text("hidden words\n")
    os.mkfifo(data / "pipe")
    calls = [
        call("read_file", path=data / "out"),
        call("read_file", path=data / "up" / "elsewhere.txt"),
        call("read_file", path=data / ".." / ".." / "elsewhere.txt"),
        call("read_file", path=data / ".env"),
        call("read_file", path=data / "server.pem"),
        call("read_file", path=data / "pipe"),
        call("grep_files", pattern="hidden", path=data / "up"),
        call("read_file", path=f"{data}-not/../../elsewhere.txt"),
        call("read_file", path=home / "memory" / "sources.json"),
    ]
    script = [{"calls": [*calls, call("grep_files", pattern="hidden", path=data)]}, DONE]
    async with harness(home, workspace, script) as stage:
        session = await stage.open(**ALONE)
        assert (await command(stage, session, f"/context attach {data}"))[0]
        events = await stage.turn("Go", session)
    *refused, searched = results(events)
    assert [one.ok for one in refused] == [False] * len(calls), [one.content[:200] for one in refused]
    assert searched.ok and not any("hidden words" in one.content for one in results(events))


async def test_a_source_is_also_known_by_its_name_where_the_workspace_has_nothing_of_it(
    home: Path, workspace: Path, data: Path
) -> None:
    calls = [
        call("read_file", path="rivers/notes.txt"),
        call("grep_files", pattern="needle", path="rivers"),
        call("list_dir", path="rivers/deep"),
        call("read_file", path="rivers/../../../elsewhere.txt"),
        call("write_file", path="rivers/own.txt", content="own\n"),
        call("read_file", path="rivers/notes.txt"),
        call("read_file", path="rivers/own.txt"),
    ]
    script = [*({"calls": [one]} for one in calls), DONE]
    async with harness(home, workspace, script) as stage:
        session = await stage.open(**ALONE)
        assert (await command(stage, session, f"/context attach {data} as rivers"))[0]
        events = await stage.turn("Go", session)
    done = results(events)
    assert [one.ok for one in done] == [True, True, True, False, True, False, True], [one.content for one in done]
    assert "needle" in done[0].content and str(data) in done[1].content and "more.csv" in done[2].content
    assert done[3].error == "path_escape" and "own" in done[6].content and not (data / "own.txt").exists()
    assert len(only(events, SourceRead)) == 1


async def test_of_an_attached_file_nothing_beside_it_is_read(home: Path, workspace: Path, data: Path) -> None:
    calls = [
        call("read_file", path=data / "notes.txt"),
        call("grep_files", pattern="needle", path=data / "notes.txt"),
        call("read_file", path="notes.txt"),
        call("read_file", path=data / "deep" / "more.csv"),
        call("list_dir", path=data),
        call("write_file", path=data / "notes.txt", content="x"),
    ]
    async with harness(home, workspace, [{"calls": calls}, DONE]) as stage:
        session = await stage.open(**ALONE)
        assert (await command(stage, session, f"/context attach {data / 'notes.txt'}"))[0]
        events = await stage.turn("Go", session)
    assert [one.ok for one in results(events)] == [True, True, True, False, False, False]
    assert (data / "notes.txt").read_text() == "first line\nneedle\n"


async def test_no_answer_opens_a_secret_in_a_source(home: Path, workspace: Path, data: Path) -> None:
    names = (".env", "server.pem", ".bash_history", ".ssh/config")
    (data / ".ssh").mkdir()
    for name in names:
        (data / name).write_text("hidden words\n")
    script = [{"calls": [call("read_file", path=data / name) for name in names]}, DONE]
    async with harness(home, workspace, script) as stage:
        session = await stage.open(**PERSON)
        assert (await command(stage, session, f"/context attach {data}"))[0]
        events = await answered(stage, session, "session")
    assert not only(events, ApprovalAsked)
    assert [one.error for one in results(events)] == ["permission_denied"] * len(names)


async def test_what_cannot_be_attached_is_refused_with_the_reason(
    home: Path, workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    person = tmp_path / "person"
    for folder in (".ssh", "work/.git/hooks", "data"):
        (person / folder).mkdir(parents=True)
    (person / ".ssh" / "id_rsa").write_text("key")
    (person / "data" / ".env").write_text("A=b")
    (person / "data" / "fine.txt").write_text("fine")
    (person / "link").symlink_to(home)
    (person / "new\nline").mkdir()
    (workspace / "own.txt").write_text("own")
    os.mkfifo(person / "pipe")
    monkeypatch.setenv("HOME", str(person))
    reasons = {
        str(person): "home folder itself", "/": "top folder", "/etc": "top folder", "/usr/share": "to the system",
        "/etc/hostname": "to the system", str(home): "keeps its state", f"{person}/link": "keeps its state",
        f"{home}/config.toml": "belongs to CodeWhale itself", f"{person}/.ssh": "keys and passwords",
        f"{person}/.ssh/id_rsa": "keys or passwords", f"{person}/data/.env": "keys or passwords",
        f"{person}/work/.git/hooks": "automatically", str(workspace): "already in the workspace",
        f"{workspace}/own.txt": "already in the workspace", str(tmp_path): "top folder", f"{person}/gone": "No such",
        f"{person}/pipe": "neither a folder nor a regular file", f"{person}/new\nline": "control characters",
        f"{person}/data as ../x": "cannot be the name", f"{person}/data as \x1b[2J": "cannot be the name",
        "https://user:word@example.com/x": "user name or a password", "": "/context attach PATH",
    }  # fmt: skip
    (home / "config.toml").write_text("")
    async with harness(home, workspace, []) as stage:
        session = await stage.open(**PERSON)
        for path, reason in reasons.items():
            ok, text = await command(stage, session, f"/context attach {path}".rstrip(" "))
            assert not ok and reason in text and "\x1b" not in text, (path, text)
        assert not (home / "memory").exists()
        assert (await command(stage, session, "/context attach ~/data/fine.txt"))[0]


async def test_an_address_is_kept_and_its_row_says_that_nothing_reads_it(home: Path, workspace: Path) -> None:
    async with harness(home, workspace, [DONE]) as stage:
        session = await stage.open(**ALONE)
        assert (await command(stage, session, "/context attach mcp://aleph/corpus/2024 as corpus"))[0]
        listed = await command(stage, session, "/context sources")
        copied = await command(stage, session, f"/context export corpus {workspace}/copies")
        events = await stage.turn("Go", session)
    assert "mcp://aleph/corpus/2024" in listed[1] and "an MCP server that offers it reads it" in listed[1]
    assert not copied[0] and not (workspace / "copies").exists() and not news(events)


async def test_an_export_through_the_front_door_writes_over_nothing(home: Path, workspace: Path, data: Path) -> None:
    async with harness(home, workspace, []) as stage:
        session = await stage.open(**ALONE)
        assert (await command(stage, session, f'/context attach "{data}" as rivers'))[0]
        ok, text = await command(stage, session, "/context export rivers ./my copies")
        again = await command(stage, session, "/context export rivers './my copies'")
        wrong = [await command(stage, session, f"/context export {words}") for words in ("", "rivers", "x .")]
        inside = await command(stage, session, "/context export rivers .git/hooks")
    assert ok and "manifest.json" in text
    assert (workspace / "my copies" / "rivers" / "files" / "deep" / "more.csv").read_text() == "a,b\nneedle,2\n"
    assert not again[0] and "File exists" in again[1] and not inside[0] and "automatically" in inside[1]
    assert [done[0] for done in wrong] == [False] * 3 and "no attached source 'x'" in wrong[2][1]


async def test_the_head_never_holds_a_source(home: Path, workspace: Path, data: Path) -> None:
    async with harness(home, workspace, []) as stage:
        assert (await command(stage, await stage.open(**ALONE), f"/context attach {data} as rivers"))[0]
    async with harness(home, workspace, [DONE, DONE]) as stage:
        session = await stage.open(**ALONE)
        first, second = await stage.turn("Go", session), await stage.turn("Go", session)
        heads = [sent(stage, number)[0] for number in (0, 1)]
    assert heads[0] == heads[1] and "rivers" not in str(heads[0])
    assert len(news(first)) == 1 and "rivers" in news(first)[0] and not news(second)
