"""Gates through the front door: evidence in a session, held to the same policy, and its receipt."""

import json
from pathlib import Path

from codewhale.protocol.events import CallStarted, GateRecorded
from codewhale.protocol.modes import Authority, Mode
from codewhale.testing import harness
from support.jail import call
from support.program import codewhale_program, scripted
from support.scenes import only, results

DONE = {"text": "All is green."}


def gates(*commands: str) -> str:
    return json.dumps({"calls": [call("task_gate_run", gate="test", command=command) for command in commands]})


def test_the_receipt_of_a_session_after_an_edit_of_one_byte(home: Path, workspace: Path) -> None:
    (workspace / "a.txt").write_text("one\n")
    scripted(home, gates("true"), gates("grep -q one a.txt", "echo import a report; exit 1"), json.dumps(DONE))
    assert codewhale_program(home, "exec", "--yolo", "-w", str(workspace), "Check it.").returncode == 0
    shown = codewhale_program(home, "sessions", "show", "latest").stdout
    assert "test passed: `grep -q one a.txt`, exit code 0, tree " in shown and shown.count("as they were") == 2
    assert "test failed: `echo import a report; exit 1`, exit code 1" in shown
    assert "stale: files were" not in shown
    assert "claimed, not verified: All is green." in shown and "port" not in shown.replace("import a report", "")
    (workspace / "a.txt").write_text("onE\n")
    after = codewhale_program(home, "sessions", "show", "latest").stdout
    assert after.count("stale: files were changed since") == 2 and "as they were" not in after
    (workspace / "a.txt").unlink()
    workspace.rename(workspace.with_name("gone"))
    assert codewhale_program(home, "sessions", "show", "latest").stdout.count("bound to no state") == 2


async def test_a_gate_is_held_to_what_a_command_is(home: Path, workspace: Path) -> None:
    wanted = {"calls": [call("task_gate_run", gate="custom", command="touch made")]}
    async with harness(home, workspace, [wanted, wanted, DONE] * 2) as stage:
        plan = await stage.turn("Go.", await stage.open(mode=Mode.PLAN, authority=Authority.AUTO))
        refused = await stage.turn("Go.", await stage.open(authority=Authority.HEADLESS, mode=Mode.AGENT))
    for events in (plan, refused):
        result = results(events)[-1]
        assert (result.ok, result.error) == (False, "permission_denied")
        assert not only(events, CallStarted) and not only(events, GateRecorded)
    assert not (workspace / "made").exists()


async def test_a_gate_reads_as_evidence_to_the_session(home: Path, workspace: Path) -> None:
    (workspace / "a.txt").write_text("one\n")
    secret = "sk-0123456789abcdef"
    run = {"calls": [call("task_gate_run", gate="fmt", command=f"echo {secret[:9]}''{secret[9:]}; exit 3")]}
    async with harness(home, workspace, [run, run, DONE], {"MY_API_KEY": secret}) as stage:
        events = await stage.turn("Go.", await stage.open(authority=Authority.AUTO))
    (recorded,), (result,) = only(events, GateRecorded), results(events)[-1:]
    assert (recorded.call_id, recorded.gate.exit_code, recorded.gate.classification) == (
        result.call_id, 3, "lint_failure",
    )  # fmt: skip
    assert not result.ok and json.loads(result.content)["gate"]["id"] == recorded.gate.id
    assert recorded.gate.log_path is not None
    assert Path(recorded.gate.log_path).read_text() == "[redacted MY_API_KEY]\n"
    everything = b"".join(path.read_bytes() for path in home.rglob("*") if path.is_file())
    assert secret.encode() not in everything
