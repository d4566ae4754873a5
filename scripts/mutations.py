"""Small faults and their repairs, as replacements in Python or JavaScript text.

One table serves both directions: `faults` lists where an operator can break a text, `repairs` where the inverse
of some operator could have repaired one. Neither knows of the other's choice.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple


class Site(NamedTuple):
    """Replace text[start:end] by `new`; `operator` names the row of the table."""

    operator: str
    start: int
    end: int
    new: str


class Word(NamedTuple):
    """One token of code: strings, comments and blanks are left out, ends of lines kept."""

    kind: str
    text: str
    start: int
    end: int


_STRINGS = r'"(?:\\.|[^"\\\n])*"|' + r"'(?:\\.|[^'\\\n])*'"
_REST = (
    r"(?P<number>\d[\w.]*)|(?P<name>[A-Za-z_$][\w$]*)|(?P<line>\n)|(?P<blank>[^\S\n]+|\\\n)"
    r"|(?P<op>\*\*=?|//=?|===|!==|=>|->|:=|[-+*/%<>=!&|^]=|<<|>>|&&|\|\||\+\+|--|.)"
)
_TRIPLES = r'"""(?:\\.|[^\\])*?"""|' + r"'''(?:\\.|[^\\])*?'''|"
_REGEX = r"(?<=[(,=:\[!&|?{};])\s*/(?![/*])(?:\\.|[^/\\\n])+/\w*|"
_SCANNERS = {
    "python": re.compile(r"(?P<skip>\#[^\n]*|[rbfuRBFU]{0,2}(?:" + _TRIPLES + _STRINGS + "))|" + _REST, re.S),
    "javascript": re.compile(
        r"(?P<skip>//[^\n]*|/\*.*?\*/|`(?:\\.|[^`\\])*`|" + _REGEX + _STRINGS + ")|" + _REST, re.S
    ),
}

# (operator, sound text, broken text): a fault replaces the second by the third, a repair the third by the second.
_SHARED = [
    ("lt_le", "<", "<="), ("le_lt", "<=", "<"), ("gt_ge", ">", ">="), ("ge_gt", ">=", ">"), ("lt_gt", "<", ">"),
    ("plus_minus", "+", "-"), ("minus_plus", "-", "+"), ("times_plus", "*", "+"), ("divide_times", "/", "*"),
    ("add_take", "+=", "-="), ("take_add", "-=", "+="), ("break_continue", "break", "continue"),
    ("continue_break", "continue", "break"), ("min_max", "min", "max"), ("max_min", "max", "min"),
]  # fmt: skip
_SWAPS = {
    "python": [
        *_SHARED, ("eq_ne", "==", "!="), ("ne_eq", "!=", "=="), ("and_or", "and", "or"), ("or_and", "or", "and"),
        ("true_false", "True", "False"), ("false_true", "False", "True"), ("is_is_not", "is", "is not"),
        ("is_not_is", "is not", "is"), ("in_not_in", "in", "not in"), ("not_in_in", "not in", "in"),
        ("floor_times", "//", "*"),
    ],
    "javascript": [
        *_SHARED, ("eq_ne", "==", "!="), ("ne_eq", "!=", "=="), ("same_differs", "===", "!=="),
        ("differs_same", "!==", "==="), ("and_or", "&&", "||"), ("or_and", "||", "&&"),
        ("true_false", "true", "false"), ("false_true", "false", "true"),
    ],
}  # fmt: skip
_OTHERS = ("not_removed", "one_more", "one_less", "return_removed", "arguments")
OPERATORS = {language: (*(row[0] for row in rows), *_OTHERS) for language, rows in _SWAPS.items()}
_KEYWORDS = {
    "if", "elif", "else", "for", "while", "return", "yield", "raise", "import", "from", "def", "class", "with", "try",
    "except", "finally", "pass", "break", "continue", "global", "nonlocal", "assert", "del", "async", "await", "and",
    "or", "not", "in", "is", "lambda", "var", "let", "const", "function", "switch", "case", "default", "throw", "new",
    "typeof", "do",
}  # fmt: skip


def language_of(path: str) -> str:
    """ "python" or "javascript", by a file's name."""
    return "javascript" if path.endswith((".js", ".mjs", ".cjs")) else "python"


def words(text: str, language: str) -> list[Word]:
    """The code of a text, with `is not` and `not in` as one word."""
    found: list[Word] = []
    for match in _SCANNERS[language].finditer(text):
        kind = match.lastgroup or "op"
        if kind in ("skip", "blank"):
            if kind == "skip":
                found.append(Word("skip", "", match.start(), match.end()))
            continue
        word = Word(kind, match.group(), match.start(), match.end())
        before = found[-1] if found else None
        if language == "python" and before and (before.text, word.text) in (("is", "not"), ("not", "in")):
            found[-1] = Word("name", f"{before.text} {word.text}", before.start, word.end)
        else:
            found.append(word)
    return found


def faults(text: str, language: str) -> list[Site]:
    """Every place where one of the operators can break a text."""
    return _sites(text, language, broken=False)


def repairs(text: str, language: str) -> list[Site]:
    """Every replacement that undoes some operator, were its result found in the text."""
    return _sites(text, language, broken=True)


