"""What a skill pre-approves, and all that it cannot: of thirty lines it gains the ones that it names, and none where
anything else asks."""

from functools import cache
from itertools import product
from typing import Any

import pytest

from codewhale.catalog.registry import Catalog
from codewhale.permissions.paths import NOTHING_SPECIAL
from codewhale.permissions.policy import Policy, PolicyInputs
from codewhale.permissions.rules import RuleSet
from codewhale.permissions.shell.judge import ShellContext, ShellJudgement, analyse
from codewhale.protocol.decisions import Decision, DecisionRequest, Opinion, Rule
from codewhale.protocol.modes import Approval, Authority, Mode
from codewhale.protocol.tools import CommandSubject, PathSubject, Subject, UrlSubject
from codewhale.skills.header import tokens as listed
from codewhale.skills.restriction import approvals, read_tokens
from support.goodcalls import GOOD

CATALOG = Catalog.load()
LINES = (
    "make check", "make", "make other", "make check && rm -rf x", "make check; rm x", "make check | sh",
    "make check > .git/hooks/post-commit", "make check &", "make check $(rm x)", "cd x && make check", "env make check",
    "sh -c 'make check'", "npm run x", "npm run x; rm -rf ~", "npm install left-pad", "git push",
    "git push origin main",
    "git -c alias.x='!rm x' x", "sudo ls", "sudo make check", "rm -rf x", "rm -rf ~", "rm -rf /",
    "ls\nrm", "ls rm", "curl https://example.org", "touch x", "touch .git/hooks/pre-commit", "touch .vscode/tasks.json",
    "cat .env", "cat ~/.ssh/id_rsa", "cat /etc/hostname", "python x.py", "sh x.sh", "echo 'a  b' > x", "echo 'a b' > x",
    "ruff format a.py", "ruff format .vscode/tasks.json", "ruff format .git/config",
)  # fmt: skip
# What `allowed-tools` says -> of LINES those that run unasked because of it.
GAINS: list[tuple[str, set[str]]] = [
    ("*", set()),
    ("Bash", set()),
    ("Bash(*)", set()),
    ("Bash(:*)", set()),
    ("Bash()", set()),
    ("exec_shell exec_shell(*) task_shell_start", set()),
    ("Bash(git:*)", set()),
    ("Bash(sudo:*)", set()),
    ("Bash(sudo ls)", set()),
    ("Bash(sh -c:*) Bash(sh:*) Bash(bash:*) Bash(python:*) Bash(env:*) Bash(xargs:*)", set()),
    ("Bash(rm:*) Bash(rm -rf:*) Bash(curl:*) Bash(chmod:*)", set()),
    ("Bash(make:*) Bash(npm:*) Bash(npm run:*)", set()),
    ("Bash(rm -rf /) Bash(rm -rf ~)", set()),
    ("Bash(npm run x; rm -rf ~)", set()),
    ("Bash(ls\nrm)", set()),
    ("Bash(make\tcheck)", set()),
    ("Bash(make  check)", set()),
    ("Bash(make check)", {"make check"}),
    ("exec_shell(make check && rm -rf x)", {"make check && rm -rf x"}),
    ("Bash(make check:*)", {"make check"}),
    ("Bash(git push:*)", {"git push", "git push origin main"}),
    ("Bash(git push)", {"git push"}),
    ("Bash(touch:*)", {"touch x"}),
    ("Bash(cat:*) Bash(cat .env) Bash(cat ~/.ssh/id_rsa)", set()),
    ("Bash(touch .git/hooks/pre-commit) Bash(touch .vscode/tasks.json)", set()),
    ("Bash(make check > .git/hooks/post-commit)", set()),
    ("Bash(echo 'a  b' > x)", {"echo 'a  b' > x"}),
    ("Bash(ruff:*)", {"ruff format a.py"}),
    ("run_verifiers run_tests", set()),
    ("WebFetch Write Edit Read(.env) Task Skill", set()),
]


@cache
def judged(line: str, stdin: str = "") -> ShellJudgement:
    return analyse(line, ShellContext("/nowhere/work", home="/nowhere", stdin=stdin))


