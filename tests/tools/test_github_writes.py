"""github_comment and github_close_*: what a person sees is what gh is told, and nothing is sent without them."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from codewhale.display.asks import block_lines
from codewhale.display.words import Words
from codewhale.protocol.events import ApprovalAsked, CallFinished, CallStarted, Event
from codewhale.protocol.modes import Authority, Mode
from codewhale.protocol.ops import Answer, SendMessage
from codewhale.tasks.conversation import read_conversation
from codewhale.testing import harness
from support.goodcalls import EVIDENCE
from support.jail import call, played
from support.known import know_every_tool
from support.program import codewhale_program, scripted
from support.scenes import only, results, watching
from support.sounds import program

GH = """printf '%s ' "$@" >> {there}/asked; echo >> {there}/asked
case "$1 $2" in
  "api repos/a/q/issues/13") echo 'error connecting to api.github.com' >&2; exit 1;;
  "api repos/a/q/issues/14") echo 'To get started with GitHub CLI, please run:  gh auth login' >&2; exit 4;;
  api*) cat {there}/"$(basename "$2").json";;
  *comment) cat > {there}/body; echo https://github.com/a/q/issues/$3#issuecomment-1;;
  *close) test ! -e {there}/broken || {{ echo 'HTTP 502' >&2; exit 1; }}; echo Closed >&2;;
