"""Permits: rules from their files as they stand, answers remembered, and one line of the audit log a decision."""

import json
import os
from pathlib import Path

import pytest
from msgspec.structs import replace

from codewhale.permissions.audit import AuditLog
from codewhale.permissions.policy import SandboxOptions
from codewhale.permissions.prefixes import running_tests
from codewhale.permissions.rules import read_rules
from codewhale.permissions.service import PermissionService
from codewhale.permissions.shell.judge import ShellContext, ShellJudgement, analyse
from codewhale.permissions.trust import TrustStore
from codewhale.protocol.decisions import Decision, DecisionRequest, Offer, Opinion, Rule
from codewhale.protocol.errors import ConfigError
from codewhale.protocol.events import Event, Notice
from codewhale.protocol.modes import Authority, Mode
from codewhale.protocol.ops import Answer
from codewhale.protocol.tools import CommandSubject, Effect, PathSubject, Subject
from codewhale.testing import FakeClock


class Machine:
    """What permits look up, with a real store of trust."""

    def __init__(self, home: Path) -> None:
        self.trust = TrustStore(str(home))
        self.told: list[str] = []
        self.attached: tuple[str, ...] = ()

    def disabled(self, workspace: str) -> frozenset[str]:
        """One tool is switched off."""
        return frozenset({"retired"})

    def analyse(self, subject: CommandSubject, request: DecisionRequest) -> ShellJudgement:
        """The shell analysis."""
        judged = analyse(subject.command, ShellContext(request.workspace))
        argv = judged.commands[0].argv if judged.plain else ()
        return replace(judged, tests=running_tests(argv, "pytest", "/usr/bin/python3"))

    def url(self, url: str, request: DecisionRequest) -> Opinion | None:
        """Every address will do."""
        return None

    def sandbox_options(self, request: DecisionRequest) -> SandboxOptions:
        """What is configured of the sandbox: nothing."""
        return SandboxOptions()

    def sandboxed(self) -> bool:
        """There is one."""
        return True

    def job(self, session: str, job: str) -> str | None:
        """There is none."""
        return None

    def unfinished(self, session: str, job: str) -> str:
        """Nothing was typed."""
        return ""

    def trusts(self, path: str, sha256: str) -> bool:
        """What the store says."""
        return self.trust.holds(path, sha256)

    def sources(self, workspace: str) -> tuple[str, ...]:
        """What the test attaches."""
        return self.attached

    def canonical(self, name: str) -> str:
        """One alias."""
        return {"shell": "exec_shell"}.get(name, name)

    def clean(self, text: str, workspace: str) -> str:
        """One secret."""
        return text.replace("hunter2", "[redacted]")

    def tell(self, session: str, event: Event) -> None:
        """Keep it."""
        assert isinstance(event, Notice)
        self.told.append(event.text)


@pytest.fixture
def machine(home: Path) -> Machine:
    """What is looked up."""
    return Machine(home)


@pytest.fixture
def permits(home: Path, machine: Machine) -> PermissionService:
    """The gate."""
    return PermissionService(str(home), machine, AuditLog(str(home), FakeClock()))


def yes(remember: str) -> Answer:
    """A yes that is to be kept."""
    return Answer("s", "ask_1", True, remember=remember)  # type: ignore[arg-type]


def asking(workspace: Path, *subjects: Subject, tool: str = "exec_shell", session: str = "s") -> DecisionRequest:
    """A question about a call."""
    effects = (Effect.EXECUTES,) if tool == "exec_shell" else (Effect.WRITES,)
    return DecisionRequest(
        tool, effects, subjects, Mode.AGENT, Authority.PERSON, session, workspace=str(workspace), call="call_1"
    )


def lines(home: Path) -> list[dict[str, str]]:
    """The audit log."""
    return [json.loads(line) for line in (home / "audit.log").read_text().splitlines()]


MAKE = CommandSubject("make test")


def test_the_persons_file_counts_from_the_next_call_on(permits: PermissionService, home: Path, workspace: Path) -> None:
    file = home / "permissions.toml"
    assert permits.decide(asking(workspace, MAKE)).verdict == "ask"
    file.write_text('deny = ["make test"]\n')
    assert permits.decide(asking(workspace, MAKE)).rule == "permissions.user.1"
    file.write_text('[[rules]]\naction = "allow"\ntool = "shell"\ncommand = "make test"\n')
    assert permits.decide(asking(workspace, MAKE)).verdict == "allow"
    file.unlink()
    assert permits.decide(asking(workspace, MAKE)).verdict == "ask"


