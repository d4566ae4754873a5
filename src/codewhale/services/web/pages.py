"""Pages of the web as text: what came over the wire to what a model reads of it."""

import asyncio
import codecs
import re

import msgspec
from msgspec import Struct

from codewhale.lib.text import one_line
from codewhale.process.isolated import AT_ONCE, MEMORY, NO_MEMORY, IsolatedWork
from codewhale.protocol.errors import ToolError
from codewhale.services.web.dialler import Dialler, WebAnswer, WebRequest
from codewhale.workspace.documents import pdf_text

_SECONDS = 10.0
_MODULE = "codewhale.services.web.htmltext"
_MARK = re.compile(
    rb"<(?:meta[^>]{0,200}?charset|\?xml[^>]{0,100}?encoding)\s*=\s*[\"']?\s*([A-Za-z0-9_.:-]{2,40})", re.I
)
_BYTE_ORDER = ((codecs.BOM_UTF8, "utf-8-sig"), (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"))
# What no page is written in: slow decoders, and those that make of plain signs what nobody sees in the source.
_NO_CHARSETS = frozenset({"punycode", "idna", "undefined", "unicode_escape", "raw_unicode_escape", "utf_7"})
_HTML = frozenset({"text/html", "application/xhtml+xml"})
_TEXTS = re.compile(
    r"text/.*|application/(?:.*[+/-])?(?:json|xml|yaml|toml|javascript|ecmascript|x-sh|sql|graphql|rss|atom)(?:\+xml)?"
)
_CONTROLS = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]")


class WebPage(Struct, frozen=True):
    """A page as text. `kind` is html, pdf, json, text, or other: then `text` says what it is. `headings` are indented
    by their level; link n of `links` stands as [n] in the text; `cut` where not all of it could be had."""

    url: str
    status: int
    kind: str
    content_type: str
    text: str
    title: str = ""
    headings: tuple[str, ...] = ()
    links: tuple[str, ...] = ()
    cut: bool = False
    elsewhere: str = ""
    headers: dict[str, str] = {}


class _Extracted(Struct):
    title: str = ""
    text: str = ""
    links: list[str] = []
    headings: list[str] = []
    cut: bool = False
    error: str = ""
    near: list[str] = []


class WebPages:
    """Fetches pages. What strangers wrote is parsed in a process of its own."""

    def __init__(self, dialler: Dialler) -> None:
        self._dialler = dialler
        self._parsing = asyncio.Semaphore(AT_ONCE)

    async def page(self, request: WebRequest, form: str = "markdown", selector: str = "") -> WebPage:
        """A page: its main content as Markdown, all that it shows ("text"), or its source ("raw"). Raises ToolError."""
        answer = await self._dialler.ask(request)
        kind = _kind(answer)
        page = WebPage(
            answer.url, answer.status, kind, answer.content_type, "", cut=answer.truncated, elsewhere=answer.elsewhere,
            headers=answer.headers,
        )  # fmt: skip
        if answer.elsewhere or not answer.body:
            return page
        if kind == "pdf":
            async with self._parsing:
                pages = (await pdf_text(one_line(answer.url, 200), answer.body, 1, 0)).pages
            return msgspec.structs.replace(page, text=shown("\n\n".join(pages)))
        if kind == "other":
            what = answer.content_type or "data of no known type"
            return msgspec.structs.replace(page, text=f"{what}, {len(answer.body):,} bytes; it is no text.")
        header = answer.headers.get("content-type", "")
        text = await asyncio.to_thread(decoded, answer.body, header, html=kind == "html")
        if kind != "html" or form == "raw":
            return msgspec.structs.replace(page, text=shown(text))
        async with self._parsing:
            found = await self._extracted(answer.url, text, form, selector)
        if found.error:
            near = f" The page has {', '.join(found.near)}." if found.near else ""
            raise ToolError(
                "invalid_input",
                f"The selector {one_line(selector, 80)!r}: {one_line(found.error, 200)}.{one_line(near, 400)} Leave it "
                "out for the main content.",
                field="selector",
                expected="a CSS selector of a part of the page",
                received=one_line(selector, 80),
            )
        return msgspec.structs.replace(
            page, text=shown(found.text), title=one_line(shown(found.title), 200), links=tuple(found.links),
            headings=tuple(shown(one)[:160] for one in found.headings),
            cut=page.cut or found.cut,
        )  # fmt: skip

    async def _extracted(self, url: str, text: str, form: str, selector: str) -> _Extracted:
        extent = "whole" if form == "text" else ""
        work = IsolatedWork(_MODULE, text.encode("utf-8", "replace"), (url, selector, extent), seconds=_SECONDS)
        done = await work.do()
        if done.timed_out or done.exit_code == NO_MEMORY or (done.exit_code or 0) < 0:
            bound = f"{_SECONDS:.0f} seconds" if done.timed_out else f"{MEMORY >> 20} MB of memory"
            raise ToolError(
                "execution_failed",
                f'{one_line(url, 200)}: reading this page takes more than {bound}. Use format "raw".',
            )
        if done.exit_code != 0 or done.stdout_gap >= 0:
            last = done.stderr.decode("utf-8", "replace").strip().rpartition("\n")[2]
            raise ToolError(
                "execution_failed", f"{one_line(url, 200)} could not be read as a page: {one_line(last, 200)}."
            )
        return msgspec.json.decode(done.stdout, type=_Extracted)


def shown(text: str) -> str:
    """A text of strangers in which what is not seen is seen."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    return _CONTROLS.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def decoded(data: bytes, content_type: str, *, html: bool) -> str:
    """The text of bytes by their first bytes, the header, what the page says of itself, and what they are."""
    for mark, name in _BYTE_ORDER:
        if data.startswith(mark):
            return data.decode(name, "replace")
    said = re.search(r"charset\s*=\s*[\"']?([\w.:-]{2,40})", content_type, re.I)
    names = [said[1]] if said else []
    if html and (found := _MARK.search(data[:4096])):
        names.append(found[1].decode("ascii"))
    for name in names:
        try:
            codec = codecs.lookup(name)
            if codec.name.replace("-", "_") in _NO_CHARSETS:
                continue
            if codec._is_text_encoding and codec.name != "utf-8":
                return data.decode("cp1252" if codec.name in ("iso8859-1", "ascii") else codec.name, "replace")
        except (LookupError, ValueError):
            continue
    try:
        codecs.getincrementaldecoder("utf-8")().decode(data)  # what is cut inside a character is valid
    except UnicodeDecodeError:
        if not names:
            return data.decode("cp1252", "replace")
    return data.decode("utf-8", "replace")


def _kind(answer: WebAnswer) -> str:
    said, head = answer.content_type, answer.body[:512].lstrip().lower()
    if said == "application/pdf" or head.startswith(b"%pdf-"):
        return "pdf"
    if said in _HTML or (
        said in ("", "text/plain", "application/octet-stream") and head.startswith((b"<!doctype html", b"<html"))
    ):
        return "html"
    if said.endswith("json"):
        return "json"
    if _TEXTS.fullmatch(said) or (not said and b"\0" not in answer.body[:1024]):
        return "text"
    return "other"
