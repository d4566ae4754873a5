"""The loop guard's counts: repeats, short cycles, the window, and what it says."""

from collections.abc import Iterable

import pytest

from codewhale.agent.guard import BLOCK_AT, NOTE_AT, STOP_AT, LoopGuard, alike, block, note


def play(guard: LoopGuard, calls: Iterable[str], result: str = "same") -> list[str]:
    """What becomes of each call, as dispatch handles it: run, note, block or stop."""
    outcomes = []
    for call in calls:
        if guard.before("tool", call) >= BLOCK_AT:
            count = guard.blocked("tool", call)
            outcomes.append("stop" if count >= STOP_AT else "block")
        else:
            outcomes.append("note" if guard.after("tool", call, result) >= NOTE_AT else "run")
    return outcomes


def first(outcomes: list[str], wanted: str) -> int:
    """The number of the first call (from 1) with this outcome, 0 without one."""
    return outcomes.index(wanted) + 1 if wanted in outcomes else 0


def test_the_same_call_is_noted_at_three_blocked_at_five_and_ends_the_turn_at_eight() -> None:
    assert (NOTE_AT, BLOCK_AT, STOP_AT) == (3, 5, 8)
    assert play(LoopGuard(), "aaaaaaaa") == ["run", "run", "note", "note", "block", "block", "block", "stop"]


@pytest.mark.parametrize(("period", "noted", "blocked", "stopped"), [(2, 6, 10, 16), (3, 9, 15, 24), (4, 12, 20, 32)])
def test_a_cycle_climbs_the_same_ladder(period: int, noted: int, blocked: int, stopped: int) -> None:
    outcomes = play(LoopGuard(), "abcd"[:period] * 8)
    assert first(outcomes, "note") <= noted
    assert first(outcomes, "note") >= noted - period + 1
    assert blocked - period < first(outcomes, "block") <= blocked
    assert stopped - period < first(outcomes, "stop") <= stopped


@pytest.mark.parametrize("period", [2, 3, 4])
def test_a_cycle_that_ran_twice_is_left_alone(period: int) -> None:
    assert set(play(LoopGuard(), "abcd"[:period] * 2)) == {"run"}


def test_a_cycle_of_five_is_no_cycle_but_its_calls_are_counted_in_the_window() -> None:
    assert "block" not in play(LoopGuard(), "abcde" * 12)


def test_another_result_is_no_repeat() -> None:
    guard = LoopGuard()
    counts = [guard.after("tool", "a", f"result {number}") for number in range(20)]
    assert counts == [1] * 20
    assert guard.before("tool", "a") < BLOCK_AT


def test_another_tool_with_the_same_arguments_is_no_repeat() -> None:
    guard = LoopGuard()
    assert [guard.after(name, "{}", "same") for name in ("a", "b", "c", "d", "e", "f")] == [1] * 6


def test_only_the_last_twelve_calls_count() -> None:
    guard = LoopGuard()
    play(guard, "aa")
    play(guard, [f"other {number}" for number in range(9)])
    assert guard.after("tool", "a", "same") == 3
    guard = LoopGuard()
    play(guard, "aa")
    play(guard, [f"other {number}" for number in range(10)])
    assert guard.after("tool", "a", "same") == 2


def test_a_call_between_ends_a_cycle() -> None:
    guard = LoopGuard()
    outcomes = play(guard, "abab") + play(guard, "x") + play(guard, "ab")
    assert outcomes[-1] == "note"  # the third a and b within twelve calls
    outcomes = play(LoopGuard(), ["a", "b", "c", "d"] * 2 + ["x"] + ["a", "b", "c"])
    assert "block" not in outcomes


def test_a_changed_outcome_lets_a_blocked_call_run_again_later() -> None:
    guard = LoopGuard()
    play(guard, "aaaa")
    assert guard.before("tool", "a") == BLOCK_AT
    play(guard, [f"other {number}" for number in range(10)])
    assert guard.before("tool", "a") < BLOCK_AT


def test_failing_and_succeeding_repeats_count_alike() -> None:
    assert play(LoopGuard(), "aaaaa", "Error (invalid_input) in tool: no") == ["run", "run", "note", "note", "block"]


def test_what_the_model_is_told_carries_the_count_and_the_tool() -> None:
    assert "repeat 3 of read_file" in note("read_file", 3)
    assert "called 5 times" in block("read_file", 5)
    assert block("read_file", 5).startswith("Error (loop guard): read_file was not run")


def test_a_change_makes_every_other_call_new_and_not_the_one_that_made_it() -> None:
    guard = LoopGuard()
    play(guard, "aaaa")
    play(guard, "bbb")
    guard.changed("tool", "b")
    assert (guard.before("tool", "a"), guard.before("tool", "b")) == (1, 4)


def test_a_blocked_call_is_no_outcome() -> None:
    guard = LoopGuard()
    assert play(guard, "aaaaaaa")[-1] == "block"
    play(guard, [f"other {number}" for number in range(6)])
    assert guard.before("tool", "a") < BLOCK_AT


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("make test", " make   test ", True),
        ("make test", "make test # again", True),
        ("make test", "make test2", False),
        ("echo 'a b'", "echo 'a  b'", False),
        ("cat <<E\na\nE", "cat <<E\na \nE", False),
        ('echo "', 'echo  "', False),
    ],
)
def test_commands_are_compared_by_their_words(one: str, other: str, same: bool) -> None:
    assert (alike({"command": one}, True) == alike({"command": other}, True)) is same
    assert alike({"command": one}, False) != alike({"command": other}, False)
