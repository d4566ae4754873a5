"""A compaction loses no constraint: whoever stated it, wherever it stood, the next request says it word for word."""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from codewhale.models.dialects.base import RequestOptions
from codewhale.protocol.events import ApprovalAsked, Compacted, JobStarted, QuestionAsked, TurnFinished
from codewhale.protocol.modes import Authority, Mode
from codewhale.protocol.ops import Answer, CommandOutput, Interrupt, RunCommand, SendMessage, SetMode
from codewhale.testing import Harness, harness
from support.known import know_every_tool
from support.scenes import Watch, sent, watching

FILES = {
    "AGENTS.md": "Root rule: tabs, never spaces.",
    "inner/CLAUDE.md": "Inner rule: every commit message rhymes.",
    "inner/CONTRIBUTING.md": "Generated files under gen/ must never be edited by hand.",
    "inner/SECURITY.md": "Tokens are kept in the vault only.",
    "inner/STYLE.md": "We prefer short names.",
    "inner/README.md": "Der Ordner alt/ darf nicht verändert werden.",
    "inner/regles.md": "Il est interdit de toucher au dossier legacy.",
    "inner/shuoming.md": "构建目录禁止手工修改。",
    "inner/app.py": "# The cache MUST stay below 40 entries\nLIMIT = 40\n",
    "inner/config.ini": "; WARNING: port 8081 is reserved for the proxy\nport = 8080\n",
    "inner/log.txt": "Deploys are frozen until the release of 3.2.\n" + "x" * 70 + "\n",
}
SAID = {
    "the first message": "Whatever happens, the public API of lib7 stays as it is.",
    "a later message": "No new dependency, please; the licence audit is over.",
    "a correction": "No, not SQLite: it has to be the Postgres of staging-4.",
    "fenced context": "contract: field `amount_cents` is an integer",
    "code": "```python\nassert rate(0) == 1.25\n```",
    "Chinese": "不要修改数据库迁移文件 0042。",
    "Japanese": "テストは必ず Python 3.11 で実行してください。",
    "a message of many lines": "First this.\n  - keep the indentation of this line\nThen that.",
    "markup": "Print </compacted-ish> & <b> as they are",
}
CALLS = {
    "a plan step": "Move the parser without changing its output format v2",
    "a reason of the plan": "The order matters since fixtures depend on it",
    "an open checklist item": "Ask before deleting the folder old-data",
    "a finished checklist item": "Measured: baseline is 812 ms, stay below",
    "an added checklist item": "Run the linter with --strict-9",
    "a note": "Port 6543 belongs to the other team",
    "a refused command": "rm -r build-cache-77",
    "a write refused by the mode": "forbidden-place.txt",
    "an open question": "Which of the two regions holds the master copy?",
    "an option of a question": "eu-north, read-only on Fridays",
    "an answered question": "May the retry limit go above five?",
    "a running command": "sleep 61.25",
    "a printed rule": "ERROR: do not migrate shard 12",
    "a changed file": "fresh-module.py",
}


def call(name: str, **arguments: Any) -> dict[str, Any]:
    """A turn of a script that makes one call."""
    return {"calls": [{"name": name, "arguments": arguments}]}


def question(name: str, text: str, *options: str) -> dict[str, Any]:
    """A question with its options."""
    shown = [{"label": label, "description": label} for label in options]
    return {"id": name, "header": name, "question": text, "options": shown}


def script() -> list[dict[str, Any]]:
    """Everything that states something, then the summary that says nothing of it."""
    names = ("CONTRIBUTING.md", "SECURITY.md", "STYLE.md", "README.md", "regles.md", "shuoming.md")
    plan = [{"step": CALLS["a plan step"], "status": "in_progress"}]
    todos = [
        {"content": CALLS["an open checklist item"], "status": "pending"},
        {"content": CALLS["a finished checklist item"], "status": "completed"},
    ]
    asked = question("region", CALLS["an open question"], CALLS["an option of a question"], "us-west")
    return [
        *(call("read_file", path=name) for name in names),
        call("grep_files", pattern="MUST"),
        call("read_file", path="config.ini"),
        call("read_file", path="log.txt"),
        call("checklist_write", todos=todos),
        call("checklist_add", content=CALLS["an added checklist item"]),
        call("note", content=CALLS["a note"]),
        call("write_file", path=CALLS["a changed file"], content="x = 1\n"),
        call("exec_shell", command=f"echo '{CALLS['a printed rule']}'"),
        call("exec_shell", command=CALLS["a running command"], background=True),
        call("exec_shell", command=CALLS["a refused command"]),
        call(
            "request_user_input", questions=[question("retry", CALLS["an answered question"], "yes", "never above 5")]
        ),
        call("update_plan", plan=plan, explanation=CALLS["a reason of the plan"]),
        {"text": "Noted."},
        *({"text": "Understood."} for _ in range(len(SAID) - 2)),
        call("write_file", path=CALLS["a write refused by the mode"], content="x"),
        {"text": "I may not."},
        call("request_user_input", questions=[asked]),
        {"text": "SUMMARY: nothing of note."},
        {"text": "Next."},
        {"text": "SUMMARY: still nothing."},
        {"text": "And next."},
    ]


