"""Rights: what a mode forbids stays forbidden under every name, in every folder, after every resume; what runs is what
was allowed. The payload makes a file PWNED."""

import asyncio
from pathlib import Path

import pytest

from codewhale.catalog.lifecycle import ALIASES
from codewhale.catalog.registry import Catalog
from codewhale.lib.clock import SystemClock
from codewhale.protocol.children import ListChildren
from codewhale.protocol.events import ApprovalAsked, CallStarted, SessionOpened, TurnFinished
from codewhale.protocol.modes import Authority, Mode
from codewhale.protocol.ops import Answer, CloseSession, Interrupt, SendMessage, SetMode
from codewhale.protocol.tools import CommandSubject
from codewhale.session.store import SessionStore
from codewhale.testing import harness
from support.children import Model
from support.goodcalls import GOOD
from support.jail import call, marks, played
from support.patience import HANG
from support.repos import make_repo
from support.scenes import only, results, watching

# What plan mode does with each tool; a new tool needs a row.
CHANGES = {
    "github_close_issue", "github_close_pr", "github_comment", "speech", "task_cancel", "task_create",
    *(f"automation_{name}" for name in ("create", "delete", "pause", "resume", "run", "update")),
    "apply_patch", "edit_file", "exec_shell", "exec_shell_cancel", "exec_shell_interact", "fim_edit", "note",
    "revert_turn", "run_tests", "run_verifiers", "task_gate_run", "task_shell_start", "write_file",
}  # fmt: skip
LOOKS = {
    "agent_close", "agent_eval", "agent_open", "automation_list", "automation_read",
    "list_mcp_resource_templates", "list_mcp_resources", "mcp_get_prompt", "mcp_read_resource", "task_list",
    "task_read",
    "checklist_add", "checklist_list", "checklist_update", "checklist_write", "code_history", "code_symbols",
    "codebase_search", "diagnostics", "exec_shell_wait", "file_search", "git_blame", "git_diff", "git_log",
    "fetch_url", "git_show", "github_issue_context", "github_pr_context", "git_status",
    "grep_files",
    "handle_read", "list_dir", "load_skill", "memory_get", "memory_search",
    "pr_attempt_list", "pr_attempt_preflight", "pr_attempt_read", "pr_attempt_record",
    "project_map", "read_file", "remember", "request_user_input", "retrieve_tool_result",
    "rlm_close", "rlm_configure", "rlm_eval", "rlm_open", "rlm_session_objects", "task_shell_wait",
    "tool_search_tool_bm25", "web_run", "web_search",
    "tool_search_tool_regex", "update_plan", "validate_data",
}  # fmt: skip
BY_GH = {"github_issue_context", "github_pr_context"}  # which need not be installed
GATED = {"fim_edit", "tool_agent"}
PAYLOAD = {"command": "touch PWNED"}
DEEPER = {"prompt": "Deeper", "role": "general"}


def tree(folder: Path) -> dict[str, bytes]:
    """Every file with its bytes, git's own included."""
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_h1_every_tool_has_its_row() -> None:
    assert set(Catalog.load().names()) == CHANGES | LOOKS | GATED and not CHANGES & LOOKS


@pytest.mark.parametrize("authority", list(Authority))
async def test_h1_in_plan_mode_no_tool_changes_anything(authority: Authority, home: Path, tmp_path: Path) -> None:
    repo = make_repo(tmp_path / "repo", {"a.txt": "one\n", "Makefile": "test:\n\ttouch PWNED\n"})
    before = tree(repo)
    served = {name for name in LOOKS if "mcp_" in name}  # where no server is connected they are not there
    names = sorted((CHANGES | LOOKS) - {"request_user_input", "update_plan"} - served - BY_GH)
    calls = [call(name, **GOOD[name]) for name in names]
    found = list(await played(home, repo, *calls[:40], mode=Mode.PLAN, authority=authority))
    found += await played(home, repo, *calls[40:], mode=Mode.PLAN, authority=authority)
    refused = {result.name for result in found if result.error in ("permission_denied", "not_available")}
    assert refused == CHANGES
    assert tree(repo) == before


