"""Typed rules: which calls a row is about."""

import pytest

from codewhale.permissions.paths import beneath
from codewhale.permissions.rules import RuleFacts, RuleSet, host_of
from codewhale.permissions.shell.judge import ShellContext, analyse
from codewhale.protocol.decisions import DecisionRequest, Rule
from codewhale.protocol.modes import Authority, Mode
from codewhale.protocol.tools import CommandSubject, Effect, JobSubject, PathSubject, Subject, UrlSubject

VIEW = RuleFacts(
    lambda subject: analyse(subject.command, ShellContext("/w")),
    lambda subject: tuple(path for path in [beneath(subject.path, "/w")] if path is not None),
)


def said(rule: Rule, *subjects: Subject, tool: str = "exec_shell", workspace: str = "/w") -> bool:
    """Whether a row says something of a call."""
    request = DecisionRequest(
        tool, (Effect.EXECUTES,), subjects, Mode.AGENT, Authority.PERSON, "s", workspace=workspace
    )
    return bool(RuleSet((rule,)).opinions(request, VIEW))


@pytest.mark.parametrize(
    "line",
    [
        "git push", "cd x && git push", "true; git -C y push", "echo $(git push)", "ls | xargs git push",
        "bash -c 'git push'", "env A=1 git push", "git push > log", "timeout 5 git push", "if true; then git push; fi",
        "git pu''sh", "g\\it push", "(git push)", "! git push", "git push &",
    ],
)  # fmt: skip
def test_a15_a_denied_prefix_is_found_wherever_it_stands(line: str) -> None:
    assert said(Rule("deny", command="git push"), CommandSubject(line))


@pytest.mark.parametrize("line", ["git pull", "echo git push", "ls; git status", "git log --grep push"])
def test_a_denied_prefix_is_not_found_where_it_is_not(line: str) -> None:
    assert not said(Rule("deny", command="git push"), CommandSubject(line))


@pytest.mark.parametrize(
    "line",
    [
        "make test; rm x", "make test | tee x", "make test > x", "A=1 make test", "make test $(x)", "env make test",
        "make test &", "make test\nrm x", "cd x && make test", "make $TEST", "make -C x test",
        "make tes't' && y", "`make test`",
    ],
)  # fmt: skip
def test_a_trusted_prefix_never_allows_more_than_one_plain_command(line: str) -> None:
    assert said(Rule("allow", command="make test"), CommandSubject("make test V=1"))
    assert not said(Rule("allow", command="make test"), CommandSubject(line))


def test_an_exact_command_is_just_that() -> None:
    rule = Rule("allow", command_exact="a | b > c")
    assert said(rule, CommandSubject("a | b > c")) and not said(rule, CommandSubject("a | b > c; d"))


def test_a_line_too_long_to_be_taken_apart_still_meets_what_is_denied() -> None:
    line = "git push " + "x" * 20_000
    assert said(Rule("deny", command="git push"), CommandSubject(line))
    assert not said(Rule("allow", command="git push"), CommandSubject(line))


def test_paths_and_tools() -> None:
    rule = Rule("ask", "write_file", path="migrations/**")
    assert said(rule, PathSubject("migrations/1.sql", True), tool="write_file")
    assert said(rule, PathSubject("./x/../migrations/1.sql", True), tool="write_file")
    assert not said(rule, PathSubject("migrations/1.sql", True), tool="edit_file")
    assert not said(rule, PathSubject("a.py", True), tool="write_file")
    assert said(Rule("deny", "mcp_*"), tool="mcp_x_y") and not said(Rule("deny", "mcp_*"), tool="mc")
    assert said(Rule("deny", "run_tests"), tool="run_tests")


def test_of_several_paths_one_is_enough_to_deny_and_all_are_needed_to_allow() -> None:
    both = (PathSubject("docs/a", True), PathSubject("src/b", True))
    assert said(Rule("deny", path="docs/**"), *both) and not said(Rule("allow", path="docs/**"), *both)
    assert said(Rule("allow", path="docs/**"), both[0], PathSubject("docs/c", True))


@pytest.mark.parametrize(
    ("pattern", "url", "expected"),
    [
        ("example.com", "https://example.com/x", True),
        ("example.com", "https://EXAMPLE.com.:443/x", True),
        ("example.com", "https://www.example.com/", False),
        (".example.com", "https://www.example.com/", True),
        (".example.com", "https://example.com/", False),
        (".example.com", "https://evilexample.com/", False),
        ("example.com", "https://example.com@evil.net/", False),
        ("example.com", "https://evil.net/?example.com", False),
    ],
)
def test_hosts(pattern: str, url: str, expected: bool) -> None:
    assert said(Rule("allow", host=pattern), UrlSubject(url), tool="fetch_url") is expected


def test_a_row_of_another_folder_says_nothing() -> None:
    rule = Rule("deny", command="ls", workspace="/w")
    assert said(rule, CommandSubject("ls")) and said(rule, CommandSubject("ls"), workspace="/w/sub")
    assert not said(rule, CommandSubject("ls"), workspace="/w-other")


def test_a_selector_meets_only_subjects_of_its_kind() -> None:
    assert not said(Rule("deny", path="**"), CommandSubject("ls")) and not said(
        Rule("deny", command="ls"), JobSubject("j")
    )


def test_only_the_persons_row_lifts_the_floor_and_only_for_the_whole_line() -> None:
    request = DecisionRequest("exec_shell", (), (), Mode.YOLO, Authority.AUTO, "s", workspace="/w")
    line = "git push --force origin main"
    own = RuleSet([Rule("floor_exception", command_exact=line)])
    assert own.lifts(line, request) is not None and own.lifts(line + " ", request) is None
    assert own.lifts("true; " + line, request) is None
    for rule in (
        Rule("allow", command_exact=line),
        Rule("floor_exception", command_exact=line, source="project"),
        Rule("floor_exception", command_exact=line, workspace="/elsewhere"),
    ):
        assert RuleSet([rule]).lifts(line, request) is None


def test_a_row_that_cannot_be_read_is_named() -> None:
    with pytest.raises(ValueError, match='row 3: command "a \'b"'):
        RuleSet([Rule("deny", command="a 'b", row=3)])


@pytest.mark.parametrize(("url", "host"), [("https://A.b./x", "a.b"), ("nonsense", ""), ("http://[::1", "")])
def test_hosts_of_addresses(url: str, host: str) -> None:
    assert host_of(url) == host
