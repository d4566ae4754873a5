"""The open standard to the letter: the cases of its reference validator in our words, and the YAML that it takes."""

from pathlib import Path

import pytest

from codewhale.skills.validate import Checked, check


def judged(folder: Path, head: str, file: str = "SKILL.md") -> Checked:
    """What is said of a folder with this header."""
    folder.mkdir(parents=True)
    (folder / file).write_text(f"---\n{head}\n---\nBody.\n")
    (one,) = check(str(folder))
    return one


ALL = (
    "name: all\ndescription: d\nlicense: MIT\ncompatibility: Needs git\n"
    "allowed-tools: Bash(git:*) Read\nmetadata:\n  a: '1'"
)


@pytest.mark.parametrize(
    ("folder", "head"),
    [
        ("my-skill", "name: my-skill\ndescription: A thing"),
        ("all", ALL),
        ("tools", "name: tools\ndescription: d\nallowed-tools: Bash(jq:*) Bash(git:*)"),
        ("技能", "name: 技能\ndescription: 名字是中文的"),
        ("мой-навык", "name: мой-навык\ndescription: d"),
        ("навык", "name: навык\ndescription: d"),
        ("needs", "name: needs\ndescription: d\ncompatibility: Requires Python 3.11+"),
        ("cafe\u0301", "name: caf\u00e9\ndescription: d"),
        ("x" * 64, f"name: {'x' * 64}\ndescription: {'d' * 1024}\ncompatibility: {'c' * 500}"),
        ("block", "name: block\ndescription: >\n  Two\n  lines --- with dashes."),
    ],
)
def test_what_the_standard_takes_is_valid(folder: str, head: str, tmp_path: Path) -> None:
    one = judged(tmp_path / folder, head)
    assert one.valid and not one.notes


@pytest.mark.parametrize(
    ("folder", "head", "fault"),
    [
        ("MySkill", "name: MySkill\ndescription: d", "capitals"),
        ("x" * 70, f"name: {'x' * 70}\ndescription: d", "longer than 64"),
        ("-my", "name: -my\ndescription: d", "hyphens"),
        ("a--b", "name: a--b\ndescription: d", "hyphens"),
        ("a_b", "name: a_b\ndescription: d", "letters, digits"),
        ("other", "name: right\ndescription: d", "its folder, 'other'"),
        ("a", "name: a\ndescription: d\ninvocation: manual", "'invocation' is no field"),
        ("НАВЫК", "name: НАВЫК\ndescription: d", "capitals"),
        ("a", f"name: a\ndescription: {'d' * 1025}", "longer than 1,024"),
        ("a", f"name: a\ndescription: d\ncompatibility: {'c' * 501}", "longer than 500"),
        ("a", "description: d", "no name"),
        ("a", "name: a", "no description"),
        ("a", "name: a\ndescription: ''", "no description"),
        ("a", "name: a\ndescription: Use when: asked", "not valid YAML"),
        ("a", "name: a\ndescription: d\nmetadata: {a: b}", "brackets"),
        ("a", "name: a\ndescription: d\nallowed-tools: [Read]", "brackets"),
        ("a", "name: a\nname: a\ndescription: d", "twice"),
        ("a", "name: a\ndescription: d\nmetadata:\n  x: y\n  x: z", "twice"),
        ("a", "name: &n a\ndescription: *n", "repeats"),
        ("a", "name: a\ndescription: !!str d", "tag"),
        ("a", "- name\n- description", "no table"),
        ("a", "a: " + "[" * 9000, "nested"),
    ],
)
def test_what_it_refuses_is_named(folder: str, head: str, fault: str, tmp_path: Path) -> None:
    one = judged(tmp_path / folder, head)
    assert not one.valid and any(fault in line for line in one.faults), one


def test_a_folder_needs_a_file_and_the_upper_case_one_counts(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    assert check(str(tmp_path / "empty"))[0].faults == ("it has no SKILL.md",)
    assert judged(tmp_path / "low", "name: low\ndescription: d", "skill.md").valid
    (tmp_path / "low/SKILL.md").write_text("no header")
    assert "does not begin" in check(str(tmp_path / "low"))[0].faults[0]
    (tmp_path / "folder/SKILL.md").mkdir(parents=True)
    assert "regular file" in check(str(tmp_path / "folder"))[0].faults[0]
    (tmp_path / "bytes").mkdir()
    (tmp_path / "bytes/SKILL.md").write_bytes(b"---\nname: \xff\n---\n")
    assert check(str(tmp_path / "bytes"))[0].faults == ("it is not UTF-8",)


def test_our_own_fields_are_valid_and_a_wrong_value_is_noted(tmp_path: Path) -> None:
    head = "name: {}\ndescription: d\nmetadata:\n  codewhale-activation: {}\n  codewhale-tools: read_file"
    assert judged(tmp_path / "a", head.format("a", "manual")) == Checked(str(tmp_path / "a"), ())
    one = judged(tmp_path / "b", head.format("b", "sometimes"))
    assert one.valid and "codewhale-activation is 'sometimes'" in one.notes[0]
