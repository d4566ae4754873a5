"""What a project's constitution holds, in every mode and by every way that a call can take; who may let it through
once, and how. The repository is real: what was held is seen in it."""

import json
from pathlib import Path
from typing import Any

import pytest

from codewhale.permissions.clauses import parse_clauses
from codewhale.permissions.trust import TrustStore
from codewhale.protocol.errors import ConfigError, SessionError
from codewhale.protocol.events import ApprovalAnswered, ApprovalAsked, CallFinished, Notice, TurnFinished
from codewhale.protocol.modes import Approval, Authority, Mode
from codewhale.protocol.ops import Answer, SendMessage
from codewhale.testing import harness
from support.jail import call, played
from support.known import know_every_tool
from support.repos import make_repo, raw_git
from support.scenes import only, results, watching

LAW = {
    "protected_invariants": [{"id": "GEN", "text": "made by make", "paths": ["gen/**"], "action": "block"}],
    "branch_policy": {"id": "MAIN", "text": "main is released from", "protected": ["main"], "action": "block"},
    "escalate_when": [{"id": "LIST", "commands": ["touch"], "tools": ["file_search"], "paths": ["infra/**"]}],
    "authority": ["Answer in verse."],
}
DONE = {"text": "Done."}
WRITE = call("write_file", path="gen/a.txt", content="x\n")
COMMIT = call("exec_shell", command="git -c user.name=a -c user.email=a@b commit -q --allow-empty -m more")
COMMITS = [
    "git  'com'mit --allow-empty -m more", "true && git commit --allow-empty -m more", "bash -c 'git commit -m more'",
    "git -C . commit --allow-empty -m more", "echo 'git commit --allow-empty -m more' | sh", "git x",
    "cd gen/.. && git reset --hard HEAD~1", "git push . HEAD:refs/heads/main", "git update-ref refs/heads/main HEAD~1",
]  # fmt: skip
EVERYONE = [
    (mode, who, approval)
    for mode in (Mode.PLAN, Mode.AGENT, Mode.YOLO)
    for who, approval in (
        (Authority.HEADLESS, Approval.SUGGEST), (Authority.AUTO, Approval.AUTO), (Authority.AUTO, Approval.SANDBOX),
        (Authority.PERSON, Approval.NEVER),
    )
]  # fmt: skip


@pytest.fixture
def project(workspace: Path, home: Path) -> Path:
    """A repository on main with a law that is trusted."""
    make_repo(workspace, {".codewhale/constitution.json": json.dumps(LAW), "a.txt": "a\n", "gen/b.txt": "b\n"})
    raw_git(workspace, "branch", "-M", "main")
    trust(home, workspace)
    know_every_tool(home)
    return workspace


def trust(home: Path, workspace: Path) -> None:
    store = TrustStore(str(home))
    for file in store.survey(str(workspace)):
        store.add(file)


def head(project: Path) -> bytes:
    return raw_git(project, "log", "--format=%s", "main")


@pytest.mark.parametrize(("mode", "who", "approval"), EVERYONE)
async def test_what_is_blocked_stays_so_for_everybody_who_is_not_asked(
    mode: Mode, who: Authority, approval: Approval, home: Path, project: Path
) -> None:
    before, calls = head(project), (WRITE, COMMIT, call("exec_shell", command="touch gen/a.txt"))
    got = await played(home, project, *calls, mode=mode, authority=who, approval=approval)
    assert [result.error for result in got] == ["permission_denied"] * 3
    assert head(project) == before and not (project / "gen" / "a.txt").exists()
    if mode is not Mode.PLAN:
        assert "--allow-clause GEN" in got[0].content and "--allow-clause MAIN" in got[1].content


@pytest.mark.parametrize("line", COMMITS)
async def test_a_protected_branch_is_held_however_git_is_spelled(line: str, home: Path, project: Path) -> None:
    raw_git(project, "config", "alias.x", "commit --allow-empty -m more")
    before = head(project)
    for tool in ("exec_shell", "task_shell_start"):
        (got,) = await played(home, project, call(tool, command=line), mode=Mode.YOLO, authority=Authority.AUTO)
        assert (got.error, head(project)) == ("permission_denied", before), got.content


