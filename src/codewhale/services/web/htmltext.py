"""Run as a program: an HTML page on standard input to Markdown of what it is about. Arguments: the page's address, a
CSS selector ("" for the main content), and "whole" for everything that is shown. Writes one JSON object: `title`,
`text`, `links` (numbered from 1), `headings`, `cut`; or `error`, for a selector that finds nothing."""

import json
import re
import sys
from collections.abc import Callable
from typing import Any
from urllib.parse import urljoin

_MOST_PAGE, _MOST_TEXT, _MOST_NODES, _MOST_LINKS, _DEEPEST = 4 << 20, 2_000_000, 300_000, 300, 120
_NEVER = "script,style,noscript,template,svg,iframe,object,canvas,head,select,dialog,[hidden],[aria-hidden=true]"
_FRAME = (
    "nav,footer,aside,form,header,[role=navigation],[role=banner],[role=contentinfo],[role=search],[role=complementary]"
)
_MAIN = "main,article,[role=main],#content,#main,#mw-content-text,#readme,.markdown-body,.post-content,.entry-content"
_UNSEEN = re.compile(
    r"display\s*:\s*none|visibility\s*:\s*hidden|font-size\s*:\s*0(?![.\d])|opacity\s*:\s*0(?![.\d])", re.I
)
_ASIDE = re.compile(
    r"(?:^|[-_ ])(?:nav|navbar|menu|sidebar|breadcrumbs?|footer|masthead|cookies?|consent|banner|newsletter|subscribe|"
    r"share|sharing|social(?:[-_](?:share|sharing|links?|media|icons?|bar|buttons?|nav))?(?=$| )|"
    r"related|recommended|promos?|adverts?|ads|sponsor(?:ed)?|popup|modal|pagination|skip-?link|"
    r"toolbar|edit-?section|(?<=-)actions(?=$| )|headerlink|sr-only|visually-hidden)(?:$|[-_ ])",
    re.I,
)
_BLOCKS = frozenset(
    "address article aside blockquote body dd details div dl dt fieldset figcaption figure footer form h1 h2 h3 h4 h5 "
    "h6 header hr html li main nav ol p pre section summary table tbody td tfoot th thead tr ul".split()
)
# Names of parts of well-known forums, wikis and code hosts that hold no text of their own.
_ASIDE_NAMES = frozenset(
    "action-bar catlinks comments-link jp-relatedposts online-list page-metadata post-buttons post-signature "
    "postprofile printfooter quick-comment-prompt sharedaddy signature signed-out-comment siteSub stat-block "
    "subscription-widget timeline-comment-header".split()
)
# A part that stands beside one is none.
_BESIDE = re.compile(r"(?:^|[-_])(?:with|has|no)[-_]|[-_](?:offset|free|less)$", re.I)
_BAR = re.compile(r"[\s|·•/›»–-]+")
_ARTICLE = 300
_CALLOUTS = frozenset("quote note warning tip caution danger callout admonition important".split())
_COMMENTS = "#comments,.comments,.comments-area,.comment-list"
_WAYS = re.compile(r"^\W*(?:next|prev(?:ious)?|up|home|back|contents)\b", re.I)
_LISTS = "ul,ol,div,td,p,nav,section,li"
_MOST_DEEP, _MANY_TAGS = 2_000, 20_000
_TAG = re.compile(r"<(/?)([a-zA-Z][a-zA-Z0-9]*)")
# Tags without an end, or whose end need not be written.
_OPEN_ENDED = frozenset(
    "area base br col colgroup dd dt embed hr img input li link meta option p param source tbody td tfoot th thead tr "
    "track wbr".split()
)
_BLANK = re.compile(r"[ \t\r\n\f\xa0]+")


def main() -> int:
    address, selector, extent = sys.argv[1:4]
    sys.stdout.write(json.dumps(extracted(sys.stdin.buffer.read(), address, selector, extent == "whole")))
    return 0


