"""What counts as verified: which lines that succeeded hold the command that is wanted."""

import json

import pytest

from codewhale.agent.verification import unverified
from codewhale.protocol.decisions import Clause
from codewhale.protocol.events import CallFinished, CallStarted, ChildClosed, ChildOpened, JobEnded, JobStarted, Passed
from codewhale.protocol.events import FileChanged as Changed
from codewhale.protocol.files import FileChange
from codewhale.session.work import WorkState

WANTED = (Clause("C4", "the tests pass", "verification", 1, command="make test"),)
CHANGED = Changed("c0", FileChange("a.py", "1", "2"))


def missing(work: WorkState, clauses: tuple[Clause, ...] = WANTED, folder: str = "") -> list[str]:
    return [row["clause"] for row in unverified(clauses, work, folder) or ()]


def ran(command: str, cwd: str = "", name: str = "exec_shell", **metadata: object) -> list[object]:
    arguments = json.dumps({"command": command, "cwd": cwd})
    done = CallFinished("c1", name, metadata.get("exit_code", 0) == 0, "", metadata={"exit_code": 0, **metadata})
    return [CallStarted("c1", name, arguments, (), ""), done]


def folded(*events: object) -> WorkState:
    work = WorkState()
    for event in events:
        work.apply(event)  # type: ignore[arg-type]
    return work


@pytest.mark.parametrize(
    "line",
    ["make test", "make  test ", "make lint && make test", "make test && git status", "make test > /dev/null 2>&1",
     "timeout 300 make test", "time make test", "make test;", "make lint && timeout 9 make test && echo ok"],
)  # fmt: skip
def test_a_line_whose_success_is_the_commands_counts(line: str) -> None:
    assert missing(folded(CHANGED, *ran(line))) == []


@pytest.mark.parametrize(
    "line",
    ["make test || true", "make test; true", "make test | tail", "make test &", "! make test", "make tests", "make",
     "echo make test", "true # && make test", "cd sub && make test", "exit 0 && make test", "SKIP=1 make test",
     "(make test; true)", "trap 'exit 0' EXIT && make test", "if make test; then true; fi", "echo 'a && make test'",
     "alias make=true && make test", "export PATH=x && make test", "make test -k", "$X && make test",
     "true || make test", "bash -c 'make test; true'", "true\nmake test\ntrue", "make test && echo a | cat; true"],
)  # fmt: skip
def test_a_line_that_could_succeed_without_it_does_not(line: str) -> None:
    assert missing(folded(CHANGED, *ran(line))) == ["C4"]


def test_it_must_have_succeeded_in_the_foreground_after_the_last_change_and_at_the_root() -> None:
    assert unverified((), folded(CHANGED), "") is None and missing(folded()) == []
    assert missing(folded(*ran("make test"), CHANGED)) == ["C4"]
    assert missing(folded(CHANGED, *ran("make test", exit_code=2))) == ["C4"]
    assert missing(folded(CHANGED, *ran("make test", backgrounded=True))) == ["C4"]
    assert missing(folded(CHANGED, *ran("make test", cwd="sub"))) == ["C4"]
    assert missing(folded(CHANGED, *ran("make test", cwd="../..")), folder="a/b") == []
    assert missing(folded(CHANGED, *ran("make test"), *ran("sed -i s/a/b/ x", changed_files=1))) == ["C4"]
    assert missing(folded(CHANGED, *ran("make test", changed_files=1))) == []
    assert missing(folded(CHANGED, *ran("make test && sed -i s/a/b/ x", changed_files=1))) == ["C4"]


def test_the_projects_tests_as_a_whole_count_for_the_tool() -> None:
    wanted = (Clause("T", "", "verification", 1, tool="run_tests"),)
    done = CallFinished("c2", "run_tests", True, "", metadata={"exit_code": 0})
    whole = [CallStarted("c2", "run_tests", "{}", (), ""), done]
    part = [CallStarted("c2", "run_tests", '{"args": "-k one"}', (), ""), done]
    assert missing(folded(CHANGED, *whole), wanted) == [] and missing(folded(CHANGED, *part), wanted) == ["T"]
    assert missing(folded(CHANGED, *ran("pytest")), wanted) == ["T"]


def test_a_background_job_counts_where_nothing_changed_while_it_ran() -> None:
    begun, ended = JobStarted("j", "make test", "."), JobEnded("j", "Completed", 0, 1.0)
    assert missing(folded(CHANGED, begun, ended)) == []
    assert missing(folded(CHANGED, begun, CHANGED, ended)) == ["C4"]
    assert missing(folded(CHANGED, begun, JobEnded("j", "Failed", 2, 1.0))) == ["C4"]


def test_what_a_child_changed_counts_and_what_it_ran_too_where_nobody_else_changed_anything() -> None:
    opened, passed = ChildOpened("k", "kid", "do it"), (Passed("exec_shell", "make test"),)
    assert missing(folded(opened, ChildClosed("k", "completed", changes=2))) == ["C4"]
    assert missing(folded(opened, ChildClosed("k", "completed", changes=2, passed=passed))) == []
    assert missing(folded(CHANGED, opened, ChildClosed("k", "completed", passed=passed))) == []
    assert missing(folded(opened, CHANGED, ChildClosed("k", "completed", passed=passed))) == ["C4"]
    again = folded(
        opened, ChildClosed("k", "completed", changes=2), *ran("make test"), opened, ChildClosed("k", "x", changes=2)
    )
    assert missing(again) == []
