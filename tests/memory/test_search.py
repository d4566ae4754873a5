"""Finding facts."""

from pathlib import Path

import pytest
from tests.memory.test_index import memory, write

from codewhale.memory.service import Memory


@pytest.fixture
def facts(tmp_path: Path) -> Memory:
    write(tmp_path, "(2026-01-01) use tabs", "(2026-01-02) answer in German", folder="global")
    write(
        tmp_path, "(2026-01-01) package manager: yarn", "(2026-02-01) We switched from yarn to pnpm",
        "the staging port is 5433", "部署前先运行测试", "config lives in src/api/createStore.ts",
    )  # fmt: skip
    write(tmp_path, "the staging port is 9999", folder="workspace/other")
    return memory(tmp_path)


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("staging port", "the staging port is 5433"),
        ("which prot does stagging use", "the staging port is 5433"),
        ("5433", "the staging port is 5433"),
        ("createStore", "config lives in src/api/createStore.ts"),
        ("create_store", "config lives in src/api/createStore.ts"),
        ("configuration", "config lives in src/api/createStore.ts"),
        ("langauge of replies", "answer in German"),
        ("dependencies", "We switched from yarn to pnpm"),
        ("packagemanager", "We switched from yarn to pnpm"),
        ("怎么运行测试", "部署前先运行测试"),
        ("indentation", "use tabs"),
    ],
)
def test_other_words_lead_to_a_fact(facts: Memory, query: str, text: str) -> None:
    assert facts.search("w1", query)[0].fact.text == text


def test_a_superseded_fact_comes_after_the_newer_one_and_is_marked(facts: Memory) -> None:
    newer, older = facts.search("w1", "package manager: yarn")
    assert newer.fact.text == "We switched from yarn to pnpm" and newer.superseded == ""
    assert older.fact.text == "package manager: yarn" and older.superseded == newer.fact.id
    assert [one.fact.text for one in facts.search("w1", "package manager: yarn", 1)] == [newer.fact.text]


def test_what_has_expired_comes_last_and_makes_nothing_old(tmp_path: Path) -> None:
    write(
        tmp_path, "(2026-01-01) package manager: yarn",
        "(2026-02-01) package manager: pnpm <!-- expires:2026-02-02 -->",
        "(2026-02-01) yarn is the package manager of the package manager team <!-- expires:2999-01-01 -->",
    )  # fmt: skip
    found = memory(tmp_path).search("w1", "package manager pnpm")
    assert found[-1].fact.text == "package manager: pnpm" and found[-1].score > found[0].score
    assert len(found) == 3 and not [one for one in found if one.superseded]
    assert "pnpm" not in str(memory(tmp_path).search("w1", "package manager pnpm", 2))


def test_facts_of_other_workspaces_are_not_found(facts: Memory) -> None:
    assert facts.search("w1", "9999") == ()
    assert [one.fact.text for one in facts.search("other", "staging port")] == ["the staging port is 9999"]


@pytest.mark.parametrize(
    "query",
    ["", "  ", "\0", '"', "*", 'NEAR("port" "staging", 2)', "a AND", "text:x", "-port", "port*", "^port", "(((",
     "\ud800", "\x1b[31m",
     "x" * 10_000, "port " * 2_000, " ".join(f"w{at}" for at in range(2_000)), "'; DROP TABLE facts; --"],
)  # fmt: skip
def test_any_query_is_answered(facts: Memory, query: str) -> None:
    assert len(facts.search("w1", query)) <= 5
    assert facts.search("w1", query, 0) == ()
    assert [one.fact.text for one in facts.search("w1", "staging port")][:1] == ["the staging port is 5433"]


def test_nothing_is_found_where_there_is_no_memory(tmp_path: Path) -> None:
    assert memory(tmp_path).search("w1", "port") == ()
    assert list(tmp_path.iterdir()) == []


def test_a_fact_is_given_by_its_id(facts: Memory) -> None:
    fact = facts.search("w1", "5433")[0].fact
    assert facts.get("w1", fact.id) == fact
    assert facts.get("w1", "nothing") is None


def test_a_use_makes_no_other_fact_superseded_nor_is_it_lost_with_the_index(facts: Memory, tmp_path: Path) -> None:
    facts.used([facts.search("w1", "5433")[0].fact.id])
    (tmp_path / "memory" / "index.sqlite3").unlink()
    assert sum(memory(tmp_path).uses.counts().values()) == 1
