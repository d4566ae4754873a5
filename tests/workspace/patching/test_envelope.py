"""The `*** Begin Patch` format beyond the outside cases."""

import pytest

from codewhale.protocol.errors import ToolError
from support.patchtext import outcome


def wrap(*lines: str) -> str:
    return "\n".join(["*** Begin Patch", *lines, "*** End Patch", ""])


def update(text: str, *lines: str) -> str:
    return outcome({"f": text.encode()}, wrap("*** Update File: f", *lines))["f"].decode()


def test_anchors() -> None:
    text = "class A:\n    def f(self):\n        return 1\n\nclass B:\n    def f(self):\n        return 1\n"
    changed = update(text, "@@ class B:", "@@     def f(self):", "-        return 1", "+        return 2")
    assert changed == text[: text.rindex("1")] + "2\n"
    assert update(text, "@@ class B:", "-        return 1", "+        return 2") == changed
    with pytest.raises(ToolError, match="fits 2 places"):
        update(text, "@@ def f(self):", "-        return 1", "+        return 2")
    assert update("a\nb\n", "@@ not there", "-b", "+B") == "a\nB\n"


def test_an_insertion_goes_below_its_anchor_or_to_the_end() -> None:
    assert update("a\nb\n", "@@ a", "+x") == "a\nx\nb\n"
    assert update("a\nb\n", "@@", "+x") == "a\nb\nx\n"
    assert update("a\nb", "+x") == "a\nb\nx"


def test_end_of_file() -> None:
    assert update("x\ny\nx\n", "@@", "-x", "+end", "*** End of File") == "x\ny\nend\n"
    with pytest.raises(ToolError, match="fits 2 places"):
        update("x\ny\nx\n", "@@", "-x", "+end")


def test_form_is_kept() -> None:
    assert update("a\r\nb\r\n", "@@", "-b", "+B", "+C") == "a\r\nB\r\nC\r\n"
    assert update("\ufeffa\nb", "@@", "-a", "+A", " b") == "\ufeffA\nb"
    assert update("a\nb", "@@", " a", "-b", "+B") == "a\nB"


def test_numbers_are_taken_when_they_are_given() -> None:
    assert update("x\ny\nx\n", "@@ -3,1 +3,1 @@", "-x", "+z") == "x\ny\nz\n"


def test_several_hunks_and_blank_lines() -> None:
    text = "a\n\nb\nc\nd\n"
    assert update(text, "@@", " a", "", "-b", "+B", "@@", "-d", "+D", "") == "a\n\nB\nc\nD\n"
    patch = "\n".join(["*** Update File: f", "-b", "+B", "", "*** Add File: g", "+1", "+", "+2", "*** End Patch"])
    assert outcome({"f": b"b\n"}, patch) == {"f": b"B\n", "g": b"1\n\n2\n"}


def test_the_whole_patch_in_crlf() -> None:
    patch = wrap("*** Update File: f", "@@", "-b", "+B", "*** Add File: g", "+new").replace("\n", "\r\n")
    assert outcome({"f": b"a\nb\n"}, patch) == {"f": b"a\nB\n", "g": b"new\n"}


def test_a_move_alone() -> None:
    assert outcome({"f": b"x\n"}, wrap("*** Update File: f", "*** Move to: d/g")) == {"d/g": b"x\n"}


def test_an_empty_new_file() -> None:
    assert outcome({}, wrap("*** Add File: empty")) == {"empty": b""}
