"""`codewhale exec` as scripts call it: the real program, the real engine, a scripted model."""

import hashlib
import json
import os
import pty
import select
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from support.patience import HANG
from support.program import codewhale_program, configure, environment, scripted
from support.running import commands, odd_seconds

ANSWER = '{"text":"the answer \\u00e9 \\u2028"}'
SLOW = '{"text":"too late","delay":60}'
NOTE = '{"calls":[{"name":"checklist_add","arguments":{"content":"look"}}]}'
SHELL = '{"calls":[{"name":"exec_shell","arguments":{"command":"touch made"}}]}'


def result_of(done: "subprocess.CompletedProcess[str]") -> dict[str, Any]:
    assert done.stdout.count("\n") == 1
    assert done.stdout.isascii()
    found: dict[str, Any] = json.loads(done.stdout)
    assert found["exit_code"] == done.returncode
    return found


def lines_of(text: str) -> list[dict[str, Any]]:
    assert text.endswith("\n")
    assert text.isascii()
    return [json.loads(line) for line in text[:-1].split("\n")]


def test_text_is_the_answer_and_a_newline_and_nothing_else(tmp_path: Path) -> None:
    scripted(tmp_path, NOTE, ANSWER)
    done = codewhale_program(tmp_path, "exec", "hi")
    assert (done.returncode, done.stdout) == (0, "the answer \u00e9 \u2028\n")
    assert done.stderr.startswith("> checklist_add ")


def test_json_is_one_object_with_every_field(tmp_path: Path) -> None:
    scripted(tmp_path, NOTE, ANSWER)
    done = codewhale_program(tmp_path, "exec", "--output-format", "json", "hi")
    found = result_of(done)
    assert list(found) == [
        "schema_version",
        "session_id",
        "status",
        "exit_code",
        "answer",
        "tools",
        "changes",
        "usage",
        "error",
        "children",
    ]
    assert (found["schema_version"], found["status"], found["error"]) == (1, "done", None)
    assert found["answer"] == "the answer \u00e9 \u2028"
    assert [set(tool) for tool in found["tools"]] == [{"id", "name", "ok", "ms"}]
    assert set(found["usage"]) == {"input", "output", "cache_hit", "cache_miss", "cost", "currency"}
    assert done.stderr == ""


def test_stream_json_is_the_log_as_it_grows(tmp_path: Path) -> None:
    scripted(tmp_path, NOTE, ANSWER)
    done = codewhale_program(tmp_path, "exec", "--output-format", "stream-json", "hi")
    lines = lines_of(done.stdout)
    assert (lines[0]["event"]["type"], lines[-1]["event"]["type"]) == ("session_opened", "turn_finished")
    assert [line["seq"] for line in lines] == list(range(1, len(lines) + 1))
    assert lines[-1]["event"]["result"]["session_id"] == lines[0]["session"]
    shown = codewhale_program(tmp_path, "sessions", "show", "latest", "--events")
    assert shown.stdout == done.stdout


def test_each_request_can_be_shown_byte_for_byte(tmp_path: Path) -> None:
    scripted(tmp_path, NOTE, ANSWER)
    done = codewhale_program(tmp_path, "exec", "--output-format", "stream-json", "h\u00e9")
    sizes = [line["event"]["bytes"] for line in lines_of(done.stdout) if line["event"]["type"] == "request_sent"]
    bodies = [codewhale_program(tmp_path, "sessions", "show", "latest", "--request", n).stdout for n in ("1", "2")]
    assert [len(body.encode()) for body in bodies] == sizes
    first, second = (json.loads(body)["messages"] for body in bodies)
    assert second[: len(first)] == first
    tools = codewhale_program(tmp_path, "tools", "head").stdout
    assert f'"tools":{tools}' in bodies[0]


