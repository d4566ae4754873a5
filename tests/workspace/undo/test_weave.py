"""The weave: what goes, what stays, and what a later change has touched."""

import difflib
from collections.abc import Sequence

from hypothesis import given, settings
from hypothesis import strategies as st

from codewhale.workspace.undo.resolve import LineRange, TextRevision, WovenText, lines_of, take_back


def hunks(before: Sequence[bytes], after: Sequence[bytes]) -> list[LineRange]:
    matcher = difflib.SequenceMatcher(None, before, after, autojunk=False)
    return [code[1:] for code in matcher.get_opcodes() if code[0] != "equal"]


def woven(base: bytes, *versions: tuple[str, bytes]) -> WovenText:
    """`versions` as (whose, text); the agent's ("a") are taken back."""
    steps, before = [], lines_of(base)
    for who, text in versions:
        after = lines_of(text)
        steps.append(TextRevision(after, hunks(before, after), who == "a"))
        before = after
    return take_back(lines_of(base), steps)


def test_a_hunk_goes_and_what_others_did_elsewhere_stays() -> None:
    done = woven(b"1\n2\n3\n4\n", ("a", b"1\nA\n3\n4\n"), ("p", b"1\nA\n3\n4\nP\n"))
    assert done == WovenText(b"1\n2\n3\n4\nP\n", 1, ())


def test_a_hunk_whose_line_was_changed_since_stays_and_is_told_and_the_others_go() -> None:
    done = woven(b"1\n2\n3\n4\n5\n", ("a", b"1\nA\nB\n4\nC\n"), ("p", b"P\n1\nA\nmine\n4\nC\n"))
    assert done == WovenText(b"P\n1\nA\nmine\n4\n5\n", 1, ((3, 3),))


def test_a_line_put_between_the_lines_of_a_hunk_touches_it() -> None:
    assert woven(b"1\n", ("a", b"1\nA\nB\n"), ("p", b"1\nA\nP\nB\n")) == WovenText(b"1\nA\nP\nB\n", 0, ((2, 4),))


def test_a_line_put_where_lines_were_taken_away_touches_that() -> None:
    assert woven(b"1\n2\n3\n", ("a", b"1\n3\n"), ("p", b"1\nP\n3\n")) == WovenText(b"1\nP\n3\n", 0, ((3, 2),))


def test_lines_right_before_and_right_behind_a_hunk_do_not_touch_it() -> None:
    done = woven(b"1\n2\n3\n", ("a", b"1\nA\n3\n"), ("p", b"1\nP\nA\nQ\n3\n"))
    assert done == WovenText(b"1\nP\n2\nQ\n3\n", 1, ())


def test_a_replacement_across_lines_that_were_taken_away_touches_that() -> None:
    done = woven(b"1\n2\n3\n", ("a", b"1\n3\n"), ("p", b"P\n"))
    assert done.taken == 0 and done.data == b"P\n"


def test_an_earlier_hunk_goes_although_a_later_one_of_the_agent_stood_on_it() -> None:
    done = woven(b"1\n2\n3\n", ("a", b"1\nA\n3\n"), ("p", b"P\n1\nA\n3\n"), ("a", b"P\n1\nB\n3\n"))
    assert done == WovenText(b"P\n1\n2\n3\n", 2, ())


def test_what_a_refused_hunk_of_the_agent_stands_on_stays_too() -> None:
    versions = (("a", b"1\nA\n3\n"), ("p", b"0\n1\nA\n3\n"), ("a", b"0\n1\nB\n3\n"), ("p", b"0\n1\nmine\n3\n"))
    assert woven(b"1\n2\n3\n", *versions).data == b"0\n1\nmine\n3\n"


def test_line_ends_are_kept_and_a_last_line_never_runs_into_the_next() -> None:
    assert woven(b"1\r\n2\r\n", ("a", b"1\r\nA\r\n2\r\n"), ("p", b"1\r\nA\r\n2\r\nP")).data == b"1\r\n2\r\nP"
    assert woven(b"1\r\n2", ("a", b"1\r\n2\r\nA\r\n"), ("p", b"1\r\n2\r\nA\r\nP\r\n")).data == b"1\r\n2\r\nP\r\n"


EDIT = st.tuples(st.integers(0, 30), st.integers(0, 3), st.integers(0, 3))


@settings(max_examples=120, deadline=None)
@given(st.lists(st.tuples(st.booleans(), st.lists(EDIT, min_size=1, max_size=4)), min_size=1, max_size=8))
def test_the_lines_of_others_are_all_there_and_in_order_and_the_agents_only_where_told(
    rounds: list[tuple[bool, list[tuple[int, int, int]]]],
) -> None:
    text = [b"base %d\n" % n for n in range(20)]
    steps, count, base = [], 0, list(text)
    theirs, gone_for_good = list(text), set[bytes]()
    for mine, edits in rounds:
        before = list(text)
        for at, gone, come in edits:
            place = min(at, len(text))
            new = [b"%s %d\n" % (b"agent" if mine else b"person", count + n) for n in range(come)]
            count += come
            theirs += [] if mine else new
            gone_for_good |= set() if mine else set(text[place : place + gone])
            text[place : place + gone] = new
        steps.append(TextRevision(list(text), hunks(before, text), mine))
    done = take_back(base, steps)
    kept = lines_of(done.data)
    assert len(set(kept)) == len(kept) and not gone_for_good & set(kept)
    rest = iter(kept)
    assert all(line in rest for line in text if not line.startswith(b"agent"))  # all of them, in order
    told = {n for first, last in done.refused for n in range(first, last + 1)}
    assert {n for n, line in enumerate(kept, 1) if line.startswith(b"agent")} <= told
    if not done.refused:
        assert set(kept) == set(theirs) - gone_for_good
    if all(mine for mine, _ in rounds):
        assert kept == base and not done.refused
