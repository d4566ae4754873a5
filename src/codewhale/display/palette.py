"""The colours: three palettes of our own, a person's in CODEWHALE_HOME/themes, and the check that each can be read."""

import os
import re
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct

from codewhale.lib.text import one_line
from codewhale.lib.toml import parse_toml
from codewhale.protocol.errors import ConfigError

if TYPE_CHECKING:
    from textual.theme import Theme

BUILT_IN = ("dark", "light", "contrast")
# Text and its background differ by at least this ratio (WCAG 2.2, criterion 1.4.3).
LEAST_CONTRAST = 4.5
_FOLDER = os.path.join(os.path.dirname(__file__), "palettes")
_MOST_BYTES = 1 << 16
_MOST_THEMES = 200
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
_COLOUR = re.compile(r"#[0-9a-fA-F]{6}")
_WORDS = ("text", "muted", "accent", "user", "success", "warning", "error", "link")
_TOKENS = ("text", "keyword", "string", "number", "comment", "function", "type_", "code")
_GROUNDS = ("background", "code_background", "added_background", "removed_background")
# Every text that is drawn on a background.
PAIRS = (
    *((text, ground) for ground in ("background", "surface") for text in _WORDS),
    *((text, ground) for ground in _GROUNDS for text in _TOKENS),
    ("added", "code_background"),
    ("removed", "code_background"),
    ("added", "added_background"),
    ("added", "background"),
    ("removed", "removed_background"),
    ("removed", "background"),
    ("muted", "added_background"),
    ("muted", "removed_background"),
    ("muted", "code_background"),
    ("selection_text", "selection"),
)


class Palette(Struct, frozen=True, forbid_unknown_fields=True):
    """Colours as "#rrggbb" by what they are for. `border` is for lines, never for text."""

    name: str
    dark: bool
    background: str
    surface: str
    border: str
    text: str
    muted: str
    accent: str
    user: str
    success: str
    warning: str
    error: str
    link: str
    added: str
    removed: str
    added_background: str
    removed_background: str
    code: str
    code_background: str
    selection: str
    selection_text: str
    keyword: str
    string: str
    number: str
    comment: str
    function: str
    type_: str

    def theme(self) -> "Theme":
        """Textual's theme of these colours: its own variables, and $cw-<field> with dashes for each field."""
        from textual.theme import Theme

        own = {f"cw-{name.strip('_').replace('_', '-')}": value for name, value in _colours(self).items()}
        return Theme(
            name=f"codewhale-{self.name}",
            primary=self.accent,
            secondary=self.user,
            accent=self.accent,
            warning=self.warning,
            error=self.error,
            success=self.success,
            foreground=self.text,
            background=self.background,
            surface=self.surface,
            panel=self.surface,
            dark=self.dark,
            text_alpha=1.0,
            variables=own | self._widgets(),
        )

    def _widgets(self) -> dict[str, str]:
        """What Textual's own parts (cursors, scrollbars) are drawn with."""
        return {
            "foreground-muted": self.muted,
            "text-muted": self.muted,
            "border": self.accent,
            "border-blurred": self.border,
            "block-cursor-background": self.selection,
            "block-cursor-foreground": self.selection_text,
            "block-cursor-text-style": "none",
            "input-cursor-background": self.text,
            "input-cursor-foreground": self.background,
            "input-selection-background": self.selection,
            "screen-selection-background": self.selection,
            "screen-selection-foreground": self.selection_text,
            "scrollbar": self.border,
            "scrollbar-hover": self.muted,
            "scrollbar-active": self.accent,
            "scrollbar-background": self.background,
            "scrollbar-background-hover": self.background,
            "scrollbar-background-active": self.background,
            "scrollbar-corner-color": self.background,
        }


def _colours(palette: Palette) -> dict[str, str]:
    named: dict[str, Any] = msgspec.structs.asdict(palette)
    return {name: value for name, value in named.items() if name not in ("name", "dark")}


def contrast(text: str, ground: str) -> float:
    """The contrast ratio of two colours "#rrggbb", 1 to 21 (WCAG 2.2, relative luminance)."""
    lighter, darker = sorted((_luminance(text), _luminance(ground)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


def _luminance(colour: str) -> float:
    parts = (int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5))
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def weak_pairs(palette: Palette) -> list[tuple[str, str, float]]:
    """The text and background names that cannot be told apart well enough, with their ratio."""
    colours = _colours(palette)
    ratios = ((text, ground, contrast(colours[text], colours[ground])) for text, ground in PAIRS)
    return [(text, ground, ratio) for text, ground, ratio in ratios if ratio < LEAST_CONTRAST]


def theme_names(home: str) -> list[str]:
    """Our own palettes, then the names of the files in the person's themes folder."""
    try:
        files = sorted(os.listdir(os.path.join(home, "themes")))[:_MOST_THEMES]
    except OSError:
        files = []
    stems = (file.removesuffix(".toml") for file in files if file.endswith(".toml"))
    return [*BUILT_IN, *(stem for stem in stems if _NAME.fullmatch(stem) and stem not in BUILT_IN)]


def load_palette(name: str, home: str) -> Palette:
    """The palette of a name: our own, or `themes/NAME.toml` below `home`, whose `base` (dark where it is not said)
    gives what it leaves out. Raises ConfigError, which names the file and what is wrong there."""
    if name in BUILT_IN:
        return _built_in(name)
    path = os.path.join(home, "themes", f"{name}.toml")
    if not _NAME.fullmatch(name) or not os.path.isfile(path):
        there = ", ".join(theme_names(home))
        raise ConfigError(f"there is no theme {one_line(name, 60)!r}; there are {there}; others belong in {path}")
    return _read(name, path)


def _built_in(name: str) -> Palette:
    with open(os.path.join(_FOLDER, f"{name}.json"), "rb") as file:
        return msgspec.json.decode(file.read(), type=Palette)


def _read(name: str, path: str) -> Palette:
    given = _table(path)
    base = given.pop("base", "dark")
    if base not in BUILT_IN:
        raise ConfigError(f"{path}: base is {one_line(str(base), 60)!r}; it must be one of {', '.join(BUILT_IN)}")
    under = msgspec.structs.asdict(_built_in(base))
    known = {key.rstrip("_"): key for key in under if key not in ("name", "dark")}
    for key, value in given.items():
        if key not in known:
            raise ConfigError(f"{path}: there is no colour {one_line(key, 60)!r}; there are {', '.join(known)}")
        if not isinstance(value, str) or not _COLOUR.fullmatch(value):
            raise ConfigError(f'{path}: {key} is {one_line(str(value), 60)!r}; a colour is written "#rrggbb"')
        under[known[key]] = value.lower()
    palette = Palette(**under | {"name": name})
    if weak := weak_pairs(palette):
        text, ground, ratio = min(weak, key=lambda row: row[2])
        more = f"; {len(weak) - 1} more pairs are too close" if len(weak) > 1 else ""
        said = f"{text.rstrip('_')} on {ground} has a contrast of {ratio:.1f}; it needs {LEAST_CONTRAST} to be read"
        raise ConfigError(f"{path}: {said}{more}")
    return palette


def _table(path: str) -> dict[str, Any]:
    try:
        with open(path, "rb") as file:
            data = file.read(_MOST_BYTES + 1)
        if len(data) > _MOST_BYTES:
            raise ConfigError(f"{path}: larger than {_MOST_BYTES:,} bytes; a theme has 25 colours")
        return parse_toml(data)
    except (OSError, ValueError) as error:
        raise ConfigError(f"{path}: {one_line(str(error))}") from error
