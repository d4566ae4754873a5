"""What sources in many languages define, call and import."""

from pathlib import Path

import msgspec
import pytest

from codewhale.codesearch.grammars import unpack
from codewhale.codesearch.languages import Languages
from codewhale.codesearch.model import ParsedSource
from codewhale.codesearch.source import SourceReader
from codewhale.codesearch.terms import as_written
from support.likeness import word_rows


class Sample(msgspec.Struct, frozen=True):
    """A small source: `defines` is "kind scope.name" in the order of lines; `calls` and `imports` are some that must be
    among those found."""

    path: str
    text: list[str]
    defines: list[str]
    calls: list[str]
    imports: list[str]


SAMPLES = msgspec.json.decode(Path(__file__).with_name("samples.json").read_bytes(), type=list[Sample])


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> SourceReader:
    folder = str(tmp_path_factory.mktemp("state") / "grammars")
    languages = Languages()
    unpack(folder, languages, languages.parsed)
    return SourceReader(folder)


def read(sources: SourceReader, path: str, text: str) -> tuple[ParsedSource, set[str]]:
    """The source and the names it calls."""
    source = sources.read(path, text.encode())
    return source, {name for *_, calls in word_rows(source.words) for name in calls.split(" ")}


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: Path(sample.path).name)
def test_what_a_source_defines_calls_and_imports(sources: SourceReader, sample: Sample) -> None:
    source, calls = read(sources, sample.path, "\n".join(sample.text))
    found = [f"{s.kind} {s.scope}.{s.name}".replace(" .", " ") for _, s in source.symbols]
    assert found == sample.defines
    assert {as_written(name) for name in sample.calls} <= calls
    assert set(sample.imports) <= {target.removeprefix("import ") for _, target in source.imports}


def test_there_are_twenty_languages_and_more() -> None:
    assert len(SAMPLES) >= 20


def test_lines_are_those_of_the_definition(sources: SourceReader) -> None:
    source, _ = read(sources, "a.py", "\n\ndef one():\n    pass\n\n\nclass Two:\n    def three(self):\n        pass\n")
    assert [(s.name, s.line, s.end_line) for _, s in source.symbols] == [
        ("one", 3, 4),
        ("Two", 7, 9),
        ("three", 8, 9),
    ]


def test_what_is_local_to_a_function_is_no_constant(sources: SourceReader) -> None:
    text = "def big():\n" + "    inner = 1\n" * 400
    source, _ = read(sources, "a.py", text)
    assert [s.name for _, s in source.symbols] == ["big"]


def test_functions_in_a_wrapped_module_are_found(sources: SourceReader) -> None:
    text = "(function (root) {\n" + "  function deep() { return 1; }\n" * 150 + "})(this);\n"
    source, _ = read(sources, "a.js", text)
    assert {s.name for _, s in source.symbols} == {"deep"} and len(source.symbols) == 150


def test_a_broken_source_still_gives_what_can_be_read(sources: SourceReader) -> None:
    source, _ = read(sources, "a.py", "def good():\n    return 1\n\ndef bad(:\n  )))\n\nclass Also:\n    pass\n")
    assert "good" in {s.name for _, s in source.symbols}
