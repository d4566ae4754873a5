"""What is wrong with the facts of one MEMORY.md: lines that say nothing, repeats, and texts that are no facts."""

import re
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import count

from codewhale.lib.text import one_line, sanitise, told_line
from codewhale.memory.lines import FactLines, FactPage, text_id
from codewhale.memory.model import Fact, MemoryFault
from codewhale.memory.orders import orders_in
from codewhale.protocol.marks import Fences

_WORD = re.compile(r"[^\W_]+(?:[.:/-][^\W_]+)*")
_IDLE = frozenset(
    "a an the is are be was were to of for in on at it its this that our we you i my your please always and with use"
    " uses used using everywhere project repo repository code here all should must do does".split()
)
_FEWEST_WORDS = 3
_ID = re.compile(r"<!--[^>]*?\bid:([\w-]+)")
_COMMENT = re.compile(r"<!--(?=[^>]*?\b(?:id|key|from|expires):)|<!--[^>]*$")
_DATED = re.compile(r"\(\d{1,4}[-/.]\d{1,2}[-/.]\d")
# A line of a list that is none: without a blank, with another mark, numbered, indented below nothing, or empty.
_BROKEN = re.compile(r"\s*(?:[-+][\w(\"'`]|[•–—‣·]\s*\w|[-*+][^\S ]|\d{1,3}[.)]\s+\S|[-*+]\s*$)|\s+[-*+]\s+\S")


def line_faults(path: str, page: FactPage) -> Iterator[MemoryFault]:
    """Lines that are not read as they were meant."""
    for problem in page.problems:
        if ": its id " not in problem:
            yield MemoryFault("unread_line", "warning", f"{told_line(path)}: {problem}", "edit the line", path)
    inside = {at for item in page.items for at in range(item.start, item.end)}
    fences = Fences()
    for at, line in enumerate(map(_decoded, page.lines)):
        fences.pass_line(line)
        if at not in inside and not fences.inside and _BROKEN.match(line):
            yield _fault("broken_line", path, at + 1, f"is no fact: {one_line(line, 60)}", "write it as: - text")
    for item in page.items:
        fact, raw = item.fact, _raw(page, item)
        if _COMMENT.search(fact.text):
            text = "ends in a comment with a field that is not known"
            yield _fault("broken_line", path, fact.line, text, "use id, key, from, tainted and expires alone")
        if (fact.created and not _is_date(fact.created[:10])) or _DATED.match(fact.text):
            yield _fault("broken_date", path, fact.line, "has no date that can be read", "write (2026-05-03 22:14 UTC)")
        if fact.expires and not _is_date(fact.expires):
            text = f"expires on {one_line(fact.expires, 20)}, which is no date"
            yield _fault("broken_date", path, fact.line, text, "write expires:2027-01-31")
        if sanitise(raw) != raw:
            text = "has characters that nobody sees"
            yield _fault("injected_text", path, fact.line, text, f"edit the line, or: /memory clear {fact.id}", True)


def text_faults(path: str, facts: Iterable[Fact], hide: Callable[[str], str], today: str) -> Iterator[MemoryFault]:
    """Facts that should not be there as they are."""
    for fact in facts:
        clear = f"/memory clear {fact.id}"
        shown = one_line(hide(fact.text), 60)
        if hide(fact.text) != fact.text:
            yield _fault("secret", path, fact.line, f"holds a secret: {shown}", f"{clear}, and change the secret", True)
        if what := orders_in(fact.text):
            origin = f", from {one_line(fact.source, 60)}" if fact.source else ""
            yield _fault(
                "injected_text", path, fact.line, f"has {what}: {shown}{origin}", f"read it, then: {clear}", True
            )
        if _is_date(fact.expires) and fact.expires < today:
            text = f"expired on {fact.expires} and is not sent: {shown}"
            yield _fault("expired_fact", path, fact.line, text, f"give it a later date, or: {clear}")


