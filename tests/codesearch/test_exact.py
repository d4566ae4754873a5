"""Lines that hold a query as it is."""

import asyncio
from pathlib import Path

from codewhale.codesearch.exact import MOST_LINES, exact_lines
from codewhale.codesearch.query import read_query
from codewhale.codesearch.rank import Ranker
from codewhale.codesearch.terms import Terms
from support.searchtree import FILES, indexed


def found(folder: Path, text: str, after: dict[str, str] | None = None) -> dict[str, list[int]]:
    """What is found of a text in the planted tree, some files written again after it was indexed."""
    index, reader = indexed(folder)
    terms = Terms()
    for path, changed in (after or {}).items():
        (Path(index.root) / path).write_text(changed, "utf-8")
    try:
        return asyncio.run(exact_lines(reader, index.root, read_query(text, terms), terms))
    finally:
        reader.close()


def grep(text: str) -> dict[str, list[int]]:
    """What grep says of the planted tree."""
    held = {
        path: [number for number, line in enumerate(body.split("\n"), start=1) if text in line]
        for path, body in FILES.items()
    }
    return {path: lines for path, lines in held.items() if lines}


def test_it_finds_what_grep_finds(tmp_path: Path) -> None:
    for text in (
        "expired token",
        "class TokenStore:",
        "2**attempt",
        "providers",
        "(self, client: str)",
        "MAX_BURST_CALLS",
    ):
        assert found(tmp_path, text) == grep(text) != {}


def test_case_counts_and_words_apart_do_not(tmp_path: Path) -> None:
    assert found(tmp_path, "tokenstore") == {}
    assert found(tmp_path, "token expired") == {}


def test_a_piece_of_a_word_and_a_text_without_words_are_found(tmp_path: Path) -> None:
    for text in ("esh_toke", "_with_back", "=>", "2**"):
        assert found(tmp_path, text) == grep(text)
    (tmp_path / "tree" / "pinned.txt").write_text("sum\ndeadbeefdeadbeefdeadbeef\n", "utf-8")
    assert found(tmp_path, "deadbeefdeadbeef") == {"pinned.txt": [2]}


def test_the_file_as_it_is_now_decides(tmp_path: Path) -> None:
    assert found(tmp_path, "wait = 2", after={"src/net/retry.py": "wait = 3\n"}) == {}


def test_lines_are_bounded(tmp_path: Path) -> None:
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree" / "many.py").write_text("magic_constant = 1\n" * 500, "utf-8")
    assert found(tmp_path, "magic_constant") == {"many.py": list(range(1, MOST_LINES + 1))}


def test_a_query_of_nothing_or_over_lines_finds_nothing(tmp_path: Path) -> None:
    assert found(tmp_path, "  ") == {} == found(tmp_path, "class TokenStore:\n    pass")


def test_a_piece_of_a_word_among_other_words_is_found(tmp_path: Path) -> None:
    for text in ("ken when the ol", "oken = 1\nx", "the refresh tok"):
        assert found(tmp_path, text) == grep(text)
    assert found(tmp_path, "ken when the ol") != {}


def test_a_text_that_is_not_indexed_is_searched_too(tmp_path: Path) -> None:
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree" / "logo.svg").write_text("var a=1;" * 9000 + "throw('no such whale here');\n", "utf-8")
    assert found(tmp_path, "('no such whale here')") == {"logo.svg": [1]}


def test_a_literal_loses_no_file_that_holds_it(tmp_path: Path) -> None:
    """Where no more files hold a text than may be returned, all of them are."""
    (tmp_path / "tree").mkdir()
    for number in range(30):
        (tmp_path / "tree" / f"part_{number}.py").write_text(
            f"def part_{number}():\n    '''Widgets of part {number}.'''\n"
        )
    holding = {f"part_{number}.py" for number in range(0, 30, 4)}
    for name in holding:
        with (tmp_path / "tree" / name).open("a") as file:
            file.write("# see idget-polish\n")
    index, reader = indexed(tmp_path)
    ranker = Ranker(reader)
    for text in ("dget-pol", "idget-polish", "# see idget-pol"):
        lines = asyncio.run(exact_lines(reader, index.root, read_query(text, ranker.terms), ranker.terms))
        assert set(lines) == holding
        assert {hit.path for hit in ranker.search(text, len(holding), exact=lines).hits} == holding
    reader.close()
