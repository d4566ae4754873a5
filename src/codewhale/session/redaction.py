"""Known secret values never reach the log, nor do keys that are known by their shape and come from outside: each is
replaced by its name, the same way every time.

A value is found as it stands and as JSON writes it, also inside JSON that is itself a string of JSON. Of one that a
tool's own cap cut through, the part that is left is found at the place of the cut.
"""

import contextlib
import re
from collections.abc import Mapping, Sequence

import msgspec

from codewhale.lib.jsontext import encode
from codewhale.lib.patterns import lazy
from codewhale.lib.text import scrub_surrogates
from codewhale.protocol.events import (
    CallFinished,
    CallProgress,
    ContextAppended,
    Event,
    FactProposed,
    HeaderPinned,
    Notice,
    SessionOpened,
    ShellOutput,
    ShellRan,
    TurnFinished,
    UnknownEvent,
)
from codewhale.session.records import event_decoder
from codewhale.session.remains import Remains
from codewhale.session.secretshapes import Shapes, is_key

_SECRET_NAME = lazy(r"KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIAL", re.IGNORECASE)
_MIN_LENGTH = 8
_NESTING = 5
# What programs, files and services say. A key that the person or the model itself writes is what they work with.
_FROM_OUTSIDE = frozenset((
    CallFinished, CallProgress, ContextAppended, FactProposed, HeaderPinned, Notice, ShellOutput, ShellRan,
    TurnFinished,
))  # fmt: skip


class Redactor:
    """Replaces the values of secret-looking variables (at least 8 characters) by `[redacted NAME]`, and unless `shapes`
    is False keys of known shapes in what comes from outside; there too what begins with one of `prefixes`."""

    def __init__(self, variables: Mapping[str, str], shapes: bool = True, prefixes: Sequence[str] = ()) -> None:
        self._names: dict[str, str] = {}
        self._shapes = shapes or bool(prefixes)
        self._hide = Shapes(shapes, prefixes).hide
        self._compile()
        self.learn(variables)

    def learn(self, variables: Mapping[str, str]) -> None:
        """More of them, from now on."""
        found = sorted(variables.items())
        names = dict(self._names)
        for name, value in found:
            if _is_secret(name, value):
                names.setdefault(scrub_surrogates(value), name)
        if names != self._names:
            self._names = names
            self._compile()

    def _compile(self) -> None:
        names = self._names
        self._text = _table(names)
        self._json = _table({_inside_json(value): name for value, name in names.items()})
        self._text_pattern = _pattern(self._text)
        self._json_pattern = _pattern(self._json)
        self._text_parts, self._json_parts = Remains(self._text), Remains(self._json)

    def text(self, text: str) -> str:
        """Text without secrets."""
        if self._text_pattern is not None:
            text = self._text_parts.sub(self._text_pattern.sub(lambda match: self._text[match.group()], text))
        return self._hide(text) if self._shapes else text

    def event(self, event: Event) -> Event:
        """The event without secrets; the same object when it held none. Where a session works is no secret."""
        outside = self._shapes and type(event) in _FROM_OUTSIDE
        if (self._json_pattern is None and not outside) or isinstance(event, UnknownEvent | SessionOpened):
            return event
        encoded = clean = encode(event).decode()
        if self._json_pattern is not None:
            clean = self._json_pattern.sub(lambda match: self._json[match.group()], encoded)
        if outside:
            clean = self._hide(clean)
        if isinstance(event, CallFinished):
            clean = self._json_parts.sub(clean)
        if clean == encoded:
            return event
        try:
            decoded: Event = event_decoder().decode(clean)
        except msgspec.DecodeError:
            return self._one_by_one(encoded, outside)
        return decoded

    def _one_by_one(self, encoded: str, outside: bool) -> Event:
        """The event with every value replaced but one that is also a word of its form (`assistant`, a field)."""
        encoded = self._hide(encoded) if outside else encoded
        event: Event = event_decoder().decode(encoded)
        for value, shown in self._json.items():
            with contextlib.suppress(msgspec.DecodeError):
                clean = encoded.replace(value, shown)
                event, encoded = event_decoder().decode(clean), clean
        return event


class Redactors:
    """One redactor for each way of hiding; all know the same secrets."""

    def __init__(self, variables: Mapping[str, str]) -> None:
        self._variables = dict(variables)
        self._ways: dict[tuple[bool, tuple[str, ...]], Redactor] = {}

    def of(self, shapes: bool, prefixes: tuple[str, ...]) -> Redactor:
        way = (shapes, prefixes)
        if way not in self._ways:
            self._ways[way] = Redactor(self._variables, *way)
        return self._ways[way]

    def learn(self, variables: Mapping[str, str]) -> None:
        """More secrets, from now on."""
        self._variables.update(variables)
        for redactor in self._ways.values():
            redactor.learn(variables)


def _is_secret(name: str, value: str) -> bool:
    if len(value) < _MIN_LENGTH or value.startswith("/"):
        return False
    return _SECRET_NAME().search(name) is not None or is_key(value)


def _inside_json(value: str) -> str:
    return msgspec.json.encode(value).decode()[1:-1]


def _table(names: Mapping[str, str]) -> dict[str, str]:
    """What stands for each value and for each way JSON writes it, longest first."""
    found: dict[str, str] = {}
    for value, name in names.items():
        for _ in range(_NESTING):
            found.setdefault(value, f"[redacted {name}]")
            value = _inside_json(value)
    return dict(sorted(found.items(), key=lambda item: (-len(item[0]), item[0])))


def _pattern(table: Mapping[str, str]) -> re.Pattern[str] | None:
    return re.compile("|".join(re.escape(value) for value in table)) if table else None
