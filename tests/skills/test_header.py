"""What the header of a SKILL.md comes to: fields of the standard, ours, those of other programs, what is forgiven."""

import os
from pathlib import Path

import pytest

from codewhale.skills.header import read_header, workflow_fault
from codewhale.skills.model import Activation, Skill

FILE = "/somewhere/pdf/SKILL.md"


def read(head: str, file: str = FILE) -> tuple[Skill, tuple[str, ...]]:
    """The skill of a header of these lines, which has a description."""
    return read_header(file, f"---\ndescription: Says what.\n{head}\n---\nBody.\n".encode())


def ours(*lines: str) -> Skill:
    """The skill with these lines under `metadata`."""
    skill, notes = read("name: pdf\nmetadata:\n" + "".join(f"  {line}\n" for line in lines))
    assert not notes
    return skill


def test_the_fields_of_the_standard_are_taken_over() -> None:
    head = "name: pdf\nlicense: MIT\ncompatibility: Needs poppler\nallowed-tools: Read Bash(git add:*)"
    skill, notes = read(head)
    assert (skill.name, skill.description, skill.license) == ("pdf", "Says what.", "MIT")
    assert (skill.compatibility, skill.approved, skill.tools) == ("Needs poppler", ("Read", "Bash(git add:*)"), None)
    assert (skill.activation, skill.plan, notes) == (Activation.MODEL, True, ())
    assert skill.size == len(head) + len("---\ndescription: Says what.\n\n---\nBody.\n") and len(skill.sha256) == 64


@pytest.mark.parametrize(
    ("value", "wanted"),
    [
        ("read_file grep_files exec_shell(git:*)", ("read_file", "grep_files", "exec_shell(git:*)")),
        ("Read, Grep,Bash(npm run test:*), Read", ("Read", "Grep", "Bash(npm run test:*)")),
        ("[Read, 'Bash(git log:*)']", ("Read", "Bash(git log:*)")),
        ("\n    - Read\n    - Bash(make *)", ("Read", "Bash(make *)")),
        ("Bash(echo (a b), c) Edit", ("Bash(echo (a b), c)", "Edit")),
        ("Bash(git status Edit", ("Bash(git status Edit",)),
        ("'*'", ("*",)),
        ("*", ("*",)),
    ],
)
def test_tools_are_the_tokens_as_they_are_written(value: str, wanted: tuple[str, ...]) -> None:
    assert ours(f"codewhale-tools: {value}").tools == wanted
    assert read(f"name: pdf\nallowed-tools: {value}")[0].approved == wanted


@pytest.mark.parametrize("value", ["''", "", "{a: b}"])
def test_a_restriction_that_names_nothing_leaves_nothing(value: str) -> None:
    skill, notes = read(f"name: pdf\nmetadata:\n  codewhale-tools: {value}")
    assert skill.tools == () and "names no tool" in notes[0]


def test_a_restriction_beside_metadata_counts_too() -> None:
    skill, notes = read("name: pdf\ncodewhale-tools: read_file\nmetadata: none")
    assert skill.tools == ("read_file",) and "belongs under metadata" in notes[0] and "no table" in notes[1]


@pytest.mark.parametrize(
    ("value", "wanted"),
    [
        ("'*.py, src/**/*.{ts,tsx}'", ("*.py", "src/**/*.{ts,tsx}")),
        ("*.py src/**", ("*.py", "src/**")),
        ("**/*.go", ("**/*.go",)),
        ("['*.a', '*.b *.c']", ("*.a", "*.b", "*.c")),
        ("\n    - *.py\n    - docs/{a, b}.md", ("*.py", "docs/{a, b}.md")),
    ],
)
def test_globs_stand_between_commas_or_spaces_and_make_it_a_glob_skill(value: str, wanted: tuple[str, ...]) -> None:
    skill = ours(f"codewhale-globs: {value}")
    assert (skill.globs, skill.activation) == (wanted, Activation.GLOB)
    claude = read(f"name: pdf\npaths: {value}")[0]
    assert (claude.globs, claude.activation) == (wanted, Activation.GLOB)