def extracted(data: bytes, address: str, selector: str = "", whole: bool = False) -> dict[str, Any]:
    """The text of a page, as the row that this program writes."""
    from selectolax.lexbor import LexborHTMLParser

    source = data[:_MOST_PAGE].decode("utf-8", "replace")
    shallow = _shallow(source)
    page = LexborHTMLParser(shallow)
    title = _flat(found.text()) if (found := page.css_first("title")) else ""
    root = page.body or page.root
    if root is None:
        return {"title": title, "text": "", "links": [], "headings": [], "cut": False}
    for node in root.css(_NEVER):
        node.decompose()
    for node in root.css("[style]"):
        if _UNSEEN.search(node.attributes.get("style") or ""):
            node.decompose()
    parts = [root]
    if selector:
        try:
            parts = root.css(selector)
        except Exception as error:
            return {"error": f"it is no CSS selector ({error})"}
        if not parts:
            return {"error": "it finds nothing on this page", "near": _named(root)}
    elif not whole:
        parts = [_content(root)]
    writer = MarkdownWriter(address)
    for part in parts[:50]:
        writer.block(part, 0)
        writer.end()
    text = "\n".join(writer.lines).strip("\n")
    cut = writer.full or len(data) > _MOST_PAGE or len(text) > _MOST_TEXT or len(shallow) < len(source)
    return {
        "title": title, "text": text[:_MOST_TEXT], "links": list(writer.links), "headings": writer.headings, "cut": cut,
    }  # fmt: skip


def _flat(text: str | None) -> str:
    return _BLANK.sub(" ", text or "").strip()


def _named(root: Any) -> list[str]:
    """Selectors that find something, for whoever asked for one that does not."""
    found = ["#" + node.attributes["id"] for node in root.css("[id]")[:400] if _simple(node.attributes["id"])]
    tags = [tag for tag in ("article", "main", "table", "pre") if root.css_first(tag)]
    return [*tags, *found][:12]


def _simple(name: str | None) -> bool:
    return bool(name and re.fullmatch(r"[A-Za-z][\w-]{0,40}", name))


def _shallow(source: str) -> str:
    """A page up to where more is open than anyone nests: the time to parse what is deeper grows with its square."""
    if source.count("<") < _MANY_TAGS:
        return source
    deep = 0
    for tag in _TAG.finditer(source):
        if tag[2].lower() not in _OPEN_ENDED:
            deep = max(0, deep - 1) if tag[1] else deep + 1
            if deep > _MOST_DEEP:
                return source[: tag.start()]
    return source


def _content(root: Any) -> Any:
    """The part of a page that it is about: what says so, where that holds most of its text, else what most paragraphs
    stand in; without the parts that lead elsewhere."""
    _drop_frame(root)
    whole = _weight(root)
    _drop_links(root)
    said = [(weight, node) for node in root.css(_MAIN) if (weight := _weight(node)) >= 0.4 * whole]
    if said:
        return max(said, key=lambda row: row[0])[1]
    scores = dict[int, list[Any]]()
    for node in root.css("p,pre,blockquote,td,li,dd,h2,h3"):
        size, above, share = _weight(node), node.parent, 1.0
        for _ in range(3):
            if above is None or size < 20:
                break
            row = scores.setdefault(above.mem_id, [0.0, above])
            row[0] += size * share
            above, share = above.parent, share / 2
    best = max(scores.values(), key=lambda row: row[0], default=[0.0, root])[1]
    while _weight(best) < 0.8 * whole and best.parent is not None and best.mem_id != root.mem_id:
        best = best.parent
    return best


def _drop_frame(root: Any) -> None:
    """Take out what elements and names say is no content, and what readers said of an article."""
    for node in root.css(_FRAME):
        if _is_callout(node):
            continue
        if len(node.text()) < 0.5 * len(root.text() or ""):
            node.decompose()
    for node in root.css("[class],[id]"):
        aside = node.tag not in ("body", "main", "article", "pre", "code") and _is_aside(node)
        if aside and len(node.text()) < 0.4 * len(root.text() or ""):
            node.decompose()
    article = root.css_first("article,[itemprop=articleBody]")
    if article is not None and _weight(article) >= _ARTICLE:
        for node in root.css(_COMMENTS):
            if node.css_first("article") is None and _weight(node) < _weight(article):
                node.decompose()


def _is_callout(node: Any) -> bool:
    """Whether a part of the frame by its element is one of the text: a quote or a note, the head of an article."""
    if node.tag == "header":
        return node.css_first("h1,h2,h3,p") is not None
    return node.tag == "aside" and bool(_CALLOUTS & {*(node.attributes.get("class") or "").lower().split()})


