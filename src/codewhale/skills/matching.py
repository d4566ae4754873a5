"""Which skills may fit what a person asks: BM25 over names and descriptions, and a bar that matches by chance do not
reach."""

import math
import re
import unicodedata
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import pairwise
from pathlib import Path

import msgspec

from codewhale.skills.model import Activation, Skill

MOST_OFFERED = 2
_MOST_TEXT, _MOST_WORDS, _LEAST_WORDS, _LONGEST = 4_000, 120, 3, 40
# BM25's usual constants; what a word of the name counts beside one of the description, and one that is only close.
_K1, _B, _NAME, _CLOSE = 1.2, 0.4, 2.0, 0.7
# The skills are seen as drawn from so many more, in which any word, a common one and a pair of words are this likely: a
# word is as telling beside two skills as beside two hundred.
_OTHERS, _RARE, _COMMON, _PAIR = 200, 0.008, 0.25, 0.004
_HALF = 80  # the everyday word that is half as likely as the first; after Zipf's law
# What an offer takes (a rare word of a short description), and what the second takes of the first.
_BAR, _SECOND = 3.7, 0.6

STOP_WORDS = frozenset(
    "a about above across after again all already also although always am an and another any anything are around as "
    "at back be because been before being below between both but by can can't cannot could did do does doesn't "
    "doing don't done down during each either else etc even ever every few first for from get gets getting go goes "
    "going got had has have having he help her here him his how however i i'd i'll i'm i've if in instead into is "
    "isn't it it's its just keep kind least less let let's like likely lot made make makes making many may maybe me "
    "might more most much must my need needed needs never new no none nor not nothing now of off often on once one "
    "only onto or other our out over own per please put rather really same see several shall she should show since "
    "so some something sometimes soon still such take tell than thank thanks that that's the their them then there "
    "these they thing things this those through to together too toward try two under until up upon us use used user "
    "users uses using very via want wanted wants was way we well went were what what's when whenever where whether "
    "which while who whole whose why will with within without won't work working works would yes yet you your".split()
)
# With what the ends of short forms are when their apostrophe is gone, greetings, and words of other languages.
_IDLE = STOP_WORDS | frozenset(
    """bye don doesn didn isn wasn won wouldn couldn shouldn hello hey hi know ll look no ok okay re sure ve yes
    aber als auch auf aus bei bitte da das dass dein dem den der des die du ein eine einem einen einer es fur ich im ist
    ja kann kein mit nach nicht noch oder sie sind so um und uns unser unsere unseren von vor warum was wie wir zu zum
    zur au aux avec ce ces cette comment dans de du elle en est et il je la le les ma mes mon ne nos notre ou par pas
    plus pour qu que qui sa se ses si son sur un une vous al como con del el este esta la las lo los me mi muy
    para pero por que se si sin su sus una y""".split()
)  # fmt: skip
# The words of short texts on software, the commonest first: counted in what changes to 36 projects are called.
EVERYDAY_FILE = Path(__file__).with_name("everyday.json")
# Words that are used for each other.
_KINDRED = (
    "xlsx excel spreadsheet xls", "docx word", "pptx powerpoint slide deck presentation", "k8s kubernetes",
    "postgres postgresql psql", "pr mr pull", "i18n internationalization internationalize localization translate",
    "a11y accessibility", "js javascript", "ts typescript", "tf terraform", "gh github",
    "ipynb jupyter notebook", "tex latex", "md markdown", "yml yaml", "msg message", "docs documentation",
    "db database", "perf performance", "cv resume", "mongo mongodb", "jpg jpeg", "img image picture",
    "auth authentication",
)  # fmt: skip
_HAN = r"\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff"
_WORD = re.compile(rf"[{_HAN}]+|[^\W_{_HAN}]+")
_HAN_PARTS = re.compile("[的了把这那个请是和我你们吗给被让里]+")
_IDENTIFIER = re.compile(r"```.*?(?:```|\Z)|\b\w+_\w+\b|\b[a-z]{2,}[A-Z][a-z]\w*", re.S)
_URL = re.compile(r"\bhttps?://(?:www\.)?([\w.-]+)\S*")
_PATH = re.compile(r"(?<![\w.@*~-])[\w.@*~-]*+(?:/[\w.@*~-]*+)++|(?<![\w-])[\w-]++(?:\.[\w-]++)++")
_LETTERS = re.compile(r"^([bcdfghj-np-tv-z0-9]{2,})s$")  # PDFs, PRs
_PRODUCTS = frozenset(("js", "net", "io", "ai"))  # next.js is no file
_NOT_FOR = re.compile(
    r"\b(?:does not|do not|don't|not|never)(?: be)?(?: used?)?(?: it| this)? (?:for|when|with|if)\b"
    r"[^!?\n]*?(?:[.;](?=\s|$)|$)",
    re.I | re.M,
)


