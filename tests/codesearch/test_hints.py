"""Nothing was found: what is said names the part of the question that left out everything, and what to ask instead."""

from pathlib import Path

import pytest

from codewhale.codesearch.render import filter_of, render_json, render_text
from codewhale.codesearch.search import CodeSearch
from support.searchtree import planted


@pytest.mark.parametrize(
    ("query", "path_glob", "lang", "kind", "said"),
    [
        (
            "token",
            "lib/auth/**",
            "",
            "",
            "path_glob lib/auth/** matches none of the 8 files. Do you mean src/auth/**?",
        ),
        (
            "token",
            "elsewhere/*.py",
            "",
            "",
            "path_glob elsewhere/*.py matches none of the 8 files. Leave path_glob out",
        ),
        ("token", "[*", "", "", "path_glob [* matches none of the 8 files. Leave path_glob out"),
        ("token", "", "rust", "", "No file is in rust: python "),
        ("token", "src/**", "markdown", "", "No file in src/** is in markdown: python "),
        ("token", "", "", "trait", "No file here that defines a trait contains a query word. Leave kind out"),
        ("zzqx", "", "", "", "No file here contains a query word."),
        ("zzqx", "src/**", "", "", "No file in src/** contains a query word."),
    ],
)
async def test_the_hint(tmp_path: Path, query: str, path_glob: str, lang: str, kind: str, said: str) -> None:
    tree = planted(tmp_path)
    search = CodeSearch(str(tmp_path / "state"))
    answer = await search.search(str(tree), query, only=filter_of(path_glob, lang, kind), patience=None)
    await search.aclose()
    assert answer.hits == () and answer.hint.startswith(said)
    assert answer.hint in render_json(str(tree), query, answer)[0]
    assert render_text(str(tree), query, answer) == f"no matches. {answer.hint}"


async def test_a_folder_without_files_is_told_as_such(tmp_path: Path) -> None:
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree" / ".gitignore").write_text("*\n")
    search = CodeSearch(str(tmp_path / "state"))
    answer = await search.search(str(tmp_path / "tree"), "token", patience=None)
    await search.aclose()
    assert answer.hits == () and answer.hint.startswith("There are no files to search")


async def test_the_likeliest_folder_comes_first(tmp_path: Path) -> None:
    tree = planted(tmp_path)
    for folder in ("a/tui", "src/deep/down/tui", "tests/tui", "b/tui"):
        (tree / folder).mkdir(parents=True)
        (tree / folder / "one.py").write_text("token = 1\n")
    search = CodeSearch(str(tmp_path / "state"))
    answer = await search.search(str(tree), "token", only=filter_of("src/tui/*", "", ""), patience=None)
    await search.aclose()
    assert answer.hint.endswith("Do you mean src/deep/down/tui/** or a/tui/** or b/tui/**?")


async def test_a_glob_is_told_on_one_line_within_bounds(tmp_path: Path) -> None:
    search = CodeSearch(str(tmp_path / "state"))
    only = filter_of("x\n" + "y" * 900 + "/\x1b[31m/*", "", "")
    answer = await search.search(str(planted(tmp_path)), "token", only=only, patience=None)
    await search.aclose()
    assert len(answer.hint) < 250 and "\n" not in answer.hint and "\x1b" not in answer.hint


async def test_an_answer_needs_none(tmp_path: Path) -> None:
    search = CodeSearch(str(tmp_path / "state"))
    tree = planted(tmp_path)
    answer = await search.search(str(tree), "token", patience=None)
    await search.aclose()
    assert answer.hits and answer.hint == "" and '"hint"' not in render_json(str(tree), "token", answer)[0]