def _is_aside(node: Any) -> bool:
    """Whether the names of a part say that it is no content. The id of a section is what links lead to."""
    names, mark = node.attributes.get("class") or "", node.attributes.get("id") or ""
    if node.tag in ("section", "h1", "h2", "h3", "h4", "h5", "h6", "dt", "dd") or "section" in names.split():
        mark = ""
    words = {*names.split(), mark}
    return bool(words & _ASIDE_NAMES) or any(_ASIDE.search(word) and not _BESIDE.search(word) for word in words)


def _drop_links(root: Any) -> None:
    """Take out lists and bars that are nothing but links to elsewhere, unless they are what the page is about."""
    most = 0.4 * len(root.text() or "")
    index = {node.mem_id for main in root.css(_MAIN) if _is_index(main) for node in main.css(_LISTS)}
    for node in root.css(_LISTS):
        links = node.css("a")
        text = _flat(node.text())
        if node.mem_id in index:
            continue
        if not links or len(text) > min(most, 4_000):
            continue
        linked = sum(len(_flat(link.text())) for link in links)
        short = len(text) <= 40 * len(links) and node.css_first("pre,table,h1") is None
        many = len(links) >= 3 and linked >= 0.8 * len(text) and short
        between = _outside(text, links).strip()
        bar = len(links) >= 2 and (bool(_BAR.fullmatch(between)) or (not between and node.tag not in ("td", "li", "p")))
        ways = linked >= 0.3 * len(text) and len(text) < 160 and bool(_WAYS.match(text))
        if many or bar or ways:
            node.decompose()


def _is_index(main: Any) -> bool:
    """Whether the text of a page is links: a table of contents, say."""
    return _weight(main) < 0.4 * len(_flat(main.text()))


def _outside(text: str, links: list[Any]) -> str:
    """What of a text stands in none of its links."""
    for link in links:
        text = text.replace(_flat(link.text()), "", 1)
    return text


def _weight(node: Any) -> int:
    """How much text a part has that is no link."""
    return len(_flat(node.text())) - sum(len(_flat(link.text())) for link in node.css("a"))


