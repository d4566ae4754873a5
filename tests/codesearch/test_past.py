"""Commits found by what they say and change."""

from pathlib import Path

import msgspec
import pytest

from codewhale.codesearch.model import Commit
from codewhale.codesearch.past import find_commits, pull_request, told_past
from support.searchtree import COMMITS, indexed


@pytest.mark.parametrize(
    ("subject", "number"),
    [
        ("Merge pull request #17 from sea/whale", 17),
        ("Close the store twice (#204)", 204),
        ("bpo-1: Close it (GH-55)", 55),
        ("Merge branch 'main' (#8)", 8),
        ("Fix #12 for good", None),
        ("(#1) begins", None),
        ("Big (#99999999999999)", None),
    ],
)
def test_pull_requests_are_read_from_subjects(subject: str, number: int | None) -> None:
    assert pull_request(subject) == number


def test_subjects_and_paths_answer(tmp_path: Path) -> None:
    _, reader = indexed(tmp_path)
    first = find_commits(reader, "forget the credentials")[0]
    assert (first.subject, first.at) == (COMMITS[0].subject, "2023-11-14T22:18:20Z")
    assert set(first.matched) == {"forget", "credenti"}
    by_path = find_commits(reader, "rate limiter")
    assert [one.subject for one in by_path] == ["Throttle noisy neighbours"]
    assert by_path[0].paths == ("src/net/rate_limiter.py", "README.md")
    assert find_commits(reader, "zebra") == find_commits(reader, " ") == find_commits(reader, '"*(') == []
    reader.close()


def test_answers_are_bounded_and_ordered(tmp_path: Path) -> None:
    paths = tuple(f"src/part_{number}.py" for number in range(20))
    many = [Commit(f"{number:040}", 1_700_000_000 - number, "Mend the whale " * 9, paths) for number in range(60)]
    _, reader = indexed(tmp_path, many)
    found = find_commits(reader, "whale", 50)
    assert len(found) == 50 and [one.sha for one in found] == sorted(one.sha for one in found)
    assert (len(found[0].paths), found[0].more_paths) == (8, 12)
    told, shown = told_past("whale", found, ())
    answer = msgspec.json.decode(told)
    assert len(told.encode()) <= 8_000 and 0 < shown < 50 and answer["left_out"] == f"{50 - shown} weaker commits"
    assert answer["results"][0]["pull_request"] is None
    assert msgspec.json.decode(told_past("x", None, ("There is no index yet.",))[0])["results"] == []
    reader.close()
