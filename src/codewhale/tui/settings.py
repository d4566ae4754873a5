"""What the settings of the terminal interface come to."""

from collections.abc import Mapping

from codewhale.display.palette import Palette, load_palette
from codewhale.display.setup import TuiSettings, theme_of
from codewhale.protocol.errors import ConfigError
from codewhale.tui.keys import check_keys


def checked(settings: TuiSettings, home: str, environ: Mapping[str, str]) -> tuple[Palette, Mapping[str, str], str]:
    """The colours and the keys of the settings, and what is wrong with them ("" for nothing): then ours hold."""
    wrong = ""
    keys: Mapping[str, str] = settings.keys
    try:
        palette = load_palette(theme_of(settings, environ), home)
    except ConfigError as error:
        palette, wrong = load_palette("dark", home), str(error)
    try:
        check_keys(keys)
    except ConfigError as error:
        keys, wrong = {}, wrong or str(error)
    return palette, keys, wrong
