"""Lines so plain that no grammar is needed to take them apart: printable ASCII, programs that the tables of reading
know, bare and quoted words without expansions, and the operators between commands. Most lines are."""

import functools
import re

from msgspec import Struct

from codewhale.shell.table import reads
from codewhale.shell.words import Word, bare, joined

# No text can match in two ways, so that one that does not match is given up in a time that grows with its length.
_CHAR = r"[A-Za-z0-9_@%+=:,./^*?\[\]-]"
_OTHER = r"""(?:(?<=[A-Za-z0-9_^])~|\\[ -~]|'[^']*'|"[^"\\$`!]*(?:\\[ -~][^"\\$`!]*)*")"""
_STATUS = r"\$\?(?=[ ;|&)]|\Z)"
_NOT = r"(?<=\[ )!(?= )"
_WORD = rf"(?:{_STATUS}|=(?= )|{_NOT}|(?!=|\\ )(?:{_CHAR}+(?:{_OTHER}{_CHAR}*)*|(?:{_OTHER}{_CHAR}*)+))"
_REDIRECT = r"(?:[12]?>>? */dev/null|[12]?>&[12]|< *[A-Za-z0-9_./-]+)(?=[ ;|&)]|\Z)"
_COMMAND = re.compile(
    rf"(?P<open>\( *)?(?:! +)?(?P<text>(?:(?:/usr)?/bin/)?(?P<name>[a-z][a-z0-9_.+-]*|\[)"
    rf"(?: +(?:{_REDIRECT}|{_WORD}))*)(?P<close> *\))?"
    r"(?: +\#[ -~]*\Z| *(?P<by>&&|\|\|?|;|\Z) *)"
)
_PARTS = re.compile(
    rf"(?P<fd>[12]?)(?P<op>>>?|>&) *(?P<target>/dev/null|[12])(?=[ ;|&)]|\Z)"
    rf"|< *(?P<from>[A-Za-z0-9_./-]+)|(?P<word>{_WORD})"
)
_PIECES = re.compile(rf"""'([^']*)'|"([^"\\]*(?:\\.[^"\\]*)*)"|((?:{_CHAR}|~|\\.)+)""")
_SIMPLE = re.compile(r"[A-Za-z0-9_@%+=:,./-]+")
_ASSIGNS = re.compile(r"[A-Za-z_]\w*(?:\[[^]]*\])?\+?=")
_TEST = re.compile(r"\[ (?:! )?(?:-[a-z] \S+|\S+ (?:=|!=|-(?:eq|ne|lt|le|gt|ge)) \S+) \]")
_DOUBLE = re.compile(r"\\([$`\"\\])")
_WRAPPERS = frozenset("git env timeout nice stdbuf command xargs bash sh zsh dash".split())
# A command longer than this is not kept.
_KEPT = 400


class Plain(Struct, frozen=True, eq=False):
    """A simple command: its words, and (operator, descriptor, target) of what it says to /dev/null and of the file that
    it reads. Lines that hold the same text share it: neither list may be changed, and what is found out about it by its
    words holds for them all. What comes behind one that `moves` runs in another folder."""

    words: list[Word]
    redirects: list[tuple[str, str, Word]]
    moves: bool = False


class Step(Struct, frozen=True):
    """A command of a line, whether a subshell opens before it and closes behind it, the operator behind that, "" for
    the end of the line."""

    command: Plain
    opens: bool
    closes: bool
    by: str


def plainest(text: str, pipe: int) -> list[Step] | None:
    """The commands of a line, None for a line that is not plain enough or pipes through more than `pipe` commands."""
    if not (text.isascii() and text.isprintable()):
        return None
    steps: list[Step] = []
    at, end, inside, piped = 0, len(text), False, 0
    while at < end:
        found = _COMMAND.match(text, at)
        if found is None:
            return None
        raw, name, opens, closes, by = found.group("text", "name", "open", "close", "by")
        command = (_taken if len(raw) <= _KEPT else _taken.__wrapped__)(raw, name)
        if command is None or (opens and inside) or (closes and not (inside or opens)):
            return None
        inside = bool(inside or opens) and not closes
        if (by == "|" and (inside or closes)) or (opens and steps and steps[-1].by == "|"):
            return None
        piped = piped + 1 if by == "|" else 0
        if piped >= pipe:
            return None
        at = found.end()
        steps.append(Step(command, bool(opens), bool(closes), by or ""))
    return steps if steps and not inside and steps[-1].by in (";", "") else None


@functools.lru_cache(maxsize=2048)
def _taken(text: str, name: str) -> Plain | None:
    """One command, None where its program is not in the tables or its words look like more than words."""
    table = reads()
    if name not in table.programs and name not in _WRAPPERS and name not in table.told:
        return None
    words: list[Word] = []
    redirects: list[tuple[str, str, Word]] = []
    for found in _PARTS.finditer(text):
        raw = found["word"]
        if raw is None:
            redirects.append((found["op"] or "<", found["fd"] or "", Word(found["target"] or found["from"])))
        elif raw == "$?":
            words.append(Word("0", plain=False))
        elif _SIMPLE.fullmatch(raw) or raw in ("[", "]", "!"):
            words.append(Word(raw))
        else:
            word = None if _ASSIGNS.match(raw) else _word(raw)
            if word is None:
                return None
            words.append(word)
    if name == "cd" and any(op == "<" for op, _, _ in redirects):
        return None
    if name == "[" and not _TEST.fullmatch(" ".join(word.text or "x" for word in words)):
        return None
    return Plain(words, redirects, name == "cd")


def _word(raw: str) -> Word | None:
    """One word; None for one in which an escape stands beside a quoted part."""
    pieces: list[Word] = []
    escaped = False
    for found in _PIECES.finditer(raw):
        single, double, plain = found.groups()
        if plain is not None:
            escaped |= "\\" in plain
            pieces.append(bare(plain, start=not pieces))
        else:
            pieces.append(Word(single if double is None else _DOUBLE.sub(r"\1", double), plain=False))
    if len(pieces) == 1:
        return pieces[0]
    return None if escaped else joined(pieces)
