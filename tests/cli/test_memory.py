"""`codewhale memory` as a person and a script call it."""

import json
import subprocess
from pathlib import Path

import pytest

from codewhale.memory.places import workspace_folder
from support.patience import HANG
from support.program import codewhale_program

FACTS = "# Mine\n\n- (2026-11-03 22:14 UTC) Tests run with nox. <!-- id:1a2b3c4d -->\n- Ports start at 9000.\n"


@pytest.fixture
def facts(tmp_path: Path) -> Path:
    """The file of facts of the program's home."""
    path = tmp_path / "state/memory/global/MEMORY.md"
    path.parent.mkdir(parents=True)
    (tmp_path / "state").chmod(0o700)
    path.write_text(FACTS)
    return path


def run(tmp_path: Path, workspace: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    return codewhale_program(tmp_path, "memory", *words, cwd=workspace)


def test_facts_are_listed_and_the_files_named(tmp_path: Path, workspace: Path, facts: Path) -> None:
    done = run(tmp_path, workspace, "list")
    rows = [line.split() for line in done.stdout.splitlines()]
    assert done.returncode == 0 and rows[0] == "1a2b3c4d global 2026-11-03 22:14 UTC Tests run with nox.".split()
    rows = json.loads(run(tmp_path, workspace, "list", "--json").stdout)
    assert [row["text"] for row in rows] == ["Tests run with nox.", "Ports start at 9000."]
    own = facts.parent.parent / "workspace" / workspace_folder(str(workspace)) / "MEMORY.md"
    assert run(tmp_path, workspace, "path").stdout.splitlines() == [str(facts), str(own)]


def test_what_is_not_the_persons_own_says_so(tmp_path: Path, workspace: Path, facts: Path) -> None:
    facts.write_text(
        '- Use \x1b[2Jtabs\u202e. <!-- id:2a2b3c4d from:"page.html" tainted -->\n- Use tea. <!-- tainted -->\n'
    )
    first, second = run(tmp_path, workspace, "list").stdout.splitlines()
    assert first.endswith("Use \\x1b[2Jtabs\\u202e.  (from page.html, not verified)")
    assert second.endswith("Use tea.  (from foreign text, not verified)")


def test_facts_are_found_by_their_words(tmp_path: Path, workspace: Path, facts: Path) -> None:
    done = run(tmp_path, workspace, "search", "which", "port")
    assert done.returncode == 0 and done.stdout.split(maxsplit=3)[3] == "Ports start at 9000.\n"
    assert [row["id"] for row in json.loads(run(tmp_path, workspace, "search", "nox", "--json").stdout)] == ["1a2b3c4d"]
    done = run(tmp_path, workspace, "search", "kubernetes")
    assert (done.returncode, done.stdout) == (1, "") and "nothing found" in done.stderr


def test_without_memory_nothing_is_made(tmp_path: Path, workspace: Path) -> None:
    for words in (["list"], ["path"], ["doctor"], ["doctor", "--fix"], ["doctor", "--take-over"]):
        assert run(tmp_path, workspace, *words).returncode == 0
    assert not (tmp_path / "state").exists()


def test_a_fact_goes_into_a_repository_by_a_patch(tmp_path: Path, git_workspace: Path, facts: Path) -> None:
    done = run(tmp_path, git_workspace, "promote", "1a2b")
    assert done.returncode == 0 and "1a2b3c4d" in done.stderr and "your own words" in done.stderr
    subprocess.run(["git", "apply"], cwd=git_workspace, input=done.stdout, text=True, check=True, timeout=HANG)
    assert (git_workspace / "AGENTS.md").read_text() == "- Tests run with nox.\n"
    again = run(tmp_path, git_workspace, "promote", "1a2b")
    assert again.returncode == 2 and "has this in line 1 already" in again.stderr and not again.stdout
    assert run(tmp_path, git_workspace, "promote", "ffff").returncode == 2


def test_the_exit_code_says_whether_an_error_remains(tmp_path: Path, workspace: Path, facts: Path) -> None:
    done = run(tmp_path, workspace, "doctor")
    assert (done.returncode, done.stdout) == (0, "nothing is wrong with memory\n")
    facts.chmod(0o666)
    facts.write_text(FACTS + "- Ports start at 9000.\n")
    done = run(tmp_path, workspace, "doctor")
    assert done.returncode == 1 and "open_to_others" in done.stdout and f"{facts}:5: " in done.stdout
    assert [row["code"] for row in json.loads(run(tmp_path, workspace, "doctor", "--json").stdout)["faults"]] == [
        "open_to_others", "same_fact",
    ]  # fmt: skip
    done = run(tmp_path, workspace, "doctor", "--fix")
    assert done.returncode == 0 and done.stdout.splitlines()[-1] == "nothing is wrong with memory"
    assert [line.split()[:2] for line in done.stdout.splitlines()[:2]] == [
        ["fixed", "open_to_others"], ["fixed", "same_fact"],
    ]  # fmt: skip
    assert facts.read_text() == FACTS


def test_an_older_home_is_shown_first_and_taken_over_when_asked(tmp_path: Path, workspace: Path, facts: Path) -> None:
    old = tmp_path / "person/.deepseek/memory.md"
    old.parent.mkdir(parents=True)
    old.write_text("- (2026-10-03 22:14 UTC) Use tabs.\n")
    done = run(tmp_path, workspace, "doctor")
    assert done.returncode == 0 and f"plan   {old}: 1 fact would be copied, for everything" in done.stdout
    assert facts.read_text() == FACTS
    done = run(tmp_path, workspace, "doctor", "--take-over")
    assert done.returncode == 0 and "taken over: 1 fact" in done.stdout
    assert "- (2026-10-03 22:14 UTC) Use tabs. <!-- id:" in facts.read_text()
    assert run(tmp_path, workspace, "doctor").stdout == "nothing is wrong with memory\n"


def test_law_rules_secrets_and_lost_workspaces_are_looked_at(tmp_path: Path, git_workspace: Path, facts: Path) -> None:
    (git_workspace / ".codewhale/rules").mkdir(parents=True)
    (git_workspace / ".codewhale/constitution.json").write_text('{"colour": "blue"}')
    (git_workspace / "AGENTS.md").write_text("Read `docs/setup.md`.\n")
    (git_workspace / ".codewhale/rules/one.md").write_text("See [it](gone.md).\n")
    facts.write_text(FACTS + f"- The token is ghp_{'a1B2' * 9}.\n")
    (facts.parent.parent / "workspace/0011223344556677").mkdir(parents=True)
    done = run(tmp_path, git_workspace, "doctor", "--json")
    faults = json.loads(done.stdout)["faults"]
    assert done.returncode == 1 and sorted(row["code"] for row in faults) == [
        "dead_reference", "dead_reference", "no_workspace", "secret", "unknown_law",
    ]  # fmt: skip
    assert "a1B2" not in done.stdout


def test_wrong_usage_is_told_from_a_fault(tmp_path: Path, workspace: Path) -> None:
    for words in ([], ["lost"], ["promote"], ["list", "--fix"], ["doctor", "-w", "/nowhere"]):
        done = run(tmp_path, workspace, *words)
        assert done.returncode == 2 and not done.stdout
