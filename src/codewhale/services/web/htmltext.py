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
_FRAME = "nav,footer,aside,form,[role=navigation],[role=banner],[role=contentinfo],[role=search],[role=complementary]"
_MAIN = "main,article,[role=main],#content,#main,#mw-content-text,#readme,.markdown-body,.post-content,.entry-content"
_UNSEEN = re.compile(
    r"display\s*:\s*none|visibility\s*:\s*hidden|font-size\s*:\s*0(?![.\d])|opacity\s*:\s*0(?![.\d])", re.I
)
_ASIDE = re.compile(
    r"(?:^|[-_ ])(?:nav|navbar|menu|sidebar|breadcrumbs?|footer|masthead|cookies?|consent|banner|newsletter|subscribe|"
    r"share|sharing|social|related|recommended|promos?|adverts?|ads|sponsor(?:ed)?|popup|modal|pagination|skip-?link|"
    r"toolbar|edit-?section|headerlink|sr-only|visually-hidden)(?:$|[-_ ])",
    re.I,
)
_BLOCKS = frozenset(
    "address article aside blockquote body dd details div dl dt fieldset figcaption figure footer form h1 h2 h3 h4 h5 "
    "h6 header hr html li main nav ol p pre section summary table tbody td tfoot th thead tr ul".split()
)
_BLANK = re.compile(r"[ \t\r\n\f\xa0]+")


def main() -> int:
    from selectolax.lexbor import LexborHTMLParser

    address, selector, extent = sys.argv[1:4]
    data = sys.stdin.buffer.read()
    page = LexborHTMLParser(data[:_MOST_PAGE].decode("utf-8", "replace"))
    title = _flat(found.text()) if (found := page.css_first("title")) else ""
    root = page.body or page.root
    if root is None:
        sys.stdout.write(json.dumps({"title": title, "text": "", "links": [], "headings": [], "cut": False}))
        return 0
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
            sys.stdout.write(json.dumps({"error": f"it is no CSS selector ({error})"}))
            return 0
        if not parts:
            sys.stdout.write(json.dumps({"error": "it finds nothing on this page", "near": _named(root)}))
            return 0
    elif extent != "whole":
        parts = [_content(root)]
    writer = MarkdownWriter(address)
    for part in parts[:50]:
        writer.block(part, 0)
        writer.end()
    text = "\n".join(writer.lines).strip("\n")
    cut = writer.full or len(data) > _MOST_PAGE or len(text) > _MOST_TEXT
    row = {
        "title": title,
        "text": text[:_MOST_TEXT],
        "links": list(writer.links),
        "headings": writer.headings,
        "cut": cut,
    }
    sys.stdout.write(json.dumps(row))
    return 0


def _flat(text: str | None) -> str:
    return _BLANK.sub(" ", text or "").strip()


def _named(root: Any) -> list[str]:
    """Selectors that find something, for whoever asked for one that does not."""
    found = ["#" + node.attributes["id"] for node in root.css("[id]")[:400] if _simple(node.attributes["id"])]
    tags = [tag for tag in ("article", "main", "table", "pre") if root.css_first(tag)]
    return [*tags, *found][:12]


def _simple(name: str | None) -> bool:
    return bool(name and re.fullmatch(r"[A-Za-z][\w-]{0,40}", name))


def _content(root: Any) -> Any:
    """The part of a page that it is about: what says so, where that holds most of its text, else what most paragraphs
    stand in; without the parts that lead elsewhere."""
    for node in root.css(_FRAME):
        if len(node.text()) < 0.5 * len(root.text() or ""):
            node.decompose()
    for node in root.css("[class],[id]"):
        name = f"{node.attributes.get('class') or ''} {node.attributes.get('id') or ''}"
        aside = node.tag not in ("body", "main", "article", "pre", "code") and _ASIDE.search(name.strip())
        if aside and len(node.text()) < 0.4 * len(root.text() or ""):
            node.decompose()
    whole = _weight(root)
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
    while _weight(best) < 0.6 * whole and best.parent is not None and best.mem_id != root.mem_id:
        best = best.parent
    return best


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
