"""Facts and proposals as they are stored."""

import msgspec

from codewhale.memory.model import Fact, Proposal


def test_a_proposal_is_read_back_as_it_was_written() -> None:
    proposal = Proposal("p1", "Tests run with nox.", "global", key="tests", origin="https://example.org/")
    assert msgspec.json.decode(msgspec.json.encode(proposal), type=Proposal) == proposal


def test_a_fact_is_the_persons_own_unless_it_says_otherwise() -> None:
    fact = Fact("a1", "Tests run with nox.")
    assert (fact.scope, fact.source, fact.tainted) == ("workspace", "", False)
