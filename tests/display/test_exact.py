"""Text to be allowed, character for character."""

import pytest

from codewhale.display.asks import ESCAPED, block_lines, exact_lines, hides, spans
from codewhale.display.text import columns
from codewhale.display.words import Words
from codewhale.protocol.blocks import ChecklistBlock, DiffBlock, TableBlock

WORDS = Words("en")
PLAIN = "make test && echo 'done' # 100 %"


def said(lines) -> list[str]:
    return ["".join(text for text, _ in line) for line in lines]


def test_plain_text_is_itself() -> None:
    assert spans(PLAIN, "code") == [(PLAIN, "code")] and not hides(PLAIN) and not hides("a\nb")
    assert spans("你好 é ñ", "code") == [("你好 é ñ", "code")]


@pytest.mark.parametrize(
    ("text", "escaped"),
    [("a\rb", "\\x0d"), ("a\tb", "\\t"), ("a\u00a0b", "\\xa0"), ("a\u2800b", "\\u2800"), ("a\nb", "\\n")],
)
def test_what_cannot_be_seen_has_a_tone_of_its_own(text: str, escaped: str) -> None:
    assert spans(text, "code") == [("a", "code"), (escaped, ESCAPED), ("b", "code")]


def test_a_written_backslash_is_no_escape() -> None:
    assert spans("a\\x0db", "code") == [("a\\x0db", "code")]


def test_line_ends_and_wrapping_are_told_apart() -> None:
    lines = exact_lines("one two three\nfour", 9, first="$ ")
    assert said(lines) == ["$ one two", "┊  three", "│ four"]


@pytest.mark.parametrize("text", ["x" * 5000, "字" * 3000, "\n" * 300, " " * 999 + "end", "e\u0301\u0302\u0303" * 50])
def test_nothing_is_lost_however_narrow(text: str) -> None:
    lines = exact_lines(text, 20)
    assert all(columns(line) <= 20 for line in lines)
    kept = "".join(piece for line in lines for piece, _ in line[1:])
    assert kept == "".join(piece for line in text.split("\n") for piece, _ in spans(line, "code"))


def test_a_megabyte_is_laid_out_whole() -> None:
    lines = exact_lines("x" * (1 << 20) + "; end", 76)
    assert "".join(line[2:] for line in said(lines)[-2:]).endswith("x; end") and len(lines) > 14_000


def test_blocks_are_whole() -> None:
    diff = DiffBlock("a\x1b.py", "--- a\n+++ b\n@@ -1 +1 @@\n-x\r\n+++ y\n")
    assert said(block_lines(diff, 40, WORDS)) == ["  a\\x1b.py", "  @@ -1 +1 @@", "  -x\\x0d", "  +++ y"]
    listed = ChecklistBlock((("pending", "one\ntwo"),))
    assert said(block_lines(listed, 40, WORDS)) == ["  pending: one", "│ two"]
    agent = TableBlock(("sub-agent", ""), (("may", "reads, executes"), ("bounds", "200 steps, 30 min")))
    assert said(block_lines(agent, 60, WORDS)) == ["  may: read files, run commands", "  at most: 200 steps, 30 min"]
    assert said(block_lines(agent, 60, Words("zh-Hans")))[0] == "  可以: 读取文件, 运行命令"
