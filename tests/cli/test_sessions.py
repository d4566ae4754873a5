"""`codewhale sessions` over real logs."""

import json
import os
from pathlib import Path

import pytest

from codewhale.lib.clock import SystemClock
from codewhale.protocol.events import CallFinished, ContextAppended, Event, MessageAdded, SessionOpened, TurnStarted
from codewhale.protocol.messages import Message, Text, ToolCall
from codewhale.protocol.modes import Mode
from codewhale.session.store import SessionStore
from support.program import codewhale_program


def record(home: Path, workspace: Path, *events: Event) -> str:
    """A closed session with these events."""
    state = home / "state"
    state.mkdir(mode=0o700, exist_ok=True)
    log = SessionStore(str(state), SystemClock()).create(SessionOpened(1, str(workspace), Mode.AGENT, "p", "m"))
    log.append(events)
    log.close()
    return log.session


def said(text: str) -> tuple[Event, Event]:
    return TurnStarted(1), MessageAdded(Message("user", (Text(text),)))


def test_no_sessions_is_no_error_and_makes_nothing(tmp_path: Path) -> None:
    done = codewhale_program(tmp_path, "sessions", "list")
    assert (done.returncode, done.stdout) == (0, "no sessions of this folder; --all lists every one\n")
    assert codewhale_program(tmp_path, "sessions", "list", "--json").stdout == "[]\n"
    assert not (tmp_path / "state").exists()


def test_list_is_of_this_folder_unless_all_is_said(tmp_path: Path) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    here.mkdir()
    there.mkdir()
    one = record(tmp_path, here, *said("fix é the \x1b[2Jtest"))
    two = record(tmp_path, there, *said("other"))
    rows = json.loads(codewhale_program(tmp_path, "sessions", "list", "--json", cwd=here).stdout)
    assert [row["id"] for row in rows] == [one]
    assert set(rows[0]) == {
        "id",
        "title",
        "created",
        "updated",
        "workspace",
        "turns",
        "messages",
        "files",
        "model",
        "state",
        "owner",
        "kind",
        "name",
        "role",
        "parent",
    }
    assert (rows[0]["workspace"], rows[0]["turns"], rows[0]["messages"], rows[0]["files"]) == (str(here), 1, 1, 0)
    assert (rows[0]["model"], rows[0]["state"], rows[0]["parent"]) == ("m", "idle", "")
    every = codewhale_program(tmp_path, "sessions", "list", "--json", "--all", cwd=here)
    assert every.stdout.isascii()
    assert [row["id"] for row in json.loads(every.stdout)] == [two, one]
    people = codewhale_program(tmp_path, "sessions", "list", "-w", str(here))
    assert one in people.stdout
    assert "\x1b" not in people.stdout
    assert people.stdout.count("\n") == 1


def test_show_events_messages_and_for_people(tmp_path: Path) -> None:
    call = ToolCall("c1", "read_file", '{"path":"a"}')
    session = record(
        tmp_path,
        tmp_path,
        *said("hi \u2028 \x1b]0;x\x07"),
        ContextAppended("mode", "You are in agent mode."),
        MessageAdded(Message("assistant", (Text("let me look", source="model"), call))),
        CallFinished("c1", "read_file", False, "no such file"),
    )
    events = codewhale_program(tmp_path, "sessions", "show", session, "--events")
    lines = [json.loads(line) for line in events.stdout.split("\n")[:-1]]
    assert [line["event"]["type"] for line in lines] == [
        "session_opened",
        "turn_started",
        "message_added",
        "context_appended",
        "message_added",
        "call_finished",
    ]
    assert [line["seq"] for line in lines] == [1, 2, 3, 4, 5, 6]
    assert events.stdout.isascii()
    messages = [
        json.loads(line)
        for line in codewhale_program(tmp_path, "sessions", "show", session, "--messages").stdout.split("\n")[:-1]
    ]
    assert [message["role"] for message in messages] == ["user", "user", "assistant", "tool"]
    assert messages[3]["parts"] == [{"type": "tool_result", "call_id": "c1", "content": "no such file", "ok": False}]
    people = codewhale_program(tmp_path, "sessions", "show", session).stdout
    assert people.splitlines()[-3:] == [
        "[assistant] let me look",
        '[call] read_file {"path":"a"}',
        "[result, failed] no such file",
    ]
    assert "\x1b" not in people
    assert "\u2028" not in people


def test_a_prefix_finds_its_session_and_an_ambiguous_one_lists_them(tmp_path: Path) -> None:
    one, two = record(tmp_path, tmp_path, *said("a")), record(tmp_path, tmp_path, *said("b"))
    whole = codewhale_program(tmp_path, "sessions", "show", one[:-1])
    assert (whole.returncode, whole.stdout) == (0, "[user] a\n")
    assert codewhale_program(tmp_path, "sessions", "show", "latest").stdout == "[user] b\n"
    common = one[:2]
    for arguments in (["show", common], ["rm", common]):
        done = codewhale_program(tmp_path, "sessions", *arguments)
        assert (done.returncode, done.stdout) == (2, "")
        assert one in done.stderr
        assert two in done.stderr