def offered(text: str, skills: Sequence[Skill]) -> tuple[Skill, ...]:
    """At most two of those that a model may load, the likeliest first; none where none is likely to fit."""
    fitting = [skill for skill in skills if skill.activation is Activation.MODEL]
    index = _index(tuple((skill.name, skill.description) for skill in fitting))
    return tuple(fitting[at] for at in index.best(text[:_MOST_TEXT]))


@lru_cache(maxsize=8)
def _index(rows: tuple[tuple[str, str], ...]) -> "_Index":
    return _Index(rows)


class _Index:
    """What each term counts for each row. Building it takes about 0.2 ms a row."""

    def __init__(self, rows: Sequence[tuple[str, str]]) -> None:
        import Stemmer

        self._english: Callable[[str], str] = Stemmer.Stemmer("english").stemWord
        words = " ".join(msgspec.json.decode(EVERYDAY_FILE.read_bytes(), type=list[str])).split()
        self._everyday = {self._stem(word): _COMMON / (1 + at / _HALF) for at, word in reversed([*enumerate(words)])}
        self._kin = dict[str, list[str]]()
        for group in _KINDRED:
            stems = [self._stem(word) for word in group.split()]
            self._kin.update((word, stems) for word in stems)
        self._known = dict[str, str]()
        counts = [self._counted(*row) for row in rows]
        lengths = [sum(terms.values()) for terms in counts]
        mean = sum(lengths) / max(1, len(rows)) or 1.0
        self._gains = dict[str, dict[int, float]]()
        for at, terms in enumerate(counts):
            least = _K1 * (1 - _B + _B * lengths[at] / mean)
            for term, often in terms.items():
                self._gains.setdefault(term, {})[at] = often * (_K1 + 1) / (often + least)
        for term, gains in self._gains.items():
            told = self._told(term, len(gains), len(rows))
            gains.update((at, gain * told) for at, gain in gains.items())
        self._near = dict[str, list[str]]()
        for word in self._known:
            for form in _forms(word):
                self._near.setdefault(form, []).append(word)

    def _stem(self, word: str) -> str:
        return _LETTERS.sub(r"\1", self._english(word))

    def _counted(self, name: str, description: str) -> dict[str, float]:
        """How often each word and each pair of neighbours is there."""
        counted = defaultdict[str, float](float)
        parts = _words(name)
        short = ["".join(part[0] for part in parts)] if len(parts) > 2 else []  # tdd, for test-driven-development
        for words, times in (((*parts, *short), _NAME), (_words(_NOT_FOR.sub(" ", description[:_MOST_TEXT])), 1)):
            stems = [self._known.setdefault(word, self._stem(word)) for word in words if word not in _IDLE]
            for term in (*stems, *_pairs(stems)):
                counted[term] += times
        return counted

    def _told(self, term: str, holders: int, skills: int) -> float:
        """What a term tells: next to nothing where it is an everyday one."""
        likely = _PAIR if " " in term else max(_RARE, self._everyday.get(term, 0.0))
        most = math.log((skills + _OTHERS + 1) / (_OTHERS * _RARE + 1.5))
        rarity = math.log((skills + _OTHERS + 1) / (holders + _OTHERS * likely + 0.5))
        return rarity**2 / most * (0.5 if " " in term else 1)

    def best(self, text: str) -> list[int]:
        """Which rows fit, best first."""
        words = _words(_PATH.sub(_kind, _URL.sub(r" \1 ", _IDENTIFIER.sub(" ", text))))
        if sum(len(word) > 1 for word in words) < _LEAST_WORDS:
            return []
        scores = self._scores([word for word in dict.fromkeys(words) if word not in _IDLE][:_MOST_WORDS])
        ranked = sorted(scores, key=lambda at: (-scores[at], at))[:MOST_OFFERED]
        return [at for at in ranked if scores[at] >= max(_BAR, _SECOND * scores[ranked[0]])]

    def _scores(self, words: Sequence[str]) -> dict[int, float]:
        scores: dict[int, float] = {}
        pairs = ({pair: 1.0} for pair in _pairs([self._stem(word) for word in words]))
        for terms in (*self._meanings(words), *pairs):
            gains: dict[int, float] = {}
            for term, share in terms.items():
                for at, gain in self._gains.get(term, {}).items():
                    gains[at] = max(gains.get(at, 0.0), share * gain)
            for at, gain in gains.items():
                scores[at] = scores.get(at, 0.0) + gain
        return scores

    def _meanings(self, words: Sequence[str]) -> Iterator[Mapping[str, float]]:
        """The terms that each word may stand for, with how surely it does."""
        for word, following in zip(words, [*words, ""][1:], strict=True):
            stem = self._stem(word)
            terms = dict.fromkeys(self._kin.get(stem, ()), _CLOSE) | {stem: 1.0}
            if following and word + following in self._known:  # change log
                terms[self._known[word + following]] = 1.0
            if stem not in self._gains and stem not in self._everyday:
                terms |= dict.fromkeys(self._alike(word), _CLOSE)
            yield terms

    def _alike(self, word: str) -> set[str]:
        """The terms of known words that differ from a word by a slip, or that it begins or ends with."""
        near = (one for form in _forms(word) for one in self._near.get(form, ()))
        slips = {self._known[one] for one in near if one[0] == word[0] and abs(len(one) - len(word)) < 2}
        ends = (part for at in range(5, min(len(word), _LONGEST)) for part in (word[:at], word[-at:]))
        return slips or {self._known[part] for part in ends if part in self._known} - self._everyday.keys()


