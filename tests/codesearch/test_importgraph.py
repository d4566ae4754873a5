"""The import graph is the same whether it was followed from state to state or read at once."""

import asyncio
from pathlib import Path

from codewhale.codesearch.build import CodeIndex, refresh
from codewhale.codesearch.importgraph import ImportGraph
from codewhale.codesearch.reader import IndexReader
from support.searchtree import indexed


def read(index: CodeIndex) -> IndexReader:
    asyncio.run(refresh(index, commits=()))
    return IndexReader(index.open())


def named(reader: IndexReader, graph: ImportGraph) -> dict[str, list[str]]:
    return {
        reader.paths[file]: [reader.paths[user] for user in users] for file, users in sorted(graph.importers().items())
    }


def test_it_says_who_imports_whom(tmp_path: Path) -> None:
    _, reader = indexed(tmp_path)
    graph = ImportGraph()
    assert graph.update(reader) > 0
    assert named(reader, graph) == {"src/auth/token_store.py": ["src/auth/provider.py", "tests/test_token_store.py"]}
    reader.close()


def test_only_what_changed_is_resolved_again_and_the_rest_stays_true(tmp_path: Path) -> None:
    index, reader = indexed(tmp_path)
    graph = ImportGraph()
    graph.update(reader)
    assert graph.update(reader) == 0
    reader.close()
    tree = tmp_path / "tree"
    (tree / "src/net/retry.py").write_text("from net.rate_limiter import RateLimiter\n")
    reader = read(index)
    assert graph.update(reader) == 1
    assert named(reader, graph)["src/net/rate_limiter.py"] == ["src/net/retry.py"]
    reader.close()
    (tree / "src/auth/token_store.py").rename(tree / "src/auth/tokens.py")
    (tree / "src/auth/provider.py").write_text("from auth.tokens import TokenStore\n")
    reader = read(index)
    assert graph.update(reader) > 1
    anew = ImportGraph()
    anew.update(reader)
    assert graph.importers() == anew.importers()
    assert named(reader, graph)["src/auth/tokens.py"] == ["src/auth/provider.py"]
    reader.close()