@pytest.mark.parametrize("role", ["general", "implementer", "custom"])
@pytest.mark.parametrize(("mode", "authority"), [(Mode.PLAN, Authority.AUTO), (Mode.AGENT, Authority.HEADLESS)])
async def test_h2_a_child_may_no_more_than_its_parent(
    role: str, mode: Mode, authority: Authority, home: Path, workspace: Path
) -> None:
    model = Model()
    model.tasks["Work through"] = [[("exec_shell", PAYLOAD), ("task_shell_start", PAYLOAD), ("agent_open", DEEPER)]]
    model.tasks["Deeper"] = [[("exec_shell", PAYLOAD)]]
    tools = {"allowed_tools": ["exec_shell", "task_shell_start", "agent_open"]} if role == "custom" else {}
    async with harness(home, workspace, model) as here:
        session = await here.open(mode=mode, authority=authority)
        await here.turn(model.ask(("agent_open", {"prompt": "Work through", "role": role, **tools})), session)
    assert not (workspace / "PWNED").exists() and not list(workspace.rglob("PWNED"))


async def test_h2_a_child_keeps_nothing_that_its_parent_lost(home: Path, workspace: Path) -> None:
    model = Model()
    wait = {"command": "while [ ! -e go ]; do sleep 0.05; done"}
    model.tasks["Work through"] = [[("exec_shell", wait), ("exec_shell", PAYLOAD), ("write_file", GOOD["write_file"])]]
    async with harness(home, workspace, model) as here:
        session = await here.open(mode=Mode.YOLO, authority=Authority.PERSON)
        await here.turn(model.ask(("agent_open", {"prompt": "Work through"})), session)
        await here.client.submit(SetMode(session, Mode.PLAN))
        (workspace / "go").write_text("")
        (child,) = await here.client.query(ListChildren(session))
        await asyncio.wait_for(here.app.parts.children.wait(session, [child.name], HANG), 2 * HANG)
    assert {path.name for path in workspace.iterdir()} == {"go"}


@pytest.mark.parametrize("alias", sorted(name for name in ALIASES if Catalog.load().resolve(name)))
@pytest.mark.parametrize("mode", [Mode.PLAN, Mode.AGENT])
async def test_h4_another_name_passes_the_same_gate(alias: str, mode: Mode, home: Path, workspace: Path) -> None:
    own = ALIASES[alias].canonical
    calls = [call(own, **GOOD[own]), call(alias, **GOOD[own])]
    by_own, by_alias = await played(home, workspace, *calls, mode=mode, authority=Authority.HEADLESS)
    assert (by_alias.name, by_alias.error, by_alias.ok) == (own, by_own.error, by_own.ok)


@pytest.mark.parametrize("name", ["ExecShell", "exec-shell", "EXEC_SHELL", "exec_shell_tool", "functions.exec_shell"])
@pytest.mark.parametrize(("mode", "authority"), [(Mode.PLAN, Authority.AUTO), (Mode.AGENT, Authority.HEADLESS)])
async def test_h4_a_misspelt_name_opens_nothing(
    name: str, mode: Mode, authority: Authority, home: Path, workspace: Path
) -> None:
    (result,) = await played(home, workspace, call(name, **PAYLOAD), mode=mode, authority=authority)
    assert not result.ok and marks(workspace) == []


@pytest.mark.parametrize("folder", ["..", "/", "out", "out/deeper", "a/../..", "../workspace-evil"])
async def test_h5_a_folder_in_a_call_leads_no_command_out(folder: str, home: Path, workspace: Path) -> None:
    outside = workspace.parent / "outside"
    (outside / "deeper").mkdir(parents=True)
    (workspace.parent / "workspace-evil").mkdir()
    (workspace / "out").symlink_to(outside)
    check = {"name": "t", "program": "touch", "args": ["PWNED"], "cwd": folder}
    calls = [
        call("exec_shell", **PAYLOAD, cwd=folder),
        call("exec_shell", **PAYLOAD, cwd=folder, background=True),
        call("run_verifiers", commands=[check]),
    ]
    found = await played(home, workspace, *calls)
    assert [result.error for result in found] == ["path_escape"] * 3 and marks(workspace.parent) == []


