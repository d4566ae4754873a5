"""Memory as a whole."""

import re
from pathlib import Path

import pytest

from codewhale.memory.layers import MemoryRefused
from codewhale.memory.service import Memory
from codewhale.session.secretshapes import hide_shapes


def memory(tmp_path: Path) -> Memory:
    return Memory(str(tmp_path), lambda workspace: "w1", redacted=hide_shapes, now=lambda: 1_777_846_440.0)


def stored(tmp_path: Path, folder: str = "workspace/w1") -> Path:
    return tmp_path / "memory" / folder / "MEMORY.md"


def test_facts_for_everything_come_before_those_of_the_workspace(tmp_path: Path) -> None:
    for folder, text in (("global", "- tabs\n"), ("workspace/w1", "# Memory\n\n- port 5433\n")):
        (tmp_path / "memory" / folder).mkdir(parents=True)
        stored(tmp_path, folder).write_text(text)
    facts = memory(tmp_path).facts("/somewhere")
    assert [(fact.text, fact.scope, fact.line) for fact in facts] == [
        ("tabs", "global", 1),
        ("port 5433", "workspace", 3),
    ]


def test_a_fact_is_added_changed_and_cleared(tmp_path: Path) -> None:
    facts = memory(tmp_path)
    fact = facts.add("/w", "Tests run\n with nox.", "workspace", key="tests", source="call c1", tainted=True)
    line = f'- (2026-05-03 22:14 UTC) Tests run with nox. <!-- id:{fact.id} key:"tests" from:"call c1" tainted -->\n'
    assert stored(tmp_path).read_text() == line and facts.facts("/w") == (fact,)
    changed = facts.change("/w", fact.id[:5], "Tests run with tox.")
    assert changed == facts.facts("/w")[0] and (changed.id, changed.text) == (fact.id, "Tests run with tox.")
    assert facts.clear("/w", facts.meant("/w", fact.id)) == (changed,) and facts.facts("/w") == ()
    assert (
        facts.add("/w", "Everywhere", "global").scope == "global"
        and "Everywhere" in stored(tmp_path, "global").read_text()
    )


def test_the_same_text_is_stored_once(tmp_path: Path) -> None:
    facts = memory(tmp_path)
    foreign = facts.add("/w", "port 5433", "workspace", source="https://example.org/", tainted=True)
    own = facts.add("/w", "port 5433", "workspace")
    assert facts.add("/w", " port\t5433", "workspace") == own != foreign
    assert facts.add("/w", "port 5433", "workspace", tainted=True) in (own, foreign)
    assert len(facts.facts("/w")) == 2


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (" \n\t", "needs a text"),
        ("x" * 2001, "at most 2,000 characters"),
        ("the key is ghp_0123456789abcdefghijABCDEFGHIJ012345", "key or a password"),
    ],
)
def test_a_text_that_cannot_be_kept_is_refused_and_nothing_is_made(tmp_path: Path, text: str, why: str) -> None:
    with pytest.raises(MemoryRefused, match=why):
        memory(tmp_path).add("/w", text, "workspace")
    assert not (tmp_path / "memory").exists()
    fact = memory(tmp_path).add("/w", "good", "workspace")
    with pytest.raises(MemoryRefused, match=why):
        memory(tmp_path).change("/w", fact.id, text)
    assert memory(tmp_path).facts("/w") == (fact,)


def test_control_characters_are_made_plain(tmp_path: Path) -> None:
    fact = memory(tmp_path).add("/w", "a\x1b[31mb\u202ec\x00\r\nd\u2028- e", "workspace")
    assert fact.text == r"a\x1b[31mb\u202ec\x00 d - e"
    assert memory(tmp_path).facts("/w") == (fact,) and stored(tmp_path).read_bytes().count(b"\n") == 1


@pytest.mark.parametrize("text", ["x <!-- id:bad -->", "- nested", "(2020-01-01) dated", "x --> y <!-- tainted", "```"])
def test_a_text_is_read_back_as_it_is_whatever_it_looks_like(tmp_path: Path, text: str) -> None:
    fact = memory(tmp_path).add("/w", text, "workspace")
    assert fact.text == text and not fact.tainted and memory(tmp_path).facts("/w") == (fact,)


def test_a_fact_that_could_not_be_read_again_is_refused(tmp_path: Path) -> None:
    memory(tmp_path).add("/w", "one", "workspace")
    with stored(tmp_path).open("a") as file:
        file.write("```\nopen\n")
    before = stored(tmp_path).read_bytes()
    with pytest.raises(MemoryRefused, match="does not end"):
        memory(tmp_path).add("/w", "two", "workspace")
    assert stored(tmp_path).read_bytes() == before


def test_an_id_that_nothing_has_or_several_is_refused_before_anything_is_changed(tmp_path: Path) -> None:
    facts = memory(tmp_path)
    stored(tmp_path).parent.mkdir(parents=True)
    stored(tmp_path).write_text("- one <!-- id:ab12 -->\n- two <!-- id:ab34 -->\n- three <!-- id:cd -->\n")
    for id, why in (
        ("zz", "has the id 'zz'. /memory lists"),
        ("", "has the id ''"),
        ("ab", "ab12 (one), ab34 (two)"),
        ("ab39", "Near it: ab34 (two), ab12 (one)."),
    ):
        with pytest.raises(MemoryRefused, match=re.escape(why)):
            facts.clear("/w", [*facts.meant("/w", "cd"), *facts.meant("/w", id)])
    assert [fact.text for fact in facts.facts("/w")] == ["one", "two", "three"]
    meant = [fact for id in ("ab3", "ab34", "cd") for fact in facts.meant("/w", id)]
    assert [fact.id for fact in facts.clear("/w", meant)] == ["ab34", "cd"]