def test_deltas_come_only_when_asked_for(tmp_path: Path) -> None:
    scripted(tmp_path, ANSWER)
    done = codewhale_program(tmp_path, "exec", "--output-format", "stream-json", "--deltas", "hi")
    pieces = [line["event"]["text"] for line in lines_of(done.stdout) if line["event"]["type"] == "text_streamed"]
    assert "".join(pieces) == "the answer \u00e9 \u2028"


@pytest.mark.parametrize(
    ("flags", "turns", "status", "code"),
    [
        ([], [ANSWER], "done", 0),
        ([], ['{"error":{"message":"no","kind":"auth"}}'], "failed", 1),
        ([], [SHELL, ANSWER], "denied", 3),
        (["--mode", "plan", "--auto"], [SHELL, ANSWER], "denied", 3),
        (["--max-turns", "1"], [NOTE, ANSWER], "budget", 4),
        (["--max-tokens", "10"], [ANSWER], "budget", 4),
        (["--max-seconds", "0.3"], [SLOW], "budget", 4),
        ([], ['{"error":"rate_limit"}'], "infra", 75),
    ],
)
def test_how_it_ended_is_the_exit_code(
    tmp_path: Path, flags: list[str], turns: list[str], status: str, code: int
) -> None:
    scripted(tmp_path, *turns)
    done = codewhale_program(tmp_path, "exec", "--output-format", "json", *flags, "hi")
    found = result_of(done)
    assert (found["status"], done.returncode) == (status, code)
    assert (found["error"] is None) == (status == "done")
    assert not (tmp_path / "made").exists()


def test_text_tells_why_on_stderr(tmp_path: Path) -> None:
    scripted(tmp_path, '{"text":"half","error":"rate_limit"}')
    done = codewhale_program(tmp_path, "exec", "hi")
    assert (done.returncode, done.stdout) == (75, "")
    assert done.stderr.startswith("codewhale: infra: ")


@pytest.mark.parametrize("flag", [["--auto"], ["--mode", "yolo"]])
def test_flags_let_commands_run(tmp_path: Path, flag: list[str]) -> None:
    scripted(tmp_path, SHELL.replace("touch made", "echo made"), ANSWER)
    done = codewhale_program(tmp_path, "exec", "--output-format", "json", *flag, "hi")
    found = result_of(done)
    assert found["status"] == "done"
    assert [tool["ok"] for tool in found["tools"]] == [True]


def sent(home: Path) -> str:
    """What the person's message of the latest session says."""
    shown = codewhale_program(home, "sessions", "show", "latest", "--messages").stdout
    first = json.loads(shown.split("\n")[0])
    return "\n".join(part["text"] for part in first["parts"])


def test_piped_text_travels_fenced_beside_the_prompt(tmp_path: Path) -> None:
    scripted(tmp_path, ANSWER)
    piped = b"one ```` two\n\x00\x1b[2J\n" + b"\xff"
    assert codewhale_program(tmp_path, "exec", "explain", stdin=piped).returncode == 0
    assert sent(tmp_path) == "explain\n`````\none ```` two\n\x00\x1b[2J\n\ufffd\n`````"


@pytest.mark.parametrize("stdin", [None, b"", b"  \n"])
def test_nothing_on_stdin_adds_nothing(tmp_path: Path, stdin: bytes | None) -> None:
    scripted(tmp_path, ANSWER)
    assert codewhale_program(tmp_path, "exec", "explain", stdin=stdin).returncode == 0
    assert sent(tmp_path) == "explain"


def test_a_file_on_stdin_is_read_and_a_closed_one_is_not(tmp_path: Path) -> None:
    scripted(tmp_path, ANSWER)
    (tmp_path / "in").write_text("from a file")
    for redirect, expected in (("<in", "hi\n```\nfrom a file\n```"), ("<&-", "hi")):
        line = f'"{sys.executable}" -m codewhale exec hi {redirect}'
        done = subprocess.run(
            ["sh", "-c", line],
            capture_output=True,
            env=environment(tmp_path),
            cwd=tmp_path,
            stdin=subprocess.DEVNULL,
        )
        assert done.returncode == 0
        assert sent(tmp_path) == expected


