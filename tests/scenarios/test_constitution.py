"""A project's constitution through the front door: nothing before it is trusted, then its holds in every mode."""

import json
from pathlib import Path

from support.program import codewhale_program, scripted
from support.repos import make_repo, write

WRITE = '{"calls":[{"name":"write_file","arguments":{"path":"gen/a.txt","content":"x\\n"}}]}'
LAW = {"protected_invariants": [{"text": "made by make", "paths": ["gen/**"], "action": "block"}]}


def test_a_trusted_law_holds_even_in_yolo_and_names_its_row(tmp_path: Path) -> None:
    work = tmp_path / "work"
    write(work, {".codewhale/constitution.json": json.dumps(LAW)})
    scripted(tmp_path, WRITE, '{"text":"done"}')
    done = codewhale_program(tmp_path, "exec", "-w", str(work), "--yolo", "hi")
    assert (work / "gen" / "a.txt").exists() and "constitution.json is ignored: not trusted" in done.stderr
    (work / "gen" / "a.txt").unlink()
    assert codewhale_program(tmp_path, "trust", "add", "-w", str(work)).returncode == 0
    scripted(tmp_path, WRITE, '{"text":"done"}')
    done = codewhale_program(tmp_path, "exec", "-w", str(work), "--yolo", "--output-format", "stream-json", "hi")
    assert not (work / "gen" / "a.txt").exists()
    assert "(rule constitution.1)" in done.stdout and "made by make" in done.stdout


def test_policy_check_shows_what_it_holds(tmp_path: Path) -> None:
    work = tmp_path / "work"
    write(work, {".codewhale/constitution.json": json.dumps(LAW)})
    assert codewhale_program(tmp_path, "trust", "add", "-w", str(work)).returncode == 0
    told = codewhale_program(tmp_path, "policy", "check", "--json", "--", "rm", "gen/a.txt", cwd=work)
    assert json.loads(told.stdout)["rule"] == "constitution.1" and told.returncode == 3
    write(work, {".codewhale/constitution.json": '{"protected_invariants": [3]}'})
    assert codewhale_program(tmp_path, "trust", "add", "-w", str(work)).returncode == 0
    told = codewhale_program(tmp_path, "policy", "check", "rm", "x", cwd=work)
    assert told.returncode == 2 and "protected_invariants[1]: must be" in told.stderr


def test_the_flag_lets_a_clause_through_once_and_a_wrong_one_is_named(tmp_path: Path) -> None:
    work = tmp_path / "work"
    law = {"protected_invariants": [{**LAW["protected_invariants"][0], "id": "GEN"}]}
    write(work, {".codewhale/constitution.json": json.dumps(law)})
    assert codewhale_program(tmp_path, "trust", "add", "-w", str(work)).returncode == 0
    scripted(tmp_path, WRITE, WRITE.replace("a.txt", "b.txt"), '{"text":"done"}')
    done = codewhale_program(tmp_path, "exec", "-w", str(work), "--allow-clause", "GEN", "hi")
    assert (work / "gen" / "a.txt").exists() and not (work / "gen" / "b.txt").exists()
    assert "GEN of the project's constitution was let through once" in done.stderr
    wrong = codewhale_program(tmp_path, "exec", "-w", str(work), "--allow-clause", "C1", "hi")
    assert wrong.returncode == 2 and "no clause 'C1'" in wrong.stderr and "those that block are GEN" in wrong.stderr


def test_the_end_of_a_turn_and_its_receipt_say_what_was_not_verified(tmp_path: Path) -> None:
    work = tmp_path / "work"
    rows = [{"id": "T", "text": "the tests pass", "command": "sh check.sh"}, "Think."]
    law = json.dumps({"verification_policy": {"before_claiming_done": rows}})
    make_repo(work, {".codewhale/constitution.json": law, "check.sh": "exit 0\n", "a.txt": "a\n"})
    assert codewhale_program(tmp_path, "trust", "add", "-w", str(work)).returncode == 0
    run = ("exec", "-w", str(work), "--yolo", "--output-format")
    edit = WRITE.replace("gen/a.txt", "a.txt")
    change = '{"calls":[{"name":"exec_shell","arguments":{"command":"sh check.sh && echo b > b.txt"}}]}'
    check = '{"calls":[{"name":"exec_shell","arguments":{"command":"true && sh check.sh"}}]}'
    done = '{"text":"done"}'
    scripted(tmp_path, edit, done)
    shown = codewhale_program(tmp_path, *run, "text", "hi")
    assert "Not verified since the last change" in shown.stderr and "sh check.sh (T: the tests pass)" in shown.stderr
    scripted(tmp_path, edit, check, change, done)
    missing = json.loads(codewhale_program(tmp_path, *run, "json", "hi").stdout)
    assert missing["unverified"] == [{"clause": "T", "text": "the tests pass", "command": "sh check.sh"}]
    assert list(missing)[5:9] == ["tools", "changes", "unverified", "usage"]
    resume = ("--resume", missing["session_id"])
    scripted(tmp_path, done)
    assert json.loads(codewhale_program(tmp_path, *run, "json", *resume, "hi").stdout)["unverified"] != []
    scripted(tmp_path, check, done)
    shown = codewhale_program(tmp_path, *run, "json", *resume, "hi")
    assert json.loads(shown.stdout)["unverified"] == [] and "Not verified" not in shown.stderr
