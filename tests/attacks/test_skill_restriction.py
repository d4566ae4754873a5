"""What active skills leave of the tools: every tool under thirty skills and under every two of them, and the command
lines by which something else would ride along. Nothing outside what a skill names is allowed in any mode."""

from functools import cache
from itertools import combinations, product

import pytest

from codewhale.catalog.registry import Catalog
from codewhale.permissions.paths import NOTHING_SPECIAL
from codewhale.permissions.policy import Policy, PolicyInputs
from codewhale.permissions.shell.judge import ShellContext, ShellJudgement, analyse
from codewhale.protocol.decisions import Decision, DecisionRequest
from codewhale.protocol.modes import Approval, Authority, Mode
from codewhale.protocol.scopes import Scope, within
from codewhale.protocol.tools import CommandSubject, Effect, JobSubject, Subject
from codewhale.skills.restriction import read_tokens, restriction
from support.goodcalls import GOOD

CATALOG = Catalog.load()
SHELL = ("exec_shell", "exec_shell_wait", "exec_shell_cancel")
AGENTS = ("agent_open", "agent_eval", "agent_close")
LINES = ("git log", "git log --oneline", "git status", "make check", "rm -rf x", "git log && make check")
LOG = {"git log", "git log --oneline"}
# What a header names -> the tools that may be called, and of LINES those that may be run (None: all of them).
SKILLS: list[tuple[str, tuple[str, ...], set[str] | None]] = [
    ("", (), set()),
    ("read_file", ("read_file",), set()),
    ("Read", ("read_file",), set()),
    ("Read Grep Glob LS", ("read_file", "grep_files", "file_search", "list_dir"), set()),
    ("Read Edit Write MultiEdit", ("read_file", "edit_file", "apply_patch", "write_file"), set()),
    ("TodoWrite TodoRead", ("checklist_write", "checklist_add", "checklist_update", "checklist_list"), set()),
    ("WebFetch WebSearch", ("fetch_url", "web_search"), set()),
    ("Task", AGENTS, set()),
    ("Agent Read", (*AGENTS, "read_file"), set()),
    ("Bash", SHELL, None),
    ("Bash(*)", SHELL, None),
    ("Bash(:*)", SHELL, None),
    ("Bash(git log:*)", SHELL, LOG),
    ("Bash(git log *)", SHELL, LOG),
    ("Bash(git log)", SHELL, {"git log"}),
    ("Bash(git:*)", SHELL, LOG | {"git status"}),
    ("Bash(git log:*) Bash(make check)", SHELL, {*LOG, "make check", "git log && make check"}),
    ("Bash(git log:*) exec_shell_interact", (*SHELL, "exec_shell_interact"), LOG),
    ("exec_shell(make check)", ("exec_shell",), {"make check"}),
    ("task_shell_start(git log:*) task_shell_wait", ("task_shell_start", "task_shell_wait"), LOG),
    ("exec_shell(make check) task_shell_start(git log)", ("exec_shell", "task_shell_start"), None),
    ("Bash()", (), set()),
    ("Bash( )", (), set()),
    ("Bash(echo $(rm x))", (), set()),
    ("*", (), set()),
    ("exec_* git_*", (), set()),
    ("nothing_such Read", ("read_file",), set()),
    ("Read(src/**)", (), set()),
    ("run_tests", ("run_tests",), set()),
    ("load_skill tool_search_tool_bm25 Skill", ("load_skill", "tool_search_tool_bm25"), set()),
    ("mcp__server__tool Bash(rm:*)", SHELL, {"rm -rf x"}),
]
ALWAYS = {"request_user_input"}


@cache
def judged(line: str, stdin: str = "") -> ShellJudgement:
    return analyse(line, ShellContext("/nowhere/work", home="/nowhere", stdin=stdin))


POLICY = Policy(
    PolicyInputs(
        url=lambda url, request: None,
        paths=lambda subject, request: (),
        special=lambda request: NOTHING_SPECIAL,
        sandboxed=lambda: True,
        job=lambda session, job: "workspace-write",
        analyse=lambda subject, request: judged(subject.command, subject.stdin),
    )
)


