"""Reasons in words: what they name is there."""

import re
from collections.abc import Iterator

import pytest

from codewhale.codesearch.evidence import Evidence
from codewhale.codesearch.query import read_query
from codewhale.codesearch.rank import Hit, Ranker
from codewhale.codesearch.reasons import Reason, RequestSignals, detail
from support.searchtree import FILES, indexed


@pytest.fixture(scope="module")
def ranker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ranker]:
    _, reader = indexed(tmp_path_factory.mktemp("reasons"))
    yield Ranker(reader)
    reader.close()


def details(hit: Hit) -> dict[str, str]:
    return {reason.signal: reason.detail for reason in hit.reasons}


def test_a_reason_in_a_line() -> None:
    assert Reason("lexical", 4.2134, "matched tokens [key]").line() == "lexical +4.213: matched tokens [key]"
    assert Reason("prior", -3.0, "tests").line() == "prior -3.000: tests"


def test_matched_tokens_stand_in_the_file(ranker: Ranker) -> None:
    for text in ("how are expired tokens refreshed", "rate limiter of zebra clients", "saving sessions twice"):
        for hit in ranker.search(text).hits:
            matched = re.search(r"matched tokens \[(.*)\], (\d+) of (\d+)", details(hit).get("lexical", ""))
            words = matched.group(1).split(", ") if matched and matched.group(1) else []
            body = ranker.terms.count(FILES[hit.path])
            assert "zebra" not in words
            assert all(set(ranker.terms.expand(word)) & set(body) for word in words)


def test_paths_history_and_kinds_are_named(ranker: Ranker) -> None:
    hits = {hit.path: details(hit) for hit in ranker.search("token store of auth credentials").hits}
    assert hits["src/auth/token_store.py"]["path"] == "[token, store, auth] in auth/token_store.py"
    assert "'Forget bearer credentials at logout'" in hits["src/auth/token_store.py"]["history"]
    assert hits["tests/test_token_store.py"]["prior"].startswith("tests, 88% of the code is in its language")
    assert hits["docs/tokens.md"]["prior"].startswith("docs, prose or data")


def test_a_compound_name_is_named(ranker: Ranker) -> None:
    told = details(ranker.search("the rate limiter").hits[0])
    assert told["symbol"] == "has the name [ratelimiter]"


def test_touches_say_when(ranker: Ranker) -> None:
    told = Evidence(ranker.corpus, read_query("token", ranker.terms))
    seen = RequestSignals({0: (3, 9)}, {0: (1.0, 4, 7_300.0), 1: (1.0, 1, 30.0)})
    assert detail("session", told, 0, seen) == "touched 4 times, last 2 hours ago"
    assert detail("session", told, 1, seen) == "touched once, 30 seconds ago"
    assert detail("exact", told, 0, seen) == "contains the exact query, line 3, 9"
