"""Candidates and their features."""

from collections.abc import Iterator

import numpy as np
import pytest

from codewhale.codesearch.corpus import Corpus
from codewhale.codesearch.evidence import Evidence
from codewhale.codesearch.features import FEATURES, candidates, matrix
from codewhale.codesearch.query import read_query
from codewhale.codesearch.terms import Terms
from support.searchtree import indexed


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Corpus]:
    _, reader = indexed(tmp_path_factory.mktemp("features"))
    yield Corpus(reader, Terms())
    reader.close()


def row(corpus: Corpus, text: str, path: str) -> dict[str, float]:
    """The features of one file, by name."""
    told = Evidence(corpus, read_query(text, corpus.terms))
    values = matrix(told, np.array([corpus.reader.paths.index(path)]))
    return dict(zip(FEATURES, values[0].tolist(), strict=True))


def test_a_name_that_is_asked_for_whole(corpus: Corpus) -> None:
    values = row(corpus, "token store of auth", "src/auth/token_store.py")
    assert (values["name_whole"], values["name_fit"], values["folder"]) == (1, 1, 1)
    assert 0 < values["name_share"] < values["path_coverage"] == pytest.approx(1)


def test_a_name_that_is_asked_for_in_part(corpus: Corpus) -> None:
    values = row(corpus, "limits", "src/net/rate_limiter.py")
    assert values["name_whole"] == 0 and 0 < values["name_fit"] < 1 and values["folder"] == 0


def test_kinds_of_files_are_features(corpus: Corpus) -> None:
    values = row(corpus, "token", "tests/test_token_store.py")
    assert (values["tests"], values["docs"], values["prose"]) == (1, 0, 0)
    values = row(corpus, "token", "docs/tokens.md")
    assert (values["tests"], values["docs"], values["prose"]) == (0, 1, 1)


def test_features_stay_small(corpus: Corpus) -> None:
    for text in ("token", "TokenStore", "how is an expired token refreshed with its provider", "fix sessions"):
        told = Evidence(corpus, read_query(text, corpus.terms))
        values = matrix(told, candidates(told))
        assert np.isfinite(values).all() and values.min() >= 0 and values.max() <= 1.6


def test_candidates_are_bounded_allowed_and_in_order(corpus: Corpus) -> None:
    told = Evidence(corpus, read_query("token store session provider client", corpus.terms))
    assert len(candidates(told)) > 4 and len(candidates(told, most=3)) == 3
    allowed = np.array([0, 2])
    assert set(candidates(told, allowed)) <= {0, 2}
    chosen = candidates(told)
    assert (np.diff(chosen) > 0).all()


def test_nothing_matches_nothing(corpus: Corpus) -> None:
    told = Evidence(corpus, read_query("zebra", corpus.terms))
    assert len(candidates(told)) == 0 and matrix(told, candidates(told)).shape == (0, len(FEATURES))
