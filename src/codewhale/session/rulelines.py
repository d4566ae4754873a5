"""Lines that state a rule, found by their words: what a shortened text must still say as it stood.

Plain searches for parts of words: a line too many does no harm, and a long text is read in no time.
"""

import re
from collections.abc import Iterable

_LONGEST = 400
_MARKED = re.compile(r"\W*(\d+\W+)?(note|important|warning|caution|rule|policy|constraint|attention)\s*:")
# Each is looked for in a line in lower case with a space around it.
_STRICT = (
    " must", " shall ", "never", "always", "required", "mandatory", "forbidden", "prohibited", "not allowed",
    "not permitted", " do not", "does not", "may not", "should not", "will not", "don't", "shouldn't",
    "muss", "müssen", " darf ", "dürfen", "niemals", " immer ", " nie ", "verboten",
    "jamais", "toujours", " doit ", "doivent", "interdit", "obligatoire", "nunca", "siempre", " debe ", " deben ",
    "prohibid", "sempre", " deve ", " devem ", "proibid",
)  # fmt: skip
_OTHER = (
    "必须", "禁止", "不要", "不得", "不能", "不可", "务必", "请勿", "切勿", "严禁", "应当", "只能", "始终", "總是",
    "必須", "请使用", "必ず", "してはいけない", "しないで", "ならない", "べき", "常に", "決して", "のみ",
    "반드시", "금지", "하지마", "하지 마", "항상", "절대", "нельзя", "никогда", "всегда", "должн", "обязательн",
    "запрещ",
)  # fmt: skip
_WEAK = (
    " only", "require", "cannot", "can't", "can not", "avoid", " keep", "ensure", "make sure", "prefer", "instead",
    " rule", "constraint", "important", "warning", "caution", "deprecated", "read-only", "no longer", " use ",
    " kein", "at most", "at least", "no more than", "exactly", "without", " need to", " needs to", " has to",
    " have to", "frozen", "until", "unless", "limit", "unsupported", "disallowed", "reserved", " leave", " stay",
    "policy",
)  # fmt: skip


def rule_lines(text: str) -> list[str]:
    """The lines of a text that state a rule, as they stand but for spaces around them; none of over 400 characters."""
    found = (line.strip() for line in text.splitlines())
    return [line for line in found if 0 < len(line) <= _LONGEST and (is_strict(line) or _says(line, _WEAK))]


def is_strict(line: str) -> bool:
    """Whether a line commands or forbids outright."""
    if _says(line, _STRICT) or _MARKED.match(line.lower()):
        return True
    return not line.isascii() and any(word in line.lower() for word in _OTHER)


def _says(line: str, words: Iterable[str]) -> bool:
    padded = f" {line.lower()} "
    return any(word in padded for word in words)


def within(lines: Iterable[str], limit: int) -> list[str]:
    """Lines without repeats, as long as they fit in `limit` bytes together."""
    kept: dict[str, None] = {}
    for line in lines:
        size = len(line.encode("utf-8", "replace")) + 1
        if line not in kept and size <= limit:
            kept[line] = None
            limit -= size
    return list(kept)
