"""The web: pages as text, with a reference each that an answer can cite."""

import asyncio
from collections.abc import Callable
from typing import Annotated, Any, Literal

import msgspec
from msgspec.structs import replace

from codewhale.lib.text import one_line
from codewhale.protocol.errors import Look, NextCall, ToolError
from codewhale.protocol.tools import CallContext, Effect, Origin, OutputKept, Subject, ToolResult, UrlSubject
from codewhale.services.web.dialler import MOST_BYTES, WebRequest
from codewhale.services.web.pages import WebPage, WebPages
from codewhale.services.web.references import (
    WEB_DATA,
    KeptPage,
    WebRefs,
    found_in,
    linked,
    page_view,
    shown_hits,
    shown_page,
    way_on,
)
from codewhale.services.web.searching import MOST_RESULTS, WebHits, WebSearch
from codewhale.tools.base import Args, Doc, tool

MOST_STEPS = 8
_LENGTHS = {"short": 3_000, "medium": 7_000, "long": 14_000}
_STEPS_SECONDS = 60.0
_UNCHANGED = 304


class FetchUrl(Args, frozen=True):
    """Which page; exactly one of url and ref_id."""

    url: Annotated[str, Doc("http or https.", max_length=8192)] | None = None
    ref_id: Annotated[str, Doc("Of a page read before, such as web3: read again as it was.", max_length=20)] | None = (
        None
    )
    format: Annotated[
        Literal["markdown", "text", "raw"], Doc("markdown: the main content; text: all that is shown; raw: the source.")
    ] = "markdown"
    selector: Annotated[str, Doc("CSS selector of the part to read.", max_length=200)] | None = None
    max_bytes: Annotated[int, Doc("Most bytes to download.", ge=1_000, le=MOST_BYTES)] = 1_000_000
    timeout_ms: Annotated[int, Doc("Milliseconds.", ge=1_000, le=60_000)] = 15_000


class WebSearchArgs(Args, frozen=True):
    """What is looked for."""

    query: Annotated[str, Doc("A few words, as for a search engine.", min_length=1, max_length=400)]
    max_results: Annotated[int, Doc("Most results.", ge=1, le=MOST_RESULTS)] = 5
    timeout_ms: Annotated[int, Doc("Milliseconds.", ge=1_000, le=60_000)] = 15_000


class SearchStep(Args, frozen=True):
    """A search."""

    q: Annotated[str, Doc("A few words.", min_length=1, max_length=400)]
    max_results: Annotated[int, Doc("Most results.", ge=1, le=MOST_RESULTS)] = 5


class OpenStep(Args, frozen=True):
    """A page to open."""

    ref_id: Annotated[str, Doc("A ref_id such as web3, or an http address.", min_length=1, max_length=8192)]
    lineno: Annotated[int, Doc("First line to show.", ge=1)] = 1


class ClickStep(Args, frozen=True):
    """A link of a page to follow."""

    ref_id: Annotated[str, Doc("The page.", min_length=1, max_length=20)]
    id: Annotated[int, Doc("The number of the link.", ge=1)]


class FindStep(Args, frozen=True):
    """A text to find in a page."""

    ref_id: Annotated[str, Doc("The page.", min_length=1, max_length=20)]
    pattern: Annotated[str, Doc("Text as it stands there; case is ignored.", min_length=1, max_length=200)]


class WebRun(Args, frozen=True):
    """Steps, run in the order of these lists."""

    search_query: Annotated[tuple[SearchStep, ...], Doc("Searches.", max_length=MOST_STEPS)] = ()
    open: Annotated[tuple[OpenStep, ...], Doc("Pages to open.", max_length=MOST_STEPS)] = ()
    click: Annotated[tuple[ClickStep, ...], Doc("Numbered links to follow.", max_length=MOST_STEPS)] = ()
    find: Annotated[tuple[FindStep, ...], Doc("Texts to find in pages.", max_length=MOST_STEPS)] = ()
    response_length: Annotated[
        Literal["short", "medium", "long"], Doc("All steps together: 3,000, 7,000 or 14,000 characters.")
    ] = "medium"


def _query(text: str) -> str:
    return one_line(text.strip(), 400)


def _dialled(args: FetchUrl) -> tuple[Subject, ...]:
    return (UrlSubject(args.url.strip()),) if args.url and args.url.strip() else ()


