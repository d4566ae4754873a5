"""Searches of the web: each provider as its public documentation shows its answers, and what goes wrong with them."""

import json
from typing import Any

import pytest
from msgspec.structs import replace

from codewhale.protocol.errors import ToolError
from codewhale.services.web.searching import PROVIDERS, SearchHit, SearchOptions, SearchProvider, WebHits, WebSearch
from support.webserver import Answer, WebServer

DUCK = """<html><body><div class="serp__results"><div class="result result--ad"><h2><a class="result__a"
 href="https://ads.test/">Buy timers</a></h2></div>{rows}</div></body></html>"""
DUCK_ROW = """<div class="result results_links web-result"><h2 class="result__title"><a class="result__a"
 href="//duckduckgo.com/l/?uddg=https%3A%2F%2Fdocs.test%2Ftimeouts&amp;rut=0a">Timeouts &amp; <b>tasks</b></a></h2>
 <a class="result__snippet" href="//duckduckgo.com/l/?uddg=x">How a <b>timeout</b> ends a task.</a></div>"""
FEED = """<?xml version="1.0" encoding="utf-8" ?><rss version="2.0"><channel><title>Bing: x</title>
<link>https://www.bing.com/search?q=x</link>{rows}</channel></rss>"""
FEED_ROW = """<item><title>Timeouts &amp;amp; &lt;b&gt;tasks&lt;/b&gt;</title><link>https://docs.test/timeouts</link>
<description>How a timeout ends a task.</description><pubDate>Tue, 03 Nov 2026 10:00:00 GMT</pubDate></item>"""
TITLE, URL, TEXT, DATE = "Timeouts & tasks", "https://docs.test/timeouts", "How a timeout ends a task.", "2026-11-03"
JSON_ROWS: dict[str, Any] = {
    "searxng": {"query": "q", "results": [{"title": TITLE, "url": URL, "content": TEXT, "publishedDate": DATE}]},
    "tavily": {"results": [{"title": TITLE, "url": URL, "content": TEXT, "score": 0.9, "published_date": DATE}]},
    "bocha": {"code": 200, "data": {"webPages": {"value": [
        {"id": "1", "name": TITLE, "url": URL, "snippet": TEXT, "datePublished": DATE}]}}},
    "metaso": {"credits": 3, "webpages": [{"title": TITLE, "link": URL, "snippet": TEXT, "date": DATE}]},
    "baidu": {"request_id": "1", "references": [{"id": 1, "title": TITLE, "url": URL, "content": TEXT, "date": DATE}]},
}  # fmt: skip
NOTHING: dict[str, Any] = {
    "searxng": {"results": []}, "tavily": {"results": []}, "bocha": {"data": {"webPages": {"value": []}}},
    "metaso": {"webpages": []}, "baidu": {"references": []},
}  # fmt: skip
HTML = {"content-type": "text/html; charset=utf-8"}
KEYS = {row.key: "a-key-of-the-person" for row in PROVIDERS.values() if row.key}
EMPTY_PAGE = DUCK.format(rows='<div class="no-results">No results found for x.</div>')
CHALLENGE = '<html><body><form id="challenge-form" action="/anomaly.js"><p>Are you a person?</p></form></body></html>'


def answer(value: Any, status: int = 200) -> Answer:
    if isinstance(value, str):
        return status, HTML, value.encode()
    return status, {"content-type": "application/json"}, json.dumps(value).encode()


def good(name: str) -> Any:
    pages = {"duckduckgo": DUCK.format(rows=DUCK_ROW), "bing": FEED.format(rows=FEED_ROW)}
    return pages.get(name) or JSON_ROWS[name]


def moved(name: str, row: SearchProvider) -> SearchProvider:
    """A provider as it is, at an address that the tests' server answers."""
    return row if name == "searxng" else replace(row, url=lambda query, most: f"http://{name}.example.org:8080/{name}")


async def searched(answers: dict[str, Answer], *order: str, keys: dict[str, str] = KEYS) -> tuple[WebHits, WebServer]:
    pages = {"/search" if name == "searxng" else f"/{name}": page for name, page in answers.items()}
    async with WebServer(pages) as site:
        options = SearchOptions(order or tuple(answers), f"http://{site.address}/")
        providers = {name: moved(name, row) for name, row in PROVIDERS.items()}
        search = WebSearch(site.dialler(), options, keys, providers)
        return await search.search("timeout of tasks", 5, 5.0), site


