"""What markdown becomes: lists, quotes, headings, links with their true targets."""

from codewhale.display.transcript.markdown import Pen

PEN = Pen()


def texts(source: str, width: int = 40) -> list[str]:
    return [line.text.rstrip() for line in PEN.prose(source, width)]


def test_links_show_where_they_lead() -> None:
    assert texts("[safe](https://evil.example/x)") == ["safe (https://evil.example/x)"]
    assert texts("[safe](file:///etc/passwd)") == ["[safe](file:///etc/passwd)"]
    assert texts("<https://a.b/c>") == ["https://a.b/c"]
    assert texts("![pic](http://a.b/c.png)") == ["pic (http://a.b/c.png)"]


def test_entities_and_escapes_bring_no_controls_back() -> None:
    assert texts("&#x202e;abc &#x200b;") == ["\\u202eabc \\u200b"]
    assert "\x1b" not in "".join(texts("<http://a.b/%1b]0;x%07>", 90))


def test_markup_of_other_kinds_is_text() -> None:
    source = "[bold]x[/bold] [@click=app.quit]y[/] <b>z</b>"
    assert texts(source, 80) == [source]


def test_lists_nest_and_count() -> None:
    assert texts("3. three\n4. four\n   - inner words that are so long that they wrap\n") == [
        "3. three",
        "4. four",
        "   ◦ inner words that are so long that",
        "     they wrap",
    ]


def test_an_item_without_words_is_seen() -> None:
    assert texts("- \n- b") == ["•", "• b"]


def test_quotes_hold_what_stands_in_them() -> None:
    assert texts("> one\n>\n> - two\n") == ["│ one", "│", "│ • two"]


def test_headings_rules_and_struck_words() -> None:
    lines = PEN.prose("## Head\n\n~~gone~~\n\n---\n", 20)
    assert lines[0].spans == (("Head", "accent bold"),)
    assert lines[2].spans == (("gone", "text strike"),)
    assert lines[4].text == "─" * 20


def test_line_breaks_of_the_source_are_kept() -> None:
    assert texts("one **two\nthree** four") == ["one two", "three four"]


def test_code_inside_a_list_keeps_its_place() -> None:
    assert texts("- a\n\n      code here\n") == ["• a", "", "   code here"]


def test_definitions_are_not_swallowed() -> None:
    assert texts("[a]: https://b.c") == ["[a]: https://b.c"]
