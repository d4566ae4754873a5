"""Where typed text goes: to the focused widget if it takes text, to the composer otherwise."""

from textual import events
from textual.widget import Widget
from textual.widgets import Input, TextArea

HELD_KEYS = ("alt+", "ctrl+", "super+", "meta+", "hyper+")


def is_letter(character: str | None) -> bool:
    """Whether a character is text: anything printable, and the joiners and marks that are written between letters
    (Persian, Hindi, emoji); no control characters."""
    return character is not None and len(character) == 1 and (character.isprintable() or ord(character) >= 0xA0)


def misses(event: events.Event, focused: Widget | None) -> bool:
    """Whether a key or a paste is text and the focused widget takes none."""
    if isinstance(focused, Input | TextArea):
        return False
    if isinstance(event, events.Key):
        return is_letter(event.character) and not event.key.startswith(HELD_KEYS)
    return isinstance(event, events.Paste)
