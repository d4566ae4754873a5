"""What every dialect in the table promises: the same input gives the same bytes, and bodies only grow."""

import json
from itertools import pairwise

import pytest

from codewhale.models.build import DIALECTS, build_dialect
from codewhale.models.dialects.base import ProviderSettings, RequestOptions
from codewhale.protocol.messages import Message, ResultPart, Text, ToolCall

TALK = (
    Message("user", (Text("look"),)),
    Message("assistant", (Text("Looking."), ToolCall("c1", "list_dir", '{"path":"."}'))),
    Message("tool", (ResultPart("c1", "a.py"),)),
    Message("assistant", ()),
    Message("assistant", (Text("There is a.py."),)),
)


@pytest.mark.parametrize("name", sorted(DIALECTS))
def test_bodies_are_pure_and_append_only(name: str) -> None:
    settings = ProviderSettings(dialect=name)
    bodies = []
    for count in range(len(TALK) + 1):
        dialect = build_dialect("p", settings)
        wire = [data for message in TALK[:count] if (data := dialect.message(message, lambda image: b""))]
        bodies.append(dialect.body("m", "Be brief.", dialect.tools_json(()), [b",".join(wire)], RequestOptions(10)))
        again = [data for message in TALK[:count] if (data := dialect.message(message, lambda image: b""))]
        assert wire == again
        assert dialect.name == name
        assert json.loads(bodies[-1])["model"] == "m"
    for shorter, longer in pairwise(bodies):
        assert longer.startswith(shorter[: shorter.rindex(b"]", 0, shorter.index(b',"max_'))])