def test_the_prompt_comes_from_stdin(tmp_path: Path) -> None:
    scripted(tmp_path, ANSWER)
    assert codewhale_program(tmp_path, "exec", "-", stdin="tu das é\n".encode()).returncode == 0
    assert sent(tmp_path) == "tu das é\n"


@pytest.mark.parametrize("prompt", ["-", "hi"])
def test_too_much_on_stdin_is_refused_before_anything_happens(tmp_path: Path, prompt: str) -> None:
    done = codewhale_program(tmp_path, "exec", prompt, stdin=b"x" * ((1 << 20) + 1))
    assert (done.returncode, done.stdout) == (2, "")
    assert "stdin is larger than 1048576 bytes; put it in a file in the workspace" in done.stderr
    assert not (tmp_path / "state").exists()


def test_an_odd_prompt_reaches_the_log_whole(tmp_path: Path) -> None:
    scripted(tmp_path, ANSWER, ANSWER)
    assert codewhale_program(tmp_path, "exec", "a \u202e\x1b]0;x\x07 $(id) ☃").returncode == 0
    assert sent(tmp_path) == "a \u202e\x1b]0;x\x07 $(id) ☃"
    raw = subprocess.run(
        [sys.executable, "-m", "codewhale", "exec", b"bad \xff byte"],
        capture_output=True,
        env=environment(tmp_path),
        cwd=tmp_path,
        stdin=subprocess.DEVNULL,
    )
    assert raw.returncode == 0
    assert sent(tmp_path) == "bad \ufffd byte"


def test_resume_continue_and_fork(tmp_path: Path) -> None:
    scripted(tmp_path, ANSWER)
    first = result_of(codewhale_program(tmp_path, "exec", "--output-format", "json", "one"))["session_id"]
    again = codewhale_program(tmp_path, "exec", "--output-format", "json", "--continue", "two")
    assert result_of(again)["session_id"] == first
    resumed = codewhale_program(tmp_path, "exec", "--output-format", "stream-json", "--resume", first[:-2], "three")
    lines = lines_of(resumed.stdout)
    assert [line["event"]["type"] for line in lines[:3]] == ["session_opened", "session_resumed", "turn_started"]
    assert {line["session"] for line in lines} == {first}
    assert lines[-1]["event"]["turn"] == 3
    fork = codewhale_program(tmp_path, "exec", "--output-format", "stream-json", "--fork", first, "four")
    lines = lines_of(fork.stdout)
    assert lines[0]["event"]["parent"] == first != lines[0]["session"]
    assert [line["event"]["type"] for line in lines].count("turn_started") == 1
    assert lines[-1]["event"]["turn"] == 4
    rows = json.loads(codewhale_program(tmp_path, "sessions", "list", "--json").stdout)
    assert {row["parent"] for row in rows} == {"", first}


@pytest.mark.parametrize(
    ("flag", "output"),
    [(["--resume", "zzz"], "text"), (["--continue"], "json"), (["--fork", "zzz"], "stream-json")],
)
def test_a_session_that_is_not_there_is_a_usage_error(tmp_path: Path, flag: list[str], output: str) -> None:
    scripted(tmp_path, ANSWER)
    done = codewhale_program(tmp_path, "exec", *flag, "--output-format", output, "hi")
    assert (done.returncode, done.stdout) == (2, "")
    assert "there is no session" in done.stderr


