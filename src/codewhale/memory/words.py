"""Text to words: identifiers and paths in their parts, Chinese in pairs of signs, and the words that are used for each
other."""

import re
import unicodedata
from collections import defaultdict
from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import pairwise
from pathlib import Path

import msgspec
from msgspec import Struct

_MOST_TEXT, _LONGEST = 4000, 60
_HAN = r"\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff"
_WORD = re.compile(rf"[{_HAN}]+|[^\W{_HAN}]+")
_PART = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|[0-9]+|[^\W\d_a-zA-Z]+")
_PARTICLES = re.compile("[的了把这那个请是和我你们吗给被让里在用要请]+")
# Names that would not be seen as words, or as others.
_TAGS = re.compile(r"(?<!\w)(?i:c\+\+|[cf]#|\.net)(?!\w)|(?<=\w )Go\b|\bGo(?=:| code| files| modules| tests)")
_SPELT = {"c++": "cpp", "c#": "csharp", "f#": "fsharp", ".net": "dotnet", "go": "golang"}


class _Everyday(Struct, frozen=True):
    """`idle` words tell nothing, a group of `same` is used for each other (a phrase is written with _), and `kinds` are
    (what they are about, things of which one is chosen)."""

    idle: str
    same: tuple[str, ...]
    kinds: dict[str, tuple[str, str]]


@lru_cache(maxsize=1)
def everyday() -> "Everyday":
    return Everyday(msgspec.json.decode(Path(__file__).with_name("everyday.json").read_bytes(), type=_Everyday))


class Everyday:
    """What everyday.json says of a word."""

    def __init__(self, rows: _Everyday) -> None:
        import Stemmer

        self.stem: Callable[[str], str] = lru_cache(maxsize=4096)(Stemmer.Stemmer("english").stemWord)
        self.idle = frozenset(rows.idle.split())
        self._kinds = {self._plain(one): kind for kind, (_, members) in rows.kinds.items() for one in members.split()}
        self.topics = {
            kind: {*map(self.stem, (kind + " " + topics).split())} for kind, (topics, _) in rows.kinds.items()
        }
        self._kin, self._members = defaultdict[str, list[str]](list), defaultdict[str, list[str]](list)
        for group in rows.same:
            every = group.split()
            for word in every:
                self._kin[self._plain(word)] += [other.replace("_", " ") for other in every if other != word]
        for kind, (_, members) in rows.kinds.items():
            for topic in self.topics[kind]:
                self._members[topic] += [member.replace("_", " ") for member in members.split()]

    def kin(self, word: str, following: str = "") -> list[str]:
        """The words and phrases that are used for a word, or for it with the one that follows."""
        return list(dict.fromkeys((*self._kin.get(self._plain(word), ()), *self._kin.get(f"{word}_{following}", ()))))

    def kinds(self, words: Sequence[str]) -> set[str]:
        """The kinds of what is named by words or pairs of them."""
        names = (*map(self._plain, words), *map("_".join, pairwise(words)))
        return {self._kinds[name] for name in names if name in self._kinds}

    def members(self, word: str) -> list[str]:
        """Things of the kinds that a word is about."""
        return self._members.get(self.stem(word), [])

    def _plain(self, word: str) -> str:
        return word if "_" in word else self.stem(word)


def words(text: str) -> list[str]:
    """The words of a text in lower case and without accents, in order; a name of several parts gives these and then
    itself in one."""
    plain = unicodedata.normalize("NFKD", _TAGS.sub(lambda tag: _SPELT[tag[0].lower()], text[:_MOST_TEXT]))
    plain = unicodedata.normalize("NFC", "".join(one for one in plain if not unicodedata.combining(one)))
    result = list[str]()
    for word in _WORD.findall(plain):
        if word[0] >= "\u3040":
            for part in _PARTICLES.split(word):
                result += [part[at : at + 2] for at in range(max(1, len(part) - 1))] if part else []
        elif len(word) <= _LONGEST:
            parts = [part.lower() for part in _PART.findall(word)]
            result += [*parts, "".join(parts)] if len(parts) > 1 else parts
    return result


def slips(word: str, other: str) -> bool:
    """Whether two words differ by one letter, or by two that changed places."""
    return min(len(word), len(other)) > 3 and not _shortened(word).isdisjoint(_shortened(other))


def _shortened(word: str) -> set[str]:
    return {word, *(word[:at] + word[at + 1 :] for at in range(len(word)))}
