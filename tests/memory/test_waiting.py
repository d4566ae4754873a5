"""Proposals wait for a person: bounded, without doubles, and each is stored once, whoever decides and whatever dies."""

import subprocess
import sys
import textwrap
from pathlib import Path

import msgspec
import pytest

from codewhale.memory.layers import MemoryRefused
from codewhale.memory.model import Proposal
from codewhale.memory.places import workspace_folder
from codewhale.memory.service import Memory
from codewhale.memory.waiting import MOST_WAITING, WaitingList
from support.patience import HANG

W = "/w"


def parts(home: Path) -> tuple[Memory, WaitingList]:
    facts = Memory(str(home), workspace_folder)
    return facts, WaitingList(str(home), workspace_folder, facts)


def proposed(text: str, **more: object) -> Proposal:
    return msgspec.structs.replace(Proposal("", text, session="s1", call_id="c1"), **more)


def test_a_proposal_waits_where_it_was_made_and_a_global_one_everywhere(home: Path) -> None:
    _, waiting = parts(home)
    assert waiting.waiting(W) == () and not (home / "memory").exists()
    one, new = waiting.add(W, proposed("Tabs.", origin="README.md", tainted=True, message="Look."))
    everywhere, _ = waiting.add(W, proposed("Tea.", scope="global"))
    assert new and one.created.endswith("UTC") and one.id[:4] != everywhere.id[:4]
    assert waiting.waiting(W) == (one, everywhere) and waiting.waiting("/other") == (everywhere,)
    assert waiting.waiting(W)[0].origin == "README.md"
    assert (home / "memory/waiting.jsonl").stat().st_mode & 0o777 == 0o600


def test_the_same_text_twice_is_one_and_foreign_where_either_is(home: Path) -> None:
    _, waiting = parts(home)
    first, _ = waiting.add(W, proposed("Use tabs here."))
    again, new = waiting.add(W, proposed("  use  TABS here.", tainted=True, origin="README.md"))
    assert not new and again.id == first.id
    assert [(row.tainted, row.origin) for row in waiting.waiting(W)] == [(True, "README.md")]
    assert waiting.add("/other", proposed("Use tabs here."))[1] and waiting.add(W, proposed("Use tabs."))[1]


def test_no_more_than_two_hundred_wait(home: Path) -> None:
    _, waiting = parts(home)
    for number in range(MOST_WAITING):
        waiting.add(W, proposed(f"Fact {number}."))
    with pytest.raises(MemoryRefused, match="200 proposals wait for the user already"):
        waiting.add(W, proposed("One more."))
    rows = waiting.waiting(W)
    assert len(rows) == 200 == len({row.id[:4] for row in rows})
    waiting.drop(W, rows[0].id)
    assert waiting.add(W, proposed("One more."))[1]


def test_what_is_taken_is_stored_with_its_source_and_waits_no_more(home: Path) -> None:
    facts, waiting = parts(home)
    row, _ = waiting.add(W, proposed("Use tabs.", key="indent", tainted=True, origin="README.md"))
    chosen, fact = waiting.take(W, row.id[:4])
    assert chosen.id == row.id and waiting.waiting(W) == ()
    assert facts.facts(W) == (fact,)
    assert (fact.text, fact.key, fact.tainted, fact.scope) == ("Use tabs.", "indent", True, "workspace")
    assert fact.source == f"proposal {row.id} of session s1, call c1, from README.md"
    other, _ = waiting.add(W, proposed("I like tea.", scope="global"))
    _, changed = waiting.take(W, other.id.upper(), "Green tea only.")
    assert [one.text for one in facts.facts("/other")] == ["Green tea only."] == [changed.text]


def test_what_is_dropped_is_gone_and_an_unknown_id_is_refused(home: Path) -> None:
    facts, waiting = parts(home)
    row, _ = waiting.add(W, proposed("Use tabs."))
    for name in ("", "zz", row.id + "0"):
        with pytest.raises(MemoryRefused, match="Nothing waits as"):
            waiting.take(W, name)
    with pytest.raises(MemoryRefused, match="Nothing waits as"):
        waiting.drop("/other", row.id)
    assert waiting.drop(W, row.id).text == "Use tabs."
    assert waiting.waiting(W) == facts.facts(W) == ()


