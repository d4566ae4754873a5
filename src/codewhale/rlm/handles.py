"""Values that are kept for a conversation: each an artifact, under a number that no later one takes."""

import hashlib
from collections.abc import Mapping
from typing import Any

import msgspec

from codewhale.process.artifacts import ArtifactStore
from codewhale.protocol.handles import PREVIEW, ValueType, VarHandle

_SESSIONS_OF_A_NAME = 99


def session_id(owner: str, name: str, number: int) -> str:
    """The id of the recursive session that is the `number`th so named in a conversation."""
    return "rlm:" + hashlib.sha256(f"{owner}/{name}/{number}".encode()).hexdigest()[:12]


def find_value(values: Mapping[str, VarHandle], owner: str, written: str) -> VarHandle | None:
    """A conversation's value by session_id/name; the name of a recursive session stands for the last so named."""
    if written in values:
        return values[written]
    place, _, base = written.rpartition("/")
    ids = (session_id(owner, place, number) for number in range(_SESSIONS_OF_A_NAME, 0, -1)) if place else ()
    return next((values[key] for key in (f"{one}/{base}" for one in ids) if key in values), None)


def keep_value(
    artifacts: ArtifactStore, values: Mapping[str, VarHandle], session: str, base: str, value: Any
) -> VarHandle:
    """Keep a value of `session` among the conversation's `values`. Raises StorageFullError, SessionError."""
    number = sum(handle.session_id == session and handle.name.startswith(f"{base}_") for handle in values.values())
    data = value.encode("utf-8", "replace") if isinstance(value, str) else msgspec.json.encode(value)
    sha = artifacts.put(data)
    preview = value if isinstance(value, str) else data.decode()
    return VarHandle(session, f"{base}_{number}", type_of(value), length_of(value), preview[:PREVIEW], sha)


def type_of(value: Any) -> ValueType:
    match value:
        case None:
            return "null"
        case bool():
            return "bool"
        case int() | float():
            return "number"
        case str():
            return "str"
        case list() | tuple():
            return "list"
    return "dict"


def length_of(value: Any) -> int:
    return len(value) if isinstance(value, (str, list, tuple, dict)) else 1
