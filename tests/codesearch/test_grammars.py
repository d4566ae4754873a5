"""Grammars as they are unpacked and loaded."""

from pathlib import Path

import pytest
from tree_sitter import Query

from codewhale.codesearch.grammars import Grammars, unpack
from codewhale.codesearch.languages import Languages

LANGUAGES = Languages()


@pytest.fixture(scope="module")
def grammars(tmp_path_factory: pytest.TempPathFactory) -> Grammars:
    folder = str(tmp_path_factory.mktemp("state") / "grammars")
    unpack(folder, LANGUAGES, LANGUAGES.parsed)
    return Grammars(folder, LANGUAGES)


@pytest.mark.parametrize("language", sorted(LANGUAGES.parsed))
def test_each_language_has_its_grammar_and_every_node_type_of_the_table(grammars: Grammars, language: str) -> None:
    import semble_grammars

    assert grammars.of(language) is not None
    row = LANGUAGES.parsed[language]
    grammar = semble_grammars.get_language(row.grammar or language)
    known = {grammar.node_kind_for_id(number) for number in range(grammar.node_kind_count)}
    assert set(row.definitions) <= known
    assert Query(grammar, "\n".join(row.query)).capture_count >= 1


def test_what_has_no_grammar_is_done_without(grammars: Grammars) -> None:
    assert grammars.of("text") is None and grammars.of("") is None


def test_unpacking_is_done_once_and_for_the_owner_alone(tmp_path: Path) -> None:
    folder = tmp_path / "grammars"
    place = Path(unpack(str(folder), LANGUAGES, ["python", "go", "text"]))
    libraries = [path for path in place.rglob("*") if path.is_file()]
    assert len(libraries) == 2 and folder.stat().st_mode & 0o77 == 0
    before = {path: path.stat().st_mtime_ns for path in libraries}
    unpack(str(folder), LANGUAGES, ["python", "go", "rust"])
    assert {path: path.stat().st_mtime_ns for path in libraries} == before
    assert len([path for path in place.rglob("*") if path.is_file()]) == 3


def test_a_folder_that_cannot_be_written_leaves_files_without_grammar(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert Grammars(str(tmp_path / "file" / "grammars"), LANGUAGES).of("python") is None
