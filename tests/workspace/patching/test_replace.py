"""One text replaced by another: what the ladder finds beyond what the edit tool's own tests show."""

import random

import pytest

from codewhale.protocol.errors import ToolError
from codewhale.workspace.patching import Replacer


def test_a_number_gutter_is_taken_off_only_when_every_line_has_one() -> None:
    done = Replacer("f", "a\n  b\n", "     1│ a\n     2│   b", "     1│ A\n     2│   B").replace(False)
    assert done.text == "A\n  B\n"
    done = Replacer("f", "  1│ a\nb\n", "  1│ a\nb", "x").replace(False)
    assert done.text == "x\n"


def test_the_first_rung_that_matches_decides() -> None:
    assert Replacer("f", "a \na\n", "a\n", "b\n").replace(False).lines == (2,)
    done = Replacer("f", "x\n    a\n  b\n", "  a\nb", "  c\nd")
    assert done.replace(False).text == "x\n    c\n  d\n"
    with pytest.raises(ToolError, match="fits 2 places in f \\(trailing whitespace\\): lines 1, 3"):
        Replacer("f", "a \nb\nx\na \nb\n".replace("x\n", ""), "a\nb", "c").replace(False)


def test_indentation_that_is_not_even_is_not_guessed() -> None:
    with pytest.raises(ToolError) as caught:
        Replacer("f", "if x:\n    a\n  b\n", "    if x:\n    a\n    b", "y").replace(False)
    assert caught.value.fix is not None


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_every_exact_line_is_found_at_its_place(end: str) -> None:
    rng = random.Random(3)
    for _ in range(300):
        lines = [rng.choice(["a", "b", " c", "d  ", ""]) + str(rng.randrange(9)) for _ in range(30)]
        text = end.join(lines) + end
        at, size = rng.randrange(25), rng.randint(1, 4)
        search = "\n".join(lines[at : at + size]) + "\n"
        count = text.replace("\r\n", "\n").count(search)
        try:
            done = Replacer("f", text, search, "NEW\n").replace(False)
        except ToolError as error:
            assert f"fits {count} places" in error.message
            continue
        assert count == 1 and done.text == text.replace(search.replace("\n", end), "NEW" + end)
