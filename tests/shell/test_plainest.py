"""The reader of plain lines: what it takes apart, and that it gives up soon."""

import pytest

from codewhale.shell.plainest import plainest


def test_words_quotes_and_operators_are_taken_apart() -> None:
    steps = plainest("cd src && (grep -c '' \"a b\".txt 2>/dev/null; ls a\\ b); cat c | sort", 32)
    assert steps is not None
    assert [[word.text for word in step.command.words] for step in steps] == [
        ["cd", "src"], ["grep", "-c", "", "a b.txt"], ["ls", "a b"], ["cat", "c"], ["sort"],
    ]  # fmt: skip
    assert [(step.opens, step.closes, step.by) for step in steps] == [
        (False, False, "&&"), (True, False, ";"), (False, True, ";"), (False, False, "|"), (False, False, ""),
    ]  # fmt: skip
    assert steps[1].command.redirects[0][:2] == (">", "2") and steps[0].command.moves


def test_the_same_command_is_the_same_in_every_line() -> None:
    one, other = plainest("ls -l && cat notes", 32), plainest("cat notes", 32)
    assert one is not None and other is not None and one[1].command is other[0].command


@pytest.mark.parametrize("line", [
    "", "ls &", "ls $HOME", "ls `pwd`", "ls 'a", 'ls "a', "ls > out", "A=1 ls", "nosuch a", "(ls; (ls))", "ls |", "é",
])  # fmt: skip
def test_other_lines_are_left_to_the_grammar(line: str) -> None:
    assert plainest(line, 32) is None


@pytest.mark.parametrize("part", ["a", "'a'", '"a\\ "', " a", "a~", " >/dev/null", "a'b'", " ", "\\a", '"', "'", " $?"])
def test_a_long_line_that_is_not_plain_is_given_up(part: str) -> None:
    assert plainest("ls " + part * (16_000 // len(part)) + "$", 32) is None