@pytest.mark.parametrize(
    ("head", "activation", "plan"),
    [
        ("metadata: {codewhale-activation: always}", Activation.ALWAYS, True),
        ("metadata: {codewhale-activation: MANUAL}", Activation.MANUAL, False),
        ("metadata: {codewhale-activation: model, codewhale-plan: 'false'}", Activation.MODEL, False),
        ("metadata: {codewhale-plan: no}", Activation.MODEL, False),
        ("metadata: {codewhale-activation: model, codewhale-globs: '*.py'}", Activation.MODEL, True),
        ("disable-model-invocation: true", Activation.MANUAL, False),
        ("disable-model-invocation: True\npaths: '*.py'", Activation.MANUAL, False),
        ("disable-model-invocation: false\npaths: '*.py'", Activation.GLOB, True),
        ("invocation: explicit-only", Activation.MANUAL, False),
        ("disable-model-invocation: true\nmetadata: {codewhale-activation: always}", Activation.ALWAYS, True),
    ],
)
def test_when_it_applies_is_said_in_our_words_or_in_others(head: str, activation: Activation, plan: bool) -> None:
    skill, notes = read(f"name: pdf\n{head}")
    assert (skill.activation, skill.plan, notes) == (activation, plan, ())


@pytest.mark.parametrize(
    ("head", "note"),
    [
        ("name: other", "its name is not that of its folder, 'pdf'"),
        ("name: PDF", "capitals"),
        ("name: pdf--x", "single hyphens"),
        ("name: pdf reader", "letters, digits"),
        ("name: " + "x" * 65, "longer than 64"),
        ("name: pdf\nmetadata: {codewhale-activation: sometimes}", "always, glob, model, manual"),
        ("name: pdf\nmetadata: {codewhale-activation: glob}", "codewhale-globs names none"),
        ("name: pdf\nmetadata: {codewhale-globs: '[z-a]'}", "globs cannot be used"),
        ("name: pdf\nmetadata: {codewhale-workflow: ../../steal.star}", "no path below its folder"),
        ("name: pdf\nmetadata: {codewhale-workflow: /etc/passwd}", "no path below its folder"),
    ],
)
def test_what_is_odd_is_noted_and_the_skill_is_used(head: str, note: str) -> None:
    skill, notes = read(head)
    assert any(note in one for one in notes) and skill.activation is Activation.MODEL and skill.workflow == ""


def test_the_name_of_the_header_counts_and_else_the_folders() -> None:
    assert read("name: other")[0].name == "other"
    assert read("license: MIT")[0].name == "pdf" and read("license: MIT")[1] == ()
    assert read("name: ｐｄｆ")[0].name == "pdf"


@pytest.mark.parametrize(
    ("head", "why"),
    [
        ("name: ../x", "cannot be used"),
        ("name: ''", "cannot be used"),
        ('name: "a\\e]0;x\\a"', r"'a\x1b]0;x\x07'"),
        ('name: "a\\u202eb"', r"'a\u202eb'"),
        ("name: " + "x" * 300, "cannot be used"),
        ("name: [unclosed\nlicense: x", "did not find expected ',' or ']' at line"),
        ("license: \x1b[2J", "control characters are not allowed"),
    ],
)
def test_what_cannot_be_used_says_why_with_escapes_made_visible(head: str, why: str) -> None:
    with pytest.raises(ValueError) as caught:
        read(head)
    assert why in str(caught.value) and "\x1b" not in str(caught.value)


def test_a_colon_in_one_text_loses_no_other_field() -> None:
    text = b"---\nname: pdf\ndescription: Use when: always\nmetadata:\n  codewhale-tools: read_file\n---\n"
    skill, notes = read_header(FILE, text)
    assert (skill.description, skill.tools, notes) == ("Use when: always", ("read_file",), ())
    over_lines = b"---\ndescription: Use it for\n  two: things\n  and more\nallowed-tools: Read\n---\n"
    skill, notes = read_header(FILE, over_lines)
    assert (skill.description, skill.approved) == ("Use it for two: things and more", ("Read",))


def test_a_workflow_stands_in_the_skills_own_folder(tmp_path: Path) -> None:
    folder = tmp_path / "pdf"
    (folder / "workflows").mkdir(parents=True)
    (folder / "workflows/fix.star").write_text("")
    (tmp_path / "other.star").write_text("")
    os.symlink(tmp_path / "other.star", folder / "link.star")

    def fault(path: str) -> str:
        head = f"name: pdf\nmetadata: {{codewhale-workflow: {path}}}"
        return workflow_fault(read(head, str(folder / "SKILL.md"))[0])

    assert fault("workflows/fix.star") == ""
    assert "no file of its folder" in fault("link.star") and "no file of its folder" in fault("missing.star")