@pytest.mark.parametrize("name", PROVIDERS)
async def test_every_provider_gives_the_same_shape(name: str) -> None:
    found, site = await searched({name: answer(good(name))})
    (hit,) = found.hits
    date = {"duckduckgo": "", "bing": "Tue, 03 Nov 2026 10:00:00 GMT"}.get(name, DATE)
    assert (found.provider, found.missed, hit) == (name, (), SearchHit(TITLE, URL, TEXT, date))
    row = PROVIDERS[name]
    assert site.asked[0].startswith("POST" if row.body else "GET")
    assert ("Bearer a-key-of-the-person" in site.asked[0]) == bool(row.key)
    if row.body is not None:
        assert json.loads(site.bodies[0]) == row.body("timeout of tasks", 5)


@pytest.mark.parametrize("name", PROVIDERS)
async def test_nothing_found_is_an_answer(name: str) -> None:
    pages = {"duckduckgo": EMPTY_PAGE, "bing": FEED.format(rows="")}
    found, _ = await searched({name: answer(pages.get(name) or NOTHING[name])}, name, "bing")
    assert (found.hits, found.provider, found.missed) == ((), name, ())


@pytest.mark.parametrize("name", PROVIDERS)
@pytest.mark.parametrize(
    ("page", "why"),
    [
        (answer("slow down", 429), "limits requests (429)"),
        (answer("no", 403), "refuses the request (403)"),
        (answer("broken", 500), "answered 500"),
        (answer("<html><body><div class='new-layout'>Timeouts</div></body></html>"), "changed|no JSON"),
        (answer(CHALLENGE), "captcha|changed|no JSON"),
        ((302, {"location": "https://www.elsewhere.net/"}, b""), "another site|answered 302"),
        ((200, {"content-type": "application/json"}, b'{"results": {"0": 1}, "data": 3}'), "changed"),
        ((302, {"location": "http://[x"}, b""), "it is no address|answered 302"),
    ],
    ids=["429", "403", "500", "changed", "captcha", "redirect", "other-json", "no-address"],
)
async def test_what_went_wrong_is_said_and_the_next_is_asked(name: str, page: Answer, why: str) -> None:
    following = "bing" if name != "bing" else "tavily"
    found, _ = await searched({name: page, following: answer(good(following))}, name, following)
    assert found.provider == following and [hit.title for hit in found.hits] == [TITLE]
    (missed,) = found.missed
    assert missed.startswith(f"{name}: ") and any(part in missed for part in why.split("|")), missed


async def test_a_result_whose_link_is_no_address_is_left_out() -> None:
    broken = DUCK_ROW.replace("//duckduckgo.com/l/", "http://[x")
    found, _ = await searched({"duckduckgo": answer(DUCK.format(rows=broken + DUCK_ROW))})
    assert [hit.url for hit in found.hits] == [URL]


async def test_a_changed_page_a_captcha_nothing_and_a_limit_are_four_messages() -> None:
    said = set()
    for page in (answer("<p>new</p>"), answer(CHALLENGE), answer("", 429)):
        with pytest.raises(ToolError) as raised:
            await searched({"duckduckgo": page})
        said.add(raised.value.message)
    found, _ = await searched({"duckduckgo": answer(EMPTY_PAGE)})
    assert len(said) == 3 and found.hits == ()


async def test_without_a_key_or_an_address_a_provider_is_not_asked() -> None:
    found, site = await searched({"tavily": answer(good("tavily")), "bing": answer(good("bing"))}, keys={})
    assert found.provider == "bing" and found.missed == ("tavily: TAVILY_API_KEY is not set.",)
    assert len(site.asked) == 1
    with pytest.raises(ToolError, match="searxng` does not say where it is"):
        await WebSearch(site.dialler(), SearchOptions(("searxng",)), {}).search("x", 5, 5.0)


async def test_results_are_bounded_and_shown_as_they_are() -> None:
    rows = [
        {"title": "a\u202eb\n" * 200, "url": f"https://docs.test/{n}", "content": "<b>x</b>" * 900} for n in range(40)
    ]
    rows += [{"title": "no address"}, {"title": "a script", "url": "javascript:alert(1)", "content": ""}, "text"]  # type: ignore[list-item]
    found, _ = await searched({"searxng": answer({"results": rows[::-1]})})
    assert len(found.hits) == 5
    for hit in found.hits:
        assert len(hit.title) <= 210 and len(hit.snippet) <= 410 and "\u202e" not in hit.title and "\n" not in hit.title
        assert hit.url.startswith("https://")


async def test_the_person_s_own_instance_may_be_private_and_leads_nowhere_else() -> None:
    async with WebServer({"/search": (302, {"location": "http://169.254.169.254/"}, b"")}) as site:
        search = WebSearch(site.dialler(), SearchOptions(("searxng",), f"http://{site.address}"), {})
        with pytest.raises(ToolError, match="answered 302"):
            await search.search("x", 5, 5.0)
        assert len(site.asked) == 1 and search.dialled("x", 5) == []
