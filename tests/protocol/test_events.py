"""Every event is frozen data that survives JSON, under a tag of its own."""

import msgspec
import pytest

from codewhale.protocol.events import EPHEMERAL_TYPES, Durable, Ephemeral, KnownEvent, Notice, is_durable
from support.samples import sample

EVENTS = KnownEvent.__args__


def tag(kind: type) -> str:
    """The `type` an event is written under."""
    return str(msgspec.json.decode(msgspec.json.encode(sample(kind)))["type"])


@pytest.mark.parametrize("kind", EVENTS, ids=lambda kind: kind.__name__)
def test_an_event_survives_json(kind: type) -> None:
    event = sample(kind)
    assert msgspec.json.decode(msgspec.json.encode(event), type=KnownEvent) == event


@pytest.mark.parametrize("kind", EVENTS, ids=lambda kind: kind.__name__)
def test_an_event_cannot_be_changed(kind: type) -> None:
    event = sample(kind)
    for field in msgspec.structs.fields(kind):
        with pytest.raises(AttributeError):
            setattr(event, field.name, None)


# Tags in logs that were written before their class had its present name.
OLD_TAGS = {"edge": "PrefixInvalidated"}


def test_tags_are_the_class_names_in_snake_case_and_differ() -> None:
    tags = [tag(kind) for kind in EVENTS]
    assert len(set(tags)) == len(tags)
    assert {"session_opened", "turn_finished", "call_started", "file_changed"} <= set(tags)
    assert all(
        OLD_TAGS.get(name) == kind.__name__ or (name == name.lower() and name.replace("_", "") == kind.__name__.lower())
        for name, kind in zip(tags, EVENTS, strict=True)
    )


def test_an_event_is_durable_or_ephemeral_and_never_both() -> None:
    assert set(Durable.__args__) | set(Ephemeral.__args__) == set(EVENTS)
    assert set(Durable.__args__) & set(Ephemeral.__args__) == set()
    assert [kind for kind in EVENTS if is_durable(sample(kind)) is (kind in EPHEMERAL_TYPES)] == []


def test_fields_of_a_later_version_are_passed_over() -> None:
    later = b'{"type":"notice","level":"info","text":"hello","shade":"blue"}'
    assert msgspec.json.decode(later, type=KnownEvent) == Notice("info", "hello")
