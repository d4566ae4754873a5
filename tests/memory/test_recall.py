"""How well facts are found by questions in other words, among neighbours and facts that were replaced."""

from itertools import pairwise
from pathlib import Path

import pytest

from codewhale.memory.service import Memory

ROWS = [
    [part.strip() for part in line.split("|")]
    for line in (Path(__file__).parent / "recall.txt").read_text().splitlines()
    if not line.startswith("#")
]


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
