"""code_symbols and code_history over a real tree and its repository."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from codewhale.codesearch.search import CodeSearch
from codewhale.tools.codesymbols import CodeSymbolTools
from support.calls import call, context, payload, refused
from support.repos import make_repo

FILES = {
    "app/keys.py": "def resolve(name):\n    return name\n",
    "app/main.py": "from app.keys import resolve\n\n\ndef start():\n    return resolve('x')\n",
}


@pytest.fixture
def tools(tmp_path: Path) -> Iterator[CodeSymbolTools]:
    make_repo(tmp_path / "repo", FILES)
    search = CodeSearch(str(tmp_path / "home"))
    yield CodeSymbolTools(search)
    asyncio.run(search.aclose())


def test_symbols_are_told_with_their_places(tools: CodeSymbolTools, tmp_path: Path) -> None:
    result = call(tools, "code_symbols", {"symbol": "resolve", "relation": "callers"}, context(tmp_path / "repo"))
    (row,) = payload(result)["results"]
    assert (row["path"], row["line"], row["inside"], row["certain"]) == ("app/main.py", 5, "start", True)
    assert row["text"] == "return resolve('x')" and "app/keys.py" in row["why"]
    assert result.metadata == {"results": 1, "total": 1, "complete": True}
    assert result.display[0].rows == (("app/main.py:5", "start", "return resolve('x')"),)  # type: ignore[union-attr]


def test_files_are_named_by_path_and_a_wrong_one_is_put_right(tools: CodeSymbolTools, tmp_path: Path) -> None:
    at = context(tmp_path / "repo")
    result = call(tools, "code_symbols", {"symbol": "app/keys.py", "relation": "importers"}, at)
    assert [row["path"] for row in payload(result)["results"]] == ["app/main.py"]
    error = refused(tools, "code_symbols", {"symbol": "lib/keys.py", "relation": "imports"}, at)
    assert error.fix is not None and error.fix.arguments == {"symbol": "app/keys.py", "relation": "imports"}
    error = refused(tools, "code_symbols", {"symbol": "none.py", "relation": "imports"}, at)
    assert error.fix is None and error.look is not None and error.look.name == "file_search"
    with pytest.raises(msgspec.ValidationError):
        call(tools, "code_symbols", {"symbol": "x", "relation": "friends"}, at)


def test_nothing_found_is_an_answer(tools: CodeSymbolTools, tmp_path: Path) -> None:
    result = call(tools, "code_symbols", {"symbol": "nowhere_to_be_found"}, context(tmp_path / "repo"))
    assert payload(result) == {
        "name": "nowhere_to_be_found", "relation": "definitions", "total": 0, "results": [],
    }  # fmt: skip


def test_history_tells_commits(tools: CodeSymbolTools, tmp_path: Path) -> None:
    result = call(tools, "code_history", {"query": "keys", "max_results": 5}, context(tmp_path / "repo"))
    (row,) = payload(result)["results"]
    assert len(row["sha"]) == 40 and row["paths"][0] == "app/keys.py" and row["matched"] == ["keys"]
    nothing = payload(call(tools, "code_history", {"query": "zebra"}, context(tmp_path / "repo")))
    assert nothing["results"] == [] and "Use other words" in nothing["hint"]


def test_an_index_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "home").write_text("a file where a folder should be")
    (tmp_path / "work").mkdir()
    tools = CodeSymbolTools(CodeSearch(str(tmp_path / "home")))
    for name, arguments in (("code_symbols", {"symbol": "x y"}), ("code_history", {"query": "x"})):
        error = refused(tools, name, arguments, context(tmp_path / "work"))
        assert error.kind == "not_available" and error.look is not None and error.look.name == "grep_files"