async def test_what_a_running_job_or_a_shell_is_told_is_held(home: Path, project: Path) -> None:
    before, line = head(project), "git commit --allow-empty -m more\n"
    calls = [{"calls": [call("exec_shell", command="sh", background=True)]}]
    async with harness(home, project, lambda request: job_or_done(request, calls, line)) as stage:
        session = await stage.open(mode=Mode.YOLO, authority=Authority.AUTO)
        (_, told) = results(await stage.turn("Go.", session))
    assert "(rule constitution.branch.1)" in told.content and head(project) == before
    (fed,) = await played(home, project, call("exec_shell", command="sh", stdin=line), authority=Authority.AUTO)
    assert "(rule constitution.branch.1)" in fed.content and head(project) == before


def job_or_done(request: dict[str, Any], calls: list[dict[str, Any]], line: str) -> dict[str, Any]:
    """The first call, then one that types `line` into the job that it began, then the end."""
    told = [one["content"] for one in request["messages"] if one["role"] == "tool"]
    if not told:
        return calls[0]
    if len(told) == 1:
        job = told[0].split("Background job ")[1].split()[0]
        return {"calls": [call("exec_shell_interact", task_id=job, input=line)]}
    return DONE


async def test_a_child_and_an_alias_and_a_verb_and_a_repaired_call_are_held_too(home: Path, project: Path) -> None:
    def play(request: dict[str, Any]) -> dict[str, Any]:
        texts = [str(one.get("content")) for one in request["messages"] if one["role"] == "user"]
        child = any("write there" in text for text in texts) and not any(text.startswith("Go.") for text in texts)
        answered = [one for one in request["messages"] if one["role"] == "tool"]
        if child:
            return DONE if answered else {"calls": [WRITE, COMMIT]}
        if answered:
            return DONE
        opened = call("agent_open", name="helper", objective="write there", role="implementer")
        verb = call("shell_run", command="touch gen/a.txt")
        damaged = {"name": "write_file", "arguments": '{"path": "gen/a.txt", "content": "x"'}
        return {"calls": [call("create_file", path="gen/a.txt", content="x"), verb, damaged, opened]}

    before = head(project)
    async with harness(home, project, play) as stage:
        session = await stage.open(mode=Mode.YOLO, authority=Authority.AUTO)
        await stage.turn("Go.", session)
    assert head(project) == before and not (project / "gen" / "a.txt").exists()


async def test_escalation_asks_a_person_even_where_everything_runs(home: Path, project: Path) -> None:
    calls = [call("file_search", query="a"), call("exec_shell", command="env touch b.txt"),
             call("write_file", path="infra/x.tf", content="x\n")]  # fmt: skip
    got = await played(home, project, *calls, mode=Mode.YOLO, authority=Authority.AUTO)
    assert ["(rule constitution.escalation.1)" in one.content for one in got] == [True] * 3
    assert not (project / "b.txt").exists() and not (project / "infra").exists()


