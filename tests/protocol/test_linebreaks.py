"""Texts whose line breaks came as two characters, and those where two characters are meant."""

import pytest

from codewhale.protocol.linebreaks import unescaped


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        (r"import os\nprint(1)\n", "import os\nprint(1)\n"),
        (r"def f():\n\treturn \"x\"\n", 'def f():\n\treturn "x"\n'),
        (r"# don't\r\nx = 1", "# don't\nx = 1"),
        (r"x = 'it\'s'\ny = 2", "x = 'it\\'s'\ny = 2"),
        (r'print("a\\n")\nprint(2)', 'print("a\\n")\nprint(2)'),
    ],
)
def test_escapes_outside_of_quotes_are_line_breaks(text: str, meant: str) -> None:
    assert unescaped(text) == meant


@pytest.mark.parametrize(
    "text",
    [
        r'print("a\nb")', r"text.split(/\n/)", r"re.compile(r'\n+')", r"C:\new\table", r"\section{a}\newline",
        r"tr '\n' ' '", "a\\nb\nc", "plain", r"[^\n]*", r"(\r\n|\n)",
    ],
)  # fmt: skip
def test_all_else_is_taken_as_it_is(text: str) -> None:
    assert unescaped(text) == ""