def test_a_file_that_breaks_leaves_what_held_and_one_that_never_held_denies(
    permits: PermissionService, machine: Machine, home: Path, workspace: Path
) -> None:
    file = home / "permissions.toml"
    file.write_text('deny = ["make test"]\n')
    assert permits.decide(asking(workspace, MAKE)).verdict == "deny"
    file.write_text('deny = ["make te')
    assert permits.decide(asking(workspace, MAKE)).rule == "permissions.user.1"
    assert len(machine.told) == 1 and str(file) in machine.told[0]
    with pytest.raises(ConfigError, match="not valid TOML"):
        permits.check()
    fresh = PermissionService(str(home), machine, AuditLog(str(home), FakeClock()))
    refused = fresh.decide(asking(workspace, PathSubject("a.py", True), tool="write_file"))
    assert refused.verdict == "deny" and "not valid TOML" in refused.reason


def test_a_project_only_tightens_and_only_when_trusted(
    permits: PermissionService, machine: Machine, home: Path, workspace: Path
) -> None:
    file = workspace / ".codewhale" / "permissions.toml"
    file.parent.mkdir()
    file.write_text('deny = ["make deploy"]\nallow = ["make test"]\nfloor_exception = ["rm -rf /"]\n')
    deploy = CommandSubject("make deploy")
    assert permits.decide(asking(workspace, deploy)).verdict == "ask"
    assert machine.told == [f"{os.path.realpath(file)} is ignored: not trusted (codewhale trust add)"]
    (standing,) = machine.trust.survey(str(workspace))
    machine.trust.add(standing)
    assert permits.decide(asking(workspace, deploy)).rule == "permissions.project.1"
    assert permits.decide(asking(workspace, MAKE)).verdict == "ask"
    assert permits.decide(asking(workspace, CommandSubject("rm -rf /"))).rule.startswith("floor.")
    assert len(machine.told) == 2 and "can only restrict" in machine.told[1]
    file.write_text('deny = ["make nothing"]\n')
    assert permits.decide(asking(workspace, deploy)).verdict == "ask"
    assert permits.decide(asking(workspace.parent, MAKE)).verdict == "ask"


def test_an_answer_is_kept_for_the_session_or_always(permits: PermissionService, home: Path, workspace: Path) -> None:
    request = asking(workspace, MAKE)
    decision = permits.decide(request)
    permits.answered(request, decision, yes("session"))
    assert permits.decide(request).rule == "permissions.session.1"
    assert permits.decide(asking(workspace, MAKE, session="other")).verdict == "ask"
    assert permits.decide(asking(workspace, CommandSubject("make test; rm x"))).verdict == "ask"
    permits.forget("s")
    assert permits.decide(request).verdict == "ask" and read_rules(permits.path) == ()
    permits.answered(request, decision, yes("always"))
    saved = Rule("allow", "exec_shell", command="make test", workspace=str(workspace), row=1)
    assert read_rules(permits.path) == (saved,) == permits.rules("s", str(workspace))
    assert permits.decide(request).rule == "permissions.user.1"
    assert permits.decide(asking(workspace.parent, MAKE)).verdict == "ask"


def test_what_was_not_offered_is_not_kept(permits: PermissionService, workspace: Path) -> None:
    request = asking(workspace, CommandSubject("python x.py", stdin="import os"))
    permits.answered(request, permits.decide(request), yes("always"))
    permits.answered(request, Decision("ask", "x", "y"), yes("session"))
    permits.answered(asking(workspace, MAKE), permits.decide(asking(workspace, MAKE)), yes("sandbox"))
    assert permits.rules("s", str(workspace)) == ()


EXACT = ("python3 -m http.server", "git stash", "make test > log 2>&1", "for f in *.py; do python3 $f; done", "a\nb")


@pytest.mark.parametrize("line", EXACT)
@pytest.mark.parametrize("remember", ["session", "always"])
def test_any_line_can_be_kept_as_it_stands_in_its_folder(
    permits: PermissionService, workspace: Path, line: str, remember: str
) -> None:
    request = asking(workspace, CommandSubject(line, "sub"))
    decision = permits.decide(request)
    assert decision.verdict == "ask" and decision.offer == Offer("exec_shell", "exact", line)
    permits.answered(request, decision, yes(remember))
    assert permits.decide(request).verdict == "allow"
    for other in (CommandSubject(f"{line} ", "sub/../sub"), CommandSubject(f" {line}", "./sub")):
        assert permits.decide(asking(workspace, other)).verdict == "allow"
    stolen = (CommandSubject(line), CommandSubject(line, "sub/evil"), CommandSubject(line, "sub", stdin="x"))
    for other in (*stolen, CommandSubject(f"{line}; rm x", "sub"), CommandSubject(f"{line} --more", "sub")):
        assert permits.decide(asking(workspace, other)).verdict == "ask"
    assert permits.decide(asking(workspace.parent, CommandSubject(line, "sub"))).verdict == "ask"


