"""Which turns stand, after any order of turns and undos."""

from codewhale.workspace.undo.history import last_undo, live_turns
from codewhale.workspace.undo.journal import Change, JournalEntry


def entry(number: int, turn: int, kind: str = "call", since: int = 0, session: str = "s") -> JournalEntry:
    change = (Change(f"f{number}", None, None),)
    return JournalEntry(number, float(number), kind, session, turn, "c", f"t{turn}", since, 0, change)  # type: ignore[arg-type]


def numbers(*entries: JournalEntry) -> list[int]:
    return [turn.number for turn in live_turns(entries, "s")]


def test_calls_of_a_turn_are_one_and_others_do_not_count() -> None:
    entries = [entry(1, 1), entry(2, 1), entry(3, 9, session="other"), entry(4, 0, "other", session=""), entry(5, 2)]
    (second, first) = live_turns(entries, "s")
    assert (first.since, first.number, first.paths, first.tools) == (1, 1, ("f1", "f2"), ("t1",))
    assert second.since == 5 and last_undo(entries, "s") is None


def test_an_undo_takes_turns_away_and_its_own_undoing_brings_them_back() -> None:
    entries = [entry(1, 1), entry(2, 2), entry(3, 3), entry(4, 3, "undo", 2)]
    assert numbers(*entries) == [1]
    last = last_undo(entries, "s")
    assert last is not None and (last.since, last.number) == (4, 0)
    assert numbers(*entries, entry(5, 3, "undo", 4)) == [3, 2, 1]
    assert numbers(*entries, entry(5, 3, "undo", 4), entry(6, 3, "undo", 5)) == [1]


def test_a_turn_that_goes_on_after_its_undo_stands_anew() -> None:
    turns = live_turns([entry(1, 1), entry(2, 2), entry(3, 2, "undo", 2), entry(4, 2)], "s")
    assert [(turn.number, turn.since) for turn in turns] == [(2, 4), (1, 1)]


def test_an_undo_of_what_was_forgotten_leaves_what_was_before() -> None:
    assert numbers(entry(5, 3, "undo", 2), entry(6, 4)) == [4]
