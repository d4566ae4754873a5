"""Ranking over a real index: what comes first, and that scores are the sums of their reasons."""

import asyncio
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codewhale.codesearch.build import CodeIndex
from codewhale.codesearch.exact import exact_lines
from codewhale.codesearch.features import FEATURES
from codewhale.codesearch.query import SHAPES, read_query
from codewhale.codesearch.rank import Filter, Hit, Ranker, Weights
from codewhale.codesearch.reader import IndexReader
from support.searchtree import FILES, indexed

HOUR = 3600 * 10**9


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[CodeIndex, IndexReader]]:
    index, reader = indexed(tmp_path_factory.mktemp("ranked"))
    yield index, reader
    reader.close()


@pytest.fixture(scope="module")
def ranker(made: tuple[CodeIndex, IndexReader]) -> Ranker:
    return Ranker(made[1])


def first(ranker: Ranker, text: str) -> Hit:
    return ranker.search(text).hits[0]


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("TokenStore", "src/auth/token_store.py"),
        ("where is the provider of a request resolved", "src/auth/provider.py"),
        ("how are expired tokens refreshed", "src/auth/token_store.py"),
        ("rate limit of clients", "src/net/rate_limiter.py"),
        ("fix waiting twice as long after a failure", "src/net/retry.py"),
        ("session saving", "src/store/session.ts"),
        ("SAVED_SESSION", "src/store/session.ts"),
    ],
)
def test_what_is_meant_comes_first(ranker: Ranker, text: str, path: str) -> None:
    assert first(ranker, text).path == path


def test_a_name_leads_to_its_definition(ranker: Ranker) -> None:
    hit = first(ranker, "RateLimiter")
    assert (hit.line, hit.symbol) == (6, "RateLimiter") and hit.end_line >= 6
    assert any("defines RateLimiter in line 6" in reason.detail for reason in hit.reasons)


def test_history_speaks_for_files_whose_text_does_not(ranker: Ranker) -> None:
    hit = first(ranker, "bearer credentials logout")
    assert hit.path == "src/auth/token_store.py"
    told = [reason for reason in hit.reasons if reason.signal == "history"]
    assert len(told) == 1 and told[0].value > 0 and "Forget bearer credentials at logout" in told[0].detail


def test_tests_and_papers_come_after_code(ranker: Ranker) -> None:
    paths = [hit.path for hit in ranker.search("refresh an expired token with the provider").hits]
    assert paths[0] == "src/auth/token_store.py"
    assert {"tests/test_token_store.py", "docs/tokens.md"} <= set(paths[1:])


def test_tests_that_are_asked_for_are_no_worse_than_code(ranker: Ranker) -> None:
    assert first(ranker, "where are the tests of an expired token").path == "tests/test_token_store.py"


def test_filters_hold(ranker: Ranker) -> None:
    for only, expected in (
        (Filter(paths=lambda path: path.startswith("tests/")), {"tests/test_token_store.py"}),
        (Filter(lang="typescript"), {"src/store/session.ts"}),
        (Filter(kind="interface"), {"src/store/session.ts"}),
    ):
        assert {hit.path for hit in ranker.search("token store session", only=only).hits} == expected
    classes = ranker.search("token store", only=Filter(kind="class")).hits
    assert classes[0].symbol == "TokenStore" and all(hit.kind == "class" for hit in classes)


def test_lines_that_hold_the_query_win(made: tuple[CodeIndex, IndexReader], ranker: Ranker) -> None:
    index, reader = made
    text = 'PermissionError("the refresh token was revoked'
    exact = asyncio.run(exact_lines(reader, index.root, read_query(text, ranker.terms), ranker.terms))
    assert exact == {"src/auth/token_store.py": [13]}
    ranking = ranker.search(text, exact=exact)
    assert ranking.exact == 1 and ranking.hits[0].path == "src/auth/token_store.py"
    assert "exact" in ranking.signals and ranking.hits[0].line == 13


