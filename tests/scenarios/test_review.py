"""A change reviewed through the front door: findings as data, nothing changed, mistakes told, size bounded."""

import hashlib
import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from codewhale.commands.review import decode
from codewhale.protocol.events import ChildClosed, ChildOpened
from codewhale.protocol.modes import Authority, Mode
from codewhale.protocol.ops import CommandOutput, RunCommand, SessionStatus
from codewhale.protocol.reviews import Review
from codewhale.testing import harness
from support.program import codewhale_program, scripted
from support.tuiapp import scripted as on_screen

GIT = ["git", "-c", "user.name=Test", "-c", "user.email=test@localhost", "-c", "init.defaultBranch=main"]
LOW = {"file": "notes.md", "line": 0, "severity": "low", "title": "A typo"}
HIGH = {"file": "basket.py", "line": 2, "severity": "high", "title": "Adds the discount", "detail": "Take it off."}
REVIEW = json.dumps({"summary": "One real mistake.", "findings": [LOW, HIGH]})


def git(folder: Path, *words: str) -> None:
    subprocess.run([*GIT, *words], cwd=folder, check=True, capture_output=True)


def repository(folder: Path) -> Path:
    """A repository with a commit on main, one on a branch, one file staged, one changed and one new."""
    folder.mkdir(exist_ok=True)
    git(folder, "init")
    (folder / "basket.py").write_text("def total(prices):\n    return sum(prices)\n")
    git(folder, "add", "-A")
    git(folder, "commit", "-m", "one")
    git(folder, "switch", "-c", "feature")
    (folder / "feature.py").write_text("of_the_branch = 1\n")
    git(folder, "add", "-A")
    git(folder, "commit", "-m", "two")
    git(folder, "switch", "main")
    (folder / "staged.py").write_text("is_staged = 1\n")
    git(folder, "add", "staged.py")
    (folder / "basket.py").write_text("def total(prices):\n    return sum(prices) + 1\n")
    (folder / "fresh.py").write_text("is_new = 1\n")
    return folder


