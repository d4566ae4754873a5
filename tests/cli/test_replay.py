"""`codewhale sessions replay` and `sessions import` as people and programs see them."""

import json
import re
from pathlib import Path

from support.program import codewhale_program, configure, scripted

CALLS = '{"calls":[{"name":"read-file","arguments":"{\\"file_path\\": \\"a.txt\\",}"}]}'
SESSION = {
    "schema_version": 1,
    "metadata": {"id": "0f", "title": "Old \x1b[2J one", "model": "deepseek-v4-pro", "mode": "agent"},
    "messages": [
        {"role": "user", "content": "begin"},
        {
            "role": "assistant",
            "content": "waiting",
            "tool_calls": [{"id": "a", "function": {"name": "exec_wait", "arguments": '{"task_id": "shell_1"}'}}],
        },
        {"role": "tool", "tool_call_id": "a", "content": "over \x1b]0;x\x07"},
        {"role": "assistant", "content": "done"},
    ],
}


def test_replay_of_a_real_session(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\n")
    scripted(tmp_path, CALLS, '{"text":"done"}')
    assert codewhale_program(tmp_path, "exec", "look").returncode == 0
    shown = codewhale_program(tmp_path, "sessions", "show", "latest").stdout
    assert re.search(
        r'^\[repaired N\d P1( A4)?\] received as read-file \{"file_path": "a.txt",\}$', shown, re.MULTILINE
    )
    assert "repaired" not in codewhale_program(tmp_path, "sessions", "show", "latest", "--messages").stdout
    done = codewhale_program(tmp_path, "sessions", "replay", "latest", "--run-reads")
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert lines[0] == "1. read-file -> read_file"
    assert '   arguments  {"path":"a.txt"}' in lines
    assert "   now        the same" in lines
    assert lines[-1].startswith(
        "1 calls: 1 understood (1 by another name, 1 repaired), 0 refused, 0 with another outcome;"
    )
    rows = codewhale_program(tmp_path, "sessions", "replay", "latest", "--json").stdout
    assert rows.isascii()
    assert json.loads(rows)["canonical"] == "read_file"


def test_import_then_replay(tmp_path: Path) -> None:
    configure(tmp_path, "")
    file = tmp_path / "old.json"
    file.write_text(json.dumps(SESSION))
    done = codewhale_program(tmp_path, "sessions", "import", str(file))
    assert done.returncode == 0
    assert "exec_wait -> exec_shell_wait (1)" in done.stderr
    session = done.stdout.strip()
    replay = codewhale_program(tmp_path, "sessions", "replay", session)
    assert replay.returncode == 0
    assert "exec_wait (hidden) -> exec_shell_wait" in replay.stdout
    assert "nothing was run" in replay.stdout
    people = codewhale_program(tmp_path, "sessions", "show", session).stdout + replay.stdout + done.stderr
    assert "\x1b" not in people
    listed = json.loads(codewhale_program(tmp_path, "sessions", "list", "--json").stdout)
    assert [(row["id"], row["turns"], row["model"]) for row in listed] == [(session, 1, "deepseek-v4-pro")]


def test_files_that_cannot_be_imported(tmp_path: Path) -> None:
    configure(tmp_path, "")
    missing = codewhale_program(tmp_path, "sessions", "import", "none.json")
    assert (missing.returncode, missing.stdout) == (2, "")
    (tmp_path / "newer.json").write_text('{"schema_version": 2, "messages": []}')
    newer = codewhale_program(tmp_path, "sessions", "import", "newer.json")
    assert (newer.returncode, newer.stdout) == (1, "")
    assert "schema_version is 2" in newer.stderr
    assert codewhale_program(tmp_path, "sessions", "replay", "latest").returncode == 2