def test_an_exact_line_is_among_few_results_however_weak(ranker: Ranker) -> None:
    ranking = ranker.search("how is the expired access token refreshed", 3, exact={"README.md": [3]})
    assert len(ranking.hits) == 3 and ranking.hits[-1].path == "README.md" and ranking.exact == 1


def test_what_a_session_touched_gains_and_fades(tmp_path: Path) -> None:
    index, reader = indexed(tmp_path)
    reader.close()
    store = index.open()
    store.touch(["src/net/retry.py"], now_ns=100 * HOUR)
    ranker = Ranker(IndexReader(store))
    value = {}
    for age in (0, 4, 400):
        hits = ranker.search("attempts of a call", now_ns=(100 + age) * HOUR).hits
        reasons = {reason.signal: reason for hit in hits for reason in hit.reasons if hit.path == "src/net/retry.py"}
        value[age] = reasons["session"].value if "session" in reasons else 0.0
    assert value[0] == pytest.approx(2 * value[4], abs=0.002) and value[0] > 0 and value[400] == 0
    assert "session" not in ranker.search("attempts of a call").signals
    ranker.reader.close()


VOCABULARY = sorted({word for text in FILES.values() for word in re.findall(r"\w+", text)})
QUERIES = st.lists(st.one_of(st.sampled_from(VOCABULARY), st.text(max_size=8)), max_size=8).map(" ".join)


@settings(deadline=None, max_examples=60)
@given(text=QUERIES, limit=st.integers(1, 10), lines=st.lists(st.sampled_from(sorted(FILES)), max_size=3))
def test_a_score_is_the_sum_of_its_reasons(ranker: Ranker, text: str, limit: int, lines: list[str]) -> None:
    ranking = ranker.search(text, limit, exact={path: [1] for path in lines}, now_ns=1)
    assert len(ranking.hits) <= limit
    assert len({hit.path for hit in ranking.hits}) == len(ranking.hits)
    for hit in ranking.hits:
        told = [re.match(r"(\w+) ([+-][\d.]+): ", reason.line()) for reason in hit.reasons]
        assert all(told)
        assert round(sum(float(match.group(2)) for match in told if match), 3) == hit.score
        assert {reason.signal for reason in hit.reasons} <= set(ranking.signals)
        assert 1 <= hit.line <= hit.end_line
    scores = [hit.score for hit in ranking.hits]
    sure = len(scores) - ranking.exact
    assert scores[:sure] == sorted(scores[:sure], reverse=True)


def test_hostile_queries_are_only_text(ranker: Ranker) -> None:
    before = ranker.search("token store").hits
    assert before
    for text in ('" OR 1=1 --', "NEAR(a b)", "*", "body:token", "\x00", "((((", "'; DROP TABLE files; --", "🐋" * 900):
        assert {hit.path for hit in ranker.search(text).hits} <= set(FILES), text
    assert ranker.search("token store").hits == before


def test_there_is_a_weight_for_every_feature() -> None:
    weights = Weights.shipped()
    assert set(weights.shapes) == set(SHAPES)
    assert all(set(vector) == set(FEATURES) for vector in weights.shapes.values())


def test_a_bare_name_that_many_files_hold_is_found_where_it_is_defined(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    tree.mkdir()
    (tree / "transaction.py").write_text(
        "class Transaction:\n    '''One unit of work.'''\n\n    def commit(self):\n        pass\n"
    )
    for number in range(150):
        (tree / f"use_{number}.py").write_text(
            f"from transaction import Transaction\n\n\ndef run_{number}():\n" + "    Transaction().commit()\n" * 9
        )
    (tree / "CHANGELOG.md").write_text("- Transaction grew a Transaction\n" * 40)
    index, reader = indexed(tmp_path)
    ranker = Ranker(reader)
    exact = asyncio.run(exact_lines(reader, index.root, read_query("Transaction", ranker.terms), ranker.terms))
    assert ranker.search("Transaction", exact=exact).hits[0].path == "transaction.py"
    reader.close()