def test_a_request_that_never_was(tmp_path: Path) -> None:
    session = record(tmp_path, tmp_path, *said("a"))
    done = codewhale_program(tmp_path, "sessions", "show", session, "--request", "1")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"codewhale: session {session} has no model request 1\n"


def test_rm_removes_all_or_nothing_and_refuses_an_open_one(tmp_path: Path) -> None:
    one, two = record(tmp_path, tmp_path, *said("a")), record(tmp_path, tmp_path, *said("b"))
    store = SessionStore(str(tmp_path / "state"), SystemClock())
    log = store.open(two)
    try:
        done = codewhale_program(tmp_path, "sessions", "rm", one, two)
        assert (done.returncode, done.stdout) == (1, "")
        assert str(os.getpid()) in done.stderr
        assert "Nothing was removed." in done.stderr
        rows = json.loads(codewhale_program(tmp_path, "sessions", "list", "--json").stdout)
        assert {row["id"]: row["state"] for row in rows} == {one: "idle", two: "open"}
    finally:
        log.close()
    assert codewhale_program(tmp_path, "sessions", "rm", one, two).returncode == 0
    assert codewhale_program(tmp_path, "sessions", "list", "--json").stdout == "[]\n"


@pytest.mark.parametrize("name", ["../../etc", "/", ".", "\x1b[2J", "a" * 5000, "ü"])
def test_odd_ids_are_refused_safely(tmp_path: Path, name: str) -> None:
    record(tmp_path, tmp_path, *said("a"))
    done = codewhale_program(tmp_path, "sessions", "rm", name)
    assert done.returncode == 2
    assert "\x1b" not in done.stderr
    assert len(json.loads(codewhale_program(tmp_path, "sessions", "list", "--json").stdout)) == 1


def test_a_session_gets_a_title_a_copy_and_a_document(tmp_path: Path) -> None:
    session = record(tmp_path, tmp_path, *said("fix <b>it</b>"))
    assert codewhale_program(tmp_path, "sessions", "rename", session, "  The  fix é ").returncode == 0
    forked = codewhale_program(tmp_path, "sessions", "fork", session)
    copy = forked.stdout.strip()
    rows = {row["id"]: row for row in json.loads(codewhale_program(tmp_path, "sessions", "list", "--json").stdout)}
    assert (rows[copy]["title"], rows[copy]["parent"]) == ("The fix é", session)
    assert codewhale_program(tmp_path, "sessions", "export", copy).stdout.startswith("# The fix é\n")
    page = codewhale_program(tmp_path, "sessions", "export", session, "--format", "html").stdout
    assert page.startswith("<!doctype html>") and "fix &lt;b&gt;it&lt;/b&gt;" in page
    target = tmp_path / "out.json"
    assert codewhale_program(tmp_path, "sessions", "export", session, "-o", str(target)).returncode == 0
    assert json.loads(target.read_text())["entries"] == [{"role": "user", "text": "fix <b>it</b>"}]
    again = codewhale_program(tmp_path, "sessions", "export", session, "-o", str(target))
    assert again.returncode == 2 and "--force" in again.stderr
    assert codewhale_program(tmp_path, "sessions", "export", session, "-o", str(target), "--force").returncode == 0


@pytest.mark.parametrize(
    ("arguments", "wrong"),
    [
        (["rename", "ID", ""], "at least one word"),
        (["rename", "ID", "x" * 10_000], "has 10,000"),
        (["rename", "ID", "a\x1b[2Jb"], "without control characters"),
        (["rename", "ID", "two\nlines"], "on one line"),
        (["rename", "ID", "turned \u202e round"], "without control characters"),
        (["rename", "nobody", "x"], "there is no session 'nobody'"),
        (["fork", "nobody"], "there is no session 'nobody'"),
        (["export", "nobody"], "there is no session 'nobody'"),
        (["export", "ID", "--format", "pdf"], "there is no format 'pdf'"),
        (["export", "ID", "-o", "notes.txt"], "there is no format in the name"),
        (["export", "ID", "-o", "/", "--format", "md"], "it is a folder"),
        (["export", "ID", "-o", "nowhere/x.md"], "its folder does not exist"),
    ],
)
def test_what_cannot_be_made_of_a_session_is_named(tmp_path: Path, arguments: list[str], wrong: str) -> None:
    session = record(tmp_path, tmp_path, *said("a"))
    given = [session if argument == "ID" else argument for argument in arguments]
    done = codewhale_program(tmp_path, "sessions", *given)
    assert (done.returncode, done.stdout) == (2, "") and wrong in done.stderr and "\x1b" not in done.stderr
    rows = json.loads(codewhale_program(tmp_path, "sessions", "list", "--json").stdout)
    assert [(row["id"], row["title"]) for row in rows] == [(session, "a")]


def test_an_open_session_is_renamed_where_it_is_open(tmp_path: Path) -> None:
    session = record(tmp_path, tmp_path, *said("a"))
    log = SessionStore(str(tmp_path / "state"), SystemClock()).open(session)
    try:
        done = codewhale_program(tmp_path, "sessions", "rename", session, "b")
        assert done.returncode == 1 and str(os.getpid()) in done.stderr
    finally:
        log.close()