esac"""
BODY = "It is fixed in `1a2b3c4`.\n\n<!-- seen --> $(touch PWNED) 'x'"
WORDS = Words("en")
CLOSE: dict[str, Any] = {"number": 12, "repo": "a/q", "acceptance_criteria": ["it starts"], "evidence": EVIDENCE}
COMMENT: dict[str, Any] = {"target": "issue", "number": 12, "repo": "a/q", "body": BODY, "evidence": EVIDENCE}


@pytest.fixture
def there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "bin"
    program(folder, "gh", GH.format(there=folder))
    for number, more in ((12, {}), (7, {"pull_request": {"url": "x"}}), (9, {"state": "closed"})):
        row = {"number": number, "title": "It crashes", "state": "open", "html_url": f"https://github.com/a/q/{number}"}
        (folder / f"{number}.json").write_text(json.dumps({**row, **more}))
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    return folder


def told(there: Path) -> list[str]:
    """What gh was told that changes anything."""
    asked = there / "asked"
    lines = asked.read_text().splitlines() if asked.exists() else []
    return [line.strip() for line in lines if not line.startswith("api ")]


async def asked(
    home: Path, workspace: Path, there: Path, *calls: dict[str, Any], yes: bool = True
) -> tuple[list[Event], dict[str, list[object]]]:
    """The events of a turn in yolo mode whose person answers each ask, and what the task of that session would hold."""
    know_every_tool(home)
    async with harness(home, workspace, [*({"calls": [one]} for one in calls), {"text": "Done."}]) as stage:
        session = await stage.open(mode=Mode.YOLO, authority=Authority.PERSON)
        async with watching(stage, session) as watch:
            await stage.client.submit(SendMessage(session, "Go."))
            for number, _ in enumerate(calls, 1):
                before = told(there)
                ask = await watch.until(ApprovalAsked, number)
                assert ask.offer is None and told(there) == before
                await stage.client.submit(Answer(session, ask.request_id, allowed=yes))
                await watch.until(CallFinished, number)
            events = list(watch.events)
        conversation = read_conversation(stage.app.parts.sessions, session)
        assert conversation is not None
        return events, conversation.updates


def shown(ask: ApprovalAsked, words: Words = WORDS) -> str:
    return "\n".join("".join(text for text, _ in line) for one in ask.display for line in block_lines(one, 200, words))


async def test_a_comment_is_sent_as_it_was_shown(home: Path, workspace: Path, there: Path) -> None:
    events, updates = await asked(home, workspace, there, call("github_comment", **COMMENT))
    (ask,), (result,) = only(events, ApprovalAsked), results(events)
    for line in (*BODY.split("\n"), "issue #12 of a/q", "It crashes", "make test: passed", "kept, not sent"):
        assert line in shown(ask)
    for line in ("目标 │ issue #12 of a/q", "标题 │ It crashes", "保留，不发送", "运行的测试 │ make test: passed"):
        assert line in shown(ask, Words("zh-Hans"))
    assert (there / "body").read_text() == BODY and not (workspace / "PWNED").exists()
    assert told(there) == ["issue comment 12 --repo a/q --body-file -"]
    (event,) = updates["github_event"]
    assert isinstance(event, dict) and event == result.metadata["task_updates"]["github_event"]
    assert event["id"].startswith("gh_") and len(event["id"]) == 11 and event["url"].endswith("12#issuecomment-1")
    assert (event["action"], event["target"], event["number"]) == ("comment", "issue", 12)
    assert event["summary"] == "commented on issue #12 of a/q: It starts." and event["recorded_at"].endswith("Z")


async def test_closing_says_what_of_it_was_done(home: Path, workspace: Path, there: Path) -> None:
    pr = call("github_close_pr", **{**CLOSE, "number": 7})
    events, updates = await asked(home, workspace, there, call("github_close_issue", **CLOSE), pr)
    assert [result.ok for result in results(events)] == [True, True]
    assert told(there) == ["issue close 12 --repo a/q --reason completed", "pr close 7 --repo a/q"]
    assert "it starts" in shown(only(events, ApprovalAsked)[0]) and len(updates["github_event"]) == 2
    assert "pull request #7" in results(events)[1].content
    (there / "broken").touch()
    (home / "config.toml").unlink()
    events, updates = await asked(home, workspace, there, call("github_close_issue", **CLOSE, comment="Bye."))
    (result,) = results(events)
    assert not result.ok and "HTTP 502" in result.content and "comment was sent before: https://" in result.content
    assert not updates


async def test_nothing_is_sent_by_a_dry_run_or_a_no(home: Path, workspace: Path, there: Path) -> None:
    events, updates = await asked(home, workspace, there, call("github_comment", **COMMENT, dry_run=True))
    (dry,) = results(events)
    assert dry.ok and "Nothing was sent" in dry.content and "issue" in dry.content and dry.metadata["sent"] is False
    (home / "config.toml").unlink()
    events, _ = await asked(home, workspace, there, call("github_comment", **COMMENT), yes=False)
    assert results(events)[0].error == "permission_denied" and only(events, CallStarted) == []
    assert told(there) == [] and not updates


@pytest.mark.parametrize("row", ["", 'host = "api.github.com"', 'tool = "github_comment"'])
def test_where_nobody_is_there_only_a_row_that_names_the_tool_allows(row: str, tmp_path: Path, there: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    turn = json.dumps({"calls": [call("github_comment", **COMMENT)]})
    scripted(tmp_path, json.dumps({"calls": [call("tool_search_tool_regex", query="^github_comment")]}), turn,
             json.dumps({"text": "Done."}))  # fmt: skip
    state = tmp_path / "state"
    (state / "permissions.toml").write_text(f'[[rules]]\naction = "allow"\n{row}\n' if row else "")
    done = codewhale_program(tmp_path, "exec", "--yolo", "--output-format", "json", "-w", str(work), "Go.")
    assert done.returncode == (0 if "github_comment" in row else 3), done.stderr
    assert bool(told(there)) == ("github_comment" in row)
    shown = codewhale_program(tmp_path, "sessions", "show", "latest", "--messages").stdout
    assert ("a rule in permissions.toml that allows github_comment" in shown) == (not told(there))


async def test_what_cannot_be_sent_is_said(home: Path, git_workspace: Path, there: Path) -> None:
    secret = "hidden-0123456789abcdef"
    (git_workspace / "new.txt").write_text("x")
    dirty = call("github_close_issue", **CLOSE)
    clean = {**CLOSE, "allow_dirty": True}
    wanted = {
        "new.txt": dirty,
        "is a pull request": call("github_close_issue", **{**clean, "number": 7}),
        "github_close_issue": call("github_close_pr", **clean),
        "closed already": call("github_close_issue", **{**clean, "number": 9}),
        "target pr": call("github_comment", **{**COMMENT, "number": 7}),
        "look at the network": call("github_comment", **{**COMMENT, "number": 13}),
        "gh auth login": call("github_comment", **{**COMMENT, "number": 14}),
        "a secret": call("github_comment", **{**COMMENT, "body": f"It is {secret}"}),
        "nobody sees": call("github_comment", **{**COMMENT, "body": "a\u202eb"}),
        "body": call("github_comment", **{**COMMENT, "body": " \n"}),
        "acceptance_criteria": call("github_close_issue", **{**clean, "acceptance_criteria": [" "]}),
        "evidence": call("github_comment", **{**COMMENT, "evidence": {"files_changed": [], "tests_run": []}}),
        "files_changed": call("github_comment", **{**COMMENT, "evidence": {**EVIDENCE, "files_changed": [{}]}}),
    }
    (home / "permissions.toml").write_text('[[rules]]\naction = "allow"\ntool = "github_*"\n')
    found = await played(
        home, git_workspace, *wanted.values(), environ={"MY_TOKEN": secret}, mode=Mode.AGENT, authority=Authority.AUTO
    )
    for words, result in zip(wanted, found, strict=True):
        assert not result.ok and words in result.content, (words, result.content)
    assert found[0].metadata["dirty_status"] == ["?? new.txt"] and told(there) == []