@cache
def scope(tokens: str, name: str = "one") -> Scope:
    def canonical(tool: str) -> str:
        meant = CATALOG.resolve(tool)
        return "" if meant is None else meant.spec.name

    from codewhale.skills.header import tokens as listed

    return restriction(name, read_tokens(listed(tokens), canonical))


def decided(tool: str, left: Scope | None, *subjects: Subject, mode: Mode = Mode.YOLO) -> Decision:
    return POLICY.decide(
        DecisionRequest(
            tool, CATALOG.rows[tool].effects, subjects, mode, Authority.AUTO, "s", approval=Approval.AUTO,
            workspace="/nowhere/work", scope=left,
        )
    )  # fmt: skip


def refused(decision: Decision) -> bool:
    return decision.verdict == "deny" and decision.rule.startswith("skill.")


def runs(tool: str, line: str, left: Scope, stdin: str = "") -> bool:
    return not refused(decided(tool, left, CommandSubject(line, stdin=stdin)))


def allowed(left: Scope) -> set[str]:
    return {tool for tool in CATALOG.names() if not refused(decided(tool, left))}


def may_run(left: Scope) -> set[tuple[str, str]]:
    tools = ("exec_shell", "task_shell_start")
    return {(tool, line) for tool, line in product(tools, LINES) if runs(tool, line, left)}


def test_the_tables_speak_of_every_tool() -> None:
    assert set(GOOD) == set(CATALOG.names()) and len(SKILLS) >= 30


@pytest.mark.parametrize(("tokens", "tools", "lines"), SKILLS, ids=[row[0] for row in SKILLS])
def test_a_skill_leaves_the_tools_it_names_and_no_other(
    tokens: str, tools: tuple[str, ...], lines: set[str] | None
) -> None:
    left = scope(tokens)
    assert allowed(left) == ALWAYS | set(tools)
    for tool in {"exec_shell", "task_shell_start"} & set(tools) if lines is not None else ():
        assert {line for tool_, line in may_run(left) if tool_ == tool} == lines
    assert "exec_shell" in tools or not {tool for tool, _ in may_run(left)} - set(tools)


def test_a_second_skill_never_widens() -> None:
    alone = {tokens: (allowed(scope(tokens)), may_run(scope(tokens))) for tokens, _, _ in SKILLS}
    for (one, *_), (other, *_) in combinations(SKILLS, 2):
        for first, second in ((one, other), (other, one)):
            both = within(scope(second, "two"), scope(first))
            assert allowed(both) == alone[one][0] & alone[other][0], (first, second)
            assert may_run(both) == alone[one][1] & alone[other][1], (first, second)


def test_what_two_scopes_leave_each_leaves() -> None:
    patterns = ["".join(word) for size in (1, 2) for word in product("a?*", repeat=size)] + ["a[b", "[!a]", "a[?*]"]
    names = ["".join(word) for size in (1, 2, 3) for word in product("ab", repeat=size)]
    for one, other in product(patterns, repeat=2):
        first, second = Scope(tools=(one, "bb")), Scope(tools=(other,), without=("ba",))
        both = within(first, second)
        left = [name for name in names if both.names(name)]
        assert left == [name for name in left if first.names(name) and second.names(name)], (one, other)
        if one.isalpha() or other.isalpha() or one == other:
            assert left == [name for name in names if first.names(name) and second.names(name)], (one, other)


