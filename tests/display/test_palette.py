"""The colours: each text can be read on its ground, and a theme of one's own is checked."""

from pathlib import Path

import pytest

from codewhale.display.palette import BUILT_IN, load_palette, theme_names, weak_pairs
from codewhale.protocol.errors import ConfigError


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
