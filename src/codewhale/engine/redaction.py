"""Known secret values never reach the log: each is replaced by its name, the same way every time."""

import re
from collections.abc import Mapping

import msgspec

from codewhale.protocol.events import Event, KnownEvent, UnknownEvent

_SECRET_NAME = re.compile(r"KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIAL", re.IGNORECASE)
_MIN_LENGTH = 8


class Redactor:
    """Replaces the values of secret-looking variables (at least 8 characters) by `[redacted NAME]`."""

    def __init__(self, variables: Mapping[str, str]) -> None:
        names = {value: name for name, value in sorted(variables.items()) if _is_secret(name, value)}
        longest_first = sorted(names, key=lambda value: (-len(value), value))
        self._text = {value: f"[redacted {names[value]}]" for value in longest_first}
        self._json = {_inside_json(value): f"[redacted {names[value]}]" for value in longest_first}
        self._text_pattern = _pattern(self._text)
        self._json_pattern = _pattern(self._json)
        self._decoder = msgspec.json.Decoder(KnownEvent)

    def text(self, text: str) -> str:
        """Text without secrets."""
        if self._text_pattern is None:
            return text
        return self._text_pattern.sub(lambda match: self._text[match.group()], text)

    def event(self, event: Event) -> Event:
        """The event without secrets; the same object when it held none."""
        if self._json_pattern is None or isinstance(event, UnknownEvent):
            return event
        encoded = msgspec.json.encode(event).decode()
        if self._json_pattern.search(encoded) is None:
            return event
        clean = self._json_pattern.sub(lambda match: self._json[match.group()], encoded)
        decoded: Event = self._decoder.decode(clean)
        return decoded


def _is_secret(name: str, value: str) -> bool:
    return len(value) >= _MIN_LENGTH and _SECRET_NAME.search(name) is not None and not value.startswith("/")


def _inside_json(value: str) -> str:
    return msgspec.json.encode(value).decode()[1:-1]


def _pattern(table: Mapping[str, str]) -> re.Pattern[str] | None:
    return re.compile("|".join(re.escape(value) for value in table)) if table else None