class MarkdownWriter:
    """Markdown of nodes in `lines`."""

    def __init__(self, address: str) -> None:
        self.lines: list[str] = []
        self.links: dict[str, int] = {}
        self.headings: list[str] = []
        self.full = False
        self._address = address
        self._nodes = 0
        self._size = 0
        self._inline = ""
        self._first = ""  # what the next line begins with, and those after it
        self._indent = ""

    def block(self, node: Any, depth: int) -> None:
        """A node and what is in it; what is deeper than anyone writes by hand is text alone."""
        self._nodes += 1
        if self._nodes > _MOST_NODES or self._size > _MOST_TEXT:
            self.full = True
            return
        if depth > _DEEPEST:
            self._inline += node.text() or ""
            return
        tag = node.tag or ""
        special: Callable[[Any, int], None] | None = getattr(self, f"_{_FORMS[tag]}") if tag in _FORMS else None
        if special is not None:
            special(node, depth)
        elif tag == "-text":
            self._inline += _BLANK.sub(" ", node.text_content or "")
        elif tag[:1] not in "-!_":
            if tag in _BLOCKS:
                self.end()
                self._into(node, depth)
                self.end()
            else:
                self._into(node, depth)

    def end(self) -> None:
        """The end of a paragraph."""
        text = re.sub(r" *\n *", "\n", _BLANKS.sub(" ", self._inline)).strip()
        self._inline = ""
        if text:
            for line in text.split("\n"):
                self._line(line)

    def _into(self, node: Any, depth: int) -> None:
        child = node.child
        while child is not None and not self.full:
            self.block(child, depth + 1)
            child = child.next

    def _line(self, text: str) -> None:
        line = (self._first or self._indent) + text
        self._first = ""
        self._size += len(line) + 1
        self.lines.append(line.rstrip())

    def _gap(self) -> None:
        if self.lines and self.lines[-1]:
            self.lines.append("")

    def _heading(self, node: Any, depth: int) -> None:
        self.end()
        if text := _flat(node.text()).strip("#¶ "):
            self._gap()
            level = int(node.tag[1])
            self.headings.append("  " * (level - 1) + text[:120])
            self._line(f"{'#' * level} {text}")

    def _paragraph(self, node: Any, depth: int) -> None:
        self.end()
        if not self._first:
            self._gap()
        self._into(node, depth)
        self.end()
        if not self._indent:
            self._gap()

    def _preformatted(self, node: Any, depth: int) -> None:
        self.end()
        self._gap()
        named = f"{node.attributes.get('class') or ''} {(node.css_first('code') or node).attributes.get('class') or ''}"
        language = (
            found[1] if (found := re.search(r"\b(?:language|lang|highlight-source)-([\w+#-]{1,20})", named)) else ""
        )
        text = (node.text() or "").strip("\n")
        fence = "`" * max(3, 1 + max((len(run) for run in re.findall(r"`+", text)), default=0))
        for line in (fence + language, *text.split("\n"), fence):
            self._line(line)
        self._gap()

    def _code(self, node: Any, depth: int) -> None:
        text = _flat(node.text())
        self._inline += f"`{text}`" if text and "`" not in text else text

    def _break(self, node: Any, depth: int) -> None:
        self._inline += "\n"

    def _rule(self, node: Any, depth: int) -> None:
        self.end()
        self._gap()

    def _image(self, node: Any, depth: int) -> None:
        if said := _flat(node.attributes.get("alt")):
            self._inline += f"[image: {said[:200]}]"

    def _link(self, node: Any, depth: int) -> None:
        self._into(node, depth)
        target = (node.attributes.get("href") or "").strip()
        if not target or target.startswith("#") or not (node.text() or "").strip():
            return
        try:
            url = urljoin(self._address, target)
        except ValueError:
            return
        if url.startswith(("http://", "https://")) and len(url) < 2000:
            url = url.partition("#")[0] if url.partition("#")[0] == self._address.partition("#")[0] else url
            if url in self.links or len(self.links) < _MOST_LINKS:
                self._inline = self._inline.rstrip() + f" [{self.links.setdefault(url, len(self.links) + 1)}]"

    def _list(self, node: Any, depth: int) -> None:
        self.end()
        if not self._indent:
            self._gap()
        number = 0
        child = node.child
        while child is not None and not self.full:
            if child.tag == "li":
                number += 1
                mark = f"{number}. " if node.tag == "ol" else "- "
                before, self._first = self._indent, self._indent + mark
                self._indent += " " * len(mark)
                self._into(child, depth + 1)
                self.end()
                self._indent, self._first = before, ""
            else:
                self.block(child, depth + 1)
            child = child.next
        if not self._indent:
            self._gap()

    def _quote(self, node: Any, depth: int) -> None:
        self.end()
        self._gap()
        before, self._indent = self._indent, self._indent + "> "
        self._into(node, depth)
        self.end()
        self._indent = before
        self._gap()

    def _table(self, node: Any, depth: int) -> None:
        """Rows of cells; a table that only lays a page out is text."""
        self.end()
        rows = [[cell for cell in _children(row) if cell.tag in ("td", "th")] for row in node.css("tr")]
        if (
            any(one.mem_id != node.mem_id for one in node.css("table"))
            or sum(len(row) for row in rows) < 4
            or max(map(len, rows)) < 2
        ):
            self._into(node, depth)
            self.end()
            return
        self._gap()
        for at, row in enumerate(rows):
            self._line("| " + " | ".join(self._cell(cell, depth) for cell in row) + " |")
            if at == 0:
                self._line("|" + " --- |" * len(row))
        self._gap()

    def _cell(self, node: Any, depth: int) -> str:
        lines, self.lines, indent, self._indent = self.lines, [], self._indent, ""
        self._into(node, depth)
        self.end()
        text = " ".join(line for line in self.lines if line)
        self.lines, self._indent = lines, indent
        return text.replace("|", "\\|")


def _children(node: Any) -> list[Any]:
    found, child = [], node.child
    while child is not None:
        found.append(child)
        child = child.next
    return found


_BLANKS = re.compile(r"[ \t]+")
_FORMS = {
    **{f"h{level}": "heading" for level in range(1, 7)}, "p": "paragraph", "pre": "preformatted", "code": "code",
    "kbd": "code", "samp": "code", "br": "break", "hr": "rule", "img": "image", "a": "link", "ul": "list",
    "ol": "list", "menu": "list", "blockquote": "quote", "table": "table",
}  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
