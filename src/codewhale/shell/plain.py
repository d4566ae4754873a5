"""A second, stricter reader of shell lines: plain words, quotes without expansions, and the operators between them.

What it reads every shell reads alike. A line is believed harmless only where it and the grammar agree on each word.
"""

import re
import unicodedata

_TOKEN = re.compile(
    r"""(?P<blank>[ \t]+|(?<![^\s;|&()])\#[^\n]*)
    |(?P<op>&&|\|\||[;\n|()])
    |(?P<redirect>(?:[12]?>>?[ \t]*/dev/null|[12]?>&[12]|<[ \t]*[A-Za-z0-9_./-]+)(?=[\s;|&)]|\Z))
    |(?P<word>(?!~|=[^\s=])(?:
        (?:(?<![=:])~|[A-Za-z0-9_@%+=:,./^*?!\[\]-]|(?<=[^\s;|&()])\#|[^\x00-\x7f])+
        |\\[^\n]
        |'[^']*'
        |"(?:[^"\\$`]|\\.|\$\?|\$(?=[" |)]))*"
        |\$\?
    )+)""",
    re.X | re.S,
)
_PIECE = re.compile(r"""\\(.)|'([^']*)'|"((?:[^"\\]|\\.)*)"|\$\?|([^\\'"$]+)""", re.S)
_QUOTES = re.compile(r"[\\'\"$]")
_GLOB = re.compile(r"[*?\[]")
_DOUBLE = re.compile(r"\\([$`\"\\])|\\\n|\$\?")


def plain_commands(text: str) -> list[tuple[tuple[str, bool], ...]] | None:
    """The words of each simple command, in order, each with whether a pattern stands in it; None for a line with
    anything beyond the plain subset."""
    commands: list[tuple[tuple[str, bool], ...]] = []
    words: list[tuple[str, bool]] = []
    at = 0
    while at < len(text):
        token = _TOKEN.match(text, at)
        if token is None:
            return None
        at = token.end()
        if token["word"] is not None:
            if words or token["word"] != "!":
                words.append((_unquoted(token["word"]), _pattern(token["word"])))
        elif token["op"] is not None and words:
            commands.append(tuple(words))
            words = []
    return [*commands, tuple(words)] if words else commands


def _pattern(word: str) -> bool:
    if not _GLOB.search(word) or word in ("[", "]"):
        return False
    return bool(_GLOB.search(_PIECE.sub(lambda found: found[4] or "", word)))


def _unquoted(word: str) -> str:
    return _PIECE.sub(_piece, word) if _QUOTES.search(word) else word


def _piece(found: re.Match[str]) -> str:
    escaped, single, double, rest = found.groups()
    if double is not None:
        return _DOUBLE.sub(lambda inner: "0" if inner[0] == "$?" else inner[1] or "", double)
    return next((part for part in (escaped, single, rest) if part is not None), "0")


def odd_character(text: str) -> str:
    """The name of the first character that shell, reader and terminal may take for different things, "" for none:
    controls, blanks other than space, tab and line feed, what has no width, and look-alikes of ASCII."""
    if text.isascii() and text.isprintable():
        return ""
    for char in text:
        if char in "\n\t" or " " <= char <= "~":
            continue
        if unicodedata.category(char) in ("Cc", "Cf", "Cn", "Co", "Cs", "Zl", "Zp", "Zs", "Mn", "Me") or any(
            " " <= like <= "~" for like in unicodedata.normalize("NFKC", char) if not like.isalpha()
        ):
            return f"U+{ord(char):04X}"
        if unicodedata.east_asian_width(char) in "FH" or (
            char.isalpha() and unicodedata.normalize("NFKC", char).isascii()
        ):
            return f"U+{ord(char):04X}"
    return ""
