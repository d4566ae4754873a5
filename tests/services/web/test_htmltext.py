"""What of a page is read: the text that it is about, on pages that imitate those of the web."""

import pytest

from codewhale.services.web.htmltext import extracted
from support.webpages import MarkedPage, marked_pages

PAGES = marked_pages()


def read(page: str) -> str:
    return str(extracted(page.encode(), "http://docs.test/")["text"])


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_main_text_of_a_page_is_kept_and_little_else(page: MarkedPage) -> None:
    text = read(page.html)
    main, rest = page.kept(text)
    assert main >= 0.95, page.lost(text)
    assert rest <= 0.3, page.stray(text)


def test_over_all_pages_a_tenth_of_the_rest_is_kept_at_most() -> None:
    assert len(PAGES) >= 40
    assert sum(page.kept(read(page.html))[1] for page in PAGES) / len(PAGES) <= 0.1


def test_lists_of_links_stay_where_a_page_is_about_them_or_says_something_of_each() -> None:
    about = "".join(f"<li><a href='/{n}'>Chapter {n}</a></li>" for n in range(30))
    each = "".join(f"<li><a href='/{n}'>tool-{n}</a> reads a file and says what stands in it.</li>" for n in range(9))
    nav = "<div class='x'><a href='/a'>Home</a><a href='/b'>Shop</a><a href='/c'>Jobs</a></div>"
    assert "Chapter 29" in read(f"<body>{nav}<div><h1>Contents</h1><ul>{about}</ul></div></body>")
    listed = read(f"<body>{nav}<div><h1>Tools</h1><p>{'These are the tools. ' * 9}</p><ul>{each}</ul></div></body>")
    assert "tool-8" in listed and "Jobs" not in listed
    prose = "<p>See <a href='/a'>the guide</a> and <a href='/b'>the table</a>.</p>"
    assert "See the guide [1] and the table [2]." in read(f"<main><p>{'Text of it. ' * 30}</p>{prose}</main>")


def test_what_is_nested_deeper_than_anyone_writes_is_cut() -> None:
    row = extracted(b"<p>Begin.</p>" + b"<div><b>x" * 200_000, "http://docs.test/")
    assert row["cut"] and "Begin." in row["text"]
    flat = extracted(b"<main>" + b"<p>one<li>two<br>" * 20_000 + b"</main>", "http://docs.test/")
    assert not flat["cut"] and flat["text"].count("two") == 20_000


def test_what_a_manual_begins_with_stays_though_most_stands_in_one_part() -> None:
    begins = "<div id='preamble'><h1>serve</h1><p>Serves the files of a folder to other machines.</p></div>"
    synopsis = "<div><h2>Synopsis</h2><p>The program takes the arguments that are named below.</p></div>"
    options = "".join(f"<dt>--flag-{n}</dt><dd>Sets the limit of the queue number {n}.</dd>" for n in range(9))
    text = read(f"<body><div>{begins}{synopsis}<div><h2>Options</h2><dl>{options}</dl></div></div></body>")
    assert "Serves the files" in text and "takes the arguments" in text and "number 8" in text


def test_a_page_that_is_nothing_but_its_contents_keeps_them() -> None:
    part = "".join(f"<li><a href='/{n}'>New features of part {n}</a></li>" for n in range(8))
    chapters = "".join(f"<li><a href='/c{n}'>What is new in {n}</a><ul>{part}</ul></li>" for n in range(6))
    bar = "".join(f"<li><a href='/b{n}'>Shop {n}</a></li>" for n in range(9))
    text = read(f"<body><ul>{bar}</ul><div role='main'><h1>What is new</h1><ul>{chapters}</ul></div></body>")
    assert "What is new in 5" in text and text.count("New features of part 7") == 6 and "Shop" not in text