def repeated(items: Sequence[FactLines]) -> list[FactLines]:
    """Those that say exactly what another one says; a fact of the person's own stays before foreign text."""
    kept = dict[tuple[str, ...], FactLines]()
    gone = list[FactLines]()
    for item in items:
        fact = item.fact
        same = (fact.text, fact.key, fact.expires)
        first = kept.setdefault(same, item)
        if first is not item:
            better = first.fact.tainted and not fact.tainted
            gone.append(first if better else item)
            kept[same] = item if better else first
    return gone


def twice(page: FactPage) -> list[FactLines]:
    """Those whose id another fact above them has."""
    seen, again = set[str](), list[FactLines]()
    for item in page.items:
        written = _ID.search(_raw(page, item))
        if written and not _COMMENT.search(item.fact.text):
            again += [item] if written[1] in seen else []
            seen.add(written[1])
    return again


def with_own_id(page: FactPage, item: FactLines) -> None:
    """Give the lines of a fact another id, and leave every other byte of them as it is."""
    taken = {written[1] for one in page.items if (written := _ID.search(_raw(page, one)))}
    fresh = next(name for n in count() if (name := text_id(f"{item.fact.text}{n or ''}")) not in taken)
    for at in range(item.start, item.end):
        if written := _ID.search(page.lines[at].decode("utf-8", "surrogateescape")):
            line = written.string[: written.start(1)] + fresh + written.string[written.end(1) :]
            page.lines[at] = line.encode("utf-8", "surrogateescape")


def near_repeats(facts: Sequence[Fact]) -> Iterator[tuple[Fact, Fact]]:
    """Pairs that say the same but for order, small words, one letter or one word."""
    known = defaultdict[tuple[frozenset[str], str], list[tuple[Fact, str]]](list)
    for fact in facts:
        words = frozenset(_stem(word) for word in _WORD.findall(fact.text.casefold()) if word not in _IDLE)
        if len(words) < _FEWEST_WORDS:
            words |= {" ".join(_WORD.findall(fact.text.casefold()))}
        places = [((words, ""), "")]
        if len(words) > _FEWEST_WORDS:
            places += [((words - {word}, part), word) for word in filter(_long, words) for part in _parts(word)]
        near = (other for place, word in places for other, extra in known[place] if _alike(word, extra))
        match = next(near, None)
        for place, word in places:
            known[place].append((fact, word))
        if match is not None:
            yield match, fact


def _long(word: str) -> bool:
    """Whether a word is long enough that another one, a letter away, is a slip and no other word."""
    return len(word) >= 6 and word.isalpha()


def _parts(word: str) -> set[str]:
    """A word, and what is left of it without one letter: two words that are a letter apart have one of these in
    common, so that facts need not be compared one by one."""
    return {word, *(word[:at] + word[at + 1 :] for at in range(len(word)))}


def _alike(left: str, right: str) -> bool:
    """Whether two facts say the same that differ in these words, "" for none."""
    if not left and not right:
        return True
    if not (_long(left) and _long(right)):
        return False
    at = next(
        (at for at, (one, other) in enumerate(zip(left, right, strict=False)) if one != other),
        min(len(left), len(right)),
    )
    ends = left[at:], right[at:]
    return (
        ends[0][1:] == ends[1][1:] or ends[0][1:] == ends[1] or ends[0] == ends[1][1:] or ends[0][:2] == ends[1][1::-1]
    )


def _stem(word: str) -> str:
    return word[:-1] if word.endswith("s") and len(word) > 3 and not word.endswith("ss") and word.isalpha() else word


def _fault(code: str, path: str, line: int, text: str, fix: str, error: bool = False) -> MemoryFault:
    return MemoryFault(code, "error" if error else "warning", f"{told_line(path)}:{line}: {text}", fix, path)


def _raw(page: FactPage, item: FactLines) -> str:
    return "\n".join(map(_decoded, page.lines[item.start : item.end])).removeprefix("\ufeff")


def _decoded(line: bytes) -> str:
    return line.decode("utf-8", "replace").rstrip("\r\n")


def _is_date(text: str) -> bool:
    try:
        time.strptime(text, "%Y-%m-%d")
    except ValueError:
        return False
    return True
