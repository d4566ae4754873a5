"""The words of the interface: both languages whole, every key that the code uses there."""

import json
import re
from pathlib import Path
from string import Formatter

import pytest

from codewhale.display.words import LANGUAGES, Words
from codewhale.permissions.shell.table import harm

ROOT = Path(__file__).parents[2] / "src/codewhale"
WORDS = ROOT / "display/words"


def entries(language: str) -> dict[str, str | dict[str, str]]:
    """Every entry of a language by its whole key."""
    found = {}
    for file in sorted((WORDS / language).glob("*.json")):
        for name, entry in json.loads(file.read_text()).items():
            found[f"{file.stem}.{name}"] = entry
    return found


def places(entry: str | dict[str, str]) -> set[str]:
    """The names in braces."""
    texts = [entry] if isinstance(entry, str) else list(entry.values())
    return {name for text in texts for _, name, _, _ in Formatter().parse(text) if name}


def test_both_languages_say_everything() -> None:
    english, chinese = (entries(language) for language in LANGUAGES)
    assert len(english) > 200
    assert english.keys() == chinese.keys()
    assert [key for key in english if places(english[key]) != places(chinese[key])] == []
    assert [key for key, entry in (english | chinese).items() if entry in ("", {})] == []
    for entry in (*english.values(), *chinese.values()):
        assert isinstance(entry, str) or "other" in entry


def test_chinese_is_chinese() -> None:
    said = entries("zh-Hans").items()
    own = [(key, re.sub(r"\{\w+\}|codewhale", "", str(entry))) for key, entry in said]
    latin = [key for key, text in own if len(text) > 14 and not re.search(r"[\u4e00-\u9fff]", text)]
    assert latin == []


def test_words_are_counted_and_filled_in(tmp_path: Path) -> None:
    words = Words("en")
    assert words("keys.queue.drop") == "remove the message"
    with pytest.raises(KeyError, match=r"keys\.nothing"):
        words("keys.nothing")
    with pytest.raises(KeyError):
        words("nowhere.at_all")
    with pytest.raises(KeyError):
        Words("fr")


def test_every_word_that_is_used_is_there() -> None:
    known = entries("en").keys()
    panels = {key.partition(".")[0] for key in known}
    used = set()
    for file in (file for room in ("display", "headless", "tui") for file in (ROOT / room).rglob("*.py")):
        used |= set(re.findall(r'words\(\s*f?"([a-z_]+\.[A-Za-z0-9_.-]+)"', file.read_text()))
    assert {key for key in used if key.partition(".")[0] not in panels} == set()
    assert used - known == set()


def test_every_rule_that_may_ask_has_its_words() -> None:
    named = r'"((?:shell|floor|mode|network|secret|sandbox|job|authority|approval)\.[a-z]+(?:[.-][a-z]+)*)"'
    texts = [file.read_text() for room in ("permissions", "agent") for file in (ROOT / room).rglob("*.py")]
    rules = {rule for text in texts for rule in re.findall(named, text)} | harm().asks.keys()
    assert len(rules) > 40
    assert {f"rules.{rule}" for rule in rules} - entries("zh-Hans").keys() == set()