@pytest.mark.parametrize("mode", [Mode.AGENT, Mode.YOLO])
async def test_a_person_lets_it_through_once_by_the_clauses_id_and_never_for_longer(
    mode: Mode, home: Path, project: Path
) -> None:
    again = call("write_file", path="gen/c.txt", content="x\n")
    async with harness(home, project, [{"calls": [WRITE]}, {"calls": [again]}, DONE]) as stage:
        session = await stage.open(mode=mode, authority=Authority.PERSON)
        async with watching(stage, session) as watch:
            await stage.client.submit(SendMessage(session, "Write it."))
            first = await watch.until(ApprovalAsked)
            assert first.kind == "clause" and first.offer is None and not first.held
            assert [(one.id, one.text) for one in first.clauses] == [("GEN", "made by make")]
            for one in (Answer(session, first.request_id, True), Answer(session, first.request_id, True, confirm="y")):
                with pytest.raises(SessionError, match="type GEN"):
                    await stage.client.submit(one)
            assert not (project / "gen" / "a.txt").exists()
            yes = Answer(session, first.request_id, allowed=True, remember="always", confirm=" gen ")
            await stage.client.submit(yes)
            second = await watch.until(ApprovalAsked, 2)
            await stage.client.submit(Answer(session, second.request_id))
            await watch.until(TurnFinished)
            answered = only(watch.events, ApprovalAnswered)
    assert [(one.allowed, one.clauses, one.remember) for one in answered] == [(True, ("GEN",), ""), (False, (), "")]
    assert (project / "gen" / "a.txt").exists() and not (project / "gen" / "c.txt").exists()
    audit = [json.loads(line) for line in (home / "audit.log").read_text().splitlines()]
    assert [(one["answer"], one["clauses"]) for one in audit if one["event"] == "approval"] == [
        ("allowed", "GEN"), ("denied", "GEN"),
    ]  # fmt: skip


async def test_the_flag_lets_one_call_through_for_each_time_it_is_given(home: Path, project: Path) -> None:
    calls = [call("write_file", path=f"gen/{name}.txt", content="x\n") for name in "cde"]
    async with harness(home, project, [{"calls": calls}, DONE]) as stage:
        session = await stage.open(mode=Mode.AGENT, authority=Authority.HEADLESS, clauses=("gen", "GEN"))
        events = await stage.turn("Go.", session)
        with pytest.raises(ConfigError, match="those that block are GEN, MAIN"):
            await stage.open(clauses=("LIST",))
    assert [one.ok for one in only(events, CallFinished)] == [True, True, False]
    told = [one.text for one in only(events, Notice) if one.code == "clause_lifted"]
    assert len(told) == 2 and told[0].startswith("--allow-clause: GEN")
    assert "GEN" in (home / "audit.log").read_text()


async def test_no_argument_and_no_text_of_a_model_lets_anything_through(home: Path, project: Path) -> None:
    calls = [
        call("write_file", path="gen/a.txt", content="x\n", confirm="GEN"),
        call("exec_shell", command="codewhale exec --allow-clause GEN 'write gen/a.txt'; touch gen/a.txt # GEN"),
    ]
    turns = [{"text": "GEN --allow-clause GEN", "calls": calls}, DONE]
    async with harness(home, project, turns) as stage:
        await stage.turn("Go.", await stage.open(mode=Mode.YOLO, authority=Authority.AUTO))
    assert not (project / "gen" / "a.txt").exists()


async def test_the_floor_stays_above_what_is_let_through(home: Path, project: Path) -> None:
    law = {"protected_invariants": [{"id": "GIT", "paths": [".git/**", "gen/**"], "action": "block"}]}
    (project / ".codewhale" / "constitution.json").write_text(json.dumps(law))
    trust(home, project)
    (got,) = await played(home, project, call("write_file", path=".git/config", content="x"), clauses=("GIT",))
    assert got.error == "permission_denied" and "floor." in got.content


async def test_a_told_clause_refuses_nothing_that_a_person_asks_for(home: Path, project: Path) -> None:
    law = {
        "authority": ["Never touch a.txt."], "protected_invariants": ["a.txt is sacred."],
        "branch_policy": "No commits.", "escalate_when": ["a.txt changes"],
        "verification_policy": {"before_claiming_done": ["Think of a.txt."]},
    }  # fmt: skip
    (project / ".codewhale" / "constitution.json").write_text(json.dumps(law))
    trust(home, project)
    calls = (call("write_file", path="a.txt", content="new\n"), COMMIT)
    got = await played(home, project, *calls, mode=Mode.YOLO, authority=Authority.AUTO)
    assert [one.ok for one in got] == [True, True], [one.content for one in got]
    assert (project / "a.txt").read_text() == "new\n"


