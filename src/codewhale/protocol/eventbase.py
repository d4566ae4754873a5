"""The base of all events."""

from msgspec import Struct


def _snake(name: str) -> str:
    return "".join("_" + c.lower() if c.isupper() and i else c.lower() for i, c in enumerate(name))


class EventBase(Struct, frozen=True, omit_defaults=True, tag=_snake):
    """Base of all events; the tag is the class name in snake case."""
