"""Pages that imitate public documentation, news, forums and code hosts: the markup of each written by hand, with marks
where its main text stands ([[s]] a sentence) and where other text does ([[-s]]); the words are made up from a seed.
"""

import html
import random
import re
from functools import cache
from pathlib import Path
from typing import NamedTuple

FILE = Path(__file__).resolve().parents[1] / "services" / "web" / "pages.txt"
# s sentence, w a few words, h heading, code a line; of p, li, tr and a so many, a in elements of that name.
_MARK = re.compile(r"\[\[(-?)(s|w|h|code|p|li|tr|a)(?: (\d+))?(?: (\w+))?\]\]")
_HEADS = {
    "en": ("The worker", "A queue", "Every request", "The parser", "This option", "Our release", "A reader"),
    "de": ("Der Prozess", "Eine Schlange", "Jede Anfrage", "Der Leser", "Diese Einstellung", "Das Verzeichnis"),
    "ru": ("Очередь", "Каждый запрос", "Сервер", "Новая версия", "Эта настройка", "Рабочий процесс"),
    "ja": ("新しい版は", "この設定は", "サーバーは", "利用者は", "開発者は", "この記事は"),
    "zh": ("这个选项", "新版本", "服务器", "每个请求", "开发者", "这个队列"),
}
_TAILS = {
    "en": ("takes the oldest row first", "waits until <em>another</em> process ends", "is <b>never</b> sent twice",
           "needs <code>timeout_{n}</code> to be set", "fails when the disk is full", "was changed in version {n}.2",
           "keeps &quot;both&quot; values &amp; returns them", "has its own <a href='/ref/{n}'>table of limits</a>"),
    "de": ("nimmt zuerst die älteste Zeile", "wartet, bis ein anderer Prozess endet", "braucht <code>frist_{n}</code>",
           "wurde in Fassung {n}.2 geändert", "steht in <a href='/ref/{n}'>einer eigenen Liste</a>"),
    "ru": ("обрабатывается по порядку", "ждёт конца <em>другого</em> процесса", "требует <code>limit_{n}</code>",
           "изменена в версии {n}.2", "описана <a href='/ref/{n}'>отдельно</a>"),
    "ja": ("古い行から順に処理します", "<b>二度と</b>送られません", "次の版で変わります", "別の表に示されています"),
    "zh": ("按顺序处理每一行", "<b>不会</b>发送两次", "在新版本中已经改变", "需要单独设置"),
}  # fmt: skip
_OTHER = (
    "We use cookies to make this site better for you and {n} partners", "Sign up for offer {n} of our weekly letter",
    "Copyright {n} the authors, all rights reserved", "Was this page helpful to you and {n} others",
    "Get {n} percent off our new course this week only", "You are reading an old version, {n}, of this page",
)  # fmt: skip
_LINKS = ("Guide", "Release notes", "About us", "Contact", "Install", "Reference", "Settings of", "Sign in")


class MarkedPage(NamedTuple):
    """A page, with the texts of it that are what it is about and those that are not."""

    name: str
    html: str
    main: tuple[str, ...]
    rest: tuple[str, ...]

    def kept(self, text: str) -> tuple[float, float]:
        """The shares of its main texts, by number, and of the others, by length, that stand in an extract."""
        there = letters(text)
        main = [one for one in self.main if letters(one) in there]
        rest = sum(len(one) for one in self.rest if letters(one) in there)
        return len(main) / len(self.main), rest / max(1, sum(map(len, self.rest)))

    def lost(self, text: str) -> list[str]:
        there = letters(text)
        return [one for one in self.main if letters(one) not in there]

    def stray(self, text: str) -> list[str]:
        there = letters(text)
        return [one for one in self.rest if letters(one) in there]


def letters(text: str) -> str:
    """Only what is read: no markup, no numbers of links, no marks, no space."""
    text = re.sub(r"\s\[\d+\]", "", re.sub(r"<[^>]+>", "", text))
    return re.sub(r"[\W_]+", "", html.unescape(text)).lower()


class _Words:
    """The words of one page."""

    def __init__(self, name: str, language: str) -> None:
        self._random = random.Random(name)
        self._language = language
        self._number = self._random.randint(1_000, 2_000)
        self.main: list[str] = []
        self.rest: list[str] = []

    def expand(self, mark: re.Match[str]) -> str:
        other, kind, count, around = mark[1] == "-", mark[2], int(mark[3] or 1), mark[4] or ""
        if kind == "a":
            links = [f'<a href="/l{self._next()}">{self._other(_LINKS)}</a>' for _ in range(count)]
            return "".join(f"<{around}>{one}</{around}>" if around else f"{one} " for one in links)
        if kind == "p":
            return "".join(f"<p>{' '.join(self._sentence() for _ in range(1 + at % 3))}</p>" for at in range(count))
        if kind == "li":
            return "".join(f"<li>{self._sentence()}</li>" for _ in range(count))
        if kind == "tr":
            return "".join(f"<tr><td>{self._short()}</td><td>{self._sentence()}</td></tr>" for _ in range(count))
        if other:
            return self._other(_OTHER if kind == "s" else _LINKS)
        if kind == "h":
            return self._head()
        return {"s": self._sentence, "w": self._short, "code": self._code}[kind]()

    def _next(self) -> int:
        self._number += 1
        return self._number

    def _other(self, texts: tuple[str, ...]) -> str:
        text = self._random.choice(texts)
        text = text.format(n=self._next()) if "{n}" in text else f"{text} {self._next()}"
        self.rest.append(text)
        return text

    def _head(self) -> str:
        return f"{self._random.choice(_HEADS[self._language])} {self._next()}"

    def _keep(self, text: str) -> str:
        self.main.append(text)
        return text

    def _short(self) -> str:
        return self._keep(self._head())

    def _sentence(self) -> str:
        tail = self._random.choice(_TAILS[self._language]).format(n=self._next())
        joint, end = ("", "。") if self._language in ("ja", "zh") else (" ", ".")
        return self._keep(f"{self._head()}{joint}{tail}{end}")

    def _code(self) -> str:
        return self._keep(f"start(queue_{self._next()}, limit={self._next()})")


@cache
def marked_pages() -> tuple[MarkedPage, ...]:
    """All of them."""
    pages = []
    for part in FILE.read_text().split("=== ")[1:]:
        head, _, markup = part.partition("\n")
        name, language = head.split()
        words = _Words(name, language)
        pages.append(MarkedPage(name, _MARK.sub(words.expand, markup), tuple(words.main), tuple(words.rest)))
    return tuple(pages)
