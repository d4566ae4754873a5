"""Searches of the web: providers as rows of data, asked in the person's order until one answers."""

import asyncio
import html
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from urllib.parse import parse_qs, quote_plus, urlsplit

import msgspec
from msgspec import Struct

from codewhale.lib.text import one_line
from codewhale.process.isolated import IsolatedWork
from codewhale.protocol.errors import ToolError
from codewhale.services.web.dialler import Dialler, WebAnswer, WebRequest
from codewhale.services.web.pages import decoded, shown

MOST_RESULTS = 10
_SNIPPET, _SECONDS = 400, 10.0
_SCHEMES = ("http://", "https://")
_MODULE = "codewhale.services.web.searchhits"
_ITEM = re.compile(r"<item\b.*?</item>", re.S | re.I)
_TAG = re.compile(r"<[^>]*>")


class SearchHit(Struct, frozen=True):
    """A result: `date` is as the provider wrote it, "" where it does not say."""

    title: str
    url: str
    snippet: str = ""
    date: str = ""


class WebHits(Struct, frozen=True):
    """The results of a search, who answered, and why those before did not."""

    hits: tuple[SearchHit, ...]
    provider: str
    missed: tuple[str, ...] = ()


class SearchOptions(Struct, frozen=True):
    """Who is asked, in which order; `searxng` is the address of an instance of that program."""

    order: tuple[str, ...] = ("duckduckgo", "bing")
    searxng: str = ""


class SearchProvider(Struct, frozen=True):
    """How a provider is asked and read. `key` names the environment variable of its key; `url` and `body` are made from
    the query and the number of results; `rows` leads to the list in a JSON answer, `fields` are the names of title,
    address, snippet and date in one of its rows; `selectors` are those of `searchhits`."""

    url: Callable[[str, int], str]
    key: str = ""
    body: Callable[[str, int], dict[str, Any]] | None = None
    rows: str = ""
    fields: tuple[str, str, str, str] = ("title", "url", "content", "date")
    selectors: tuple[str, ...] = ()
    header: str = "Authorization"


class _Hits(Struct):
    rows: list[tuple[str, str, str]] = []
    empty: bool = False
    challenged: bool = False


class _Missed(Exception):
    """Why a provider gave nothing that can be used."""


PROVIDERS: dict[str, SearchProvider] = {
    "duckduckgo": SearchProvider(
        lambda query, most: f"https://html.duckduckgo.com/html/?q={quote_plus(query)}",
        selectors=(".result:not(.result--ad)", "a.result__a", ".result__snippet", ".no-results,.result--no-result",
                   "form#challenge-form,.anomaly-modal__modal"),
    ),
    "bing": SearchProvider(
        lambda query, most: f"https://www.bing.com/search?format=rss&count={most}&q={quote_plus(query)}"
    ),
    "searxng": SearchProvider(
        lambda query, most: f"/search?format=json&q={quote_plus(query)}",
        rows="results", fields=("title", "url", "content", "publishedDate"),
    ),
    "tavily": SearchProvider(
        lambda query, most: "https://api.tavily.com/search", "TAVILY_API_KEY",
        lambda query, most: {"query": query, "max_results": most},
        "results", ("title", "url", "content", "published_date"),
    ),
    "bocha": SearchProvider(
        lambda query, most: "https://api.bochaai.com/v1/web-search", "BOCHA_API_KEY",
        lambda query, most: {"query": query, "count": most, "summary": False},
        "data.webPages.value", ("name", "url", "snippet", "datePublished"),
    ),
    "metaso": SearchProvider(
        lambda query, most: "https://metaso.cn/api/v1/search", "METASO_API_KEY",
        lambda query, most: {"q": query, "scope": "webpage", "size": str(most)},
        "webpages", ("title", "link", "snippet", "date"),
    ),
    "baidu": SearchProvider(
        lambda query, most: "https://qianfan.baidubce.com/v2/ai_search/web_search", "BAIDU_API_KEY",
        lambda query, most: {"messages": [{"role": "user", "content": query}], "search_source": "baidu_search_v2",
                             "resource_type_filter": [{"type": "web", "top_k": most}]},
        "references", ("title", "url", "content", "date"),
    ),
}  # fmt: skip


