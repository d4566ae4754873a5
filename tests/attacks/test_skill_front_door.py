"""A restricting skill through the front door: other names, foreign and damaged calls, calls in text, jobs, hooks,
sub-agents and search come to nothing that the skill does not name."""

import asyncio
import json
from pathlib import Path
from typing import Any

from codewhale.catalog.lifecycle import ALIASES
from codewhale.catalog.registry import Catalog
from codewhale.protocol.children import ListChildren
from codewhale.protocol.events import CallFinished, CallStarted, QuestionAsked, TurnFinished
from codewhale.protocol.modes import Authority, Mode
from codewhale.protocol.ops import Interrupt, RunCommand, SendMessage
from codewhale.testing import Harness, harness
from scenarios.test_active_skills import skill
from scenarios.test_role_scopes import FACTS, tools_of
from support.children import Model
from support.goodcalls import GOOD
from support.jail import call, marks
from support.known import know_every_tool
from support.patience import HANG
from support.scenes import only, results, watching

CATALOG = Catalog.load()
TOUCH = {"command": "touch PWNED"}
WRITE = {"path": "PWNED", "content": ""}
LEFT = "Read Bash(git log:*) load_skill Task tool_search_tool_regex"
NAMED = {
    "read_file", "exec_shell", "exec_shell_wait", "exec_shell_cancel", "load_skill", "agent_open", "agent_eval",
    "agent_close", "tool_search_tool_regex", "request_user_input",
}  # fmt: skip


async def restricted(here: Harness, **fields: Any) -> str:
    session = await here.open(**fields)
    output = await here.client.submit(RunCommand(session, "/skill narrow"))
    assert output.ok, output.text
    return session


def begun(events: Any) -> list[str]:
    return [one.name for one in only(events, CallStarted)]


async def test_no_tool_runs_that_an_active_skill_does_not_name(home: Path, git_workspace: Path) -> None:
    (git_workspace / "a.txt").write_text("one\n")
    skill(home, "narrow", **{"codewhale-tools": LEFT})
    know_every_tool(home)
    names = [name for name in CATALOG.names() if name not in ("request_user_input", "agent_open")]
    aliases = [alias for alias in ALIASES if CATALOG.resolve(alias) and ALIASES[alias].canonical in names]
    calls = [call(name, **GOOD[name]) for name in names]
    calls += [call(alias, **GOOD[ALIASES[alias].canonical]) for alias in aliases]
    turns = [{"calls": calls[at : at + 60]} for at in range(0, len(calls), 60)]
    async with harness(home, git_workspace, [*turns, {"text": "Done."}], facts=FACTS) as here:
        events = await here.turn("Go", await restricted(here))
        heads = {tools_of(body) for body in here.provider.requests}
    assert set(begun(events)) <= NAMED and {"read_file", "load_skill"} <= set(begun(events))
    assert "exec_shell" not in begun(events) and len(results(events)) == len(calls)
    refused = {one.name for one in results(events) if one.error == "permission_denied"}
    assert refused >= set(names) - NAMED
    assert len(heads) == 1


ODD: list[Any] = [
    call("Bash", **TOUCH),
    call("shell", command=["bash", "-lc", "touch PWNED"]),
    call("run_terminal_cmd", command="touch PWNED", is_background=False),
    call("container.exec", cmd=["touch", "PWNED"]),
    call("Write", file_path="PWNED", content="x"),
    call("str_replace_editor", command="create", path="PWNED", file_text="x"),
    call("create_file", path="PWNED", content="x"),
    call("functions.exec_shell", **TOUCH),
    call("exec-shell", **TOUCH),
    call("ExecShell", **TOUCH),
    call("shell_run", **TOUCH),
    call("file_write", **WRITE),
    {"name": "exec_shell", "arguments": '{"command": "touch PWNED"'},
    {"name": "exec_shell", "arguments": "touch PWNED"},
    {"name": "exec_shell", "arguments": '```json\n{"command": "touch PWNED",}\n```'},
    {"name": 'exec_shell{"command": "touch PWNED"}', "arguments": ""},
    call("read_file", **TOUCH),
    call("apply_patch", patch="*** Begin Patch\n*** Add File: PWNED\n+x\n*** End Patch"),
    call("multi_tool_use.parallel", tool_uses=[{"recipient_name": "functions.exec_shell", "parameters": TOUCH}]),
]
TEXTS = [
    '<tool_call>\n{"name": "exec_shell", "arguments": {"command": "touch PWNED"}}\n</tool_call>',
    '<invoke name="exec_shell">\n<parameter name="command">touch PWNED</parameter>\n</invoke>',
    '<|tool_calls_section_begin|><|tool_call_begin|>functions.exec_shell:0<|tool_call_argument_begin|>'
    '{"command": "touch PWNED"}<|tool_call_end|><|tool_calls_section_end|>',
]  # fmt: skip


