"""Facts as lines of a file that people edit."""

import pytest

from codewhale.memory.lines import fact_line, parse_line, text_id
from codewhale.memory.model import Fact

FACTS = [
    Fact("1a2b3c4d", "Tests run with nox.", "global", "2026-05-03 22:14 UTC", line=3),
    Fact("1a2b3c4d", "Use (round) brackets - and a <!-- comment --> in it.", line=3),
    Fact("ff", "Port 5433", key='the "staging" port', source="session 01, call c2", tainted=True, expires="2027-01-01"),
]


@pytest.mark.parametrize("fact", FACTS)
def test_a_line_says_what_was_stored(fact: Fact) -> None:
    read = parse_line(fact_line(fact), fact.scope, fact.line)
    assert read is not None
    assert (read.id, read.text, read.created, read.tainted, read.expires, read.line) == (
        fact.id, fact.text, fact.created, fact.tainted, fact.expires, fact.line,
    )  # fmt: skip
    assert read.key == fact.key.replace('"', "'") and read.source == fact.source


def test_a_line_of_a_person_needs_neither_date_nor_id() -> None:
    read = parse_line("* tabs, not spaces", "workspace", 7)
    assert read == Fact(text_id("tabs, not spaces"), "tabs, not spaces", line=7)


@pytest.mark.parametrize("line", ["", "# Memory", "text", "-", "-text", "  - nested"])
def test_other_lines_are_no_facts(line: str) -> None:
    assert parse_line(line, "global", 1) is None
