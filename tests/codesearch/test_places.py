"""The place in a file that is shown."""

from pathlib import Path

from codewhale.codesearch.corpus import Corpus
from codewhale.codesearch.evidence import Evidence
from codewhale.codesearch.places import BestPlace, best_place
from codewhale.codesearch.query import read_query
from codewhale.codesearch.terms import Terms
from support.searchtree import index_of

FILLER = "".join(f"    step_{number} = prepare({number})\n" for number in range(40))
TEXT = "\n\n".join(
    f"{head}\n{FILLER}"
    for head in ("def alpha_parser(text):", "def beta_writer(file):", "class GammaCache:\n    def evict(self):")
)


def place(folder: Path, text: str, kind: str = "", exact: tuple[int, ...] = ()) -> BestPlace:
    (folder / "tree").mkdir(exist_ok=True)
    (folder / "tree" / "parts.py").write_text(TEXT, "utf-8")
    reader = index_of(folder)
    try:
        return best_place(Evidence(Corpus(reader, Terms()), read_query(text, Terms())), 0, kind, exact)
    finally:
        reader.close()


def line_of(text: str) -> int:
    return TEXT[: TEXT.index(text)].count("\n") + 1


def test_the_stretch_that_speaks_of_the_query(tmp_path: Path) -> None:
    found = place(tmp_path, "how is beta written by a writer")
    assert found.symbol == "beta_writer" and found.line <= line_of("def beta_writer") <= found.end_line


def test_a_definition_asked_for_by_name(tmp_path: Path) -> None:
    assert place(tmp_path, "GammaCache").line == line_of("class GammaCache")


def test_a_line_that_holds_the_query(tmp_path: Path) -> None:
    line = line_of("def alpha_parser") + 3
    assert place(tmp_path, "prepare(2)", exact=(line,)).line == line


def test_a_definition_of_a_kind(tmp_path: Path) -> None:
    found = place(tmp_path, "evict the parser", kind="class")
    assert (found.kind, found.symbol, found.line) == ("class", "GammaCache", line_of("class GammaCache"))
    found = place(tmp_path, "parser", kind="fn")
    assert (found.symbol, found.line) == ("alpha_parser", 1)


def test_tests_that_stand_in_the_file_come_after_what_they_test(tmp_path: Path) -> None:
    (tmp_path / "tree").mkdir()
    body = "".join(f"    let step_{number} = prepare({number});\n" for number in range(40))
    code = f"pub fn open_vault(path: &str) {{\n    let vault = path;\n{body}}}\n\n"
    tests = (
        f"#[cfg(test)]\nmod tests {{\n    fn open_vault_opens_a_vault() {{\n    open_vault(vault);\n{body}    }}\n}}\n"
    )
    (tmp_path / "tree" / "vault.rs").write_text(code + tests)
    reader = index_of(tmp_path)
    evidence = Evidence(Corpus(reader, Terms()), read_query("how does a vault open", Terms()))
    assert best_place(evidence, 0, "", ()).line == 1
    evidence = Evidence(Corpus(reader, Terms()), read_query("which tests open a vault", Terms()))
    assert best_place(evidence, 0, "", ()).line > code.count("\n") - 2
    reader.close()
