"""What ranking keeps of an index beside its postings."""

import math
from collections.abc import Iterator
from pathlib import Path

import pytest

from codewhale.codesearch.corpus import Corpus, idf
from codewhale.codesearch.path_kinds import DOCS, TESTS
from codewhale.codesearch.terms import Terms
from support.searchtree import FILES, index_of, indexed


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Corpus]:
    _, reader = indexed(tmp_path_factory.mktemp("corpus"))
    yield Corpus(reader, Terms())
    reader.close()


def number(corpus: Corpus, path: str) -> int:
    return corpus.reader.paths.index(path)


def test_what_paths_say(corpus: Corpus) -> None:
    assert corpus.kinds[number(corpus, "tests/test_token_store.py")] == TESTS
    assert corpus.kinds[number(corpus, "README.md")] == DOCS
    assert corpus.prose[number(corpus, "docs/tokens.md")] == 1 and corpus.prose[number(corpus, "src/net/retry.py")] == 0
    assert corpus.depth[number(corpus, "src/auth/provider.py")] == 2


def test_languages_share_the_code(corpus: Corpus) -> None:
    sizes = {path: len(text) for path, text in FILES.items()}
    code = sum(size for path, size in sizes.items() if not path.endswith(".md"))
    share = sizes["src/store/session.ts"] / code
    assert corpus.language[number(corpus, "src/store/session.ts")] == pytest.approx(share)
    assert corpus.language[number(corpus, "README.md")] == 0


def test_names_of_a_file(corpus: Corpus) -> None:
    assert corpus.names(number(corpus, "src/auth/token_store.py")) == (
        ("token", "store", "tokenstore"),
        ("auth",),
        "tokenstore",
    )


def test_paths_with_a_term(corpus: Corpus) -> None:
    found, counts = corpus.paths_with("retri")
    assert [corpus.reader.paths[corpus.home[chunk]] for chunk in found] == ["src/net/retry.py"] and list(counts) == [2]
    assert len(corpus.paths_with("nowhere")[0]) == 0


def test_idf_falls_with_how_many_have_a_term() -> None:
    assert idf(10, 0) > idf(10, 1) > idf(10, 9) > 0
    assert idf(10, 10) == pytest.approx(math.log(1 + 0.5 / 10.5))


def test_an_empty_tree(tmp_path: Path) -> None:
    (tmp_path / "tree").mkdir()
    reader = index_of(tmp_path, [])
    assert Corpus(reader, Terms()).files == 0
    reader.close()