def apply(text: str, site: Site) -> str:
    """The text with one replacement made."""
    return text[: site.start] + site.new + text[site.end :]


def _sites(text: str, language: str, broken: bool) -> list[Site]:
    found = words(text, language)
    sites = [*_swapped(found, language, broken), *_counted(found, broken), *_arguments(text, found)]
    sites += _negated(found, language, broken)
    sites += _returned(text, found, broken)
    return sorted({(site.start, site.end, site.new): site for site in sites}.values(), key=lambda site: site.start)


def _swapped(found: list[Word], language: str, broken: bool) -> Iterator[Site]:
    for position, word in enumerate(found):
        for operator, sound, wrong in _SWAPS[language]:
            present, wanted = (wrong, sound) if broken else (sound, wrong)
            if word.text == present and _stands_between(found, position):
                yield Site(operator, word.start, word.end, wanted)


def _stands_between(found: list[Word], position: int) -> bool:
    """Whether an operator stands between two values, a name before its bracket, `in` outside a `for`."""
    word = found[position]
    before = found[position - 1] if position else None
    after = found[position + 1] if position + 1 < len(found) else None
    if word.text in ("min", "max"):
        return after is not None and after.text == "("
    if word.text in ("in", "not in"):
        heads = [item.text for item in found[:position] if item.text in ("for", "if", "while", "and", "or", "return")]
        return not heads or heads[-1] != "for"
    if word.text in ("+", "-", "*", "/", "//"):
        return before is not None and (
            before.kind in ("number", "skip") or before.text in (")", "]") or _is_value(before)
        )
    return True


def _is_value(word: Word) -> bool:
    return word.kind == "name" and word.text not in _KEYWORDS


def _counted(found: list[Word], broken: bool) -> Iterator[Site]:
    for word in found:
        if word.kind == "number" and word.text.isdecimal() and (word.text == "0" or word.text[0] != "0"):
            value = int(word.text)
            for operator, step in (("one_more", 1), ("one_less", -1)):
                new = value - step if broken else value + step
                if new >= 0:
                    yield Site(operator, word.start, word.end, str(new))


def _negated(found: list[Word], language: str, broken: bool) -> Iterator[Site]:
    negation = "not" if language == "python" else "!"
    inside = {"=", "(", "?", ","}
    heads = {"if", "elif", "while", "and", "or", "return", "&&", "||", *inside}
    for position, word in enumerate(found[:-1]):
        after = found[position + 1]
        if not broken and word.text == negation:
            yield Site("not_removed", word.start, after.start, "")
        if broken and word.text in heads and (_is_value(after) or after.text == "("):
            condition = word.text == "(" and position and found[position - 1].text in ("if", "while")
            operator = "not_removed_inside" if word.text in inside and not condition else "not_removed"
            yield Site(operator, after.start, after.start, "not " if language == "python" else "!")


def _returned(text: str, found: list[Word], broken: bool) -> Iterator[Site]:
    depth, fresh = 0, True
    for position, word in enumerate(found[:-1]):
        if fresh and depth == 0:
            after = found[position + 1]
            if not broken and word.text == "return" and _is_bare(text, after):
                yield Site("return_removed", word.start, after.start, "")
            elif broken and _is_bare(text, word):
                yield Site("return_removed", word.start, word.start, "return ")
        depth += (word.text in ("(", "[")) - (word.text in (")", "]"))
        fresh = word.kind == "line" or word.text in ("{", "}", ";") or (fresh and word.kind == "skip")


def _is_bare(text: str, word: Word) -> bool:
    """Whether a value begins here that would be a statement of its own: no keyword, no assignment, no header."""
    value = word.kind in ("name", "number") or word.text in ("(", "[")
    if not value or (word.text in _KEYWORDS and word.text not in ("not", "new")):
        return False
    line = text[word.start : (text.find("\n", word.start) + 1 or len(text))]
    return not re.match(r"[\w.\[\]$'\", ]+\s*([-+*/|&]|//)?=[^=]|.*[:{]\s*$", line)


def _arguments(text: str, found: list[Word]) -> Iterator[Site]:
    for position, word in enumerate(found[:-1]):
        declared = position and found[position - 1].text in ("def", "function", "class")
        if _is_value(word) and not declared and found[position + 1].text == "(":
            parts = _pair(found, position + 1)
            if parts:
                (one, two), (three, four) = parts
                new = text[three:four] + text[two:three] + text[one:two]
                if new != text[one:four]:
                    yield Site("arguments", one, four, new)


def _pair(found: list[Word], opening: int) -> tuple[tuple[int, int], tuple[int, int]] | None:
    """The spans of a call's arguments when it has exactly two, both positional and on one line."""
    depth, cuts, last = 0, [], opening
    for last in range(opening, min(len(found), opening + 40)):
        word = found[last]
        depth += (word.text in ("(", "[", "{")) - (word.text in (")", "]", "}"))
        if depth == 0:
            break
        if word.kind == "line" or (depth == 1 and word.text in ("=", "*", "**", "for", "=>")):
            return None
        if depth == 1 and word.text == ",":
            cuts.append(last)
    if depth or len(cuts) != 1 or cuts[0] in (opening + 1, last - 1):
        return None
    return (found[opening + 1].start, found[cuts[0] - 1].end), (found[cuts[0] + 1].start, found[last - 1].end)
