"""The map of a tree: what it names, that it fits, that the same tree has the same map."""

import asyncio
from pathlib import Path

import pytest

from codewhale.codesearch.build import CodeIndex, refresh
from codewhale.codesearch.codemap import BYTES_A_TOKEN, CodeMaps, code_map
from codewhale.codesearch.importgraph import ImportGraph
from codewhale.codesearch.reader import IndexReader
from codewhale.codesearch.search import CodeSearch
from support.searchtree import indexed, planted


def drawn(index: CodeIndex, **given: int) -> str:
    asyncio.run(refresh(index, commits=()))
    reader, graph = IndexReader(index.open()), ImportGraph()
    try:
        graph.update(reader)
        return code_map(reader, graph, **given)
    finally:
        reader.close()


def test_folders_files_and_definitions_are_named(tmp_path: Path) -> None:
    index, reader = indexed(tmp_path)
    reader.close()
    lines = drawn(index).splitlines()
    assert lines[0].startswith("8 files in 6 folders: python 5")
    assert "src/auth/ (2 files)" in lines
    assert lines[lines.index("src/auth/ (2 files)") + 2] == "  token_store.py: TokenStore(refresh_token)"
    assert "  session.ts: SavedSession, SessionStore(save)" in lines
    assert not any("MAX_BURST_CALLS" in line or "__init__" in line for line in lines)


def test_what_others_use_comes_before_what_none_does(tmp_path: Path) -> None:
    tree = planted(tmp_path)
    for number in range(60):
        (tree / f"src/auth/leaf_{number:02}.py").write_text(f"def leaf_{number}_of_the_tree() -> None:\n    pass\n")
    for number in range(5):
        text = "from auth.provider import resolve_provider\n\nresolve_provider(1, 2)\n"
        (tree / f"src/net/user{number}.py").write_text(text)
    shown = drawn(CodeIndex(str(tree), str(tmp_path / "state"), workers=1), tokens=150)
    assert "provider.py: resolve_provider" in shown and "token_store.py" in shown
    assert "leaf_59" not in shown and "src/auth/ (62 files)" in shown


@pytest.mark.parametrize("tokens", [1, 20, 60, 200, 1500])
def test_it_keeps_within_its_budget(tmp_path: Path, tokens: int) -> None:
    tree = planted(tmp_path)
    (tree / ("ü" * 60)).mkdir()
    (tree / ("ü" * 60) / "größe.py").write_text("def größe() -> int:\n    return 1\n")
    (tree / "two\nlines.py").write_text("def odd() -> int:\n    return 1\n")
    shown = drawn(CodeIndex(str(tree), str(tmp_path / "state"), workers=1), tokens=tokens)
    assert len(shown.encode()) <= tokens * BYTES_A_TOKEN
    assert "two\nlines" not in shown


def test_following_the_tree_gives_the_bytes_of_a_map_made_anew(tmp_path: Path) -> None:
    _, reader = indexed(tmp_path)
    reader.close()
    search = CodeSearch(str(tmp_path / "state"))
    tree = tmp_path / "tree"

    async def follow() -> list[str]:
        maps, shown = CodeMaps(search), []
        for text in ("", "from net.retry import retry_with_backoff\n", "def other() -> None: ...\n"):
            (tree / "src/net/more.py").write_text(text)
            for _ in range(2):
                found = await maps.show(str(tree))
                assert found is not None and found[1] == ()
                shown.append(found[0])
        await search.aclose()
        return shown

    shown = asyncio.run(follow())
    assert shown[0::2] == shown[1::2] and len(set(shown)) == 2
    assert shown[-1] == drawn(CodeIndex(str(tree), str(tmp_path / "anew"), workers=1))
    assert "more.py: other" in shown[-1]


def test_the_body_of_a_function_moves_nothing(tmp_path: Path) -> None:
    index, reader = indexed(tmp_path)
    reader.close()
    before = drawn(index)
    file = tmp_path / "tree/src/net/retry.py"
    file.write_text(file.read_text().replace("wait = 2**attempt", "wait = 3**attempt\n            print(wait)"))
    assert drawn(index) == before


def test_no_index_is_built_for_a_map(tmp_path: Path) -> None:
    tree = planted(tmp_path)
    search = CodeSearch(str(tmp_path / "state"))
    assert asyncio.run(CodeMaps(search).show(str(tree))) is None
    assert not search.is_indexed(str(tree))
