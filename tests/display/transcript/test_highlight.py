"""Colours of code: the same characters, known languages, bounded."""

from hypothesis import given
from hypothesis import strategies as st

from codewhale.display.transcript.code import MOST_CHARS, Highlighter, language_of

COLOURS = Highlighter()
CODE = st.text(alphabet=st.sampled_from("def x():\"'#\\ \n\t1+{}$`中"), max_size=200)


@given(CODE, st.sampled_from(["python", "sh", "json", "html", "diff", "nothing", ""]))
def test_every_line_keeps_its_characters(code: str, word: str) -> None:
    lines = code.split("\n")
    assert ["".join(text for text, _ in spans) for spans in COLOURS.piece(lines, word)] == lines


def test_tokens_have_their_styles() -> None:
    (spans,) = COLOURS.piece(['return 1 + "a"  # why'], "py")
    styles = dict(spans)
    assert (styles["return"], styles["1"], styles["# why"]) == ("keyword", "number", "comment")


def test_strings_over_several_lines_are_strings() -> None:
    first, second = COLOURS.piece(['x = """one', 'return"""'], "python")
    assert second[0][1] == "string" and first[0][1] != "string"


def test_what_is_too_large_or_unknown_is_plain() -> None:
    assert COLOURS.piece(["return " * MOST_CHARS], "py") == [(("return " * MOST_CHARS, "code"),)]
    assert COLOURS.piece(["return 1"], "klingon") == [(("return 1", "code"),)]


def test_single_lines_are_remembered() -> None:
    assert COLOURS.single("x = 1", "py") is COLOURS.single("x = 1", "py")


def test_the_language_of_a_file() -> None:
    assert [language_of(path) for path in ("a/b.py", "Makefile", "x.unknown", "Dockerfile")] == [
        "py",
        "makefile",
        "",
        "dockerfile",
    ]
