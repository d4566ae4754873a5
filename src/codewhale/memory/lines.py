"""Facts as lines of Markdown that a person can edit: `- (2026-05-03 22:14 UTC) text <!-- id:1a2b3c4d -->`. Lines that
are indented below an item go on with it; what stands in a code block or in a comment is no fact."""

import hashlib
import re
from collections.abc import Collection

from msgspec import Struct
from msgspec.structs import replace

from codewhale.lib.text import one_line
from codewhale.memory.model import Fact, FactScope

LONGEST_FACT = 2000
MOST_FACTS = 20_000
_LINE = re.compile(r"^[-*+] +(?:\((?P<created>\d{4}-\d\d-\d\d(?: \d\d:\d\d UTC)?)\) +)?(?P<rest>\S.*)$")
_NAMES = "id|key|from|tainted|expires"
_ABOUT = re.compile(rf"\s*<!--(?P<about>(?: +(?:{_NAMES})(?::(?:\"[^\"]*\"|\S*))?)+) *-->\s*$")
_FIELD = re.compile(r" ([a-z]+)(?::(?:\"([^\"]*)\"|(\S*)))?")
_ID = re.compile(r"[0-9A-Za-z][\w-]{0,39}", re.ASCII)
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")


class FactLines(Struct, frozen=True):
    """A fact and its lines, from `start` to before `end`, counted from 0."""

    fact: Fact
    start: int
    end: int


class FactPage(Struct, frozen=True):
    """A file's lines with their ends, the facts in them, and what is wrong."""

    lines: list[bytes]
    items: list[FactLines]
    problems: list[str]


def read_page(data: bytes, scope: FactScope) -> FactPage:
    """All that a file's bytes say."""
    page = FactPage(data.splitlines(keepends=True), [], [])
    texts = [_decoded(line, number, page.problems) for number, line in enumerate(page.lines)]
    ids, at, block = dict[str, str](), 0, 0
    while at < len(texts) and len(page.items) < MOST_FACTS:
        start, at = at, at + 1
        if ends := _block(texts[start]):
            while at < len(texts) and not ends.search(texts[at]):
                at += 1
            block, at = (start + 1, at) if at == len(texts) else (0, at + 1)
            continue
        if _LINE.match(texts[start]) is None:
            continue
        while at < len(texts) and texts[at][:1] in (" ", "\t") and texts[at].strip():
            at += 1
        fact = _fact(texts[start:at], scope, start + 1, page.problems)
        if fact is not None and ids.setdefault(fact.id, fact.text) != fact.text:
            page.problems.append(f"line {fact.line}: its id {fact.id} is that of another fact above")
            fact = replace(fact, id=text_id(fact.text))
        if fact is not None:
            page.items.append(FactLines(fact, start, at))
    if block:
        page.problems.append(f"line {block}: what begins there does not end; no fact below it is read")
    if len(page.items) == MOST_FACTS:
        page.problems.append(f"line {at + 1}: only the first {MOST_FACTS:,} facts are read")
    return page


def with_fact(data: bytes, fact: Fact) -> bytes:
    """The file with one more line at its end."""
    return with_lines(data, fact_line(fact).encode("utf-8", "replace"))


def with_lines(data: bytes, lines: bytes) -> bytes:
    """The file with these lines at its end."""
    end = b"\r\n" if data.partition(b"\n")[0].endswith(b"\r") else b"\n"
    between = b"" if not data or data.endswith((b"\n", b"\r")) else end
    return data + between + lines + end * (not lines.endswith(b"\n"))


def lines_of(page: FactPage, item: FactLines) -> bytes:
    """The lines of a fact, byte for byte."""
    return b"".join(page.lines[item.start : item.end]).removeprefix(b"\xef\xbb\xbf")


def with_changed(data: bytes, fact: Fact) -> bytes:
    """The file with the lines of this id saying this fact, and every other byte as it was."""
    page = read_page(data, fact.scope)
    for item in page.items:
        if item.fact.id == fact.id:
            last = page.lines[item.end - 1]
            marker, end = page.lines[item.start].removeprefix(b"\xef\xbb\xbf")[:1], last[len(last.rstrip(b"\r\n")) :]
            head = b"\xef\xbb\xbf" if page.lines[item.start].startswith(b"\xef\xbb\xbf") else b""
            page.lines[item.start] = head + marker + fact_line(fact).encode("utf-8", "replace")[1:] + end
            for at in range(item.start + 1, item.end):
                page.lines[at] = b""
    return b"".join(page.lines)


def without(data: bytes, scope: FactScope, ids: Collection[str]) -> bytes:
    """The file without the lines of these ids."""
    page = read_page(data, scope)
    gone = {at for item in page.items if item.fact.id in ids for at in range(item.start, item.end)}
    return b"".join(line for at, line in enumerate(page.lines) if at not in gone)


def parse_line(line: str, scope: FactScope, number: int) -> Fact | None:
    """The fact of a line; None where the line is no list item."""
    return _fact([line], scope, number, [])


def fact_line(fact: Fact) -> str:
    """A fact as a line, without its end."""
    about = [f"id:{fact.id}"]
    about += [f'{name}:"{_quotable(value)}"' for name, value in (("key", fact.key), ("from", fact.source)) if value]
    about += ["tainted"] * fact.tainted + [f"expires:{fact.expires}"] * bool(fact.expires)
    dated = f"({fact.created}) " if fact.created else ""
    return f"- {dated}{one_line(fact.text, LONGEST_FACT)} <!-- {' '.join(about)} -->"


def text_id(text: str) -> str:
    """The id of a line that has none."""
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:8]


def _decoded(line: bytes, number: int, problems: list[str]) -> str:
    try:
        return line.decode("utf-8-sig" if number == 0 else "utf-8").rstrip("\r\n")
    except UnicodeDecodeError:
        problems.append(f"line {number + 1}: is not UTF-8 and is not read")
        return ""


def _block(line: str) -> re.Pattern[str] | None:
    """What ends the block that a line begins; None where it begins none."""
    if fence := _FENCE.match(line):
        return re.compile(rf"^ {{0,3}}{re.escape(fence[1])}")
    stripped = line.lstrip()
    return re.compile("-->") if stripped.startswith("<!--") and "-->" not in stripped else None


def _fact(lines: list[str], scope: FactScope, number: int, problems: list[str]) -> Fact | None:
    item = _LINE.match(lines[0])
    if item is None:
        return None
    fields, texts = dict[str, str](), list[str]()
    for line in (item["rest"], *lines[1:]):
        about = _ABOUT.search(line)
        if about is not None:
            fields |= {name: quoted or plain for name, quoted, plain in _FIELD.findall(about["about"])}
        texts.append(line if about is None else line[: about.start()])
    text = " ".join(" ".join(texts).split())
    if not text:
        return None
    if len(text) > LONGEST_FACT:
        problems.append(f"line {number}: is longer than {LONGEST_FACT:,} characters; the rest is not used")
    text = one_line(text, LONGEST_FACT)
    return Fact(
        id=fields["id"] if _ID.fullmatch(fields.get("id", "")) else text_id(text),
        text=text,
        scope=scope,
        created=item["created"] or "",
        key=fields.get("key", ""),
        source=fields.get("from", ""),
        tainted="tainted" in fields,
        expires=fields.get("expires", ""),
        line=number,
    )


def _quotable(value: str) -> str:
    return one_line(value, 200).replace('"', "'").replace("--", "—")