def test_a_session_that_is_open_elsewhere_can_be_tried_again(tmp_path: Path) -> None:
    scripted(tmp_path, SLOW)
    with start(tmp_path, "exec", "--output-format", "stream-json", "hi") as slow:
        session = until(slow, "request_sent")["session"]
        done = codewhale_program(tmp_path, "exec", "--resume", session, "--output-format", "json", "hi")
        assert (done.returncode, result_of(done)["status"]) == (75, "infra")
        assert str(slow.pid) in done.stderr
        assert codewhale_program(tmp_path, "sessions", "rm", session).returncode == 1
        slow.send_signal(signal.SIGINT)
        assert slow.wait(HANG) == 130


def test_an_ambiguous_session_lists_the_matches(tmp_path: Path) -> None:
    scripted(tmp_path, ANSWER)
    ids = [result_of(codewhale_program(tmp_path, "exec", "--output-format", "json", "x"))["session_id"] for _ in "ab"]
    done = codewhale_program(tmp_path, "exec", "--resume", "20", "hi")
    assert (done.returncode, done.stdout) == (2, "")
    assert all(one in done.stderr for one in ids)


def test_an_unknown_provider_names_the_known_ones_and_leaves_nothing(tmp_path: Path) -> None:
    scripted(tmp_path, ANSWER)
    done = codewhale_program(tmp_path, "exec", "--provider", "nobody", "hi")
    assert (done.returncode, done.stdout) == (2, "")
    assert "there is no provider 'nobody'; configured: deepseek, played (codewhale" in done.stderr
    assert codewhale_program(tmp_path, "sessions", "list", "--all", "--json").stdout == "[]\n"


def test_a_broken_script_is_named(tmp_path: Path) -> None:
    script = scripted(tmp_path, "{")
    done = codewhale_program(tmp_path, "exec", "hi")
    assert (done.returncode, done.stdout) == (2, "")
    assert f"{script}, line 1: not JSON" in done.stderr


def test_slash_commands(tmp_path: Path) -> None:
    scripted(tmp_path)
    done = codewhale_program(tmp_path, "exec", "/status")
    assert (done.returncode, done.stderr) == (0, "")
    assert "played" in done.stdout
    bad = codewhale_program(tmp_path, "exec", "/nonsense")
    assert (bad.returncode, bad.stdout) == (2, "")
    assert "Unknown command '/nonsense'" in bad.stderr and "/workspace" not in bad.stderr
    found = result_of(codewhale_program(tmp_path, "exec", "--output-format", "json", "/help"))
    assert (found["status"], found["tools"]) == ("done", [])
    assert "/status" in found["answer"]
    lines = lines_of(codewhale_program(tmp_path, "exec", "--output-format", "stream-json", "/help").stdout)
    assert [line["event"]["type"] for line in lines] == ["session_opened", "turn_finished"]


