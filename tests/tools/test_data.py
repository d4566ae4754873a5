import asyncio
from pathlib import Path
from typing import Any

import pytest

from codewhale.process.artifacts import ArtifactStore
from codewhale.protocol.errors import ToolError
from codewhale.protocol.tools import PathSubject
from codewhale.tools.base import bound
from codewhale.tools.data import DataTools
from codewhale.workspace.files import Workspaces
from support.calls import call, context, payload, refused
from support.patience import Moment


@pytest.fixture
def data(tmp_path: Path) -> DataTools:
    return DataTools(Workspaces(ArtifactStore(str(tmp_path / "artifacts"))))


def verdict(data: DataTools, text: str, **arguments: Any) -> dict[str, Any]:
    result = call(data, "validate_data", {"content": text, **arguments})
    found: dict[str, Any] = payload(result)
    assert result.ok == found["valid"]
    assert result.metadata == found
    return found


@pytest.mark.parametrize(
    ("text", "kind", "summary"),
    [
        ('{"a": 1, "b": [2]}', "json", "object with 2 keys: a, b"),
        ("[1, 2.5, null]", "json", "array of 3 items (null, number)"),
        ("[]", "json", "array of 0 items"),
        ('"x"', "json", "string"),
        ("9" * 10_000, "json", "number"),
        ('[tool]\nname = "x"', "toml", "object with 1 keys: tool"),
        ("[1]\na = 2", "toml", "object with 1 keys: 1"),
        ("a = 1979-05-27", "toml", "object with 1 keys: a"),
    ],
)
def test_validate_data_tells_what_parses(data: DataTools, text: str, kind: str, summary: str) -> None:
    found = verdict(data, text)
    assert found == {"valid": True, "format": kind, "source": "content", "summary": summary}


@pytest.mark.parametrize(
    ("text", "kind", "line", "column"),
    [
        ('{"a": 1,\n "b": }', "json", 2, 7),
        ('{"a": 1} extra', "json", 1, 10),
        ('a = 1\nb = "x\n', "toml", 2, 7),
        ("a = 1\na = 2", "toml", 2, 6),
        ("", "json", 1, 1),
    ],
)
def test_where_it_does_not_parse(data: DataTools, text: str, kind: str, line: int, column: int) -> None:
    found = verdict(data, text, **({"format": kind} if not text else {}))
    assert (found["valid"], found["format"]) == (False, kind)
    assert (found["error"]["line"], found["error"]["column"]) == (line, column)
    assert found["error"]["text"] == (text.split("\n") or [""])[line - 1]


def test_json_is_strict(data: DataTools) -> None:
    for text in ('{"a": NaN}', "[1,]", "// x\n{}", "[" * 100_000, "{'a': 1}"):
        assert not verdict(data, text, format="json")["valid"], text[:20]


def test_a_file_goes_by_its_ending(data: DataTools, tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text('{"json": true}')
    (tmp_path / "b.json").write_bytes(b'{"a": "\xff"}')
    found = payload(call(data, "validate_data", {"path": "a.toml"}, context(tmp_path)))
    assert (found["valid"], found["format"], found["source"]) == (False, "toml", "a.toml")
    found = payload(call(data, "validate_data", {"path": "a.toml", "format": "json"}, context(tmp_path)))
    assert found["valid"]
    found = payload(call(data, "validate_data", {"path": "b.json"}, context(tmp_path)))
    assert "not UTF-8" in found["error"]["message"]


def test_exactly_one_source(data: DataTools, tmp_path: Path) -> None:
    both = refused(data, "validate_data", {"path": "a.json", "content": "{}"})
    assert both.fix is not None
    assert both.fix.arguments == {"content": "{}"}
    assert call(data, both.fix.name, both.fix.arguments).ok
    assert refused(data, "validate_data", {}).received == "neither"


def test_a_path_outside_is_refused(data: DataTools, tmp_path: Path) -> None:
    with pytest.raises(ToolError) as caught:
        call(data, "validate_data", {"path": "../x.json"}, context(tmp_path))
    assert caught.value.kind == "path_escape"
    decl = bound(data)["validate_data"].decl
    assert decl.parallel
    args = bound(data)["validate_data"].args(path="x.json")  # type: ignore[call-arg]
    assert decl.subjects(args) == (PathSubject("x.json"),)


@pytest.mark.slow
@pytest.mark.parametrize("text", ["[" + '{"":[]},' * 2_050_000 + "0]"], ids=["objects"])
def test_data_that_a_parser_cannot_stand_is_given_up(data: DataTools, tmp_path: Path, text: str) -> None:
    (tmp_path / "data").write_text(text)
    began = Moment()
    error = refused(data, "validate_data", {"path": "data"}, context(tmp_path))
    assert error.kind in ("timeout", "execution_failed") and "too large or nested too deeply" in str(error)
    assert not began.hung


async def test_a_cancel_does_not_wait_for_the_parser(data: DataTools, tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text(".".join(["a"] * 100_000) + " = 1")
    tool = bound(data)["validate_data"]
    task = asyncio.ensure_future(tool.run(tool.args(path="a.toml"), context(tmp_path)))  # type: ignore[call-arg]
    await asyncio.sleep(0.5)
    began = Moment()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not began.hung