def test_a_beginning_that_two_ids_have_is_refused(home: Path) -> None:
    _, waiting = parts(home)
    ids = {waiting.add(W, proposed(f"Fact {number}."))[0].id for number in range(40)}
    first = next(one[0] for one in ids if sum(other[0] == one[0] for other in ids) > 1)
    with pytest.raises(MemoryRefused, match="More than one proposal"):
        waiting.take(W, first)
    assert len(waiting.waiting(W)) == 40


def test_a_text_that_cannot_be_stored_goes_on_waiting(home: Path) -> None:
    facts, waiting = parts(home)
    row, _ = waiting.add(W, proposed("Use tabs."))
    with pytest.raises(MemoryRefused):
        waiting.take(W, row.id, "x" * 3000)
    assert waiting.waiting(W) == (row,) and facts.facts(W) == ()


def test_damaged_lines_are_kept_aside(home: Path) -> None:
    _, waiting = parts(home)
    row, _ = waiting.add(W, proposed("Use tabs."))
    file = home / "memory/waiting.jsonl"
    file.write_bytes(b'{"id": 5}\n\xff\xfe\n' + file.read_bytes() + b'{"id":"a","te')
    assert waiting.waiting(W) == (row,)
    waiting.add(W, proposed("Use spaces."))
    assert len(waiting.waiting(W)) == 2
    assert (home / "memory/waiting.damaged").read_bytes() == b'{"id": 5}\n\xff\xfe\n{"id":"a","te\n'


def test_a_file_that_is_too_large_is_refused_by_name(home: Path) -> None:
    _, waiting = parts(home)
    (home / "memory").mkdir()
    with open(home / "memory/waiting.jsonl", "wb") as file:
        file.truncate(9 << 20)
    with pytest.raises(MemoryRefused, match=r"waiting.jsonl is larger than 8 MiB"):
        waiting.waiting(W)


PROCESS = """
import sys
from codewhale.memory.layers import MemoryRefused
from codewhale.memory.places import workspace_folder
from codewhale.memory.service import Memory
from codewhale.memory.waiting import WaitingList

facts = Memory(sys.argv[1], workspace_folder)
waiting = WaitingList(sys.argv[1], workspace_folder, facts)
print("ready", flush=True)
sys.stdin.readline()
taken = 0
for row in waiting.waiting("/w"):
    try:
        waiting.take("/w", row.id, row.text + sys.argv[2])
        taken += 1
    except MemoryRefused as refused:
        assert "Nothing waits as" in str(refused), refused
print(taken, flush=True)
"""


def test_what_two_processes_take_at_once_is_stored_once(home: Path) -> None:
    facts, waiting = parts(home)
    for number in range(30):
        waiting.add(W, proposed(f"Fact {number}"))
    command = [sys.executable, "-c", PROCESS, str(home)]
    both = [
        subprocess.Popen([*command, mark], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for mark in "ab"
    ]
    for one in both:
        assert one.stdout is not None and one.stdout.readline() == "ready\n"
    for one in both:
        assert one.stdin is not None
        one.stdin.write("\n")
        one.stdin.flush()
    taken = [int(one.communicate(timeout=HANG)[0]) for one in both]
    assert sum(taken) == 30 == len(facts.facts(W)) and waiting.waiting(W) == ()
    assert {fact.text[:-1] for fact in facts.facts(W)} == {f"Fact {number}" for number in range(30)}


KILLED = """
import os, sys
from codewhale.memory.places import workspace_folder
from codewhale.memory.service import Memory
from codewhale.memory.waiting import WaitingList

class Dies(Memory):
    def add(self, *args, **named):
        super().add(*args, **named)
        os.kill(os.getpid(), 9)

facts = Dies(sys.argv[1], workspace_folder)
WaitingList(sys.argv[1], workspace_folder, facts).take("/w", sys.argv[2], "In my own words.")
"""


def test_a_kill_between_storing_and_removing_stores_nothing_twice(home: Path) -> None:
    facts, waiting = parts(home)
    row, _ = waiting.add(W, proposed("Use tabs."))
    other, _ = waiting.add(W, proposed("Use spaces."))
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(KILLED), str(home), row.id], timeout=HANG)
    assert done.returncode == -9 and row.id in (home / "memory/waiting.jsonl").read_text()
    assert [fact.text for fact in facts.facts(W)] == ["In my own words."]
    assert waiting.waiting(W) == (other,)
    with pytest.raises(MemoryRefused, match="Nothing waits as"):
        waiting.take(W, row.id)
    waiting.drop(W, other.id)
    assert (home / "memory/waiting.jsonl").read_bytes() == b"" and len(facts.facts(W)) == 1