class WebTools:
    """The tools of the web. `allowed(session, url)` says whether an address that a page or a search gave may be dialled
    without asking."""

    def __init__(self, pages: WebPages, search: WebSearch, refs: WebRefs, allowed: Callable[[str, str], bool]) -> None:
        self._pages = pages
        self._search = search
        self._refs = refs
        self._allowed = allowed

    @tool("fetch_url", effects={Effect.READS, Effect.NETWORK}, subjects=_dialled, parallel=True)
    async def fetch_url(self, args: FetchUrl, call: CallContext) -> ToolResult:
        """Read a web page by GET: HTML as Markdown of its main content with numbered links, PDF, JSON and text as they
        are. Of a long page returns outline, beginning and how to read on. Each page has a ref_id to cite, as [web3].
        """
        if (args.url or "").strip() and args.ref_id:
            raise ToolError(
                "invalid_input", "Give url or ref_id, not both.", field="ref_id", expected="one page",
                received=args.ref_id, fix=NextCall("fetch_url", {"ref_id": args.ref_id}),
            )  # fmt: skip
        if args.ref_id:
            kept = await asyncio.to_thread(self._refs.page, call.session, _ref(args.ref_id))
            title = f"{kept.ref}: {kept.row.get('title') or kept.url}\nurl: {one_line(kept.url, 400)}"
            return ToolResult(f"{title}\n{WEB_DATA}\n{shown_page(kept)}", origin=Origin.WEB)
        url = (args.url or "").strip()
        if not url:
            raise ToolError(
                "missing_field", "fetch_url needs `url`, the address to read, or the ref_id of a page.", field="url",
                expected="an address", received="nothing",
                fix=Look("web_search", {"query": "what the page is about"}),
            )  # fmt: skip
        request = WebRequest(url, args.max_bytes, args.timeout_ms / 1000)
        page, kept = await self._read(request, call.session, args.format, (args.selector or "").strip())
        return _page_result(page, kept)

    @tool("web_search", effects={Effect.READS, Effect.NETWORK}, subjects="_searched", parallel=True)
    async def web_search(self, args: WebSearchArgs, call: CallContext) -> ToolResult:
        """Search the web. Returns title, address, snippet and date of each result with a ref_id to cite, as [web3];
        read one by fetch_url. Names who answered.
        """
        found = await self._found(call.session, args.query, args.max_results, args.timeout_ms / 1000)
        refs = self._refs.found(call.session, found)
        metadata = {"query": args.query.strip(), "source": found.provider, "count": len(refs), "refs": refs}
        return ToolResult(shown_hits(found, refs), metadata=metadata, origin=Origin.WEB)

    @tool("web_run", effects={Effect.READS, Effect.NETWORK}, subjects="_steps", parallel=True)
    async def web_run(self, args: WebRun, call: CallContext) -> ToolResult:
        """Several steps on the web in one call: search, open pages, follow numbered links, find text in pages; in this
        order, and a step may use what an earlier one gave. One that fails leaves the others alone.
        """
        steps: list[SearchStep | OpenStep | ClickStep | FindStep] = [
            *args.search_query, *args.open, *args.click, *args.find,
        ]  # fmt: skip
        if not steps or len(steps) > MOST_STEPS:
            came = f"{len(steps)} steps"
            raise ToolError(
                "invalid_input", f"The four lists hold 1 to {MOST_STEPS} steps together; {came} came.",
                field="search_query", expected=f"1 to {MOST_STEPS} steps", received=came,
            )  # fmt: skip
        most = _LENGTHS[args.response_length] // len(steps)
        parts, refs, failed = list[str](), list[dict[str, Any]](), 0
        end = asyncio.get_running_loop().time() + _STEPS_SECONDS
        for step in steps:
            left = end - asyncio.get_running_loop().time()
            name = f"## {_STEP_NAMES[type(step)]} {_step_words(step)}"
            try:
                text = await self._step(step, call.session, refs, most, max(1.0, min(left, 20.0)))
            except ToolError as error:
                failed += 1
                way = error.fix or error.look
                text = error.message + (
                    f" Next: {way.name} {msgspec.json.encode(way.arguments).decode()}" if way else ""
                )
            parts.append(f"{name}\n{text}")
        ok = failed < len(steps)
        metadata = {"steps": len(steps), "failed": failed, "refs": refs}
        text = "\n\n".join(parts)
        return ToolResult(text, ok=ok, error="" if ok else "execution_failed", metadata=metadata, origin=Origin.WEB)

    async def _step(
        self, step: "SearchStep | OpenStep | ClickStep | FindStep", session: str, refs: list[dict[str, Any]], most: int,
        seconds: float,
    ) -> str:  # fmt: skip
        """The text of a step; what it reads joins `refs`. Raises ToolError."""
        match step:
            case SearchStep():
                found = await self._found(session, step.q, step.max_results, seconds)
                rows = self._refs.found(session, found)
                refs += rows
                return shown_hits(found, rows)
            case OpenStep() if _is_address(step.ref_id):
                return page_view(await self._opened(session, step.ref_id.strip(), refs, seconds), step.lineno, most)
            case OpenStep():
                row = self._refs.row(session, _ref(step.ref_id), refs)
                if "sha256" in row:
                    kept = await asyncio.to_thread(self._refs.page, session, row["id"], refs)
                else:
                    kept = await self._opened(session, str(row["url"]), refs, seconds)
                return page_view(kept, step.lineno, most)
            case ClickStep():
                kept = await asyncio.to_thread(self._refs.page, session, _ref(step.ref_id), refs)
                return page_view(await self._opened(session, linked(kept, step.id), refs, seconds), 1, most)
            case FindStep():
                kept = await asyncio.to_thread(self._refs.page, session, _ref(step.ref_id), refs)
                return found_in(kept, step.pattern, most)

    async def _opened(self, session: str, url: str, refs: list[dict[str, Any]], seconds: float) -> KeptPage:
        if not self._allowed(session, url):
            raise ToolError(
                "permission_denied", f"{one_line(url, 300)} may be read only once that is approved.",
                fix=NextCall("fetch_url", {"url": url}),
            )  # fmt: skip
        page, kept = await self._read(WebRequest(url, seconds=seconds), session)
        if page.status >= 400:
            raise way_on(ToolError("execution_failed", f"{one_line(url, 200)} answered {page.status}."), url)
        refs.append(kept.row)
        return kept

    async def _read(
        self, request: WebRequest, session: str, form: str = "markdown", selector: str = ""
    ) -> tuple[WebPage, KeptPage]:
        """A page and what is kept of it: what was kept before where its server says that it is the same."""
        former = self._refs.known(session, request.url, form, selector)
        if former is not None:
            asked = {"etag": "if-none-match", "last-modified": "if-modified-since"}
            request = replace(request, headers=tuple((asked[name], mark) for name, mark in former["marks"].items()))
        try:
            page = await self._pages.page(request, form, selector)
            if page.status == _UNCHANGED and former is not None:
                return page, await asyncio.to_thread(self._refs.page, session, former["id"])
        except ToolError as error:
            raise way_on(error, request.url) from None
        if page.elsewhere:
            url, target = one_line(request.url, 200), one_line(page.elsewhere, 400)
            raise ToolError(
                "not_available", f"{url} leads to another site, {target}; nothing was read.", field="url",
                expected="the address that it leads to", received=url,
                fix=NextCall("fetch_url", {"url": page.elsewhere}),
            )  # fmt: skip
        return page, await asyncio.to_thread(self._refs.keep, session, page, form, selector)

    async def _found(self, session: str, query: str, most: int, seconds: float) -> WebHits:
        words = _query(query)
        if not words or self._refs.holds_secret(session, words):
            what = "it holds a secret of the user" if words else "it is empty"
            raise ToolError(
                "invalid_input", f"query: {what}; nothing was searched.", field="query", expected="a few words",
                received="a secret" if words else "nothing",
            )  # fmt: skip
        return await self._search.search(words, most, seconds)

    def _searched(self, args: WebSearchArgs) -> tuple[Subject, ...]:
        return tuple(UrlSubject(url) for url in self._search.dialled(_query(args.query), args.max_results))

    def _steps(self, args: WebRun) -> tuple[Subject, ...]:
        searched = [url for step in args.search_query for url in self._search.dialled(_query(step.q), step.max_results)]
        opened = [step.ref_id.strip() for step in args.open if _is_address(step.ref_id)]
        return tuple(UrlSubject(url) for url in dict.fromkeys((*searched, *opened)))