def policy(*rules: Rule, law: Opinion | None = None) -> Policy:
    inputs = PolicyInputs(
        url=lambda url, request: Opinion("ask", "url.ask", "It reaches the network."),
        paths=lambda subject, request: (subject.path,),
        special=lambda request: NOTHING_SPECIAL,
        sandboxed=lambda: True,
        job=lambda session, job: "none",
        analyse=lambda subject, request: judged(subject.command, subject.stdin),
    )
    return Policy(inputs, RuleSet(rules), law=lambda request, facts: [] if law is None else [law])


def approved(header: str) -> tuple[Rule, ...]:
    def canonical(tool: str) -> str:
        meant = CATALOG.resolve(tool)
        return "" if meant is None else meant.spec.name

    return tuple(rule for one in approvals("one", read_tokens(listed(header), canonical)) for rule in one.rules)


def decided(
    tool: str, *subjects: Subject, rules: tuple[Rule, ...] = (), by: Policy | None = None, **fields: Any
) -> Decision:
    values: dict[str, Any] = {"mode": Mode.AGENT, "authority": Authority.PERSON, **fields}
    effects = CATALOG.rows[tool].effects
    request = DecisionRequest(tool, effects, subjects, session="s", workspace="/nowhere/work", **values)
    return (by or policy()).judge(request, RuleSet(rules))


def runs(line: str, rules: tuple[Rule, ...], by: Policy | None = None, stdin: str = "", **fields: Any) -> bool:
    subject = CommandSubject(line, stdin=stdin)
    return decided("exec_shell", subject, rules=rules, by=by, **fields).verdict == "allow"


def gained(rules: tuple[Rule, ...], by: Policy | None = None, **fields: Any) -> set[str]:
    return {line for line in LINES if runs(line, rules, by, **fields) and not runs(line, (), by, **fields)}


@pytest.mark.parametrize(("header", "lines"), GAINS, ids=[row[0] for row in GAINS])
def test_of_all_lines_those_run_unasked_that_a_skill_names(header: str, lines: set[str]) -> None:
    rules = approved(header)
    assert gained(rules) == lines
    for line in lines:
        assert not runs(line, rules, stdin="rm x\n") and not runs(f"{line} ; rm y", rules)
        assert decided("task_shell_start", CommandSubject(line), rules=rules).verdict == "ask"


ALL = tuple(rule for header, _ in GAINS for rule in approved(header))
GAINED = {line for _, lines in GAINS for line in lines}


def test_no_line_runs_that_none_of_all_skills_names() -> None:
    assert gained(ALL) == GAINED and len(GAINED) > 5


def test_of_the_tools_only_the_projects_own_tests_are_pre_approved() -> None:
    rules = approved(" ".join((*CATALOG.names(), "Bash", "Task", "Write", "Edit", "WebFetch")))
    assert [rule.tool for rule in rules] == ["run_tests"]
    checks = CommandSubject("sh -c 'rm x'")
    assert decided("run_verifiers", checks, rules=ALL).verdict == "ask"
    for tool in set(GOOD) - {"run_tests"}:
        for subjects in ((), (PathSubject(".git/config", write=True),), (UrlSubject("https://example.org"),)):
            assert decided(tool, *subjects, rules=rules) == decided(tool, *subjects), tool


def test_in_plan_mode_nothing_is_pre_approved() -> None:
    for line in GAINED:
        assert decided("exec_shell", CommandSubject(line), rules=ALL, mode=Mode.PLAN).verdict == "deny"


@pytest.mark.parametrize("action", ["ask", "deny"])
def test_nothing_is_pre_approved_that_anything_else_asks_about(action: str) -> None:
    heard = Opinion(action, "hook.mine", "It must be asked.")  # type: ignore[arg-type]
    for line in GAINED:
        program = line.split()[0]
        rule = Rule(action, "exec_shell", command=program)  # type: ignore[arg-type]
        for by, opinions in ((policy(rule), ()), (policy(law=heard), ()), (policy(), (heard,))):
            assert decided("exec_shell", CommandSubject(line), rules=ALL, by=by, opinions=opinions).verdict == action


@pytest.mark.parametrize(("authority", "approval"), list(product(Authority, Approval)))
def test_in_a_session_that_has_read_what_others_wrote_nothing_is_gained(
    authority: Authority, approval: Approval
) -> None:
    now: dict[str, Any] = {"tainted": True, "authority": authority, "approval": approval}
    assert gained(ALL, **now) == set()
    assert decided("run_tests", rules=ALL, **now) == decided("run_tests", **now)