def state_of(folder: Path) -> dict[str, str]:
    files = [path for path in folder.rglob("*") if path.is_file() and path.name != "index"]
    return {str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def program(tmp_path: Path, *words: str, turns: tuple[Any, ...] = (REVIEW,), **more: Any) -> Any:
    folder = tmp_path / "shop"
    if not folder.exists():
        repository(folder)
    scripted(tmp_path, *(json.dumps({"text": turn} if isinstance(turn, str) else turn) for turn in turns))
    return codewhale_program(tmp_path, "review", *words, cwd=more.pop("cwd", folder), **more)


def sent(tmp_path: Path) -> str:
    """What the model was asked at first."""
    rows = json.loads(codewhale_program(tmp_path, "sessions", "list", "--all", "--children", "--json").stdout)
    reader = max((row for row in rows if row["owner"]), key=lambda row: str(row["updated"]))
    body = codewhale_program(tmp_path, "sessions", "show", reader["id"], "--request", "1").stdout
    return str(json.loads(body)["messages"])


def test_findings_are_data_and_the_tree_stays_as_it_is(tmp_path: Path) -> None:
    folder = repository(tmp_path / "shop")
    before = state_of(folder)
    write = {"calls": [{"name": "write_file", "arguments": {"path": "basket.py", "content": "x"}}]}
    shell = {"calls": [{"name": "exec_shell", "arguments": {"command": "touch made"}}]}
    done = program(tmp_path, "--json", turns=(write, shell, f"Here it is:\n```json\n{REVIEW}\n```\nThat is all."))
    found = json.loads(done.stdout)
    assert (done.returncode, found["exit_code"], found["status"], found["schema_version"]) == (0, 0, "done", 1)
    assert found["findings"] == [HIGH, {**LOW, "detail": ""}]
    assert found["summary"] == "One real mistake." and found["cut"] == [] and found["usage"]["input"] > 0
    assert state_of(folder) == before


def test_as_a_list_with_the_gravest_first(tmp_path: Path) -> None:
    done = program(tmp_path)
    assert done.returncode == 0
    assert done.stdout.splitlines()[:5] == [
        "2 findings in the changes since the last commit.", "One real mistake.", "",
        "high     basket.py:2  Adds the discount", "  Take it off.",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("words", "holds", "lacks"),
    [
        ([], ["prices) + 1", "is_new", "is_staged"], ["of_the_branch"]),
        (["diff"], ["prices) + 1"], ["of_the_branch"]),
        (["--staged"], ["is_staged"], ["prices) + 1", "is_new"]),
        (["feature"], ["of_the_branch"], ["prices) + 1", "is_staged"]),
        (["main..feature"], ["of_the_branch"], ["is_staged"]),
        (["--path", "fresh.py"], ["is_new"], ["prices) + 1"]),
        (["--base", "main~0"], [], []),
    ],
)
def test_what_is_read(tmp_path: Path, words: list[str], holds: list[str], lacks: list[str]) -> None:
    done = program(tmp_path, *words, "--json")
    assert done.returncode == 0, done.stderr
    if not holds:
        assert json.loads(done.stdout)["summary"] == "There is nothing to review."
        return
    asked = sent(tmp_path)
    assert all(text in asked for text in holds) and not any(text in asked for text in lacks)


def test_on_a_branch_its_base_is_what_it_left(tmp_path: Path) -> None:
    folder = repository(tmp_path / "shop")
    git(folder, "stash", "-u")
    git(folder, "switch", "feature")
    for words in (["main"], ["--base", "main"]):
        assert program(tmp_path, *words).returncode == 0
        assert "of_the_branch" in sent(tmp_path)


def test_a_pull_request_as_text_needs_no_repository(tmp_path: Path) -> None:
    bare = tmp_path / "bare"
    bare.mkdir()
    done = program(tmp_path, "-", "--json", cwd=bare, stdin=b"Fix the basket\n\n+    return total\n")
    assert json.loads(done.stdout)["target"] == "the given text" and "Fix the basket" in sent(tmp_path)


def test_a_wrong_answer_is_asked_for_once_more_and_then_fails(tmp_path: Path) -> None:
    bad = json.dumps({"findings": [{**HIGH, "severity": "awful"}]})
    done = program(tmp_path, "--json", turns=(bad, REVIEW))
    assert len(json.loads(done.stdout)["findings"]) == 2
    done = program(tmp_path, "--json", turns=(bad, "I like it.", REVIEW))
    found = json.loads(done.stdout)
    assert (done.returncode, found["status"], found["findings"]) == (1, "failed", [])
    assert "did not answer with a review, even when asked again" in found["error"]
    done = program(tmp_path, turns=("no", "no"))
    assert (done.returncode, done.stdout) == (1, "") and "even when asked again" in done.stderr


@pytest.mark.parametrize(("level", "code"), [("critical", 0), ("high", 3), ("low", 3)])
def test_grave_findings_end_it_with_3_where_that_is_wanted(tmp_path: Path, level: str, code: int) -> None:
    done = program(tmp_path, "--json", "--fail-on", level)
    assert (done.returncode, json.loads(done.stdout)["exit_code"]) == (code, code)


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["no-such-branch"], "there is no branch or commit 'no-such-branch'"),
        (["--base", "nope"], "there is no branch or commit 'nope'"),
        (["main..nope"], "there is no branch or commit 'nope'"),
        (["https://host.invalid/pull/1"], "addresses are not fetched"),
        (["--max-chars", "0"], "not a whole number above 0"),
        (["--staged", "main"], "not allowed with"),
        (["-"], "the text on stdin is empty"),
        (["--base", "--output=x"], "expected one argument"),
        (["--path", "../elsewhere"], "elsewhere"),
    ],
)
def test_a_target_that_is_not_there_is_named_with_2(tmp_path: Path, words: list[str], why: str) -> None:
    done = program(tmp_path, *words, stdin=b"" if words == ["-"] else None)
    assert (done.returncode, done.stdout) == (2, ""), (done.stdout, done.stderr)
    assert why in done.stderr


