"""How well facts are found by questions in other words, among neighbours and facts that were replaced."""

from itertools import pairwise
from pathlib import Path

import pytest

from codewhale.memory.model import Fact
from codewhale.memory.rivals import superseded
from codewhale.memory.service import Memory


def rows(name: str) -> list[list[str]]:
    lines = (Path(__file__).parent / name).read_text().splitlines()
    return [[part.strip() for part in line.split("|")] for line in lines if not line.startswith("#")]


ROWS = rows("recall.txt")


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A memory that was written over weeks: each newer fact stands at the end, with its date."""
    folder = tmp_path_factory.mktemp("home")
    path = folder / "memory" / "global" / "MEMORY.md"
    path.parent.mkdir(parents=True)
    first = [text for text, *_ in ROWS if not text.startswith(">")]
    later = [text.removeprefix("> ") for text, *_ in ROWS if text.startswith(">")]
    dated = [*(f"- (2026-03-01) {text}" for text in first), *(f"- (2026-05-01) {text}" for text in later)]
    path.write_text("\n".join(dated) + "\n")
    return folder


@pytest.fixture
def facts(home: Path) -> Memory:
    return Memory(str(home), lambda workspace: "p")


def questions() -> list[tuple[str, str]]:
    return [(question, text.removeprefix("> ")) for text, *asked in ROWS for question in asked if question]


def replaced() -> set[str]:
    return {one[0].removeprefix("> ") for one, next_ in pairwise(ROWS) if next_[0].startswith(">")}


def test_the_fixture_is_what_it_says(facts: Memory) -> None:
    assert len(ROWS) >= 200 and len(questions()) >= 150 and len(replaced()) >= 30
    assert len(facts.facts("p")) == len(ROWS) == len({text for text, *_ in ROWS})


def test_the_right_fact_is_among_the_first_five(facts: Memory) -> None:
    missed = [
        (question, text)
        for question, text in questions()
        if text not in [one.fact.text for one in facts.search("p", question)][:5]
    ]
    assert len(missed) <= len(questions()) // 10, missed


def test_at_most_one_in_fifty_of_the_facts_to_send_was_replaced(facts: Memory) -> None:
    hidden = superseded(facts.facts("p"))
    shown = [fact.text for fact in facts.facts("p") if fact.id not in hidden]
    assert sum(text in replaced() for text in shown) <= len(shown) // 50
    assert {fact.text for fact in facts.facts("p") if fact.id in hidden} <= replaced()


def test_none_that_was_replaced_is_sent_after_weeks_of_use(facts: Memory) -> None:
    for question, _ in questions():
        facts.used([hit.fact.id for hit in facts.search("p", question) if not hit.superseded])
    sent = [fact.text for fact in facts.sent("p")]
    assert len(sent) == 32 and not replaced() & {*sent}


@pytest.mark.parametrize("name", ["freight.txt"])
def test_facts_that_are_both_true_are_not_taken_for_a_change(name: str) -> None:
    """Facts of other projects; those of two lines where the second begins with > are a change, no others."""
    every, changes = [], dict[str, str]()
    for line, (text, *_) in enumerate(rows(name), 1):
        if text.startswith(">"):
            changes[str(line - 1)] = str(line)
        every.append(
            Fact(
                str(line),
                text.removeprefix("> "),
                created="2026-05-01" if text.startswith(">") else "2026-03-01",
                line=line,
            )
        )
    found = superseded(every)
    assert found.items() <= changes.items() and len(found) >= len(changes) // 2
