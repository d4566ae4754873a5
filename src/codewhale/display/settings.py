"""The settings of the terminal interface as it runs: what was left open is answered from the environment."""

from collections.abc import Mapping

from codewhale.protocol.screen import TuiSettings

__all__ = ["TuiSettings", "editor_of", "language_of", "theme_of"]

_LANGUAGE_VARIABLES = ("LC_ALL", "LC_MESSAGES", "LANG")
# The colours 7 and 9 to 15 of a terminal are light ones (COLORFGBG, as rxvt and Konsole set it).
_LIGHT = frozenset({7, *range(9, 16)})


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