# Each would run something beside `git log`, or is not sure to run it alone.
RIDES = [
    "git log && touch x", "git log; touch x", "git log | sh", "git log || touch x", "git log & touch x", "git log &",
    "git log\ntouch x", "touch x\ngit log", "git log #\ntouch x", "git log \\\n; touch x", "(git log; touch x)",
    "{ git log; touch x; }", "if git log; then touch x; fi", "while touch x; do git log; done",
    "for x in 1; do touch $x; git log; done", "case a in a) touch x;; esac; git log", "! touch x && git log",
    "git log $(touch x)", "git log `touch x`", 'git log "$(touch x)"', "git log <(touch x)", "git log >(touch x)",
    "git log ${x:-$(touch x)}", "git log $((a[$(touch x)]))", "git log > x", "git log >> x", "git log 2>x",
    "git log &>x", "git log >|x", "git log <>x", "git log <<E\n$(touch x)\nE", "git log <<<$(touch x)",
    "cd x && git log", "cd x; git log", "pushd x && git log", "env git log", "env -i git log", "env X=1 git log",
    "GIT_PAGER=./x git log", "GIT_EXTERNAL_DIFF=./x git log -p", "export GIT_PAGER=./x; git log",
    "command git log", "exec git log", "builtin git log", "nohup git log", "nice git log", "timeout 5 git log",
    "time git log", "setsid git log", "stdbuf -o0 git log", "sudo git log", "xargs git log", "eval git log",
    "sh -c 'git log'", "bash -c 'git log; touch x'", "sh -c 'touch x' git log", "find . -exec git log ';'",
    "git -c alias.log='!touch x' log", "git -c core.pager=./x log", "git -C x log", "git --exec-path=. log",
    "git --git-dir=x log", "git  --no-pager log", "git logs", "git-log", "gitlog", "'git log'", "./git log",
    "/usr/bin/git log", "ｇit log", "gіt log", "git\u00a0log", "git log\u2028touch x", "git log\rtouch x",
    "git log\u200b", "git log $'\\n'touch x", "git log $x", "git log *", "alias git=touch; git log",
    "git() { touch x; }; git log", "function git { touch x; }; git log", "hash -p ./x git; git log",
    "trap 'touch x' EXIT; git log", "coproc git log", "source git log", ". git log", "set -x; git log",
    "PATH=. git log", "git log;", "git log {a,b}", "git log ~/x", "git log" + " a" * 9000, "touch x #git log",
]  # fmt: skip


@pytest.mark.parametrize("line", RIDES)
def test_nothing_rides_along_with_a_command_that_a_skill_leaves(line: str) -> None:
    if line == "git log;":
        assert runs("exec_shell", line, scope("Bash(git log:*)"))
        return
    for tool in ("exec_shell", "task_shell_start"):
        assert not runs(tool, line, scope(f"{tool}(git log:*)"))


HARMLESS = [
    "git log",
    "git  log -p",
    "git log && git log -1",
    "git log -- a.txt",
    "git log 2>&1",
    "git log #x",
    "( git log )",
]


@pytest.mark.parametrize("line", HARMLESS)
def test_a_command_that_a_skill_leaves_runs_however_it_is_written(line: str) -> None:
    assert runs("exec_shell", line, scope("Bash(git log:*)"))


def test_input_that_a_program_may_run_is_no_command_that_a_skill_leaves() -> None:
    left = scope("Bash(cat:*) Bash(git log) task_shell_start(cat) exec_shell_interact")
    for tool in ("exec_shell", "task_shell_start"):
        assert not runs(tool, "cat", left, stdin="touch x")
    for text in ("touch x\n", "git log\n", "\x03"):
        assert refused(decided("exec_shell_interact", left, JobSubject("job_1", text)))
    assert not refused(decided("exec_shell_interact", left, JobSubject("job_1", "")))
    assert not refused(decided("exec_shell_cancel", left, JobSubject("*")))
    free = scope("Bash exec_shell_interact")
    assert not refused(decided("exec_shell_interact", free, JobSubject("job_1", "touch x\n")))
    assert refused(decided("exec_shell_interact", within(free, left), JobSubject("job_1", "touch x\n")))


@pytest.mark.parametrize("mode", list(Mode))
def test_no_mode_lifts_a_restriction_and_the_way_out_is_named(mode: Mode) -> None:
    for tool in CATALOG.names():
        decision = decided(tool, scope(""), mode=mode)
        plan = mode is Mode.PLAN and {Effect.WRITES, Effect.EXECUTES} & set(CATALOG.rows[tool].effects)
        assert (decision.verdict == "deny") is (tool not in ALWAYS), tool
        assert tool in ALWAYS or plan or ("/skill off" in decision.reason and "no tools" in decision.reason)
