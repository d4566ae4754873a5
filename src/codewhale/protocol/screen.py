"""What a person may set of the terminal interface: the `[tui]` table, which the configuration checks and the
interface obeys."""

from typing import Literal

from msgspec import Struct

# The slash commands that only the terminal interface has.
INTERFACE_COMMANDS = ("/exit", "/keys", "/provider", "/quit", "/resume", "/theme")
Notify = Literal["auto", "osc9", "osc777", "bell", "off"]


class TuiSettings(Struct, frozen=True):
    """`theme` is auto, dark, light, contrast or the name of a file in CODEWHALE_HOME/themes; `language` is en, zh-Hans
    or "" for that of the environment; `keys` are other keys for actions, by their ids (codewhale shows them under F2).
    `mouse` catches the mouse, which takes native selection away. `notify` is how attention is called for while the
    terminal is not looked at, `title` whether its title tells what goes on. `editor` opens files and long texts ("" is
    $VISUAL or $EDITOR), `reasoning` is how thoughts are shown at first."""

    theme: str = "auto"
    language: Literal["", "en", "zh-Hans"] = ""
    keys: dict[str, str] = {}
    mouse: bool = False
    notify: Notify = "auto"
    title: bool = True
    editor: str = ""
    reasoning: Literal["folded", "open"] = "folded"