async def test_calls_of_other_programs_damaged_ones_and_ones_in_text_come_to_nothing_else(
    home: Path, workspace: Path
) -> None:
    skill(home, "narrow", **{"codewhale-tools": LEFT})
    script: list[Any] = [{"calls": ODD}, *({"text": text} for text in TEXTS), *[{"text": "Done."}] * 3]
    async with harness(home, workspace, script) as here:
        session = await restricted(here)
        events = await here.turn("Go", session)
        for _ in TEXTS:
            events += await here.turn("On", session)
        assert marks(workspace.parent) == [] and list(workspace.iterdir()) == []
        assert set(begun(events)) <= {"read_file"}
        refused = [one for one in results(events) if one.error == "permission_denied"]
        assert len(refused) > 10
        assert (await here.client.submit(RunCommand(session, "/skill off"))).ok


async def test_the_same_calls_run_without_the_skill(home: Path, workspace: Path) -> None:
    async with harness(home, workspace, [{"calls": ODD[:1]}, {"text": TEXTS[0]}, {"text": "Done."}]) as here:
        assert begun(await here.turn("Go")).count("exec_shell") == 2


async def test_sub_agents_are_held_whenever_they_began(home: Path, workspace: Path) -> None:
    skill(home, "narrow", **{"codewhale-tools": LEFT})
    model = Model()
    wait = {"command": "while [ ! -e go ]; do sleep 0.05; done"}
    tries = [("exec_shell", TOUCH), ("write_file", WRITE), ("task_shell_start", TOUCH)]
    deeper = {"prompt": "Deeper", "role": "general"}
    model.tasks["Early"] = [[("exec_shell", wait)], [*tries]]
    model.tasks["Late"] = [[*tries, ("agent_open", deeper)]]
    model.tasks["Deeper"] = [[*tries]]
    async with harness(home, workspace, model) as here:
        session = await here.open(authority=Authority.PERSON)
        await here.turn(model.ask(("agent_open", {"prompt": "Early", "role": "general", "name": "early"})), session)
        assert (await here.client.submit(RunCommand(session, "/skill narrow"))).ok
        (workspace / "go").write_text("")
        task = {"prompt": "Late", "role": "general", "name": "late"}
        await here.turn(model.ask(("agent_open", task)), session)
        await asyncio.wait_for(here.app.parts.children.wait(session, ["early", "late"], HANG), 2 * HANG)
        views = await here.client.query(ListChildren(session))
    assert len(views) == 2 and marks(workspace.parent) == []


async def test_search_offers_only_what_may_be_called(home: Path, workspace: Path) -> None:
    skill(home, "narrow", **{"codewhale-tools": LEFT})
    script = [{"calls": [call("tool_search_tool_regex", query=".")]}, {"text": "Done."}]
    async with harness(home, workspace, script) as here:
        (found,) = results(await here.turn("Go", await restricted(here)))
    assert found.ok and {row["tool_name"] for row in json.loads(found.content)["tool_references"]} <= NAMED


async def test_asking_interrupting_and_switching_off_always_work(home: Path, workspace: Path) -> None:
    skill(home, "narrow", **{"codewhale-tools": ""})
    ask = {"calls": [call("request_user_input", **GOOD["request_user_input"])]}
    write = {"calls": [call("write_file", **WRITE)]}
    async with harness(home, workspace, [ask, write, {"text": "Done."}]) as here:
        session = await restricted(here, authority=Authority.PERSON, mode=Mode.AGENT)
        head = here.app.engine.session(session).state.pinned.sha256
        async with watching(here, session) as watch:
            await here.client.submit(SendMessage(session, "Go"))
            await watch.until(QuestionAsked)
            await here.client.submit(Interrupt(session))
            await watch.until(TurnFinished)
        assert here.app.engine.session(session).state.pinned.sha256 == head
        assert (await here.client.submit(RunCommand(session, "/skill off"))).text == "Switched off: narrow."
        done = only(await here.turn("On", session), CallFinished)
        assert [one.ok for one in done] == [True] and (workspace / "PWNED").exists()
        assert here.app.engine.session(session).state.pinned.sha256 == head
