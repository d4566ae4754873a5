"""What an interface is opened with: the session, the settings with what the environment answers, and which typed lines
are commands."""

import os
from collections.abc import Mapping, Sequence

from msgspec import Struct

from codewhale.display.client import Connect
from codewhale.lib.clock import Clock, SystemClock
from codewhale.lib.patterns import lazy
from codewhale.protocol.ops import OpenSession
from codewhale.protocol.screen import TuiSettings

_COMMAND = lazy(r"/[^\W\d_][\w-]*(?:\s|$)")
__all__ = ["TuiSettings", "editor_of", "language_of", "theme_of"]
_LANGUAGE_VARIABLES = ("LC_ALL", "LC_MESSAGES", "LANG")
# The colours 7 and 9 to 15 of a terminal are light ones (COLORFGBG, as rxvt and Konsole set it).
_LIGHT = frozenset({7, *range(9, 16)})


def is_command(prompt: str) -> bool:
    """Whether a prompt is a slash command, "/name args", and not a path or plain words."""
    return _COMMAND().match(prompt) is not None


def language_of(settings: TuiSettings, environ: Mapping[str, str]) -> str:
    """The language to speak: the one that is set, else Chinese where the environment asks for any, else English."""
    if settings.language:
        return settings.language
    locale = next((environ[name] for name in _LANGUAGE_VARIABLES if environ.get(name)), "")
    return "zh-Hans" if locale.lower().startswith("zh") else "en"


def theme_of(settings: TuiSettings, environ: Mapping[str, str]) -> str:
    """The name of the theme: for "auto" light where the terminal says that its background is, else dark."""
    if settings.theme != "auto":
        return settings.theme
    background = environ.get("COLORFGBG", "").rpartition(";")[2]
    return "light" if background.isdigit() and int(background) in _LIGHT else "dark"


def editor_of(settings: TuiSettings, environ: Mapping[str, str]) -> str:
    """The command line of the person's editor, "" when none is known."""
    return settings.editor or environ.get("VISUAL") or environ.get("EDITOR") or ""


def pager_of(environ: Mapping[str, str]) -> str:
    """The command line of the person's pager, "" when none is known."""
    return environ.get("PAGER") or ""


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
