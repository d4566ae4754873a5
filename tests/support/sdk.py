"""What the providers' own SDKs make of our requests and of the fixtures' answers. They take seconds to import: each
test that needs one imports it itself."""

import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from functools import cache
from typing import Any

from support.conformance import Case, Conversation, answered, hear, stream_bytes
from support.wire import Reply, Wire, stream


def accept(body: bytes, kind: Any) -> None:
    """The request fits the SDK's type `kind`: no field of it is refused, and none is unknown and would be dropped."""
    sent = json.loads(body)
    assert _listed(_adapter(kind).validate_python(sent)) == sent


@cache
def _adapter(kind: Any) -> Any:
    """A type's validator; to make one of the large unions takes a second."""
    from pydantic import TypeAdapter

    return TypeAdapter(kind)


def _listed(value: Any) -> Any:
    """A validated value with its iterables, which are checked as they are read, as lists."""
    if isinstance(value, dict):
        return {key: _listed(item) for key, item in value.items()}
    if value is None or isinstance(value, (str, int, float, bool)):
        return value
    return [_listed(item) for item in value]


async def bodies(case: Case) -> AsyncIterator[bytes]:
    """Every request of a fixture, each after the answer before it."""
    conversation = Conversation(case)
    for turn in case.data["turns"]:
        conversation.say(turn)
        yield conversation.request()
        if answered(turn):
            conversation.answer(await hear(case, [stream_bytes(turn, case.data.get("named", False))]))


def answers(case: Case) -> Iterator[tuple[bytes, list[dict[str, Any]]]]:
    """The bytes of every streamed answer of a fixture, and what it means."""
    for turn in case.data["turns"]:
        if "sse" in turn:
            yield stream_bytes(turn, case.data.get("named", False)), turn["events"]


@asynccontextmanager
async def serving(data: bytes) -> AsyncIterator[str]:
    """The base URL of a server that answers with this stream."""
    async with Wire([Reply([stream(data)])]) as wire:
        yield wire.url


def content(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What was said, without where blocks begin and how the answer ended; opaque parts as the JSON they are."""
    kept = [event for event in events if event.keys().isdisjoint(("boundary", "usage", "finished", "failed"))]
    return [{"opaque": json.loads(event["opaque"])} if "opaque" in event else event for event in kept]


def last(events: list[dict[str, Any]], key: str) -> Any:
    """The value of the last event of a kind, None without one."""
    return next((event[key] for event in reversed(events) if key in event), None)
