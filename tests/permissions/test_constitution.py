"""The project's own law: what its rows say of calls."""

import pytest

from codewhale.permissions.constitution import Constitution
from codewhale.permissions.paths import beneath
from codewhale.permissions.rules import RuleFacts
from codewhale.permissions.shell.judge import ShellContext, analyse
from codewhale.protocol.decisions import DecisionRequest, Rule
from codewhale.protocol.modes import Authority, Mode
from codewhale.protocol.tools import CommandSubject, Effect, PathSubject, Subject

VIEW = RuleFacts(
    lambda subject: analyse(subject.command, ShellContext("/w")),
    lambda subject: tuple(path for path in [beneath(subject.path, "/w")] if path is not None),
)
LAW = (
    Rule("ask", path="src/generated/**", reason="it is made by a program", source="constitution", row=1),
    Rule("deny", path="LICENSE", source="constitution", row=3),
)


def said(subject: Subject, law: Constitution = Constitution(LAW)) -> str:  # noqa: B008
    """The verdict of the law and the row that says it."""
    request = DecisionRequest("any", (Effect.WRITES,), (subject,), Mode.YOLO, Authority.PERSON, "s", workspace="/w")
    opinion = law.opinion(request, VIEW)
    return f"{opinion.verdict} {opinion.rule}" if opinion is not None else ""


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
    law = Constitution((Rule("ask", path="part/docs/*", source="constitution", row=2),), "part")
    assert said(PathSubject("docs/a.md", write=True), law) == "ask constitution.2"
    assert said(PathSubject("part/docs/a.md", write=True), law) == ""