def test_outside_a_repository_it_says_what_to_do(tmp_path: Path) -> None:
    bare = tmp_path / "bare"
    bare.mkdir()
    done = program(tmp_path, cwd=bare)
    assert done.returncode == 2 and "is not a git repository; pass the change as text" in done.stderr


def test_what_is_too_large_is_said(tmp_path: Path) -> None:
    folder = repository(tmp_path / "shop")
    (folder / "big.py").write_text("x = 1\n" * 5_000)
    done = program(tmp_path, "--json", "--max-chars", "2000")
    cut = json.loads(done.stdout)["cut"]
    assert any(line.startswith("big.py: ") and "characters were read" in line for line in cut), cut
    assert any(line.endswith("not read") for line in cut)
    assert len(sent(tmp_path)) < 40_000
    assert "Not reviewed, too large:" in program(tmp_path, "--max-chars", "2000").stdout


async def test_the_command_reads_beside_the_session_and_tells_it(home: Path, workspace: Path) -> None:
    repository(workspace)
    async with harness(home, workspace, [{"text": REVIEW}, {"text": "I fix the first."}]) as here:
        session = await here.open(mode=Mode.AGENT, authority=Authority.PERSON)
        output: CommandOutput = await here.client.submit(RunCommand(session, "/review"))
        assert output.ok and "basket.py:2" in output.text
        await here.turn("Fix the first", session)
        assert "Adds the discount" in here.provider.requests[-1].decode()
        status = await here.client.query(SessionStatus(session))
        assert (status.mode, status.turns) == (Mode.AGENT, 1)
        log = [envelope.event for envelope in here.app.engine.session(session).log.read()]
        (opened,) = [event for event in log if isinstance(event, ChildOpened)]
        (closed,) = [event for event in log if isinstance(event, ChildClosed)]
        assert opened.child == closed.child and closed.status == "done"
        wrong: CommandOutput = await here.client.submit(RunCommand(session, "/review nothing-there"))
        assert wrong.misused and "no branch or commit" in wrong.text


async def test_escape_ends_a_review_on_the_screen(tmp_path: Path) -> None:
    folder = repository(tmp_path / "shop")
    async with on_screen(tmp_path / "home", folder, [{"text": REVIEW, "delay": 600}]) as stage:
        await stage.type("/review")
        await stage.pilot.press("escape", "enter") if stage.app.composer.choosing else await stage.pilot.press("enter")
        await stage.until(lambda: stage.app.status.facts.children)
        await stage.until("Running: review")
        await stage.pilot.press("escape")
        await stage.until("ended early (interrupted)")
        await stage.until(lambda: not stage.app.status.facts.busy)


async def test_a_review_ends_when_its_time_is_over(home: Path, workspace: Path) -> None:
    repository(workspace)
    async with harness(home, workspace, [{"text": REVIEW, "delay": 600}]) as here:
        session = await here.open(mode=Mode.AGENT, authority=Authority.PERSON)
        result = await here.client.submit(Review(session, max_seconds=0.5))
        assert (result.status, result.exit_code) == ("budget", 4) and "time limit" in result.error


@pytest.mark.parametrize("text", ["", "fine", "{", '{"findings": 3}', '{"findings": [{}]}', "[" * 100_000, '{"x": 1}'])
def test_what_is_no_review(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        decode(text)


def test_a_review_among_words_with_braces_before_it() -> None:
    assert len(decode(f"Read it.\n```json\n{REVIEW}\n```\nSee {{basket}}.").findings) == 2
    assert decode('{"findings": []}').findings == ()