def _page_result(page: WebPage, kept: KeptPage) -> ToolResult:
    metadata: dict[str, Any] = {"url": kept.url, "status": page.status, "content_type": page.content_type}
    again = page.status == _UNCHANGED
    metadata |= {"truncated": page.cut, "refs": [] if again else [kept.row]}
    head = f"{kept.ref}: {kept.row['title'] or kept.url}\nurl: {one_line(kept.url, 400)}\n"
    head += f"status: {page.status} {one_line(page.content_type, 100)}".rstrip()
    head += ", the same as when it was read before" * again + "\nnot all of it could be read: it is cut" * page.cut
    ok = page.status < 400
    readable = ok and kept.text and page.kind != "other"
    more = "" if readable else f"\nTo look elsewhere: web_search {_json(Look.of_address(page.url).arguments)}"
    return ToolResult(
        f"{head}\n{WEB_DATA}\n{shown_page(kept, page.headings, page.links)}{more}",
        ok=ok,
        error="" if ok else "execution_failed",
        metadata=metadata,
        origin=Origin.WEB,
        updates=() if again else (OutputKept(kept.row["sha256"], len(kept.text.encode("utf-8", "replace"))),),
    )


def _json(value: dict[str, Any]) -> str:
    return msgspec.json.encode(value).decode()


def _ref(text: str) -> str:
    return text.strip().strip("[]")


def _is_address(text: str) -> bool:
    return "://" in text


def _step_words(step: "SearchStep | OpenStep | ClickStep | FindStep") -> str:
    match step:
        case SearchStep():
            return one_line(step.q, 100)
        case ClickStep():
            return f"{one_line(step.ref_id, 20)} [{step.id}]"
        case FindStep():
            return f"{one_line(step.ref_id, 20)} {one_line(step.pattern, 60)}"
        case OpenStep():
            return one_line(step.ref_id, 200)


_STEP_NAMES: dict[type[Args], str] = {SearchStep: "search", OpenStep: "open", ClickStep: "click", FindStep: "find"}
