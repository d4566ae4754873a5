"""What ranking reads from an index."""

from pathlib import Path

import pytest

from codewhale.codesearch.build import CodeIndex, refresh
from codewhale.codesearch.model import BODY, CALL
from codewhale.codesearch.reader import IndexReader
from codewhale.codesearch.store import IndexDamagedError
from support.codetree import grammars

FILES = {
    "app/keys.py": "import os\n\n\ndef resolve_key(env):\n    return env\n",
    "app/main.py": "from app.keys import resolve_key\n\n\nclass Main:\n    def run(self):\n        return resolve_key({})\n",  # noqa: E501
    "notes.md": "The keys are kept in the harbour.\n",
    "empty.py": "",
}


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("grammars")


@pytest.fixture
async def index(tmp_path: Path, unpacked: Path) -> CodeIndex:
    for path, text in FILES.items():
        (tmp_path / "tree" / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "tree" / path).write_text(text)
    made = grammars(CodeIndex(str(tmp_path / "tree"), str(tmp_path / "home")), unpacked)
    await refresh(made)
    return made


def where(reader: IndexReader, field: str, term: str) -> list[str]:
    return [reader.paths[reader.chunk_file[chunk]] for chunk in reader.postings(field, term)[0]]


async def test_postings_lengths_and_files(index: CodeIndex) -> None:
    reader = IndexReader(index.open())
    assert reader.paths == ["app/keys.py", "app/main.py", "empty.py", "notes.md"]
    assert where(reader, BODY, "harbour") == ["notes.md"] and where(reader, BODY, "nothing") == []
    assert sorted(where(reader, BODY, "key")) == ["app/keys.py", "app/main.py", "notes.md"]
    assert where(reader, CALL, "resolve_key") == ["app/main.py"]
    assert reader.chunk_count == 4 and float(reader.lengths(BODY).sum()) > 10
    assert reader.names_with_prefix("res") == ["resolvekey"] and reader.names_with_prefix("zz") == []
    reader.close()


async def test_definitions_imports_and_chunks(index: CodeIndex) -> None:
    reader = IndexReader(index.open())
    assert [(reader.paths[file], s.name) for file, s in reader.defined("resolve_key")] == [
        ("app/keys.py", "resolve_key")
    ]
    assert reader.defined("ResolveKey") == [] and len(reader.defined("ResolveKey", fold=True)) == 1
    assert [s.scope for _, s in reader.defined("Main.run")] == ["Main"]
    assert (reader.imports(0), reader.imports(1)) == ([(1, "os")], [(1, "app.keys")])
    chunk = reader.chunk(reader.files[1].first)
    assert (chunk.kind, chunk.symbol, chunk.line, chunk.end_line) == ("class", "Main", 1, 6)
    reader.close()


async def test_what_has_changed_is_gone_and_a_reader_keeps_its_state(index: CodeIndex) -> None:
    old = IndexReader(index.open())
    (Path(index.root) / "notes.md").write_text("The keys are kept in the lighthouse.\n")
    await refresh(index)
    new = IndexReader(index.open())
    assert where(old, BODY, "harbour") == ["notes.md"] and where(old, BODY, "lighthous") == []
    assert where(new, BODY, "harbour") == [] and where(new, BODY, "lighthous") == ["notes.md"]
    assert new.generation > old.generation and new.chunk_count == 4
    old.close()
    new.close()


async def test_touches_are_read(index: CodeIndex) -> None:
    store = index.open()
    store.touch(["notes.md"], 7)
    store.close()
    reader = IndexReader(index.open())
    assert [(touch.path, touch.count) for touch in reader.touches()] == [("notes.md", 1)]
    assert reader.commit_count == 0 and len(reader.history("x")[0]) == 0
    reader.close()


@pytest.mark.parametrize(
    "harm",
    [
        "UPDATE words_data SET block = x'ff0000ff' || substr(block, 5) WHERE id > 10",
        "DELETE FROM words_data WHERE id > 10",
    ],
)
async def test_words_that_were_altered_are_said_to_be_damaged(index: CodeIndex, harm: str) -> None:
    store = index.open()
    with store.writing() as db:
        db.execute(harm)
    store.close()
    reader = IndexReader(index.open())
    with pytest.raises(IndexDamagedError):
        for term in ("harbour", "key", "env"):
            reader.postings(BODY, term)
    reader.close()


async def test_chunks_that_are_missing_are_said_to_be_damaged(index: CodeIndex) -> None:
    store = index.open()
    with store.writing() as db:
        db.execute("DELETE FROM chunks WHERE file = 1")
    with pytest.raises(IndexDamagedError, match="missing"):
        IndexReader(store)
    store.close()


async def test_names_that_are_called_keep_case_and_punctuation(index: CodeIndex) -> None:
    (Path(index.root) / "a.rb").write_text("def go\n  save!(2)\n  empty?(3)\nend\n")
    (Path(index.root) / "b.py").write_text("Save(1)\n")
    await refresh(index)
    reader = IndexReader(index.open())
    assert where(reader, CALL, "save!") == where(reader, CALL, "empty?") == ["a.rb"]
    assert where(reader, CALL, "Save") == ["b.py"] and where(reader, CALL, "save") == []
    reader.close()