async def test_h6_a_session_comes_back_with_the_rights_of_now(home: Path, workspace: Path) -> None:
    again = [{"calls": [call("exec_shell", **PAYLOAD)]}, {"text": "Done."}]
    async with harness(home, workspace, [{"text": "Begun."}, *again, *again]) as stage:
        session = await stage.open(mode=Mode.YOLO, authority=Authority.AUTO)
        await stage.turn("Begin.", session)
        await stage.client.submit(CloseSession(session))
        for mode in (Mode.AGENT, Mode.PLAN):
            session = await stage.open(resume=session, mode=mode, authority=Authority.HEADLESS)
            events = await stage.turn("Go on.", session)
            assert [result.error for result in results(events)] == ["permission_denied"] and not only(
                events, CallStarted
            )
            await stage.client.submit(CloseSession(session))
    opened = next(SessionStore(str(home), SystemClock()).read(session)).event
    assert isinstance(opened, SessionOpened) and opened.mode is Mode.YOLO and marks(workspace) == []


async def test_h3_an_answer_that_comes_too_late_or_to_another_question_is_none(home: Path, workspace: Path) -> None:
    turn = {"calls": [call("exec_shell", **PAYLOAD)]}
    async with harness(home, workspace, [turn, turn, {"text": "Done."}]) as stage:
        session = await stage.open(mode=Mode.AGENT, authority=Authority.PERSON)
        async with watching(stage, session) as watch:
            await stage.client.submit(SendMessage(session, "Go."))
            first = await watch.until(ApprovalAsked)
            await stage.client.submit(Interrupt(session))
            await watch.until(TurnFinished)
            assert await stage.client.submit(Answer(session, first.request_id, allowed=True)) is False
            await stage.client.submit(SendMessage(session, "Again."))
            second = await watch.until(ApprovalAsked, 2)
            assert second.request_id != first.request_id
            for wrong in (first.request_id, "", "ask_0", second.call_id):
                assert await stage.client.submit(Answer(session, wrong, allowed=True)) is False
            assert marks(workspace) == [] and only(watch.events, CallStarted) == []
            assert await stage.client.submit(Answer(session, second.request_id, allowed=False)) is True
            assert await stage.client.submit(Answer(session, second.request_id, allowed=True)) is False
            await watch.until(TurnFinished, 2)
    assert marks(workspace) == []


async def test_a18_what_runs_is_what_was_allowed(home: Path, workspace: Path) -> None:
    commands = [f"echo {number} > {number}.txt" for number in range(4)]
    turn = {"calls": [call("exec_shell", command=command, background=True) for command in commands]}
    async with harness(home, workspace, [turn, {"text": "Done."}]) as stage:
        session = await stage.open(mode=Mode.AGENT, authority=Authority.PERSON)
        async with watching(stage, session) as watch:
            await stage.client.submit(SendMessage(session, "Go."))
            for number, command in enumerate(commands):
                asked = await watch.until(ApprovalAsked, number + 1)
                assert asked.subjects == (CommandSubject(command, ".", True),)
                await stage.client.submit(Answer(session, asked.request_id, allowed=bool(number % 2)))
            await watch.until(TurnFinished)
            ran, waits = only(watch.events, CallStarted), only(watch.events, ApprovalAsked)
    assert [started.call_id for started in ran] == [waits[1].call_id, waits[3].call_id]
    assert [started.arguments.count(commands[number]) for started, number in zip(ran, (1, 3), strict=True)] == [1, 1]
    assert not (workspace / "0.txt").exists() and not (workspace / "2.txt").exists()
