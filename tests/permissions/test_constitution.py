"""The project's own law: what its rows say of calls."""

import msgspec
import pytest

from codewhale.permissions.clauses import parse_clauses
from codewhale.permissions.constitution import Constitution
from codewhale.permissions.paths import beneath
from codewhale.permissions.rules import RuleFacts
from codewhale.permissions.shell.judge import ShellContext, analyse
from codewhale.protocol.decisions import DecisionRequest
from codewhale.protocol.modes import Authority, Mode
from codewhale.protocol.tools import CommandSubject, Effect, PathSubject, Subject

VIEW = RuleFacts(
    lambda subject: analyse(subject.command, ShellContext("/w")),
    lambda subject: tuple(path for path in [beneath(subject.path, "/w")] if path is not None),
)


def law_of(folder: str = "", **fields: object) -> Constitution:
    return Constitution(parse_clauses("c.json", msgspec.json.encode(fields)).clauses, folder)


LAW = law_of(
    protected_invariants=[
        {"text": "it is made by a program", "paths": ["src/generated/**"]}, "be kind",
        {"paths": ["LICENSE"], "action": "block"},
    ]
)  # fmt: skip


def said(subject: Subject, law: Constitution = LAW) -> str:
    """The verdict of the law and the row that says it."""
    request = DecisionRequest("any", (Effect.WRITES,), (subject,), Mode.YOLO, Authority.PERSON, "s", workspace="/w")
    opinions = sorted(law.opinions(request, VIEW), key=lambda opinion: opinion.verdict != "deny")
    return f"{opinions[0].verdict} {opinions[0].rule}" if opinions else ""


def test_writing_is_held_and_reading_is_not() -> None:
    assert said(PathSubject("src/generated/a.py", write=True)) == "ask constitution.1"
    assert said(PathSubject("sub/LICENSE", write=True)) == "deny constitution.3"
    assert said(PathSubject("src/generated/a.py")) == said(PathSubject("src/a.py", write=True)) == ""


@pytest.mark.parametrize(
    "line",
    [
        "rm LICENSE", "echo x > LICENSE", "cat a >>./LICENSE", "make && mv x LICENSE", "dd if=a of=LICENSE",
        "sed -i s/a/b/ 'LICENSE'", "bash -c 'touch LICENSE'", "rm src/generated/x LICENSE",
    ],
)  # fmt: skip
def test_a_command_line_that_writes_such_a_path_is_held(line: str) -> None:
    assert said(CommandSubject(line)) == "deny constitution.3"


def test_a_folder_taken_as_a_whole_is_held_for_what_is_in_it() -> None:
    assert said(CommandSubject("rm -r src")) == said(CommandSubject("mv src old")) == "ask constitution.1"
    assert said(CommandSubject("rm -r srcs")) == said(CommandSubject("pytest src")) == ""
    assert said(CommandSubject("rm generated/x", cwd="src")) == "ask constitution.1"


@pytest.mark.parametrize("line", ["cat LICENSE", "git diff LICENSE", "make test", "grep x src/generated/a.py | wc -l"])
def test_a_line_that_only_reads_is_not_held(line: str) -> None:
    assert said(CommandSubject(line)) == ""


def test_a_law_from_above_names_paths_from_there() -> None:
    law = law_of("part", protected_invariants=["a", {"paths": ["part/docs/*"]}])
    assert said(PathSubject("docs/a.md", write=True), law) == "ask constitution.2"
    assert said(PathSubject("part/docs/a.md", write=True), law) == ""


def test_branches_commands_and_tools_are_held_and_texts_are_not() -> None:
    law = law_of(
        branch_policy={"protected": ["main", "release/*"], "action": "block"},
        escalate_when=[{"text": "spends", "commands": ["terraform apply"]}, {"tools": ["fetch_*"]}, "when in doubt"],
    )
    assert said(CommandSubject("git push origin x:release/2"), law) == "deny constitution.branch.1"
    assert said(CommandSubject("git push origin release/2"), law) == "deny constitution.branch.1"
    assert said(CommandSubject("git push origin x:topic"), law) == ""
    assert said(CommandSubject("cd x && terraform -chdir=y apply"), law) == "ask constitution.escalation.1"
    asked = DecisionRequest("fetch_url", (Effect.READS,), (), Mode.YOLO, Authority.PERSON, "s", workspace="/w")
    (opinion,) = law.opinions(asked, VIEW)
    assert (opinion.verdict, opinion.rule) == ("ask", "constitution.escalation.2") and opinion.clause is None


def test_what_is_blocked_names_the_clause_that_a_person_may_lift() -> None:
    request = DecisionRequest(
        "any", (Effect.WRITES,), (PathSubject("LICENSE", True),), Mode.YOLO, Authority.AUTO, "s", workspace="/w"
    )
    (opinion,) = LAW.opinions(request, VIEW)
    assert opinion.clause is not None and opinion.clause.id == LAW.clauses[2].id in opinion.reason