class WebSearch:
    """Asks the providers of `options`, one after another, until one answers."""

    def __init__(
        self,
        dialler: Dialler,
        options: SearchOptions,
        environ: Mapping[str, str],
        providers: Mapping[str, SearchProvider] = PROVIDERS,
    ) -> None:
        self._dialler = dialler
        self._options = options
        self._environ = environ
        self._providers = providers

    async def search(self, query: str, most: int, seconds: float) -> WebHits:
        """At most `most` results. Raises ToolError where nobody answers."""
        missed = list[str]()
        for name in self._options.order:
            try:
                hits = await self._asked(name, query, most, seconds)
            except _Missed as why:
                missed.append(f"{name}: {why}")
            except ToolError as error:
                missed.append(f"{name}: {error.message}")
            else:
                return WebHits(tuple(hits[:most]), name, tuple(missed))
        reasons = " ".join(missed) or "`[web] search` names no provider."
        raise ToolError(
            "execution_failed",
            f"The web could not be searched. {one_line(reasons, 1_000)} If you know an address, fetch_url reads it; "
            "else go on without, and say so.",
        )

    def dialled(self, query: str, most: int) -> Sequence[str]:
        """The addresses that a search may dial, what is sent included. The person's own instance is none of them."""
        rows = [self._providers[name] for name in self._options.order if name != "searxng"]
        urls = [(row, row.url(query, most)) for row in rows if not row.key or self._environ.get(row.key)]
        return [url if row.body is None else f"{url}?query={quote_plus(query)}" for row, url in urls]

    async def _asked(self, name: str, query: str, most: int, seconds: float) -> Sequence[SearchHit]:
        provider = self._providers[name]
        own = name == "searxng"
        base = self._options.searxng.rstrip("/") if own else ""
        if own and not base.startswith(("http://", "https://")):
            raise _Missed("`[web] searxng` does not say where it is.")
        key = self._environ.get(provider.key, "") if provider.key else ""
        if provider.key and not key:
            raise _Missed(f"{provider.key} is not set.")
        headers = ((provider.header, f"Bearer {key}"),) if key else ()
        body = b"" if provider.body is None else msgspec.json.encode(provider.body(query, most))
        url = base + provider.url(query, most)
        answer = await self._dialler.ask(WebRequest(url, 2 << 20, seconds, headers=headers, body=body, own=own))
        if answer.elsewhere or answer.status >= 300:
            raise _Missed(_status(answer))
        if provider.selectors:
            return await self._of_page(answer, provider)
        return _of_json(answer, provider) if provider.rows else await asyncio.to_thread(_of_feed, answer)

    async def _of_page(self, answer: WebAnswer, provider: SearchProvider) -> Sequence[SearchHit]:
        done = await IsolatedWork(_MODULE, answer.body, provider.selectors, seconds=_SECONDS).do()
        if done.exit_code != 0 or done.stdout_gap >= 0:
            raise _Missed("its page could not be read.")
        found = msgspec.json.decode(done.stdout, type=_Hits)
        if found.challenged:
            raise _Missed("it asks for a proof that a person is there (a captcha).")
        hits = [_hit(title, _target(url), text) for title, url, text in found.rows]
        hits = [hit for hit in hits if hit.url]
        if not hits and not found.empty:
            raise _Missed("its page has changed: no result was recognised on it.")
        return hits


def _status(answer: WebAnswer) -> str:
    if answer.status == 429:
        return "it limits requests (429); try later."
    if answer.status in (401, 403):
        return f"it refuses the request ({answer.status}); check its key."
    if answer.elsewhere:
        return f"it leads to another site ({one_line(answer.elsewhere, 100)})."
    return f"it answered {answer.status}."


def _of_json(answer: WebAnswer, provider: SearchProvider) -> Sequence[SearchHit]:
    try:
        value = msgspec.json.decode(answer.body)
    except msgspec.DecodeError:
        raise _Missed("its answer is no JSON.") from None
    for part in provider.rows.split("."):
        value = value.get(part) if isinstance(value, dict) else None
    if not isinstance(value, list):
        raise _Missed(f"its answer has changed: it has no {provider.rows}.")
    title, url, snippet, date = provider.fields
    rows = [row for row in value if isinstance(row, dict) and str(row.get(url)).startswith(_SCHEMES)]
    return [
        _hit(str(row.get(title) or ""), row[url], str(row.get(snippet) or ""), str(row.get(date) or "")) for row in rows
    ]


def _of_feed(answer: WebAnswer) -> Sequence[SearchHit]:
    """The items of an RSS feed, which is read by its tags alone: nothing in it is expanded."""
    text = decoded(answer.body, answer.headers.get("content-type", ""), html=True)
    if "<rss" not in text[:2000].lower():
        raise _Missed("its answer has changed: it is no feed.")
    hits = [
        _hit(*(_element(item, name) for name in ("title", "link", "description", "pubDate")))
        for item in _ITEM.findall(text)[:MOST_RESULTS]
    ]
    return [hit for hit in hits if hit.url.startswith(_SCHEMES)]


def _element(item: str, name: str) -> str:
    found = re.search(rf"<{name}>(?:<!\[CDATA\[)?(.*?)(?:\]\]>)?</{name}>", item, re.S | re.I)
    return html.unescape(found[1]) if found else ""


def _hit(title: str, url: str, snippet: str = "", date: str = "") -> SearchHit:
    plain = [
        one_line(shown(html.unescape(_TAG.sub("", text))).strip(), most)
        for text, most in ((title, 200), (snippet, _SNIPPET))
    ]
    return SearchHit(plain[0], one_line(url.strip(), 2_000), plain[1], one_line(shown(date), 40))


def _target(url: str) -> str:
    """Where a link of a page of results leads: many pass through the provider's own address."""
    if url.startswith("//"):
        url = f"https:{url}"
    try:
        parts = urlsplit(url)
    except ValueError:
        return ""
    if parts.path == "/l/" and (through := parse_qs(parts.query).get("uddg")):
        url = through[0]
    return url if url.startswith(_SCHEMES) else ""
