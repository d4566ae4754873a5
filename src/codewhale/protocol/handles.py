"""A value that is kept whole and read in parts: what results give in its place."""

from typing import Literal

from msgspec import Struct

ValueType = Literal["str", "list", "dict", "bool", "number", "null"]
PREVIEW = 160


class VarHandle(Struct, frozen=True, tag_field="kind", tag="var_handle"):
    """A value of a session: `name` is its name there, never used twice; its written form is `session_id/name`. The
    artifact `sha256` holds it, a text as UTF-8, anything else as JSON. `length` is in characters for a text, in members
    for a list or a dict, else 1; `repr_preview` is its beginning."""

    session_id: str
    name: str
    type: ValueType
    length: int
    repr_preview: str
    sha256: str
