"""The strict reader: what it takes apart, what it gives up, and that it gives up soon."""

import re

import pytest

from codewhale.permissions.shell.strict_reader import Compound, Simple, read, words_of


def words(line: str) -> list[list[str | None]]:
    """The words of each command."""
    steps = read(line)
    assert steps is not None, line
    return list(words_of(steps))


def test_words_and_quotes_are_taken_apart() -> None:
    line = """! ls -la 'a b' "c\\"d" e\\ f && (cd x; cat *.y) 2>/dev/null # z"""
    assert words(line) == [["ls", "-la", "a b", 'c"d', "e f"], ["cd", "x"], ["cat", "*.y"]]
    assert words('echo a#b $? "$HOME/x" $((1+2)) c | wc -l') == [["echo", "a#b", None, None, None, "c"], ["wc", "-l"]]
    assert words("ls \\\n  -la") == [["ls", "-la"]]


def test_compound_commands_are_trees() -> None:
    steps = read(
        "for f in a *.b; do if [ -f $f ]; then wc -l < x; else echo no; fi; done; while read -r l; do pwd; done < y"
    )
    assert steps is not None
    loop, reads = steps[0].stages[0], steps[1].stages[0]
    assert isinstance(loop, Compound) and (loop.kind, loop.name) == ("for", "f")
    assert [term.text for term in loop.terms] == ["a", "*.b"]
    branch = loop.bodies[0][0].stages[0]
    assert isinstance(branch, Compound) and len(branch.bodies) == 3
    inner = branch.bodies[1][0].stages[0]
    assert isinstance(inner, Simple) and [term.text for term in inner.reads] == ["x"]
    assert isinstance(reads, Compound) and [term.text for term in reads.reads] == ["y"]


def test_output_of_commands_comes_before_its_command() -> None:
    assert words('echo "$(cat a | wc -l)" <(ls)') == [["cat", "a"], ["wc", "-l"], ["ls"], ["echo", None, None]]


GIVEN_UP = r"""
ls & | ls `x` | ls > x | ls 3> /dev/null | ls a=~/x | ls \ | ls 'x | ls "x | =ls | ls {a,b} | ls $1 | ls $@ | ls ${x:-y}
ls ${x@P} | ls $x[1] | f() { ls; } | case x in x) ls;; esac | ((1)) | echo $((a[1])) | for ((;;)); do ls; done
ls ;; pwd | ls && | (ls | ls) | { ls } | ls <(pwd | ls $'x' | select x in a; do ls; done | coproc ls | if ls; fi
ls <& 3 | ls <> x | echo $[1] | ls ~root | x=(1) | function f { ls; } | [[ a =~ (b) ]]
[[ a && b ]] | ls !(a) | echo a&b
"""
LINES = [line.strip() for line in re.split(r" \| |\n", GIVEN_UP) if line]


@pytest.mark.parametrize(
    "line", [*LINES, "ls |& wc", "| ls", "cat << E\nx\nE", "ls >| x", "ls\\\n-l", "(" * 40 + "ls" + ")" * 40]
)
def test_what_shells_may_read_differently_is_given_up(line: str) -> None:
    assert read(line) is None


@pytest.mark.parametrize(
    "part", ["a", "'a'", '"a\\ "', " a", "a~", " >/dev/null", "a'b'", " ", "\\a", '"', "'", " $?", "$(", "(", "if "]
)
def test_a_long_line_is_read_or_given_up_soon(part: str) -> None:
    read("ls " + part * (16_000 // len(part)) + "`")
