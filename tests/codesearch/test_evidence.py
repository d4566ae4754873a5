"""What an index says for a query."""

from collections.abc import Iterator

import numpy as np
import pytest

from codewhale.codesearch.corpus import Corpus, idf
from codewhale.codesearch.evidence import Evidence
from codewhale.codesearch.model import BODY
from codewhale.codesearch.query import read_query
from codewhale.codesearch.terms import Terms
from support.searchtree import indexed


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Corpus]:
    _, reader = indexed(tmp_path_factory.mktemp("evidence"))
    yield Corpus(reader, Terms())
    reader.close()


def evidence(corpus: Corpus, text: str) -> Evidence:
    return Evidence(corpus, read_query(text, corpus.terms))


def best(corpus: Corpus, values: "np.ndarray[tuple[int], np.dtype[np.float64]]") -> str:
    return corpus.reader.paths[int(np.argmax(values))]


def test_bm25_of_one_term_is_the_formula(corpus: Corpus) -> None:
    told = evidence(corpus, "attempts")
    found, counts = corpus.reader.postings(BODY, "attempt")
    lengths = corpus.reader.lengths(BODY)
    norm = 1.5 * (0.25 + 0.75 * lengths[found] / lengths[corpus.reader.chunk_file >= 0].mean())
    expected = idf(corpus.chunks, len(found)) * 2.5 * counts / (counts + norm)
    assert told.chunk_text[found] == pytest.approx(expected)
    assert told.chunk_text.sum() == pytest.approx(expected.sum())


def test_coverage_is_the_share_of_what_the_words_tell(corpus: Corpus) -> None:
    told = evidence(corpus, "bucket client")
    file = corpus.reader.paths.index("src/net/rate_limiter.py")
    assert told.cover[file] == pytest.approx(told.total)
    assert told.best_cover[file] <= told.cover[file]


def test_neighbouring_words_find_one_name(corpus: Corpus) -> None:
    told = evidence(corpus, "the rate limiter")
    assert best(corpus, told.compound) == "src/net/rate_limiter.py"
    assert told.joined[corpus.reader.paths.index("src/net/rate_limiter.py")] == ["ratelimiter"]


def test_words_that_begin_alike_find_paths(corpus: Corpus) -> None:
    told = evidence(corpus, "authentication")
    assert best(corpus, told.prefix).startswith("src/auth/")
    assert evidence(corpus, "sess").prefix[corpus.reader.paths.index("src/store/session.ts")] > 0


def test_definitions_of_names_and_of_plain_words(corpus: Corpus) -> None:
    told = evidence(corpus, "what does the TokenStore keep")
    file = corpus.reader.paths.index("src/auth/token_store.py")
    assert told.defined[file][1:] == ("TokenStore", 4) and told.defines[file] > 1
    assert set(np.flatnonzero(told.defines)) == {file}
    plain = evidence(corpus, "ratelimiter of calls")
    assert plain.containers["ratelimiter"] == {corpus.reader.paths.index("src/net/rate_limiter.py")}


def test_history_counts_the_less_the_more_files_changed(corpus: Corpus) -> None:
    told = evidence(corpus, "throttle neighbours")
    limiter = corpus.reader.paths.index("src/net/rate_limiter.py")
    assert told.history[limiter] == told.history[corpus.reader.paths.index("README.md")] > 0
    assert [corpus.reader.commit(commit).subject for commit in told.commits_of(limiter)] == [
        "Throttle noisy neighbours"
    ]
    assert told.history[limiter] == pytest.approx(told.commit_scores.max() / np.sqrt(2))


def test_a_query_of_nothing_says_nothing(corpus: Corpus) -> None:
    for text in ("", "   ", "?!", "deadbeefdeadbeefdead"):
        told = evidence(corpus, text)
        assert not told.whole.any() and not told.chunk.any() and not told.path.any() and not told.history.any()