def test_of_a_prefix_the_line_alone_can_be_kept(permits: PermissionService, workspace: Path) -> None:
    request = asking(workspace, MAKE)
    permits.answered(request, permits.decide(request), Answer("s", "a", True, remember="always", exact=True))
    (row,) = permits.rules("s", str(workspace))
    assert (row.command, row.command_exact, row.cwd) == ("", "make test", ".")
    assert permits.decide(request).verdict == "allow"
    assert permits.decide(asking(workspace, CommandSubject("make test X=1"))).verdict == "ask"


@pytest.mark.parametrize("line", ["pytest -q", "python3 -m pytest -x tests", "python -m pytest"])
def test_the_tests_of_the_project_are_allowed_once_for_every_way_to_run_them(
    permits: PermissionService, workspace: Path, line: str
) -> None:
    request = asking(workspace, CommandSubject(line))
    decision = permits.decide(request)
    assert decision.offer is not None and decision.offer.field == "tests"
    permits.answered(request, decision, yes("always"))
    for more in (line, f"{line} --lf", f"{line} tests/test_a.py"):
        assert permits.decide(asking(workspace, CommandSubject(more))).verdict == "allow"
    assert permits.decide(asking(workspace, tool="run_tests")).verdict == "allow"
    for other in (f"{line}; rm x", f"{line} > out", "python3 -m http.server", "python3 x.py"):
        assert permits.decide(asking(workspace, CommandSubject(other))).verdict == "ask"


def test_each_decision_and_answer_is_a_line_without_secrets(
    permits: PermissionService, home: Path, workspace: Path
) -> None:
    request = asking(workspace, CommandSubject("deploy --key hunter2\nrm x"))
    permits.answered(request, permits.decide(request), None)
    permits.decide(replace(request, call=""))
    permits.judge(request)
    decided, answered = lines(home)
    assert (decided["event"], decided["verdict"], decided["tool"]) == ("decision", "ask", "exec_shell")
    assert (decided["session"], decided["call"], decided["mode"], decided["authority"]) == (
        "s",
        "call_1",
        "agent",
        "person",
    )
    assert "hunter2" not in (home / "audit.log").read_text() and decided["rule"].startswith("shell.")
    assert (answered["event"], answered["answer"], answered["rule"]) == ("approval", "denied", decided["rule"])


def test_a18_the_digest_is_of_what_would_run(permits: PermissionService, workspace: Path) -> None:
    script = workspace / "run.sh"
    script.write_text("echo one\n")
    request = asking(workspace, CommandSubject("bash ./run.sh --flag"))
    first = permits.digest(request, {"command": "bash ./run.sh --flag"})
    assert permits.digest(request, {"command": "bash ./run.sh --flag"}) == first
    assert permits.digest(request, {"command": "bash ./run.sh --other"}) != first
    script.write_text("rm -rf .\n")
    assert permits.digest(request, {"command": "bash ./run.sh --flag"}) != first
    os.mkfifo(workspace / "pipe")
    assert permits.digest(asking(workspace, CommandSubject("cat pipe 'a\0b' /proc/self/mem")), {})


def test_b7_a_link_and_a_git_folder_of_another_name_are_seen_through(
    permits: PermissionService, workspace: Path
) -> None:
    (workspace / "store" / "objects").mkdir(parents=True)
    (workspace / "store" / "HEAD").write_text("ref: refs/heads/main\n")
    (workspace / ".git").write_text("gitdir: store\n")
    (workspace / "notes").symlink_to(".codewhale")
    (workspace / "rc").symlink_to(".bashrc")

    def verdict(path: str) -> str:
        return permits.decide(asking(workspace, PathSubject(path, True), tool="write_file")).verdict

    assert verdict("store/hooks/pre-commit") == verdict("notes/config.toml") == verdict("./x/../.git") == "deny"
    assert verdict("rc") == "ask" and verdict("stored/x") == verdict("a" * 5000) == verdict("a\0b") == "allow"


def test_rows_are_listed_added_and_removed(permits: PermissionService, workspace: Path) -> None:
    permits.add(Rule("deny", command="git push"))
    with pytest.raises(ConfigError):
        permits.add(Rule("deny", command="a 'b"))
    assert [rule.shown for rule in permits.rules("s", str(workspace))] == ["git push"]
    assert permits.remove(1).command == "git push" and permits.rules("s", str(workspace)) == ()
