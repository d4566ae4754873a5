"""Several writers of one file of facts; `make memory-crash` does the same for longer."""

from pathlib import Path

from support.factwriters import beside, killed


def test_two_processes_and_a_person_lose_nothing_of_each_other(tmp_path: Path) -> None:
    assert beside(tmp_path, 60, seed=3) > 0


def test_a_killed_writer_leaves_what_it_acknowledged_and_an_index_that_is_right(tmp_path: Path) -> None:
    assert killed(tmp_path, 4, seed=5) == 4