def sha(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def test_changes_list_what_commands_made_changed_and_removed(tmp_path: Path) -> None:
    (tmp_path / "old.txt").write_text("old\n")
    (tmp_path / "gone.txt").write_text("gone\n")
    (tmp_path / "kept.txt").write_text("kept\n")
    command = "printf 'new\\n' > made.txt; printf 'more\\n' >> old.txt; rm gone.txt; touch kept.txt; "
    command += "mkdir __pycache__; echo x > __pycache__/a.pyc"
    call = json.dumps({"calls": [{"name": "exec_shell", "arguments": {"command": command}}]})
    scripted(tmp_path, call, ANSWER)
    told = result_of(codewhale_program(tmp_path, "exec", "--yolo", "--output-format", "json", "hi"))
    assert sorted((one["path"], one["before_sha256"], one["after_sha256"]) for one in told["changes"]) == [
        ("gone.txt", sha("gone\n"), None),
        ("made.txt", None, sha("new\n")),
        ("old.txt", sha("old\n"), sha("old\nmore\n")),
    ]


def test_what_two_commands_change_is_told_as_one(tmp_path: Path) -> None:
    calls = [
        json.dumps({"calls": [{"name": "exec_shell", "arguments": {"command": command}}]})
        for command in ("echo one > a; echo x > b", "echo two > a; rm b")
    ]
    scripted(tmp_path, *calls, ANSWER)
    told = result_of(codewhale_program(tmp_path, "exec", "--yolo", "--output-format", "json", "hi"))
    assert told["changes"] == [{"path": "a", "before_sha256": None, "after_sha256": sha("two\n")}]


@pytest.mark.parametrize("command", [["search", "--batch"], ["policy", "check", "--batch"], ["tools", "check"]])
def test_a_bad_line_among_lines_ends_every_command_alike(tmp_path: Path, command: list[str]) -> None:
    scripted(tmp_path)
    done = codewhale_program(tmp_path, *command, stdin=b"{bad\n")
    assert (done.returncode, len(lines_of(done.stdout))) == (1, 1)
    assert lines_of(done.stdout)[0]["error"]["code"] == "bad_line"


def test_a_file_that_the_prompt_names_goes_along_and_stays_as_it_was_sent(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("first = 1\n")
    scripted(tmp_path, ANSWER)
    assert codewhale_program(tmp_path, "exec", "explain @a.py").returncode == 0
    assert sent(tmp_path) == "explain @a.py\nAttached: a.py\n```\nfirst = 1\n```"
    (tmp_path / "a.py").write_text("second = 2\n")
    before = codewhale_program(tmp_path, "sessions", "show", "latest", "--request", "1").stdout
    codewhale_program(tmp_path, "exec", "--continue", "and now?")
    after = json.loads(codewhale_program(tmp_path, "sessions", "show", "latest", "--request", "2").stdout)
    known = json.loads(before)["messages"]
    assert after["messages"][: len(known)] == known and "first = 1" in json.dumps(known)


def test_a_file_of_secrets_that_the_prompt_names_stops_it(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("KEY=hidden-value\n")
    scripted(tmp_path, ANSWER)
    done = codewhale_program(tmp_path, "exec", "explain @.env")
    assert (done.returncode, done.stdout) == (1, "")
    assert "@.env cannot be attached" in done.stderr and "remove the @ to send only the path" in done.stderr
    assert codewhale_program(tmp_path, "exec", "explain .env").returncode == 0


def test_a_message_that_may_name_one_skill_or_another_is_not_sent(tmp_path: Path) -> None:
    scripted(tmp_path, ANSWER)
    for name in ("deploy-web", "deploy-api"):
        folder = tmp_path / "state" / "skills" / name
        folder.mkdir(parents=True)
        (folder / "SKILL.md").write_text(f"---\nname: {name}\ndescription: Put it online\n---\nFirst ask.\n")
    done = codewhale_program(tmp_path, "exec", "--output-format", "json", "use $deploy")
    result = result_of(done)
    assert done.returncode == 1 and "Nothing was sent" in result["error"] and "$deploy-web" in done.stderr
    done = codewhale_program(tmp_path, "exec", "use $deploy-web")
    assert done.returncode == 0 and "Using skill: deploy-web (" in done.stderr and "First ask" not in done.stderr


# ------------------------------------------------------------------ signals, pipes, terminals


def start(home: Path, *arguments: str, **settings: Any) -> "subprocess.Popen[bytes]":
    settings = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **settings}
    return subprocess.Popen(
        [sys.executable, "-m", "codewhale", *arguments], cwd=home, env=environment(home), **settings
    )


def until(process: "subprocess.Popen[bytes]", wanted: str) -> dict[str, Any]:
    assert process.stdout is not None
    for line in process.stdout:
        found: dict[str, Any] = json.loads(line)
        if found["event"]["type"] == wanted:
            return found
    raise AssertionError(f"no {wanted}: {process.stderr and process.stderr.read()!r}")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_stops_the_turn_and_the_log_says_so(tmp_path: Path, number: signal.Signals) -> None:
    scripted(tmp_path, SLOW)
    with start(tmp_path, "exec", "--output-format", "stream-json", "hi") as process:
        until(process, "request_sent")
        process.send_signal(number)
        end = until(process, "turn_finished")
        assert end["event"]["result"]["status"] == "interrupted"
        spent = end["event"]["result"]["usage"]
        assert spent["estimated"] and spent["input"] > 1000 and spent["output"] == 0
        assert process.wait(HANG) == 130
        assert process.stderr is not None
        assert process.stderr.read() == b""
    rows = json.loads(codewhale_program(tmp_path, "sessions", "list", "--json").stdout)
    assert rows[0]["state"] == "idle"


def test_a_second_signal_ends_a_run_whose_reader_sleeps(tmp_path: Path) -> None:
    scripted(tmp_path, json.dumps({"text": "x" * 3_000_000}))
    with start(tmp_path, "exec", "hi") as process:
        assert process.stdout is not None
        select.select([process.stdout], [], [])
        process.send_signal(signal.SIGTERM)
        while process.poll() is None:
            process.send_signal(signal.SIGTERM)
            select.select([], [], [], 0.02)
        assert process.returncode == 130


def test_an_interrupted_command_leaves_nothing_running(tmp_path: Path) -> None:
    seconds = odd_seconds()
    command = f"exec sleep {seconds}"
    scripted(tmp_path, json.dumps({"calls": [{"name": "exec_shell", "arguments": {"command": command}}]}))
    with start(tmp_path, "exec", "--yolo", "--output-format", "stream-json", "hi") as process:
        until(process, "call_started")
        deadline = time.monotonic() + HANG
        while not commands("sleep", seconds):
            assert time.monotonic() < deadline
            select.select([], [], [], 0.02)
        process.send_signal(signal.SIGINT)
        assert process.wait(HANG) == 130
    assert commands("sleep", seconds) == []


def test_json_tells_an_interrupt_too(tmp_path: Path) -> None:
    scripted(tmp_path, SLOW)
    with start(tmp_path, "exec", "--output-format", "json", "hi") as process:
        state = tmp_path / "state" / "sessions"
        deadline = time.monotonic() + HANG
        while (
            not list(state.glob("*/log.jsonl")) or b"request_sent" not in next(state.glob("*/log.jsonl")).read_bytes()
        ):
            assert time.monotonic() < deadline
            select.select([], [], [], 0.02)
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=HANG)
    assert process.returncode == 130
    assert json.loads(out)["status"] == "interrupted"


def test_a_reader_that_goes_away_ends_the_run_quietly(tmp_path: Path) -> None:
    scripted(tmp_path, NOTE, '{"text":"x","delay":0.5}')
    with start(tmp_path, "exec", "--output-format", "stream-json", "hi") as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.wait(HANG) == 141
        assert process.stderr is not None
        assert process.stderr.read() == b""
    rows = json.loads(codewhale_program(tmp_path, "sessions", "list", "--json").stdout)
    assert rows[0]["state"] == "idle"


def test_a_terminal_gets_a_safe_answer_and_is_not_read(tmp_path: Path) -> None:
    scripted(tmp_path, '{"text":"a\\u001b[2Jb\\u202ec"}')
    master, slave = pty.openpty()
    with start(tmp_path, "exec", "hi", stdin=slave, stdout=slave) as process:
        assert process.wait(HANG) == 0
    os.close(slave)
    shown = os.read(master, 4096)
    os.close(master)
    assert shown == b"a\\x1b[2Jb\\u202ec\r\n"


def test_notices_go_to_stderr_alone(tmp_path: Path) -> None:
    script = scripted(tmp_path, ANSWER)
    configure(
        tmp_path,
        f'provider = "played"\nnonsense = 1\n[providers.played]\ndialect = "scripted"\nscript = "{script}"\n',
    )
    done = codewhale_program(tmp_path, "exec", "--output-format", "json", "hi")
    assert result_of(done)["status"] == "done"
    assert "nonsense is not a known key" in done.stderr
