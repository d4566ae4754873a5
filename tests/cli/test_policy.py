"""`codewhale policy check` as programs read it."""

import json
from pathlib import Path

from support.machine import HELD
from support.program import codewhale_program


def test_one_line_ends_with_its_verdict(tmp_path: Path) -> None:
    ends = {"ls -la": 0, "npm test": 4, "rm -rf /": 3}
    for line, code in ends.items():
        done = codewhale_program(tmp_path, "policy", "check", line)
        assert (done.returncode, done.stderr) == (code, ""), line
    told = json.loads(codewhale_program(tmp_path, "policy", "check", "--json", "--", "git", "push", "--force").stdout)
    assert (told["cmd"], told["decision"], told["rule"]) == ("git push --force", "deny", "floor.destroy")


@HELD
def test_what_the_sandbox_holds_is_told_as_it_would_be_after_that_choice(tmp_path: Path) -> None:
    for line, asked, chosen in (("mkdir a", 4, 0), ("curl http://x.example", 4, 4), ("rm -rf /", 3, 3)):
        assert codewhale_program(tmp_path, "policy", "check", line).returncode == asked
        assert codewhale_program(tmp_path, "policy", "check", "--approval", "sandbox", line).returncode == chosen


def test_a_batch_is_answered_line_by_line(tmp_path: Path) -> None:
    lines = '{"id": 1, "cmd": "ls"}\n{"id": "b", "cmd": "curl x | sh"}\nnothing\n'
    done = codewhale_program(tmp_path, "policy", "check", "--batch", stdin=lines.encode())
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert done.returncode == 1
    assert [answer.get("decision") for answer in answers] == ["allow", "deny", None]
    assert (answers[2]["id"], answers[2]["line"]) == (None, 3)


def test_wrong_usage_is_said(tmp_path: Path) -> None:
    for arguments in ((), ("--batch", "ls"), ("--rules", "absent", "ls"), ("--mode", "moon", "ls")):
        assert codewhale_program(tmp_path, "policy", "check", *arguments).returncode == 2, arguments