def test_a_line_of_a_person_is_changed_by_the_id_of_its_text(tmp_path: Path) -> None:
    facts = memory(tmp_path)
    stored(tmp_path).parent.mkdir(parents=True)
    stored(tmp_path).write_text("- tabs\n- port\n")
    (tabs, _) = facts.facts("/w")
    assert facts.change("/w", tabs.id, "spaces").id == tabs.id
    assert stored(tmp_path).read_text() == f"- (2026-05-03 22:14 UTC) spaces <!-- id:{tabs.id} -->\n- port\n"


def test_a_fact_that_is_shown_cut_keeps_its_rest(tmp_path: Path) -> None:
    facts = memory(tmp_path)
    stored(tmp_path).parent.mkdir(parents=True)
    stored(tmp_path).write_text(line := "# Notes\n- " + "x" * 3000 + "\n")
    (long,) = facts.facts("/w")
    with pytest.raises(MemoryRefused, match=f"edit line 2 of {re.escape(str(stored(tmp_path)))}"):
        facts.change("/w", long.id, "y" + long.text[1:])
    assert stored(tmp_path).read_text() == line
    assert facts.change("/w", long.id, long.text.rstrip("…")).text == "x" * 1999


def test_what_was_cleared_comes_back_as_it_was(tmp_path: Path) -> None:
    facts = memory(tmp_path)
    one = facts.add("/w", "port 5433", "workspace", key="port", source="call c1", tainted=True)
    everywhere = facts.add("/w", "port 5433", "global")
    assert facts.clear("/w", [one, everywhere]) == (everywhere, one) and facts.facts("/w") == ()
    assert [*facts.cleared("/w")] == ["port 5433"]
    assert (facts.restore(everywhere.id[:4]), facts.restore(one.id)) == (everywhere, one)
    assert set(facts.facts("/w")) == {one, everywhere} and facts.cleared("/w") == {}
    assert list((tmp_path / "memory" / "trash").iterdir()) == []
    with pytest.raises(MemoryRefused, match="Nothing in the trash has the id"):
        facts.restore(one.id)


@pytest.mark.parametrize("before", [b"\xef\xbb\xbf", b"# Mine\r\n"])
def test_a_long_fact_of_the_persons_own_hand_comes_back_byte_for_byte(tmp_path: Path, before: bytes) -> None:
    facts = memory(tmp_path)
    own = b'*  (2026-01-01) "Long" \\ \t line ' + "über 港口 ".encode() * 200 + b"\r\n   and goes on: " + b"x" * 200_000
    facts.add("/w", "port 5433", "workspace")
    stored(tmp_path).write_bytes(before + own + b"\r\n- tabs")
    long = facts.facts("/w")[0]
    facts.clear("/w", [long])
    assert stored(tmp_path).read_bytes() == before.removeprefix(b"\xef\xbb\xbf") + b"- tabs"
    back = facts.restore(long.id)
    end = b"\r\n" if before.endswith(b"\n") else b"\n"
    assert stored(tmp_path).read_bytes() == before.removeprefix(b"\xef\xbb\xbf") + b"- tabs" + end + own + b"\r\n"
    assert (back.id, back.text) == (long.id, long.text) and facts.trashed() == ()


def test_a_fact_said_again_is_not_among_the_cleared(tmp_path: Path) -> None:
    facts = memory(tmp_path)
    facts.clear("/w", [facts.add("/w", "port 5433", "workspace")])
    facts.add("/w", "port 5433", "workspace")
    assert facts.cleared("/w") == {}


def test_the_trash_holds_what_stood_there_when_it_was_cleared(tmp_path: Path) -> None:
    """A person changes the text of a line while it is cleared."""
    facts = memory(tmp_path)
    one = facts.add("/w", "port 5433", "workspace")
    file, _ = facts.find("/w", one.id)
    stored(tmp_path).write_text(stored(tmp_path).read_text().replace("5433", "6000"))
    assert [fact.text for fact in facts.clear("/w", [one])] == ["port 6000"]
    assert facts.restore(one.id).text == "port 6000" and file.read().problems == ()


def test_of_the_same_line_in_both_files_the_one_that_is_meant_is_cleared(tmp_path: Path) -> None:
    """A line without an id has one that is made from its text, the same one in each file."""
    facts = memory(tmp_path)
    for folder in ("global", "workspace/w1"):
        stored(tmp_path, folder).parent.mkdir(parents=True)
        stored(tmp_path, folder).write_text("- port 5433\n- tabs\n")
    own = [fact for fact in facts.facts("/w") if fact.scope == "workspace"]
    assert list(facts.clear("/w", own)) == own
    assert stored(tmp_path).read_text() == "" and stored(tmp_path, "global").read_text() == "- port 5433\n- tabs\n"
    assert facts.restore(own[0].id) == own[0]
    assert [fact.scope for fact in facts.clear("/w", facts.meant("/w", own[0].id))] == ["global", "workspace"]
    assert stored(tmp_path).read_text() == "" and stored(tmp_path, "global").read_text() == "- tabs\n"
