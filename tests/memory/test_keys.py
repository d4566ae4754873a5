"""What facts are about, and which contradict each other."""

from codewhale.memory.keys import key
from codewhale.memory.model import Fact
from codewhale.memory.rivals import superseded


def test_the_newest_holds() -> None:
    facts = [
        Fact("a", "package manager: yarn", created="2026-01-01", line=1),
        Fact("b", "package manager: pnpm", created="2026-03-01", line=2),
        Fact("c", "we use npm", created="2026-02-01 10:00 UTC", line=3),
    ]
    assert superseded(facts) == {"a": "b", "c": "b"}


def test_a_fact_of_the_workspace_holds_before_one_for_everything() -> None:
    facts = [
        Fact("a", "use tabs", "global", "2026-05-01 10:00 UTC", line=9),
        Fact("b", "use spaces", "workspace", "2026-01-01 10:00 UTC", line=1),
    ]
    assert superseded(facts) == {"a": "b"}


def test_the_later_line_holds_where_there_is_no_date() -> None:
    assert superseded([Fact("a", "use tabs", line=1), Fact("b", "use spaces", line=2)]) == {"a": "b"}


def test_a_key_is_as_given_or_said() -> None:
    assert key(Fact("a", "pnpm", key="tool for packages")) == "tool for packages"
    assert key(Fact("a", "the staging port is 5433")) == key(Fact("b", "staging listens on port 5434")) != ""
    assert key(Fact("a", "Ann likes green tea and long walks")) == ""
