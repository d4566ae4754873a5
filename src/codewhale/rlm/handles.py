"""Values that are kept for a conversation: each an artifact, under a number that no later one takes."""

from collections.abc import Mapping
from typing import Any

import msgspec

from codewhale.process.artifacts import ArtifactStore
from codewhale.protocol.handles import PREVIEW, ValueType, VarHandle


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
