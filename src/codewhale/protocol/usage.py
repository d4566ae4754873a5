"""The usage of a slash command as data: which words it allows at a place."""

import re
from collections.abc import Sequence

_TOKEN = re.compile(r" \| |[A-Za-z][\w-]*(?:\.\.\.)?|[|\[\]]")


def expected(usage: str, before: Sequence[str]) -> list[str]:
    """The words that a usage such as "[list | allow|ask COMMAND]" has at the place behind the words `before`."""
    ways = [way for way in _ways(usage) if _follows(way, before)]
    found = dict.fromkeys(way[len(before)] for way in ways if len(way) > len(before))
    return list(found)


def _follows(way: Sequence[str], before: Sequence[str]) -> bool:
    return len(way) >= len(before) and all(
        wanted.isupper() or wanted == word for wanted, word in zip(way, before, strict=False)
    )


def _ways(usage: str) -> list[tuple[str, ...]]:
    """Every line of words that a usage allows; what stands in brackets may be left out."""
    tokens = _TOKEN.findall(usage.replace("[...]", ""))
    ways, _ = _alternatives(tokens, 0)
    return ways


def _alternatives(tokens: Sequence[str], at: int) -> tuple[list[tuple[str, ...]], int]:
    """The ways up to a closing bracket. A bar without blanks binds words, one with blanks whole ways: `allow|ask HOST`
    is `allow HOST` or `ask HOST`, `list | remove ROW` is `list` or `remove ROW`."""
    done: list[tuple[str, ...]] = []
    ways: list[tuple[str, ...]] = [()]
    while at < len(tokens) and tokens[at] != "]":
        token = tokens[at]
        if token == " | ":
            done += ways
            ways = [()]
            at += 1
            continue
        if token == "|":  # between brackets
            at += 1
            continue
        choices, at = _group(tokens, at)
        ways = [(*way, *choice) for way in ways for choice in choices]
    return [*done, *ways], at + 1


def _group(tokens: Sequence[str], at: int) -> tuple[list[tuple[str, ...]], int]:
    if tokens[at] == "[":
        inner, at = _alternatives(tokens, at + 1)
        return [*inner, ()], at
    words = [tokens[at].removesuffix("...")]
    while at + 2 < len(tokens) and tokens[at + 1] == "|" and tokens[at + 2] not in "[]":
        at += 2
        words.append(tokens[at].removesuffix("..."))
    return [(word,) for word in words], at + 1
