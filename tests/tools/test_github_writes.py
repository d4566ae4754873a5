"""github_comment and github_close_*: what a person sees is what gh is told, and nothing is sent without them."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from codewhale.display.asks import block_lines
from codewhale.display.words import words_of
from codewhale.protocol.events import ApprovalAsked, CallFinished, CallStarted, Event
from codewhale.protocol.modes import Authority, Mode
from codewhale.protocol.ops import Answer, SendMessage
from codewhale.tasks.conversation import read_conversation
from codewhale.testing import harness
from support.goodcalls import EVIDENCE
from support.jail import call, played
from support.known import know_every_tool
from support.program import codewhale_program, scripted
from support.repos import raw_git
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
    home: Path, workspace: Path, *calls: dict[str, Any], yes: bool = True, mode: Mode = Mode.YOLO
) -> tuple[list[Event], dict[str, list[object]]]:
    """The events of a turn whose person answers each ask, and what the task of that session would hold."""
    know_every_tool(home)
    script = [*({"calls": [one]} for one in calls), {"text": "Done."}]
    async with harness(home, workspace, script) as stage:
        session = await stage.open(mode=mode, authority=Authority.PERSON)
        async with watching(stage, session) as watch:
            await stage.client.submit(SendMessage(session, "Go."))
            for number, _ in enumerate(calls, 1):
                ask = await watch.until(ApprovalAsked, number)
                assert not told(there_of(ask)) or number > 1
                await stage.client.submit(Answer(session, ask.request_id, allowed=yes))
                await watch.until(CallFinished, number)
            events = list(watch.events)
        conversation = read_conversation(stage.app.parts.sessions, session)
        assert conversation is not None
        return events, conversation.updates
