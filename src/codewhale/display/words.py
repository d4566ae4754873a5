"""What the interface says, by language: one catalogue file per panel, read when that panel first speaks."""

import os
from collections.abc import Mapping

import msgspec

LANGUAGES = ("en", "zh-Hans")
_FOLDER = os.path.join(os.path.dirname(__file__), "words")

Entry = str | dict[str, str]


def catalogue(language: str, panel: str) -> dict[str, Entry]:
    """The entries of a panel in a language: text, or texts by number ("one" and "other"). Raises KeyError when there
    is no such file."""
    path = os.path.join(_FOLDER, language, f"{panel}.json")
    try:
        with open(path, "rb") as file:
            return msgspec.json.decode(file.read(), type=dict[str, Entry])
    except FileNotFoundError:
        raise KeyError(f"no words for {panel!r} in {language}") from None


class Words:
    """The words of one language. A key is "panel.name"; values fill the places in braces, and `n` chooses between
    "one" and "other" where an entry has both."""

    def __init__(self, language: str = "en") -> None:
        if language not in LANGUAGES:
            raise KeyError(f"no language {language!r}")
        self.language = language
        self._panels: dict[str, Mapping[str, Entry]] = {}

    def __call__(self, key: str, **values: object) -> str:
        """The text of a key. Raises KeyError for a key that is not there."""
        panel, _, name = key.partition(".")
        if panel not in self._panels:
            self._panels[panel] = catalogue(self.language, panel)
        entry = self._panels[panel].get(name)
        if entry is None:
            raise KeyError(f"no words for {key!r} in {self.language}")
        if not isinstance(entry, str):
            entry = entry["one"] if values.get("n") == 1 and "one" in entry else entry["other"]
        return entry.format_map(values) if values else entry
