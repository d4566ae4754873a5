"""What the app is opened with."""

import os
from collections.abc import Mapping, Sequence

from msgspec import Struct

from codewhale.frontends.tui.keys import check_keys
from codewhale.frontends.tui.link import Connect
from codewhale.frontends.tui.palette import Palette, load_palette
from codewhale.frontends.tui.settings import TuiSettings, theme_of
from codewhale.lib.clock import Clock, SystemClock
from codewhale.protocol.errors import ConfigError
from codewhale.protocol.ops import OpenSession


class Setup(Struct, frozen=True):
    """`connect` opens the engine, once the first frame is drawn; `opening` is the session that is wanted. `home` is
    CODEWHALE_HOME; `patience` is that of the asking cards, None for the usual; `notices` are lines about
    the configuration, there once the engine is open."""

    connect: Connect
    opening: OpenSession
    home: str
    settings: TuiSettings = TuiSettings()
    environ: Mapping[str, str] = os.environ
    patience: object = None
    notices: Sequence[str] = ()
    clock: Clock = SystemClock()


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
