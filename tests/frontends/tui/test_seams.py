"""What the panels are built on: words, keys, palettes, settings, and the record they are tested with."""

import json
import re
from pathlib import Path
from string import Formatter

import pytest
from textual.widgets import Static

from codewhale.frontends.tui.keys import ACTIONS, TOGETHER, bindings, check_keys, clashes
from codewhale.frontends.tui.palette import BUILT_IN, load_palette, theme_names, weak_pairs
from codewhale.frontends.tui.settings import TuiSettings, editor_of, language_of, theme_of
from codewhale.frontends.tui.words import LANGUAGES, Words
from codewhale.protocol.errors import ConfigError
from codewhale.protocol.events import Notice, TurnStarted
from codewhale.protocol.ops import Interrupt
from support.tuirecord import RecordedClient, envelopes, hosted, screen_text, until

ROOT = Path(__file__).parents[3] / "src/codewhale/frontends/tui"
WORDS = ROOT / "words"


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
    assert english.keys() == chinese.keys()
    assert [key for key in english if places(english[key]) != places(chinese[key])] == []
    assert [key for key, entry in (english | chinese).items() if entry in ("", {})] == []
    for entry in (*english.values(), *chinese.values()):
        assert isinstance(entry, str) or "other" in entry


def test_chinese_is_chinese() -> None:
    said = entries("zh-Hans").items()
    latin = [key for key, entry in said if not re.search(r"[\u4e00-\u9fff]", str(entry)) and len(str(entry)) > 20]
    assert latin == []


def test_words_are_counted_and_filled_in(tmp_path: Path) -> None:
    words = Words("en")
    assert words("keys.approval.allow") == "yes, this once"
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
    for file in ROOT.rglob("*.py"):
        used |= set(re.findall(r'words\(\s*f?"([a-z_]+\.[A-Za-z0-9_.-]+)"', file.read_text()))
    assert {key for key in used if key.partition(".")[0] not in panels} == set()
    assert used - known == set()


def test_every_action_has_words_and_no_key_does_two_things() -> None:
    assert len({row.id for row in ACTIONS}) == len(ACTIONS)
    for language in LANGUAGES:
        words = Words(language)
        assert all(words(f"keys.{row.id}") for row in ACTIONS)
    assert {row.panel for row in ACTIONS} == {panel for group in TOGETHER for panel in group}
    assert clashes({}) == []
    rows = [row for row in bindings("composer") if not isinstance(row, tuple)]
    assert {row.id: row.action for row in rows}["composer.stash"] == "stash"


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"composer.sendd": "ctrl+y"}, "did you mean 'composer.send'"),
        ({"composer.send": " "}, "has no key"),
        ({"composer.send": "ctrl+k"}, "would do both"),
    ],
)
def test_keys_that_cannot_be_are_refused(changed: dict[str, str], said: str) -> None:
    check_keys({"composer.send": "ctrl+y"})
    with pytest.raises(ConfigError, match=said):
        check_keys(changed)


@pytest.mark.parametrize("name", BUILT_IN)
def test_palettes_can_be_read(name: str) -> None:
    palette = load_palette(name, "")
    assert weak_pairs(palette) == []
    variables = palette.theme().variables
    assert variables["cw-type"] == palette.type_ and variables["cw-added-background"] == palette.added_background


def test_a_theme_of_ones_own(tmp_path: Path) -> None:
    folder = tmp_path / "themes"
    folder.mkdir()
    (folder / "sea.toml").write_text('base = "light"\naccent = "#00407A"\ntype = "#0d5d5d"\n')
    palette = load_palette("sea", str(tmp_path))
    assert (palette.name, palette.dark, palette.accent, palette.type_) == ("sea", False, "#00407a", "#0d5d5d")
    assert theme_names(str(tmp_path)) == [*BUILT_IN, "sea"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('muted = "#555555"', "muted on .* has a contrast of .*; it needs 4.5"),
        ('sparkle = "#ffffff"', "no colour 'sparkle'"),
        ('text = "white"', "a colour is written"),
        ("text = 3", "a colour is written"),
        ('base = "neon"', "base is 'neon'"),
        ("text = ", "sea.toml: "),
        ("# " + "x" * 70_000, "larger than"),
    ],
)
def test_a_theme_that_cannot_be_read_says_why(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "themes").mkdir()
    (tmp_path / "themes/sea.toml").write_text(text)
    with pytest.raises(ConfigError, match=said):
        load_palette("sea", str(tmp_path))


@pytest.mark.parametrize("name", ["none", "../secret", ""])
def test_a_theme_that_is_not_there(tmp_path: Path, name: str) -> None:
    with pytest.raises(ConfigError, match="there are dark, light, contrast"):
        load_palette(name, str(tmp_path))


def test_what_is_left_open_is_answered_from_the_environment() -> None:
    left_open = TuiSettings()
    assert language_of(left_open, {"LANG": "zh_CN.UTF-8"}) == "zh-Hans"
    assert language_of(left_open, {"LC_ALL": "C", "LANG": "zh_CN.UTF-8"}) == "en"
    assert language_of(TuiSettings(language="en"), {"LANG": "zh_CN.UTF-8"}) == "en"
    assert theme_of(left_open, {}) == "dark"
    assert theme_of(left_open, {"COLORFGBG": "0;15"}) == "light"
    assert theme_of(left_open, {"COLORFGBG": "15;0"}) == "dark"
    assert theme_of(TuiSettings(theme="contrast"), {"COLORFGBG": "0;15"}) == "contrast"
    assert editor_of(left_open, {"EDITOR": "vi", "VISUAL": "code -w"}) == "code -w"
    assert editor_of(TuiSettings(editor="hx"), {"EDITOR": "vi"}) == "hx"


async def test_a_record_is_played_and_grows() -> None:
    client = RecordedClient(envelopes([TurnStarted(1)]))
    client.feed(Notice("info", "later"))
    client.end()
    told = [envelope async for envelope in client.events(client.session)]
    assert [envelope.seq for envelope in told] == [1, 2]
    await client.submit(Interrupt(client.session))
    assert client.ops == [Interrupt(client.session)]


async def test_a_panel_is_hosted() -> None:
    async with hosted(lambda palette: Static(palette.name, markup=False), size=(20, 3)) as (host, pilot):
        await until(pilot, lambda: "dark" in screen_text(host))
