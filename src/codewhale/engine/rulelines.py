"""Lines that state a rule, found by their words: what a shortened text must still say as it stood."""

import re
from collections.abc import Iterable

_STRONG = re.compile(
    r"""(?ix) \b( must(n't)? | shall | never | always | required | mandatory | forbidden | prohibited
    | not\s(?:allowed|permitted) | (?:do|does|may|should|will)\snot | don't | shouldn't
    | muss | müssen | darf | dürfen | niemals | immer | nie | verboten
    | jamais | toujours | doit | doivent | interdit | obligatoire
    | nunca | siempre | debe | deben | prohibido | sempre | deve | devem | proibido )\b"""
)
_MARKED = re.compile(r"(?i)^\W*(\d+\W+)?(note|important|warning|caution|rule|policy|constraint|attention)\s*:")
_WEAK = re.compile(
    r"""(?ix) \b( only | requires? | can(?:not|'t|\snot) | avoid | keep | ensure | make\ssure | prefer | instead
    | rules? | constraints? | important | warning | caution | deprecated | read-only | no\slonger | use | kein[e]?
    | at\s(?:most|least) | no\smore\sthan | exactly | without | (?:needs?|has|have)\sto | frozen | until | unless
    | limits? | limited | unsupported | disallowed | reserved | leave | stays? | policy )\b"""
)
_OTHER = re.compile(
    "必须|禁止|不要|不得|不能|不可|务必|请勿|切勿|严禁|应当|只能|始终|總是|必須|请使用|"
    "必ず|してはいけない|しないで|ならない|べき|常に|決して|のみ|반드시|금지|하지\\s?마|항상|절대|"
    "нельзя|никогда|всегда|должн|обязательн|запрещ"
)
_LONGEST = 400


def rule_lines(text: str) -> list[str]:
    """The lines of a text that state a rule, as they stand but for spaces around them; none of over 400 characters."""
    found = (line.strip() for line in text.splitlines())
    return [line for line in found if 0 < len(line) <= _LONGEST and (is_strict(line) or _WEAK.search(line))]


def is_strict(line: str) -> bool:
    """Whether a line commands or forbids outright."""
    return any(pattern.search(line) for pattern in (_STRONG, _OTHER, _MARKED))


def within(lines: Iterable[str], limit: int) -> list[str]:
    """Lines without repeats, as long as they fit in `limit` bytes together."""
    kept: dict[str, None] = {}
    for line in lines:
        size = len(line.encode("utf-8", "replace")) + 1
        if line not in kept and size <= limit:
            kept[line] = None
            limit -= size
    return list(kept)