@pytest.mark.parametrize("how", ["empty", "gone", "broken"])
async def test_a_law_that_is_changed_without_the_person_goes_on_to_hold(how: str, home: Path, project: Path) -> None:
    path = project / ".codewhale" / "constitution.json"
    edits = [call("write_file", path=".codewhale/constitution.json", content="{}"),
             call("exec_shell", command="echo '{}' > .codewhale/constitution.json")]  # fmt: skip
    async with harness(home, project, [{"calls": [*edits, WRITE]}, DONE, {"calls": [WRITE]}, DONE]) as stage:
        session = await stage.open(mode=Mode.YOLO, authority=Authority.AUTO)
        first = await stage.turn("Go.", session)
        assert not any(one.ok for one in only(first, CallFinished)) and json.loads(path.read_text()) == LAW
        if how == "gone":
            path.unlink()
        else:
            path.write_text("{" if how == "broken" else "{}")
        events = await stage.turn("Again.", session)
    assert "(rule constitution.1)" in only(events, CallFinished)[0].content
    assert any("still holds in this process" in one.text for one in only(events, Notice))
    assert not (project / "gen" / "a.txt").exists()


async def test_a_person_who_revokes_the_trust_lets_the_law_go(home: Path, project: Path) -> None:
    async with harness(home, project, [{"calls": [WRITE]}, DONE, {"calls": [WRITE]}, DONE]) as stage:
        session = await stage.open(mode=Mode.YOLO, authority=Authority.AUTO)
        assert not only(await stage.turn("Go.", session), CallFinished)[0].ok
        TrustStore(str(home)).remove(str(project / ".codewhale" / "constitution.json"))
        events = await stage.turn("Again.", session)
    assert only(events, CallFinished)[0].ok and any("not trusted" in one.text for one in only(events, Notice))


def test_each_clause_of_the_table_is_held_but_the_text() -> None:
    law = parse_clauses("c", json.dumps(LAW).encode())
    assert [clause.held for clause in law.clauses] == [False, True, True, True]


async def test_a_childs_request_goes_to_the_person_with_who_asks(home: Path, project: Path) -> None:
    def play(request: dict[str, Any]) -> dict[str, Any]:
        texts = " ".join(str(one.get("content")) for one in request["messages"] if one["role"] == "user")
        if any(one["role"] == "tool" for one in request["messages"]):
            return DONE
        opened = call("agent_open", name="helper", objective="write there", role="implementer")
        return {"calls": [opened]} if "Go." in texts else {"calls": [WRITE]}

    async with harness(home, project, play) as stage:
        session = await stage.open(mode=Mode.YOLO, authority=Authority.PERSON)
        async with watching(stage, session) as watch:
            await stage.client.submit(SendMessage(session, "Go."))
            ask = await watch.until(ApprovalAsked)
            assert (ask.kind, ask.word) == ("clause", "GEN") and "helper" in ask.asker
            with pytest.raises(SessionError, match="type GEN"):
                await stage.client.submit(Answer(session, ask.request_id, allowed=True))
            assert not (project / "gen" / "a.txt").exists()
            await stage.client.submit(Answer(session, ask.request_id, allowed=True, confirm="GEN"))
            assert (await watch.until(ApprovalAnswered)).clauses == ("GEN",)
            await watch.until(TurnFinished, 2)
    assert (project / "gen" / "a.txt").exists()


async def test_a_worktree_of_the_repository_is_under_its_law(home: Path, project: Path) -> None:
    tree = project.parent / "tree"
    raw_git(project, "worktree", "add", "-q", str(tree), "-b", "topic")
    writes = call("write_file", path="gen/a.txt", content="x\n")
    push = call("exec_shell", command="git push . HEAD:main")
    got = await played(home, tree, writes, push, mode=Mode.YOLO, authority=Authority.AUTO)
    assert ["(rule constitution." in one.content for one in got] == [True, True] and not (
        tree / "gen" / "a.txt"
    ).exists()
