"""The short way of a call: what is right as it came is taken, all else is left for repair."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from codewhale.catalog.schema import doubled, right_already, whole
from codewhale.protocol.tools import Effect, ToolSpec
from support.patience import HANG

SPEC = ToolSpec(
    name="look",
    family="",
    description="",
    parameters={
        "type": "object",
        "properties": {
            "path": {"type": "string"},
            "lines": {"type": "integer"},
            "edits": {"type": "array", "items": {"type": "object", "properties": {"at": {"type": "integer"}}}},
        },
        "required": ["path"],
        "additionalProperties": False,
    },
    effects=(Effect.READS,),
)


@pytest.mark.parametrize(
    ("raw", "value"),
    [
        ('{"path": "a.txt"}', {"path": "a.txt"}),
        (' {"path":"a.txt","lines":5.0}\n', {"path": "a.txt", "lines": 5}),
        ('{"path": "the \\"path\\" of it: path"}', {"path": 'the "path" of it: path'}),
        ('{"path": "see file:///x"}', {"path": "see file:///x"}),
        ('{"path": "path", "edits": [{"at": 1}, {"at": 2}]}', None),
        ('{"path": "a", "edits": [{"at": 1}, {"at": 2}]}', {"path": "a", "edits": [{"at": 1}, {"at": 2}]}),
    ],
)
def test_what_is_right_or_looks_odd(raw: str, value: dict[str, Any] | None) -> None:
    assert right_already(raw, SPEC) == value


@pytest.mark.parametrize(
    "raw",
    [
        "", "null", "[]", '"x"', "{}", '{"path": 5}', '{"path": "a", "lines": null}', '{"path": "a", "other": 1}',
        '{"path": "a", "edits": [{"at": null}]}', '{"path": "file:///a"}', '{"path": "a", "path": "b"}', '{"path": "a"',
        '{"path": "a"}}', '{"path": "\\ud800"}', "[" * 5000, '{"lines": 1e999}',
    ],
)  # fmt: skip
def test_what_is_left_for_repair(raw: str) -> None:
    assert right_already(raw, SPEC) is None


def test_whole_numbers_are_integers() -> None:
    told = whole({"a": 5.0, "b": [1.0, 1.5, {"c": -2.0}], "d": 1e300, "e": True, "f": "1.0"})
    assert repr(told) == "{'a': 5, 'b': [1, 1.5, {'c': -2}], 'd': 1e+300, 'e': True, 'f': '1.0'}"


def test_keys_that_came_twice() -> None:
    assert doubled('{"a": 1, "a": 1}', {"a": 1})
    assert not doubled('{"a": "a and \\"a\\"", "b": 1}', {"a": "", "b": 1})
    assert doubled('[{"a": 1}]', [{}]) and not doubled("[1]", [1])


def test_a_right_call_of_any_tool_of_ours_loads_no_validator() -> None:
    program = """
import json, sys
sys.path[:0] = json.loads(sys.argv[1])
from codewhale.catalog.registry import Catalog
from codewhale.catalog.schema import right_already
from support.schemavalues import sample
rows = Catalog.load().rows.values()
assert right_already('{"path": "a.pdf", "pages": "1-3"}', Catalog.load().rows["read_file"])
assert right_already('{"path": "a.pdf", "pages": "x"}', Catalog.load().rows["read_file"]) is None
for row in rows:
    right_already(json.dumps(sample(row.parameters)), row)
print("jsonschema_rs" in sys.modules)
"""
    path = json.dumps([str(Path(__file__).parent.parent)])
    done = subprocess.run([sys.executable, "-c", program, path], capture_output=True, text=True, timeout=HANG)
    assert (done.stdout, done.stderr) == ("False\n", "")