def _words(text: str) -> list[str]:
    """The words in lower case without accents; of Chinese, Japanese and Korean each two signs that stand together."""
    folded = unicodedata.normalize("NFKD", text.lower())
    plain = unicodedata.normalize("NFC", "".join(one for one in folded if not unicodedata.combining(one)))
    words = list[str]()
    for word in _WORD.findall(plain):
        if word[0] >= "\u3040":
            words += [part[at : at + 2] for part in _HAN_PARTS.split(word) for at in range(len(part) - 1)]
        elif len(word) <= _LONGEST and not word.isdigit():
            words.append(word)
    return words


def _pairs(stems: Sequence[str]) -> list[str]:
    return [f"{one} {other}" for one, other in pairwise(stems) if one < "\u3040" and other < "\u3040"]


def _forms(word: str) -> Iterable[str]:
    """A word, and it without each of its letters: words that share one of these differ by a slip."""
    return {word, *(word[:at] + word[at + 1 :] for at in range(1, len(word)))} if 5 <= len(word) <= _LONGEST else ()


def _kind(path: re.Match[str]) -> str:
    """The kind of the file that a path names."""
    text = path.group()
    stem, _, kind = text.rpartition(".")
    if "/" not in text:
        return f" {text} " if kind.lower() in _PRODUCTS else f" {kind} "
    if stem and "/" not in kind:
        return f" {kind} "
    return f" {text} " if re.fullmatch(r"\w+/\w+", text) else " "  # and/or, iOS/Android