async def answer_all(stage: Harness, session: str, watch: Watch) -> None:
    """What the person does: refuses to remove, allows the rest, answers the first question."""
    seen: set[str] = set()
    while True:
        for event in list(watch.events):
            if isinstance(event, ApprovalAsked | QuestionAsked) and event.request_id not in seen:
                seen.add(event.request_id)
                allowed = isinstance(event, QuestionAsked) or "rm -r" not in str(event.subjects)
                said = ({"id": "retry", "label": "never above 5", "value": "never above 5"},)
                if "region" not in str(event):
                    await stage.client.submit(Answer(session, event.request_id, allowed, said))
        await asyncio.sleep(0.005)


async def run(stage: Harness, session: str, line: str) -> CommandOutput:
    """A slash command."""
    output: CommandOutput = await stage.client.submit(RunCommand(session, line))
    return output


async def talk(stage: Harness, session: str, watch: Watch, change: Callable[[], object]) -> None:
    """All that the person says, a turn each; `change` happens on the way."""
    words = [text for kind, text in SAID.items() if kind != "fenced context"]
    for number, text in enumerate(words, start=1):
        context = SAID["fenced context"] if number == 2 else ""
        await stage.client.submit(SendMessage(session, text, context))
        await watch.until(TurnFinished, number)
        change()
    await stage.client.submit(SetMode(session, Mode.PLAN))
    await stage.client.submit(SendMessage(session, "Try to write."))
    await watch.until(TurnFinished, len(words) + 1)
    await stage.client.submit(SendMessage(session, "Ask me."))
    await watch.until(QuestionAsked, 2)
    await stage.client.submit(Interrupt(session))
    await watch.until(TurnFinished, len(words) + 2)


def everything(messages: list[dict[str, Any]]) -> str:
    """All words of a request."""
    return "\n".join(str(message["content"]) for message in messages)


async def test_forty_kinds_of_constraint_are_said_word_for_word_after_a_compaction(
    home: Path, git_workspace: Path
) -> None:
    for name, text in FILES.items():
        path = git_workspace / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text + "\n", encoding="utf-8")
    (home / "AGENTS.md").write_text("Home rule: answer in one paragraph.\n")
    (home / "config.toml").write_text("[context]\nkeep_tokens = 1\n")
    know_every_tool(home)
    late = "Changed rule: spaces after all, four of them."
    async with harness(home, git_workspace / "inner", script()) as stage:
        session = await stage.open(mode=Mode.AGENT, authority=Authority.PERSON)
        async with watching(stage, session) as watch:
            person = asyncio.create_task(answer_all(stage, session, watch))
            await talk(stage, session, watch, lambda: (git_workspace / "AGENTS.md").write_text(late + "\n"))
            before = sent(stage)
            output = await run(stage, session, "/compact keep the numbers")
            assert output.ok, output.text
            await stage.client.submit(SendMessage(session, "Go on."))
            await watch.until(TurnFinished, len(SAID) + 2)
            wanted = wanted_texts(late)
            assert len(wanted) >= 30
            first = sent(stage)
            assert len(first) < len(before)
            assert [kind for kind, text in wanted.items() if text not in everything(first)] == []
            assert (await run(stage, session, "/compact")).ok
            await stage.client.submit(SendMessage(session, "Once more."))
            await watch.until(TurnFinished, len(SAID) + 3)
            second = everything(sent(stage))
            assert [kind for kind, text in wanted.items() if text not in second] == []
            assert [item.number for item in watch.events if isinstance(item, Compacted)] == [1, 2]
            assert any(isinstance(item, JobStarted) for item in watch.events)
            await undone(stage, session, before)
            person.cancel()


def wanted_texts(late: str) -> dict[str, str]:
    """Each kind of constraint and what must be said of it."""
    files = {f"file {name}": text.strip().split("\n")[0] for name, text in FILES.items()}
    marker = {"mode": "Mode: plan.", "home rules": "Home rule: answer in one paragraph.", "changed rules": late}
    refused = {"the answer of a person": "never above 5", "the open question is open": "this question is open"}
    return {**SAID, **CALLS, **files, **marker, **refused}


async def undone(stage: Harness, session: str, before: list[dict[str, Any]]) -> None:
    """Both compactions taken back: the messages are what they were, with what came later behind them."""
    assert "Compaction 2 undone" in (await run(stage, session, "/compact undo")).text
    assert "Compaction 1 undone" in (await run(stage, session, "/compact undo")).text
    assert not (await run(stage, session, "/compact undo")).ok
    live = stage.app.engine.session(session)
    assert live.projection is not None and live.state.header is not None
    messages = json.loads(live.projection.request(live.state.header, RequestOptions())[0])["messages"]
    assert messages[: len(before)] == before
    said = everything(messages[len(before) :])
    assert "Go on." in said and "Once more." in said and "SUMMARY" not in said
