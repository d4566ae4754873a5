"""`make pages`: what of 40 marked pages is kept by `fetch_url`, page by page, how long a page of 40 KB takes with the
start of its process, and what becomes of 10 MB of tags.

python scripts/pages.py [--show NAME]
"""

import argparse
import asyncio
import statistics
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from codewhale.protocol.errors import ToolError
from codewhale.services.web.dialler import WebRequest
from codewhale.services.web.pages import WebPage, WebPages
from support.webpages import marked_pages
from support.webserver import WebServer, html

MAIN, REST = 0.95, 0.10
ARTICLE_MS, TAGS_SECONDS = 150, 1.0


async def read(page: str) -> WebPage:
    async with WebServer({"/": html(page)}) as site:
        return await WebPages(site.dialler()).page(WebRequest("http://docs.example.org:8080/", 12 << 20))


async def kept(show: str) -> bool:
    """Whether enough of each page is kept, and little else of all of them. Prints each above the mean's bound."""
    mains, rests = list[float](), list[float]()
    for page in marked_pages():
        text = (await read(page.html)).text
        main, rest = page.kept(text)
        mains.append(main)
        rests.append(rest)
        if show == page.name:
            print(text)
        if main < MAIN or rest > REST:
            print(f"{page.name}: {main:.0%} of the main text, {rest:.0%} of the rest")
            print("  lost:", page.lost(text)[:4], "\n  stray:", page.stray(text)[:6])
    print(
        f"{len(mains)} pages: {statistics.mean(mains):.1%} of the main text kept (least {min(mains):.0%}), "
        f"{statistics.mean(rests):.1%} of the rest (most {max(rests):.0%})"
    )
    return min(mains) >= MAIN and statistics.mean(rests) <= REST


async def timed() -> bool:
    """Whether pages are read in their time."""
    article = "<main><h1>x</h1>" + "<p>Each worker takes one row of the <b>queue</b> first.</p>" * 700 + "</main>"
    took = []
    for _ in range(9):
        begun = time.perf_counter()
        await read(article)
        took.append((time.perf_counter() - begun) * 1000)
    middle = statistics.median(took)
    print(f"a page of {len(article) >> 10} KB: {middle:.0f} ms with its process (least {min(took):.0f})")
    begun = time.perf_counter()
    try:
        end = "cut" if (await read("<div><b>x" * 1_100_000)).cut else "read whole"
    except ToolError as error:
        end = error.message
    seconds = time.perf_counter() - begun
    print(f"10 MB of tags: {end}, after {seconds:.2f} s")
    return middle <= ARTICLE_MS and (seconds <= TAGS_SECONDS or end != "read whole")


def main() -> int:
    """0 when all held."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--show", default="", help="a page whose text is printed")
    show = parser.parse_args().show
    good = asyncio.run(kept(show))
    return 0 if asyncio.run(timed()) and good else 1


if __name__ == "__main__":
    sys.exit(main())
